//! Computes the length of a text in UTF-8, and validates the text.

use std::arch::x86_64::*;

use super::utf16::{first_halves, second_halves};
use super::{BYTES, load, load_first, splat16, splat32};

/// Returns the UTF-8 length of Latin-1 text.
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

/// Returns the UTF-8 length of 16-bit units, and `true` if one is a surrogate. A surrogate counts
/// as 2 bytes.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn wide(src: &[u16]) -> (usize, bool) {
    let (p, len) = (src.as_ptr(), src.len());
    let mut most = _mm512_setzero_si512();
    let mut more = |v| {
        // After the addition, surrogates are the highest units.
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
            // Surrogates have two bytes, but were counted as three.
            n -= surrogates(src);
        }
        (n, found)
    }
}

/// Returns the number of surrogates.
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

/// Returns `true` if each surrogate is part of a surrogate pair.
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

/// Returns the UTF-8 length of 32-bit units. `None` if a unit is not a valid character.
#[target_feature(enable = "avx512bw,avx512cd,bmi2")]
pub(in crate::arch) fn ucs4(src: &[u32]) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // For each number of leading zeros: the number of UTF-8 bytes less one.
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
            // A 32-bit counter suffices for 2^30 vectors.
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
