//! Converts UTF-8 to the 32-bit units of a `str`.
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::starts;
use crate::arch::avx2::out::Out;
use crate::arch::sse2::load_padded;

/// Decodes one character in each 32-bit lane. The first UTF-8 byte is in the highest byte of the
/// lane.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch::avx2) fn chars_of_lanes(bytes: __m256i) -> __m256i {
    // The number of unused low bits of a lane, indexed by the upper half of the first byte.
    let shifts = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        24, 24, 24, 24, 24, 24, 24, 24, 16, 16, 16, 16, 16, 16, 8, 0,
    ));
    let class = _mm256_or_si256(
        _mm256_srli_epi32::<28>(bytes),
        _mm256_set1_epi32(0x8080_8080_u32 as i32 & !0xFF),
    );
    let shift = _mm256_shuffle_epi8(shifts, class);
    let bits = _mm256_srlv_epi32(_mm256_set1_epi32(0x1F3F_3F3F), shift);
    let six = _mm256_and_si256(_mm256_srlv_epi32(bytes, shift), bits);
    let halves = _mm256_maddubs_epi16(six, _mm256_set1_epi32(0x4001_4001));
    let chars = _mm256_madd_epi16(halves, _mm256_set1_epi32(0x1000_0001));
    // Removes a prefix bit of four-byte characters.
    let chars = _mm256_and_si256(chars, _mm256_set1_epi32(0x1F_FFFF));
    // The character of an ASCII lane is its highest byte.
    let ascii = _mm256_srli_epi32::<24>(bytes);
    _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(ascii),
        _mm256_castsi256_ps(chars),
        _mm256_castsi256_ps(bytes),
    ))
}

/// Decodes the characters that `mask` selects in the first 8 bytes of `v`. They must end inside
/// `v`.
///
/// # Safety
/// The processor must support AVX2.
#[inline(always)]
unsafe fn step_four(v: __m128i, mask: u8, out: &mut Out<u32>) {
    // SAFETY: the caller is compiled for AVX2, and `out` checks its space.
    unsafe {
        // Loads the four bytes from each position on, the first one into the highest byte.
        let order = _mm256_setr_epi8(
            3, 2, 1, 0, 4, 3, 2, 1, 5, 4, 3, 2, 6, 5, 4, 3, //
            7, 6, 5, 4, 8, 7, 6, 5, 9, 8, 7, 6, 10, 9, 8, 7,
        );
        let bytes = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), order);
        out.put_wide(chars_of_lanes(bytes), mask);
    }
}

/// The most characters in 32 bytes for which [`step_sparse`] is used.
const FEW: u32 = 16;

/// Decodes the first eight characters of the 32 bytes at `p`. Returns the number of bytes decoded.
///
/// # Safety
/// The processor must support AVX2. `p` must be readable for 36 bytes, and `out` must have space
/// for eight units.
#[inline(always)]
unsafe fn step_sparse(p: *const u8, starts: u32, out: &mut Out<u32>) -> usize {
    let mut left = starts;
    // SAFETY: each of the eight loads starts in the 32 bytes at `p`, and `out` has space for eight
    // units. (Fewer than eight characters start here only if the text has changed.)
    unsafe {
        let mut next = || {
            let position = left.trailing_zeros() as usize & 31;
            left = _blsr_u32(left);
            p.add(position).cast::<u32>().read_unaligned() as i32
        };
        let bytes = fetched(&mut next);
        _mm256_storeu_si256(out.at.cast(), chars_of_lanes(bytes));
        out.at = out.at.add(8);
    }
    // 32 if no ninth character starts here.
    left.trailing_zeros() as usize
}

/// Returns the results of eight calls to `next`, one per 32-bit lane, with their bytes reversed.
///
/// # Safety
/// The processor must support AVX2.
#[inline(always)]
pub(in crate::arch::avx2) unsafe fn fetched(next: &mut impl FnMut() -> i32) -> __m256i {
    // SAFETY: the caller is compiled for AVX2.
    unsafe {
        let mut four = || {
            let v = _mm_cvtsi32_si128(next());
            let v = _mm_insert_epi32::<1>(v, next());
            let v = _mm_insert_epi32::<2>(v, next());
            _mm_insert_epi32::<3>(v, next())
        };
        let (lower, upper) = (four(), four());
        let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
        ));
        _mm256_shuffle_epi8(_mm256_set_m128i(upper, lower), order)
    }
}

/// Decodes valid UTF-8 to 32-bit units. Returns the number of characters, or `None` if they do not
/// fit.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    let (out, capacity) = (out.as_mut_ptr().cast::<u32>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: the pointer and the length are those of the slice `out`.
    let mut out = unsafe { Out::new(out, capacity) };
    // SAFETY: every load ends inside `src`, and `out` checks its space. (A character at the first 8
    // of 16 bytes is complete in these 16 bytes. The last vector ends with the text.)
    unsafe {
        if len < 16 {
            if len > 0 {
                let v = load_padded(p, len).0;
                let mask = starts(v) & ((1 << len) - 1);
                step_four(v, mask as u8, &mut out);
                step_four(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
            }
            return out.written(capacity);
        }
        let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
        let mut at = 0;
        while at + 40 <= len {
            let v = _mm256_loadu_si256(p.add(at).cast());
            if _mm256_movemask_epi8(v) == 0 && out.remaining() >= 32 {
                for k in 0..4 {
                    let eight = _mm_loadl_epi64(p.add(at + 8 * k).cast());
                    _mm256_storeu_si256(out.at.add(8 * k).cast(), _mm256_cvtepu8_epi32(eight));
                }
                out.at = out.at.add(32);
            } else {
                let tail = _mm256_set1_epi8(0xBF_u8 as i8);
                let starts = _mm256_movemask_epi8(_mm256_cmpgt_epi8(v, tail)) as u32;
                if starts.count_ones() <= FEW && out.remaining() >= 8 {
                    at += step_sparse(p.add(at), starts, &mut out);
                    continue;
                }
                step_four(load(at), starts as u8, &mut out);
                step_four(load(at + 8), (starts >> 8) as u8, &mut out);
                step_four(load(at + 16), (starts >> 16) as u8, &mut out);
                step_four(load(at + 24), (starts >> 24) as u8, &mut out);
            }
            at += 32;
        }
        while at + 16 < len {
            let v = load(at);
            step_four(v, starts(v) as u8, &mut out);
            at += 8;
        }
        let v = load(len - 16);
        // Excludes the decoded characters.
        let mask = starts(v) & (0xFFFF << (16 - (len - at)));
        step_four(v, mask as u8, &mut out);
        step_four(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
    }
    out.written(capacity)
}
