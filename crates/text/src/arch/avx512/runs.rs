//! Runs of characters that take three bytes each in UTF-8, as text in Chinese, Japanese or Korean has them.
//!
//! Where each byte of a vector is known by its place, nothing is squeezed out: 21 characters are decoded at once.

use std::arch::x86_64::*;

use super::{BYTES, Out, load, splat8, splat16};

/// Characters of a step, and their bytes.
const CHARS: usize = 21;
const CHARS_BYTES: usize = 3 * CHARS;

/// The continuation bytes of a vector inside a run, by how many of them its start holds of the character before it.
static TAILS: [u64; 3] = {
    let mut all = [0; 3];
    let mut i = 0;
    while i < 3 * 64 {
        let (begun, place) = (i / 64, i % 64);
        if (place + 3 - begun) % 3 != 0 {
            all[begun] |= 1 << place;
        }
        i += 1;
    }
    all
};

/// Whether a vector with these continuation bytes looks like one inside a run, and how many of them its start holds of the
/// character before it.
#[inline(always)]
pub(super) fn looks_like_one(tails: u64) -> Option<usize> {
    let begun = tails.trailing_ones() as usize;
    (begun < 3 && tails == TAILS[begun]).then_some(begun)
}

/// What is wrong with the characters of a run: units below U+0800, which are overlong, and surrogates.
#[derive(Clone, Copy)]
struct Seen {
    least: __m512i,
    most: __m512i,
}

/// How far a run went.
pub(super) struct Run {
    /// None, where the first 21 characters are no run after all.
    pub(super) n_bytes: usize,
    /// Whether all that it decoded are characters.
    pub(super) is_good: bool,
}

/// Decodes characters of three bytes as long as 64 bytes are there that hold 21 of them.
///
/// # Safety
/// `p` is readable for `len` bytes, and `out` has room for a unit for each byte of them that continues nothing.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,bmi2")]
pub(super) unsafe fn decode(p: *const u8, len: usize, out: &mut Out) -> Run {
    // SAFETY: the tables have 64 bytes.
    let table = |t: &'static [u8; 64]| unsafe { load(t.as_ptr()) };
    let (marked, marks) = (table(&MARKED), table(&MARKS));
    let (last_two, leads) = (table(&LAST_TWO), table(&LEADS));
    let mut seen = Seen {
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
            // The mark falls out of the lane.
            let high = _mm512_slli_epi16::<12>(_mm512_permutexvar_epi8(leads, v));
            let units = _mm512_or_si512(low, high);
            seen.least = _mm512_min_epu16(seen.least, units);
            // Surrogates are moved to the top of the range, to be seen there.
            seen.most = _mm512_max_epu16(seen.most, _mm512_add_epi16(units, splat16(0x2000)));
            out.put(units, 2 * CHARS);
            at += CHARS_BYTES;
        }
    }
    let wrong = _mm512_cmplt_epu16_mask(seen.least, splat16(0x0800))
        | _mm512_cmpge_epu16_mask(seen.most, splat16(0xF800));
    Run {
        n_bytes: at,
        is_good: wrong == 0,
    }
}

/// The bits that tell what a byte of a run is, and what they are; the last byte of the vector belongs to no character.
static MARKED: [u8; 64] = by_place([0xF0, 0xC0, 0xC0]);
static MARKS: [u8; 64] = by_place([0xE0, 0x80, 0x80]);

const fn by_place(of: [u8; 3]) -> [u8; 64] {
    let mut all = [0; 64];
    let mut i = 0;
    while i < CHARS_BYTES {
        all[i] = of[i % 3];
        i += 1;
    }
    all
}

/// For each lane of 16 bits the places of its character's last two bytes, the last one first; the lanes behind the last
/// character have the first one.
static LAST_TWO: [u8; 64] = places([2, 1]);
/// For each lane the place of the lead, and any.
static LEADS: [u8; 64] = places([0, 0]);

const fn places(of: [u8; 2]) -> [u8; 64] {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        let character = if i / 2 < CHARS { i / 2 } else { 0 };
        all[i] = 3 * character as u8 + of[i % 2];
        i += 1;
    }
    all
}
