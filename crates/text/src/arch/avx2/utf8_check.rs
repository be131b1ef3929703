//! [`Utf8Check`]: validates UTF-8 during its decoding.
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;

use super::out::StrUnit;
use crate::arch::by_simdutf::is_utf8;

/// The state of a UTF-8 validation between two vectors.
pub(super) struct Utf8Check {
    /// A mask of the bytes of the next vector that must be continuation bytes.
    due: u32,
    bad: u32,
    /// A vector that is zero as long as no error was found.
    wrong: __m256i,
}

impl Utf8Check {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new() -> Utf8Check {
        Utf8Check {
            due: 0,
            bad: 0,
            wrong: _mm256_setzero_si256(),
        }
    }

    /// Records an error if the previous character is incomplete. Call this at the start of a
    /// character.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.bad |= self.due;
        self.due = 0;
    }

    /// Marks the incomplete character as complete, after its continuation bytes were checked.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        self.due = 0;
    }

    /// Returns `true` if the current character requires exactly `n` more continuation bytes.
    #[inline(always)]
    pub(super) fn owes(&self, n: usize) -> bool {
        self.due == (1 << n) - 1
    }

    /// Checks 32 bytes of text in `v`. The vector `second` starts one byte later. The masks mark
    /// bytes of `v`: non-ASCII (`high`), continuation (`tails`), and from 0xF0 on (`four`).
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn look<U: StrUnit>(
        &mut self,
        v: __m256i,
        second: __m256i,
        high: u32,
        tails: u32,
        four: u32,
    ) {
        let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
        let mut due = u64::from(high & !tails) << 1 | u64::from(self.due);
        // The lead bytes 0xC0 and 0xC1 are always overlong.
        let mut wrong = _mm256_cmpeq_epi8(_mm256_and_si256(v, splat(0xFE)), splat(0xC0));
        if U::WIDE {
            let is_three = _mm256_cmpeq_epi8(_mm256_max_epu8(v, splat(0xE0)), v);
            due |= u64::from(_mm256_movemask_epi8(is_three) as u32) << 2;
            // After 0xE0, a second byte below 0xA0 is overlong. After 0xED, one from 0xA0 on is a
            // surrogate.
            let upper = _mm256_cmpgt_epi8(second, splat(0x9F));
            let overlong = _mm256_andnot_si256(upper, _mm256_cmpeq_epi8(v, splat(0xE0)));
            let half = _mm256_and_si256(upper, _mm256_cmpeq_epi8(v, splat(0xED)));
            wrong = _mm256_or_si256(wrong, _mm256_or_si256(overlong, half));
        }
        if four != 0 {
            due |= u64::from(four) << 3;
            // After 0xF0, a second byte below 0x90 is overlong. After 0xF4, one from 0x90 on is
            // past U+10FFFF. Lead bytes from 0xF5 on are always invalid.
            let upper = _mm256_cmpgt_epi8(second, splat(0x8F));
            let overlong = _mm256_andnot_si256(upper, _mm256_cmpeq_epi8(v, splat(0xF0)));
            let past = _mm256_cmpeq_epi8(_mm256_max_epu8(v, splat(0xF4)), v);
            let last = _mm256_cmpeq_epi8(v, splat(0xF4));
            let past = _mm256_andnot_si256(_mm256_andnot_si256(upper, last), past);
            wrong = _mm256_or_si256(wrong, _mm256_or_si256(overlong, past));
        }
        self.bad |= due as u32 ^ tails;
        self.due = (due >> 32) as u32;
        self.wrong = _mm256_or_si256(self.wrong, wrong);
    }

    /// Records an error if one of 16 three-byte units is overlong or a surrogate.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn look_at_units(&mut self, units: __m256i) {
        let splat = |u: u16| _mm256_set1_epi16(u as i16);
        // An invalid unit is below U+0800, or less than 0x800 above the first surrogate.
        let least = _mm256_min_epu16(units, _mm256_sub_epi16(units, splat(0xD800)));
        let top = _mm256_and_si256(least, splat(0xF800));
        let wrong = _mm256_cmpeq_epi16(top, _mm256_setzero_si256());
        self.wrong = _mm256_or_si256(self.wrong, wrong);
    }

    /// Validates the bytes from `at` on. Returns `true` if `src` is valid UTF-8.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn is_good_with(&self, src: &[u8], at: usize) -> bool {
        if self.bad != 0 || _mm256_testz_si256(self.wrong, self.wrong) == 0 {
            return false;
        }
        let n_begun = if self.due == 0 {
            0
        } else {
            1 + src[..at]
                .iter()
                .rev()
                .take_while(|&b| b & 0xC0 == 0x80)
                .count()
        };
        is_utf8(&src[at.saturating_sub(n_begun)..])
    }
}
