//! Decodes runs of three-byte UTF-8 characters, as in Chinese, Japanese or Korean text.
//!
//! The position of a byte in a run shows its position in its character. One iteration decodes 21
//! characters.

use std::arch::x86_64::*;

use super::{BYTES, Out, load, splat8, splat16};

/// The number of three-byte characters in a vector of 64 bytes.
const CHARS: usize = 21;
const CHARS_BYTES: usize = 3 * CHARS;

/// Masks of the continuation bytes in three-byte characters. `TAILS[n]` starts with `n` of them.
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

/// Returns the number of bytes before the first lead byte. `None` if not all characters have three
/// bytes.
#[inline(always)]
pub(super) fn looks_like_one(tails: u64) -> Option<usize> {
    let begun = tails.trailing_ones() as usize;
    (begun < 3 && tails == TAILS[begun]).then_some(begun)
}

/// Minima and maxima that show invalid characters. Units below U+0800 in `least` are overlong
/// forms. `most` has sums of a unit and 0x2000: surrogates have the largest sums.
#[derive(Clone, Copy)]
struct RunUnits {
    least: __m512i,
    most: __m512i,
}

pub(super) struct DecodedRun {
    /// The number of bytes decoded; 0 if the first 21 characters are not all of three bytes.
    pub(super) n_bytes: usize,
    /// `true` if no character is overlong or a surrogate.
    pub(super) is_good: bool,
}

/// Decodes three-byte characters, 21 (63 bytes) per iteration. Stops at fewer than 64 bytes, or at
/// any other character.
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
    // SAFETY: every load ends inside `len`.
    unsafe {
        while at + BYTES <= len {
            let v = load(p.add(at));
            if _mm512_cmpneq_epi32_mask(_mm512_and_si512(v, marked), marks) != 0 {
                break;
            }
            let two = _mm512_and_si512(_mm512_permutexvar_epi8(last_two, v), splat8(0x3F));
            let low = _mm512_maddubs_epi16(two, splat16(0x4001));
            // Shifts the prefix of the lead byte out of the lane.
            let high = _mm512_slli_epi16::<12>(_mm512_permutexvar_epi8(leads, v));
            let units = _mm512_or_si512(low, high);
            seen.least = _mm512_min_epu16(seen.least, units);
            // After the addition, surrogates are the highest units.
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

/// The bits that all three-byte characters have in common: a mask (`MARKED`) and their values
/// (`MARKS`).
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

/// Indexes of a byte shuffle. Lane `i` receives the last two bytes of character `i` in reversed
/// order.
static LAST_TWO: [u8; 64] = positions([2, 1]);
/// Indexes of a byte shuffle. The low byte of lane `i` receives the lead of character `i`.
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
