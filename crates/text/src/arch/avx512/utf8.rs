//! Converts UTF-8 to the units of a `str`.
//!
//! Each vector is loaded three or four times, one byte further each time, so that every position
//! has a byte and the bytes that follow it. A unit is assembled at every position, and the
//! positions at which no character starts are removed. An iteration depends on the previous one
//! only for the position of its output, and no branch depends on a single character.
//!
//! Validation consists mostly of bit masks: continuation bytes must be exactly where the lead bytes
//! before them require them. The other errors (overlong forms, surrogates and values past U+10FFFF)
//! are found from the first two bytes of a character.
//!
//! Capacity: every non-continuation byte counts as a character, whether the text is well-formed or
//! not, and one unit is written for each. So [`scan_utf8`](super::scan_utf8) returns the number of
//! units before any byte is validated.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::utf8_second_bytes::{low_bits, wrong_seconds};
use super::{BYTES, Out, first, load, load_first, select, splat8, splat32};
use crate::{Kind, Shape};

/// The classes of the UTF-8 bytes in a vector, as one mask for each class. Each byte in the mask
/// `four` is also in `three`, and each byte in `three` is also in `leads`.
#[derive(Clone, Copy)]
struct ByteClasses {
    /// A mask of the bytes that are not ASCII.
    high: u64,
    /// A mask of the continuation bytes, 0x80 to 0xBF.
    tails: u64,
    /// A mask of the lead bytes of characters of two bytes or more: the bytes that are neither
    /// ASCII nor continuation bytes.
    leads: u64,
    /// A mask of the lead bytes of characters of three bytes or more.
    three: u64,
    /// A mask of the lead bytes of characters of four bytes or more.
    four: u64,
}

/// Classifies the bytes of a vector. `N` is the length in bytes of the longest character in the
/// text; the masks for lead bytes of longer characters are 0.
#[inline]
#[target_feature(enable = "avx512bw")]
fn bytes_of<const N: usize>(v: __m512i) -> ByteClasses {
    let high = _mm512_movepi8_mask(v);
    // Compared as signed numbers, continuation bytes are less than all other bytes.
    let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0));
    let leads = high & !tails;
    let three = if N >= 3 {
        _mm512_cmpge_epu8_mask(v, splat8(0xE0))
    } else {
        0
    };
    let four = if N >= 4 {
        _mm512_cmpge_epu8_mask(v, splat8(0xF0))
    } else {
        0
    };
    ByteClasses {
        high,
        tails,
        leads,
        three,
        four,
    }
}

/// The state of the validation: the errors found so far, and the continuation bytes that must be at
/// the start of the next vector. They are required if the previous vector ends inside a character.
#[derive(Clone, Copy, Default)]
struct VectorCheck {
    owed: u64,
    bad: u64,
}

impl VectorCheck {
    /// Checks the bytes of the vector `v`. `b` contains bit masks of the classes of these bytes,
    /// such as lead and continuation bytes. The byte at index `i` of `second` is the byte of the
    /// text that follows the byte at index `i` of `v`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn step(&mut self, b: ByteClasses, v: __m512i, second: __m512i) {
        self.check_positions(b, v);
        if b.three != 0 {
            self.bad |= wrong_seconds(b.three, v, second);
        }
    }

    /// Checks that continuation bytes are exactly where the leads require them, and that no lead is
    /// 0xC0 or 0xC1, which would be overlong.
    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn check_positions(&mut self, b: ByteClasses, v: __m512i) {
        let due = b.leads << 1 | b.three << 2 | b.four << 3 | self.owed;
        self.owed = b.leads >> 63 | b.three >> 62 | b.four >> 61;
        self.bad |= due ^ b.tails;
        self.bad |= _mm512_mask_cmplt_epu8_mask(b.leads, v, splat8(0xC2));
    }

    fn is_good(self) -> bool {
        self.owed | self.bad == 0
    }
}

/// Returns the kind of `str` that the text needs and its number of characters; `None` for malformed
/// text.
#[target_feature(enable = "avx512bw,avx512vbmi,bmi2,popcnt")]
pub(in crate::arch) fn measure(src: &[u8]) -> Option<Shape> {
    let (p, len) = (src.as_ptr(), src.len());
    let mut check = VectorCheck::default();
    let mut max = _mm512_setzero_si512();
    let mut tails = 0;
    let mut at = 0;
    // SAFETY: every load ends inside src.
    unsafe {
        while at + BYTES < len {
            let v = load(p.add(at));
            let b = bytes_of::<4>(v);
            if b.high | check.owed != 0 {
                max = _mm512_max_epu8(max, v);
                tails += b.tails.count_ones() as usize;
                check.step(b, v, load(p.add(at + 1)));
                if check.bad != 0 {
                    return None;
                }
            }
            at += BYTES;
        }
        let v = load_first(p.add(at), len - at);
        let b = bytes_of::<4>(v);
        if b.high | check.owed != 0 {
            max = _mm512_max_epu8(max, v);
            tails += b.tails.count_ones() as usize;
            let second = load_first(p.wrapping_add(at + 1), (len - at).saturating_sub(1));
            check.step(b, v, second);
        }
    }
    let reaches = |byte| _mm512_cmpge_epu8_mask(max, splat8(byte)) != 0;
    let kind = if reaches(0xF0) {
        Kind::Ucs4
    } else if reaches(0xC4) {
        Kind::Ucs2
    } else if reaches(0x80) {
        Kind::Latin1
    } else {
        Kind::Ascii
    };
    check.is_good().then_some(Shape {
        kind,
        n_chars: len - tails,
    })
}

/// Runs `$body` for each vector of a text. In `$body`, `$load` loads the vector at an offset, and
/// `$n` is the number of its bytes.
///
/// The first loop runs while the vector and three bytes after it are inside the text; the second
/// loop handles the remaining bytes with masked loads. The compiler optimises each loop separately.
macro_rules! each_vector {
    ($p:ident, $len:ident, $at:ident, |$v:ident, $load:ident, $n:ident| $body:block) => {
        while $at + BYTES + 3 <= $len {
            let $v = load($p.add($at));
            let $load = |offset: usize| load($p.add($at + offset));
            let $n = BYTES;
            $body
            $at += BYTES;
        }
        while $at < $len {
            let $n = ($len - $at).min(BYTES);
            let $v = load_first($p.add($at), $n);
            let $load = |offset: usize| {
            load_first($p.wrapping_add($at + offset), ($len - $at).saturating_sub(offset))
            };
            $body
            $at += BYTES;
        }
    };
}

mod utf16;
pub(super) use utf16::units;
pub(in crate::arch) use utf16::{to_utf16, units_of};

/// Decodes UTF-8 whose characters are all at most U+00FF, and returns the number of units. Returns
/// `None` if `out` is too small or if `CHECK` is `true` and the text is malformed.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_latin1<const CHECK: bool>(
    src: &[u8],
    out: &mut [MaybeUninit<u8>],
) -> Option<usize> {
    let (dst, n_chars) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    let mut check = VectorCheck::default();
    // SAFETY: every load ends inside src.
    let n_bytes = unsafe {
        let mut out = Out::new(dst, n_chars);
        let mut at = 0;
        each_vector!(p, len, at, |v, load, n| {
            let b = bytes_of::<2>(v);
            if b.high | check.owed == 0 {
                out.put(v, n);
            } else {
                let second = load(1);
                let shifted = _mm512_slli_epi16::<6>(v);
                let both = select(splat8(0xC0), shifted, second);
                let units = _mm512_mask_mov_epi8(v, b.leads, both);
                let starts = !b.tails & first(n);
                out.put(
                    _mm512_maskz_compress_epi8(starts, units),
                    starts.count_ones() as usize,
                );
                if CHECK {
                    let due = b.leads << 1 | check.owed;
                    check.owed = b.leads >> 63;
                    check.bad |= due ^ b.tails;
                    check.bad |= _mm512_mask_cmplt_epu8_mask(b.leads, v, splat8(0xC2));
                }
            }
        });
        out.written(dst)
    };
    n_bytes.filter(|_| check.is_good())
}

/// The number of positions in a vector at which a character of four bytes can start without
/// extending past the end of the vector.
const WHOLE: usize = BYTES - 3;

/// Decodes any UTF-8 to 32-bit units, and returns the number of units. Returns `None` if `out` is
/// too small or if `CHECK` is `true` and the text is malformed. If `CHECK` is `true`, the first two
/// bytes of a character are validated in the vector register from which the character is decoded.
/// Each written unit is therefore a valid code point, even if the text changes during the
/// conversion.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4<const CHECK: bool>(
    src: &[u8],
    out: &mut [MaybeUninit<u32>],
) -> Option<usize> {
    let (dst, n_chars) = (out.as_mut_ptr().cast::<u32>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    let indices = low_bits(&INDICES);
    let mut check = VectorCheck::default();
    // SAFETY: every load ends inside src.
    let n_bytes = unsafe {
        let mut out = Out::new(dst.cast(), 4 * n_chars);
        let mut at = 0;
        while at < len {
            // Decodes the characters that end in this vector; the next vector starts after them.
            let rest = len - at;
            let v = if rest >= BYTES {
                load(p.add(at))
            } else {
                load_first(p.add(at), rest)
            };
            if _mm512_movepi8_mask(v) as u64 | check.owed == 0 && rest >= BYTES {
                put_ascii(&mut out, v);
                at += BYTES;
                continue;
            }
            let here = first(rest.min(WHOLE));
            let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0)) & here;
            let mut starts = !tails & here;
            if CHECK {
                let b = bytes_of::<4>(v);
                let (leads, three, four) = (b.leads & here, b.three & here, b.four & here);
                let due = leads << 1 | three << 2 | four << 3 | check.owed;
                check.owed = due >> WHOLE;
                check.bad |= due & first(WHOLE) ^ tails;
                // This check is made at all positions, because `wrong_seconds` accepts 0xC0 as a
                // second byte of leads past 0xF4.
                check.bad |= _mm512_mask_cmplt_epu8_mask(b.leads, v, splat8(0xC2));
                if three != 0 {
                    let second = _mm512_permutexvar_epi8(_mm512_add_epi8(indices, splat8(1)), v);
                    check.bad |= wrong_seconds(three, v, second);
                }
            }
            let mut squeezed = _mm512_maskz_compress_epi8(starts, indices);
            let quarters = low_bits(&QUARTERS);
            loop {
                let n = starts.count_ones().min(16) as usize;
                // The indices of each character's first byte and of the three bytes after it, with
                // the first byte highest in its lane.
                let bytes = _mm512_add_epi8(
                    _mm512_permutexvar_epi8(quarters, squeezed),
                    splat32(0x0001_0203),
                );
                out.put(code_points(_mm512_permutexvar_epi8(bytes, v)), 4 * n);
                if starts.count_ones() <= 16 {
                    break;
                }
                // The starts of the 16 characters that were decoded are removed.
                starts = _pdep_u64(!0xFFFF, starts);
                squeezed = _mm512_alignr_epi32::<4>(_mm512_setzero_si512(), squeezed);
            }
            at += WHOLE;
        }
        out.written(dst.cast())
    };
    n_bytes.filter(|_| check.is_good()).map(|n| n / 4)
}

/// Writes 64 ASCII bytes as 32-bit units. Units that do not fit into `out` are not written.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn put_ascii(out: &mut Out, v: __m512i) {
    out.put(
        _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<0>(v)),
        BYTES,
    );
    out.put(
        _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<1>(v)),
        BYTES,
    );
    out.put(
        _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<2>(v)),
        BYTES,
    );
    out.put(
        _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<3>(v)),
        BYTES,
    );
}

/// Decodes one UTF-8 character in each 32-bit lane. The first byte of the character is the highest
/// byte of the lane. The up to three other bytes follow below it.
#[inline]
#[target_feature(enable = "avx512bw")]
fn code_points(bytes: __m512i) -> __m512i {
    let class = _mm512_srli_epi32::<28>(bytes);
    // For each value of the upper four bits of the first byte: the number of bits of the lane below
    // the bytes of the character, and the bits of the lane that belong to the code point.
    let shift = _mm512_setr_epi32(24, 24, 24, 24, 24, 24, 24, 24, 16, 16, 16, 16, 16, 16, 8, 0);
    let bits = _mm512_setr_epi32(
        0x7F,
        0x7F,
        0x7F,
        0x7F,
        0x7F,
        0x7F,
        0x7F,
        0x7F,
        0x1F3F,
        0x1F3F,
        0x1F3F,
        0x1F3F,
        0x1F3F,
        0x1F3F,
        0x0F_3F3F,
        0x073F_3F3F,
    );
    let v = _mm512_srlv_epi32(bytes, _mm512_permutexvar_epi32(class, shift));
    let v = _mm512_and_si512(v, _mm512_permutexvar_epi32(class, bits));
    // The six-bit groups of adjacent bytes are combined, then the two halves of the lane.
    let halves = _mm512_maddubs_epi16(v, splat32(0x4001_4001));
    _mm512_madd_epi16(halves, splat32(0x1000_0001))
}

/// The numbers 0 to 63, one per byte.
static INDICES: [u8; 64] = {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// The numbers 0 to 15, each four times.
static QUARTERS: [u8; 64] = {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = i as u8 / 4;
        i += 1;
    }
    all
};
