//! Converts UTF-8 to the units of a `str`.
//!
//! Each vector is loaded several times, one byte further each time. A unit is assembled at every
//! byte. The units without a character are then removed.
//!
//! Validation uses bit masks: continuation bytes must be exactly where lead bytes require them.
//!
//! `scan_utf8` returns the needed capacity: one unit for each non-continuation byte.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::utf8_second_bytes::{low_bits, wrong_seconds};
use super::{BYTES, Out, first, load, load_first, select, splat8, splat32};
use crate::{Kind, Shape};

/// One mask for each class of bytes. `leads` includes `three`, and `three` includes `four`.
#[derive(Clone, Copy)]
struct ByteClasses {
    /// The bytes that are not ASCII.
    high: u64,
    /// The continuation bytes, 0x80 to 0xBF.
    tails: u64,
    /// The lead bytes of characters of two or more bytes.
    leads: u64,
    /// The lead bytes of characters of three or more bytes.
    three: u64,
    /// The lead bytes of characters of four bytes.
    four: u64,
}

/// Classifies the bytes of a vector. The text has no characters of more than `N` bytes.
#[inline]
#[target_feature(enable = "avx512bw")]
fn bytes_of<const N: usize>(v: __m512i) -> ByteClasses {
    let high = _mm512_movepi8_mask(v);
    // As signed numbers, continuation bytes are the lowest.
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

/// The errors found, and the continuation bytes that the next vector must start with.
#[derive(Clone, Copy, Default)]
struct VectorCheck {
    owed: u64,
    bad: u64,
}

impl VectorCheck {
    /// Checks the bytes of `v`. `b` has their classes. `second` has the byte after each byte.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn step(&mut self, b: ByteClasses, v: __m512i, second: __m512i) {
        self.check_positions(b, v);
        if b.three != 0 {
            self.bad |= wrong_seconds(b.three, v, second);
        }
    }

    /// Checks that continuation bytes are exactly where the leads require them. The leads 0xC0 and
    /// 0xC1 are overlong.
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

/// Returns the kind of the `str` and its number of characters. `None` for malformed text.
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

/// Runs `$body` for each vector. `$load` loads the vector at an offset, and `$n` is its number of
/// bytes.
///
/// The first loop needs three bytes after the vector. The second loop uses masked loads.
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

/// Decodes UTF-8 below U+0100. Returns the number of units, or `None` if `out` is too short. If
/// `CHECK` is `true`, validates the text.
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

/// The number of positions at which a four-byte character fits into a vector.
const WHOLE: usize = BYTES - 3;

/// Decodes UTF-8 to 32-bit units. Returns their number, or `None` if `out` is too short. If `CHECK`
/// is `true`, validates the text: all units are valid even if the text changes.
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
            // The next vector starts after the characters that end in this one.
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
                // Checked at all positions: `wrong_seconds` accepts 0xC0 as a second byte after
                // leads past 0xF4.
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
                // The indexes of each character's four bytes. The first byte is the highest in its
                // lane.
                let bytes = _mm512_add_epi8(
                    _mm512_permutexvar_epi8(quarters, squeezed),
                    splat32(0x0001_0203),
                );
                out.put(code_points(_mm512_permutexvar_epi8(bytes, v)), 4 * n);
                if starts.count_ones() <= 16 {
                    break;
                }
                // Removes the 16 decoded characters.
                starts = _pdep_u64(!0xFFFF, starts);
                squeezed = _mm512_alignr_epi32::<4>(_mm512_setzero_si512(), squeezed);
            }
            at += WHOLE;
        }
        out.written(dst.cast())
    };
    n_bytes.filter(|_| check.is_good()).map(|n| n / 4)
}

/// Writes 64 ASCII bytes as 32-bit units. Units that do not fit are dropped.
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

/// Decodes one character in each 32-bit lane. The first UTF-8 byte is the highest byte of the lane.
#[inline]
#[target_feature(enable = "avx512bw")]
fn code_points(bytes: __m512i) -> __m512i {
    let class = _mm512_srli_epi32::<28>(bytes);
    // Indexed by the upper half of the first byte: the unused low bits, and the bits of the code
    // point.
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
    // Combines the six-bit groups of adjacent bytes, then the halves of the lane.
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
