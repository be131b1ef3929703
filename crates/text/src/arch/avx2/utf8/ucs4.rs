//! UTF-8 to the units of a `str` of 32 bits.
#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use super::starts;
use crate::arch::avx2::out::Out;
use crate::arch::sse2::load_padded;

/// The characters whose bytes stand in the lanes, the first one highest.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch::avx2) fn chars_of_lanes(bytes: __m256i) -> __m256i {
    // By the high half of the first byte: how many bits behind the character there are.
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
    // The lead of four bytes has a mark among those bits.
    let chars = _mm256_and_si256(chars, _mm256_set1_epi32(0x1F_FFFF));
    // ASCII has its highest bit not set, and more bits than those.
    let ascii = _mm256_srli_epi32::<24>(bytes);
    _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(ascii),
        _mm256_castsi256_ps(chars),
        _mm256_castsi256_ps(bytes),
    ))
}

/// Decodes the characters that start at the places of `mask`, of the first 8.
///
/// # Safety
/// AVX2; every character of `mask` lies in `v` as a whole; `out` has room for them.
#[inline(always)]
unsafe fn step_four(v: __m128i, mask: u8, out: &mut Out<u32>) {
    // SAFETY: the caller has AVX2, and grants the room.
    unsafe {
        // In each lane the byte of its place highest, and the three behind it.
        let order = _mm256_setr_epi8(
            3, 2, 1, 0, 4, 3, 2, 1, 5, 4, 3, 2, 6, 5, 4, 3, //
            7, 6, 5, 4, 8, 7, 6, 5, 9, 8, 7, 6, 10, 9, 8, 7,
        );
        let bytes = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), order);
        out.put_wide(chars_of_lanes(bytes), mask);
    }
}

/// Where 32 bytes start as many characters at most, those are fetched one by one.
const FEW: u32 = 16;

/// Decodes the first eight characters of 32 bytes, given where they start, and returns how many bytes to go on behind.
///
/// # Safety
/// AVX2; 36 bytes from `p` on are readable; eight units fit into `out`.
#[inline(always)]
unsafe fn step_sparse(p: *const u8, starts: u32, out: &mut Out<u32>) -> usize {
    let mut left = starts;
    // SAFETY: the duties of the caller; each of the eight starts in the first 32 bytes. Where
    // fewer characters start, the text has changed since it was measured.
    unsafe {
        let mut next = || {
            let place = left.trailing_zeros() as usize & 31;
            left = _blsr_u32(left);
            p.add(place).cast::<u32>().read_unaligned() as i32
        };
        let bytes = fetched(&mut next);
        _mm256_storeu_si256(out.at.cast(), chars_of_lanes(bytes));
        out.at = out.at.add(8);
    }
    // 32 where there is no ninth.
    left.trailing_zeros() as usize
}

/// Eight lanes of what is fetched in turn, the first byte of each highest.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(in crate::arch::avx2) unsafe fn fetched(next: &mut impl FnMut() -> i32) -> __m256i {
    // SAFETY: the caller has AVX2.
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

/// # Safety
/// As [`to_latin1`], with any characters and units of 32 bits.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4(src: &[u8], out: *mut u32, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: the place that the caller grants.
    let mut out = unsafe { Out::new(out, room) };
    // SAFETY: every load ends inside src. All characters that start at the first 8 of 16 places end among the 16; those of
    // the last vector end with the text.
    unsafe {
        if len < 16 {
            if len > 0 {
                let v = load_padded(p, len).0;
                let mask = starts(v) & ((1 << len) - 1);
                step_four(v, mask as u8, &mut out);
                step_four(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
            }
            return out.written(room);
        }
        let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
        let mut at = 0;
        while at + 40 <= len {
            let v = _mm256_loadu_si256(p.add(at).cast());
            if _mm256_movemask_epi8(v) == 0 && out.room() >= 32 {
                for k in 0..4 {
                    let eight = _mm_loadl_epi64(p.add(at + 8 * k).cast());
                    _mm256_storeu_si256(out.at.add(8 * k).cast(), _mm256_cvtepu8_epi32(eight));
                }
                out.at = out.at.add(32);
            } else {
                let tail = _mm256_set1_epi8(0xBF_u8 as i8);
                let starts = _mm256_movemask_epi8(_mm256_cmpgt_epi8(v, tail)) as u32;
                if starts.count_ones() <= FEW && out.room() >= 8 {
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
        // Without those that were decoded in the step before.
        let mask = starts(v) & (0xFFFF << (16 - (len - at)));
        step_four(v, mask as u8, &mut out);
        step_four(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
    }
    out.written(room)
}
