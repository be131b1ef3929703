//! Counts, validates and decodes UTF-16 with surrogate pairs.

#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::out::Out;
use crate::arch::scalar;
use crate::arch::sse2::load_padded;

/// Returns the number of characters in well-formed UTF-16.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn count(src: &[u16]) -> usize {
    // The scalar code, compiled for AVX2.
    scalar::count_utf16(src)
}

/// Returns a mask of the units with the same upper six bits as `top`. `a` has the first 16 units.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes(a: __m256i, b: __m256i, top: u16) -> u32 {
    let bits = _mm256_set1_epi16(0xFC00_u16 as i16);
    let top = _mm256_set1_epi16(top as i16);
    let a = _mm256_cmpeq_epi16(_mm256_and_si256(a, bits), top);
    let b = _mm256_cmpeq_epi16(_mm256_and_si256(b, bits), top);
    // `packs` packs each 128-bit half separately, so the quarters are reordered.
    let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(a, b));
    _mm256_movemask_epi8(both) as u32
}

/// Returns `true` if each surrogate is part of a surrogate pair.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn is_valid(src: &[u16]) -> bool {
    let (mut open, mut bad) = (0, 0);
    let (parts, rest) = src.as_chunks::<32>();
    for part in parts {
        // SAFETY: the part has 32 units.
        let (a, b) = unsafe {
            let p = part.as_ptr().cast::<__m256i>();
            (_mm256_loadu_si256(p), _mm256_loadu_si256(p.add(1)))
        };
        let (highs, lows) = (lanes(a, b, 0xD800), lanes(a, b, 0xDC00));
        bad |= (highs << 1 | open) ^ lows;
        open = highs >> 31;
    }
    for &u in rest {
        let (high, low) = (u & 0xFC00 == 0xD800, u & 0xFC00 == 0xDC00);
        bad |= open ^ u32::from(low);
        open = u32::from(high);
    }
    bad | open == 0
}

/// Decodes the characters that `mask` selects. `following` has the next unit of each unit.
///
/// # Safety
/// The processor must support AVX2.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn step(v: __m128i, following: __m128i, mask: u8, out: &mut Out<u32>) {
    // SAFETY: the caller is compiled for AVX2, and `out` checks its space.
    unsafe {
        let first = _mm256_cvtepu16_epi32(v);
        let second = _mm256_cvtepu16_epi32(following);
        // One constant for both prefixes and U+10000.
        let prefixes = (0xD800 << 10) + 0xDC00 - 0x1_0000;
        let pair = _mm256_add_epi32(_mm256_slli_epi32::<10>(first), second);
        let pair = _mm256_sub_epi32(pair, _mm256_set1_epi32(prefixes));
        let top = _mm256_and_si256(first, _mm256_set1_epi32(0xFC00));
        let is_pair = _mm256_cmpeq_epi32(top, _mm256_set1_epi32(0xD800));
        out.put_wide(_mm256_blendv_epi8(first, pair, is_pair), mask);
    }
}

/// Returns a mask of the first units of the characters.
///
/// # Safety
/// The processor must support SSE2.
#[inline(always)]
unsafe fn starts_u16(v: __m128i) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let top = _mm_and_si128(v, _mm_set1_epi16(0xFC00_u16 as i16));
        let second = _mm_cmpeq_epi16(top, _mm_set1_epi16(0xDC00_u16 as i16));
        !_mm_movemask_epi8(_mm_packs_epi16(second, second)) as u32 & 0xFF
    }
}

/// Decodes valid UTF-16 to 32-bit units. Returns the number of characters, or `None` if they do not
/// fit.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    let (out, capacity) = (out.as_mut_ptr().cast::<u32>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: the pointer and the length are those of the slice `out`.
    let mut out = unsafe { Out::new(out, capacity) };
    // SAFETY: every load ends inside `src`, and `out` checks its space. (A character at the first 7
    // of 8 units is complete in these 8 units. The last vector ends with the text.)
    unsafe {
        let within = |v, mask, out: &mut Out<u32>| step(v, _mm_srli_si128::<2>(v), mask, out);
        if len < 8 {
            if len > 0 {
                let v = load_padded(p.cast(), 2 * len).0;
                let mask = starts_u16(v) & ((1 << len) - 1);
                within(v, mask as u8, &mut out);
            }
            return out.written(capacity);
        }
        let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
        let mut at = 0;
        while at + 9 <= len {
            let v = load(at);
            step(v, load(at + 1), starts_u16(v) as u8, &mut out);
            at += 8;
        }
        let v = load(len - 8);
        // Excludes the decoded characters.
        let fresh = 0xFF << (8 - (len - at));
        within(v, (starts_u16(v) & fresh) as u8, &mut out);
    }
    out.written(capacity)
}
