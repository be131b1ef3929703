//! UTF-8 to the units of a `str`.
//!
//! Each vector is loaded three or four times, one byte further each, so that every place holds the start of what may be
//! a character beside the bytes behind it. What the units are made of is put together at all places at once, and the
//! places where no character starts are squeezed out. No step waits for the one before it but for the place of its
//! output, and no branch looks at single characters.
//!
//! Well-formed or not is a matter of bits: the places that continue something must be those that the lead bytes before
//! them call for. What is left are overlong forms, surrogates and values past U+10FFFF, told by the first two bytes.
//!
//! Room: a character is counted where no byte continues, in text that is well-formed or not, and one unit is written for
//! each. So the number of units is known by [`scan_utf8`](super::scan_utf8) before any byte is validated.

use std::arch::x86_64::*;

use super::second::{low_bits, wrong_seconds};
use super::{BYTES, Out, first, load, load_first, select, splat8, splat32};
use crate::Kind;

/// Which bytes of a vector are what: each bit set is a part of those below it.
#[derive(Clone, Copy)]
struct Bytes {
    /// Not ASCII.
    high: u64,
    /// Continuation bytes, 0x80 to 0xBF.
    tails: u64,
    /// High and no continuation bytes: leads of two bytes or more.
    leads: u64,
    /// Leads of three or more.
    three: u64,
    /// Leads of four or more.
    four: u64,
}

/// `N`: the longest sequence that occurs.
#[inline]
#[target_feature(enable = "avx512bw")]
fn bytes_of<const N: usize>(v: __m512i) -> Bytes {
    let high = _mm512_movepi8_mask(v);
    // Signed: continuation bytes are the lowest.
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
    Bytes {
        high,
        tails,
        leads,
        three,
        four,
    }
}

/// What was found wrong, and what the lead bytes at the end of a vector call for in the next.
#[derive(Clone, Copy, Default)]
struct Check {
    owed: u64,
    bad: u64,
}

impl Check {
    /// Looks at a vector `v` and its second bytes.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn step(&mut self, b: Bytes, v: __m512i, second: __m512i) {
        self.places(b, v);
        if b.three != 0 {
            self.bad |= wrong_seconds(b.three, v, second);
        }
    }

    /// Whether bytes continue something at the places where the leads call for it, and no lead is 0xC0 or 0xC1, overlong.
    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn places(&mut self, b: Bytes, v: __m512i) {
        let due = b.leads << 1 | b.three << 2 | b.four << 3 | self.owed;
        self.owed = b.leads >> 63 | b.three >> 62 | b.four >> 61;
        self.bad |= due ^ b.tails;
        self.bad |= _mm512_mask_cmplt_epu8_mask(b.leads, v, splat8(0xC2));
    }

    fn is_good(self) -> bool {
        self.owed | self.bad == 0
    }
}

/// Kind and characters of the text; `None` where it is malformed.
#[target_feature(enable = "avx512bw,avx512vbmi,bmi2,popcnt")]
pub(in crate::arch) fn measure(src: &[u8]) -> Option<(Kind, usize)> {
    let (p, len) = (src.as_ptr(), src.len());
    let mut check = Check::default();
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
    check.is_good().then_some((kind, len - tails))
}

/// Runs `step(at, n_bytes)` for each vector of the text: first where it and three bytes behind it are inside the text,
/// then where less is left, so that each of the two can be compiled for itself.
macro_rules! each_vector {
    ($p:ident, $len:ident, $at:ident, |$v:ident, $load:ident, $n:ident| $body:block) => {
        while $at + BYTES + 3 <= $len {
            let $v = load($p.add($at));
            let $load = |behind: usize| load($p.add($at + behind));
            let $n = BYTES;
            $body
            $at += BYTES;
        }
        while $at < $len {
            let $n = ($len - $at).min(BYTES);
            let $v = load_first($p.add($at), $n);
            let $load = |behind: usize| {
                load_first($p.wrapping_add($at + behind), ($len - $at).saturating_sub(behind))
            };
            $body
            $at += BYTES;
        }
    };
}

mod utf16;
pub(super) use utf16::units;
pub(in crate::arch) use utf16::{to_utf16, units_of};

/// Decodes text without a character past U+00FF and returns how many units it gave; `None` if it is malformed and `CHECK`, or
/// gives more than `n_chars`.
///
/// # Safety
/// `dst` takes `n_chars` units, apart from `src`.
#[target_feature(enable = "avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_latin1<const CHECK: bool>(
    src: &[u8],
    dst: *mut u8,
    n_chars: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    let mut check = Check::default();
    // SAFETY: every load ends inside src.
    let n_bytes = unsafe {
        let mut out = Out::new(dst, n_chars);
        let mut at = 0;
        each_vector!(p, len, at, |v, behind, n| {
            let b = bytes_of::<2>(v);
            if b.high | check.owed == 0 {
                out.put(v, n);
            } else {
                let second = behind(1);
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

/// Places of a vector where a character of four bytes may start and end in it.
const WHOLE: usize = BYTES - 3;

/// As [`to_latin1`], of any text. With `CHECK`, each unit that was written is a code point, even if
/// the text changes meanwhile: its first two bytes are checked in the vector that it is made of.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4<const CHECK: bool>(
    src: &[u8],
    dst: *mut u32,
    n_chars: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    let places = low_bits(&PLACES);
    let mut check = Check::default();
    // SAFETY: every load ends inside src.
    let n_bytes = unsafe {
        let mut out = Out::new(dst.cast(), 4 * n_chars);
        let mut at = 0;
        while at < len {
            // What is whole in this vector, then the next one from there.
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
                // At all places: `wrong_seconds` takes 0xC0 for a second byte of leads past 0xF4.
                check.bad |= _mm512_mask_cmplt_epu8_mask(b.leads, v, splat8(0xC2));
                if three != 0 {
                    let second = _mm512_permutexvar_epi8(_mm512_add_epi8(places, splat8(1)), v);
                    check.bad |= wrong_seconds(three, v, second);
                }
            }
            let mut squeezed = _mm512_maskz_compress_epi8(starts, places);
            let quarters = low_bits(&QUARTERS);
            loop {
                let n = starts.count_ones().min(16) as usize;
                // The place of each character's first byte and the three behind it, the first byte highest.
                let bytes = _mm512_add_epi8(
                    _mm512_permutexvar_epi8(quarters, squeezed),
                    splat32(0x0001_0203),
                );
                out.put(code_points(_mm512_permutexvar_epi8(bytes, v)), 4 * n);
                if starts.count_ones() <= 16 {
                    break;
                }
                // The next 16.
                starts = _pdep_u64(!0xFFFF, starts);
                squeezed = _mm512_alignr_epi32::<4>(_mm512_setzero_si512(), squeezed);
            }
            at += WHOLE;
        }
        out.written(dst.cast())
    };
    n_bytes.filter(|_| check.is_good()).map(|n| n / 4)
}

/// Puts 64 bytes as units, as far as they fit.
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

/// Characters of one to four bytes, in the high bytes of each lane, decoded.
#[inline]
#[target_feature(enable = "avx512bw")]
fn code_points(bytes: __m512i) -> __m512i {
    let class = _mm512_srli_epi32::<28>(bytes);
    // By the high half of the first byte: where the last byte is, and the bits that count.
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
    // Two and two of them are put together, then both halves.
    let halves = _mm512_maddubs_epi16(v, splat32(0x4001_4001));
    _mm512_madd_epi16(halves, splat32(0x1000_0001))
}

/// 0 to 63.
static PLACES: [u8; 64] = {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// Each of 0 to 15 four times.
static QUARTERS: [u8; 64] = {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = i as u8 / 4;
        i += 1;
    }
    all
};
