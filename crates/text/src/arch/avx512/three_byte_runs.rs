//! Decodes runs (uninterrupted sequences) of three-byte characters of UTF-8, as in text in Chinese,
//! Japanese or Korean.
//!
//! Inside a run, the position of a byte determines if it is the first, second or third byte of its
//! character. Therefore, no bytes have to be removed, and 21 characters are decoded per iteration.

use std::arch::x86_64::*;

use super::{BYTES, Out, load, splat8, splat16};

/// The number of three-byte characters that one iteration of the decoder decodes: as many as fit in
/// a vector of 64 bytes.
const CHARS: usize = 21;
const CHARS_BYTES: usize = 3 * CHARS;

/// Masks of the continuation bytes in 64 bytes of text that has only three-byte characters.
/// `TAILS[n]` is the mask if the first `n` bytes belong to a character that began earlier.
static TAILS: [u64; 3] = {
    let mut all = [0; 3];
    let mut i = 0;
    while i < 3 * 64 {
        let (begun, position) = (i / 64, i % 64);
        if (position + 3 - begun) % 3 != 0 {
            all[begun] |= 1 << position;
        }
        i += 1;
    }
    all
};

/// Checks if a vector may consist of three-byte characters only. `tails` is a mask of the
/// continuation bytes in the vector. Returns the number of bytes at the start of the vector that
/// belong to the previous character. Returns `None` if the vector has other characters.
#[inline(always)]
pub(super) fn looks_like_one(tails: u64) -> Option<usize> {
    let begun = tails.trailing_ones() as usize;
    (begun < 3 && tails == TAILS[begun]).then_some(begun)
}

/// Minima and maxima that show if decoded three-byte characters include overlong forms or
/// surrogates. For each vector lane, `least` is the smallest unit; a unit below U+0800 is an
/// overlong form. `most` is the largest wrapping sum of a unit and 0x2000; surrogates have the
/// largest sums.
#[derive(Clone, Copy)]
struct RunUnits {
    least: __m512i,
    most: __m512i,
}

/// The result of decoding a run of three-byte characters.
pub(super) struct DecodedRun {
    /// The number of bytes decoded; 0 if one of the first 21 characters does not have three bytes.
    pub(super) n_bytes: usize,
    /// `true` if all decoded units are valid characters: no overlong forms and no surrogates.
    pub(super) is_good: bool,
}

/// Decodes three-byte characters, 21 characters (63 bytes) per iteration. Stops when fewer than 64
/// bytes remain, or when the next 63 bytes are not 21 three-byte characters.
///
/// # Safety
/// `p` must be readable for `len` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,bmi2")]
pub(super) unsafe fn decode(p: *const u8, len: usize, out: &mut Out) -> DecodedRun {
    // SAFETY: the tables have 64 bytes.
    let table = |t: &'static [u8; 64]| unsafe { load(t.as_ptr()) };
    let (marked, marks) = (table(&MARKED), table(&MARKS));
    let (last_two, leads) = (table(&LAST_TWO), table(&LEADS));
    let mut seen = RunUnits {
        least: splat16(0xFFFF),
        most: _mm512_setzero_si512(),
    };
    let mut at = 0;
    // SAFETY: every load ends inside len; the vector's bytes are those of 21 characters.
    unsafe {
        while at + BYTES <= len {
            let v = load(p.add(at));
            if _mm512_cmpneq_epi32_mask(_mm512_and_si512(v, marked), marks) != 0 {
                break;
            }
            let two = _mm512_and_si512(_mm512_permutexvar_epi8(last_two, v), splat8(0x3F));
            let low = _mm512_maddubs_epi16(two, splat16(0x4001));
            // The shift moves the prefix of the lead byte out of the lane.
            let high = _mm512_slli_epi16::<12>(_mm512_permutexvar_epi8(leads, v));
            let units = _mm512_or_si512(low, high);
            seen.least = _mm512_min_epu16(seen.least, units);
            // After the addition, surrogates are the highest units, so the maximum shows them.
            seen.most = _mm512_max_epu16(seen.most, _mm512_add_epi16(units, splat16(0x2000)));
            out.put(units, 2 * CHARS);
            at += CHARS_BYTES;
        }
    }
    let wrong = _mm512_cmplt_epu16_mask(seen.least, splat16(0x0800))
        | _mm512_cmpge_epu16_mask(seen.most, splat16(0xF800));
    DecodedRun {
        n_bytes: at,
        is_good: wrong == 0,
    }
}

/// In a sequence of three-byte UTF-8 characters, some bits of each byte have a fixed value. For
/// each of 64 bytes, `MARKED` is a mask of these bits, and `MARKS` contains their values. The last
/// byte has no fixed bits, because 21 characters have 63 bytes.
static MARKED: [u8; 64] = by_position([0xF0, 0xC0, 0xC0]);
static MARKS: [u8; 64] = by_position([0xE0, 0x80, 0x80]);

const fn by_position(of: [u8; 3]) -> [u8; 64] {
    let mut all = [0; 64];
    let mut i = 0;
    while i < CHARS_BYTES {
        all[i] = of[i % 3];
        i += 1;
    }
    all
}

/// The indexes of a byte shuffle. 16-bit lane `i` of the result receives the last two bytes of
/// character `i`; the last byte becomes the low byte. Lanes from `CHARS` on repeat character 0.
static LAST_TWO: [u8; 64] = positions([2, 1]);
/// The indexes of a byte shuffle. The low byte of 16-bit lane `i` of the result receives the lead
/// byte of character `i`. The high byte of the lane is not used.
static LEADS: [u8; 64] = positions([0, 0]);

const fn positions(of: [u8; 2]) -> [u8; 64] {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        let character = if i / 2 < CHARS { i / 2 } else { 0 };
        all[i] = 3 * character as u8 + of[i % 2];
        i += 1;
    }
    all
}
