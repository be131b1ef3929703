//! Lengths of text in UTF-8, with the look at whether it is well-formed where that is a question.
//!
//! The text is counted in lanes, with no mask and no branch: to read it is what it costs.

use std::arch::x86_64::*;

use super::utf16::{first_halves, second_halves};
use super::{BYTES, load, load_first, splat16, splat32};

/// Bytes of Latin-1 as UTF-8.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn latin1(src: &[u8]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    let more = |v| _mm512_movepi8_mask(v).count_ones() as usize;
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut n, mut at) = (len, 0);
        while at + BYTES <= len {
            n += more(load(p.add(at)));
            at += BYTES;
        }
        n + more(load_first(p.add(at), len - at))
    }
}

/// Bytes of 16-bit units as UTF-8, and whether there is a surrogate. Each half of a pair counts 2, as in the 4 bytes of its
/// character.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn wide(src: &[u16]) -> (usize, bool) {
    let (p, len) = (src.as_ptr(), src.len());
    let mut most = _mm512_setzero_si512();
    let mut more = |v| {
        // Surrogates are moved to the top of the range, to be seen there.
        most = _mm512_max_epu16(most, _mm512_add_epi16(v, splat16(0x2000)));
        let from = |bits| _mm512_test_epi16_mask(v, splat16(bits)).count_ones() as usize;
        from(0xFF80) + from(0xF800)
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut n, mut at) = (len, 0);
        while at + BYTES / 2 <= len {
            n += more(load(p.add(at).cast()));
            at += BYTES / 2;
        }
        n += more(load_first(p.add(at).cast(), 2 * (len - at)));
        let found = _mm512_cmpge_epu16_mask(most, splat16(0xF800)) != 0;
        if found {
            // Those were counted as three bytes each.
            n -= surrogates(src);
        }
        (n, found)
    }
}

/// Units that are surrogates.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
fn surrogates(src: &[u16]) -> usize {
    src.chunks(BYTES / 2)
        .map(|part| {
            // SAFETY: the load ends inside the part.
            let v = unsafe { load_first(part.as_ptr().cast(), 2 * part.len()) };
            super::scan::surrogates(v).count_ones() as usize
        })
        .sum()
}

/// Whether all surrogates stand in pairs.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn is_utf16(src: &[u16]) -> bool {
    let (p, len) = (src.as_ptr(), src.len());
    let (mut open, mut bad) = (0, 0);
    let mut at = 0;
    while at < len {
        // SAFETY: every load ends inside src.
        let v = unsafe {
            if at + BYTES / 2 <= len {
                load(p.add(at).cast())
            } else {
                load_first(p.add(at).cast(), 2 * (len - at))
            }
        };
        let (highs, lows) = (first_halves(v), second_halves(v));
        bad |= (highs << 1 | open) ^ lows;
        open = highs >> 31;
        at += BYTES / 2;
    }
    bad | open == 0
}

/// Bytes of 32-bit units as UTF-8; `None` where one is a surrogate or past U+10FFFF.
#[target_feature(enable = "avx512bw,avx512cd,bmi2")]
pub(in crate::arch) fn ucs4(src: &[u32]) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // By the leading zeros of a unit: its bytes, less one.
    let low = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3);
    let high = _mm512_setr_epi32(2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0);
    let (mut most, mut least) = (_mm512_setzero_si512(), splat32(u32::MAX));
    let mut count = |counts, v| {
        most = _mm512_max_epu32(most, v);
        least = _mm512_min_epu32(least, _mm512_sub_epi32(v, splat32(0xD800)));
        let more = _mm512_permutex2var_epi32(low, _mm512_lzcnt_epi32(v), high);
        _mm512_add_epi32(counts, more)
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut n, mut at) = (len, 0);
        while at < len {
            // The counters of 32 bits take 2^30 rounds.
            let end = len.min(at + (1 << 30));
            let mut counts = _mm512_setzero_si512();
            while at + 16 <= end {
                counts = count(counts, load(p.add(at).cast()));
                at += 16;
            }
            if at < end {
                counts = count(counts, load_first(p.add(at).cast(), 4 * (end - at)));
                at = end;
            }
            n += _mm512_reduce_add_epi64(_mm512_add_epi64(
                _mm512_and_si512(counts, _mm512_set1_epi64(0xFFFF_FFFF)),
                _mm512_srli_epi64::<32>(counts),
            )) as usize;
        }
        let bad = _mm512_cmpgt_epu32_mask(most, splat32(0x10_FFFF))
            | _mm512_cmplt_epu32_mask(least, splat32(0x800));
        (bad == 0).then_some(n)
    }
}
