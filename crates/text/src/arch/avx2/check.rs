//! Whether UTF-8 is well-formed, looked at while it is decoded.
#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use super::out::Unit;
use crate::arch::validity::is_utf8;

/// Whether what was decoded is well-formed: continuation bytes stand where the leads before them call for, and nowhere else, which is a
/// matter of bits; and no character could be shorter or is a surrogate, which is a matter of two bytes each.
pub(super) struct Check {
    /// The first places of the next vector that are to be continuation bytes.
    due: u32,
    bad: u32,
    /// Bytes or units that are wrong, all ones.
    wrong: __m256i,
}

impl Check {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new() -> Check {
        Check {
            due: 0,
            bad: 0,
            wrong: _mm256_setzero_si256(),
        }
    }

    /// A character is to start here.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.bad |= self.due;
        self.due = 0;
    }

    /// What was due has come.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        self.due = 0;
    }

    /// Whether exactly so many continuation bytes are to come.
    #[inline(always)]
    pub(super) fn owes(&self, n: usize) -> bool {
        self.due == (1 << n) - 1
    }

    /// Looks at 32 bytes, and those one place behind each: at the continuation bytes (`tails`), others past ASCII (`high`), and those of
    /// them from 0xF0 on (`four`).
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn look<U: Unit>(
        &mut self,
        v: __m256i,
        behind: __m256i,
        high: u32,
        tails: u32,
        four: u32,
    ) {
        let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
        let mut due = u64::from(high & !tails) << 1 | u64::from(self.due);
        // 0xC0 and 0xC1: overlong.
        let mut wrong = _mm256_cmpeq_epi8(_mm256_and_si256(v, splat(0xFE)), splat(0xC0));
        if U::WIDE {
            let is_three = _mm256_cmpeq_epi8(_mm256_max_epu8(v, splat(0xE0)), v);
            due |= u64::from(_mm256_movemask_epi8(is_three) as u32) << 2;
            // What is behind is a continuation byte, or is wrong for that: overlong below 0xA0, and a surrogate from there on.
            let upper = _mm256_cmpgt_epi8(behind, splat(0x9F));
            let overlong = _mm256_andnot_si256(upper, _mm256_cmpeq_epi8(v, splat(0xE0)));
            let half = _mm256_and_si256(upper, _mm256_cmpeq_epi8(v, splat(0xED)));
            wrong = _mm256_or_si256(wrong, _mm256_or_si256(overlong, half));
        }
        if four != 0 {
            due |= u64::from(four) << 3;
            // Overlong below 0x90 there, past U+10FFFF from there on, and from 0xF5 on whatever is behind.
            let upper = _mm256_cmpgt_epi8(behind, splat(0x8F));
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

    /// Looks at 16 units of three bytes each.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn look_at_units(&mut self, units: __m256i) {
        let splat = |u: u16| _mm256_set1_epi16(u as i16);
        // Below U+0800, or less than that above the first surrogate.
        let least = _mm256_min_epu16(units, _mm256_sub_epi16(units, splat(0xD800)));
        let top = _mm256_and_si256(least, splat(0xF800));
        let wrong = _mm256_cmpeq_epi16(top, _mm256_setzero_si256());
        self.wrong = _mm256_or_si256(self.wrong, wrong);
    }

    /// Whether all up to `at` was good, and what follows is too.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn is_good_with(&self, src: &[u8], at: usize) -> bool {
        if self.bad != 0 || _mm256_testz_si256(self.wrong, self.wrong) == 0 {
            return false;
        }
        // From the start of the character that is not at its end.
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
