//! The kernels on 32-byte vectors. Those of this file want a text longer than two vectors, which the dispatch in `arch` sees
//! to; those of the modules take any.
//!
//! | module | what it holds |
//! |---|---|
//! | `utf8` | UTF-8 to the units of a `str`, and to UTF-16 |
//! | `check` | whether it is well-formed |
//! | `utf16` | UTF-16 with pairs, to 32-bit units |
//! | `measure` | the lengths of units of any width in UTF-8 |
//! | `encode` | units of any width to UTF-8 |
//! | `lanes` | the bytes of characters in lanes, and the tables that squeeze them |
//! | `out` | where they put it |
//! | `start` | the start of a text of any length, in whole vectors |
//! | `json` | units of any width to the body of a JSON string |
//! | `json_read` | the looks of the reader of JSON |
//! | `cell` | short texts |
//! | `float` | the digits of a float, its point and its zeros |
#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use super::generic::{self, EscapeU8, EscapeU16, High, Surrogate, Vector};
use super::{Scan8, Scan16};

pub(super) mod cell;
mod check;
pub(super) mod copy;
pub(super) mod encode;
pub(super) mod float;
pub(super) mod json;
pub(super) mod json_read;
mod lanes;
pub(super) mod measure;
mod out;
mod start;
pub(super) mod utf16;
pub(super) mod utf8;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy)]
struct V256(__m256i);

macro_rules! op {
    ($name:ident($($arg:ident: $t:ty),*) -> $ret:ty = $body:expr) => {
        #[inline(always)]
        unsafe fn $name($($arg: $t),*) -> $ret {
            // SAFETY: the caller stands in a function with AVX2 and vouches for the pointer (duties of `Vector`).
            unsafe { $body }
        }
    };
    // Two vectors to one.
    ($name:ident = $intrinsic:ident) => {
        #[inline(always)]
        unsafe fn $name(self, o: Self) -> Self {
            // SAFETY: the caller stands in a function with AVX2 (duty of `Vector`); no pointer is passed.
            V256(unsafe { $intrinsic(self.0, o.0) })
        }
    };
}

// SAFETY: loadu and storeu touch 32 bytes; all intrinsics below belong to AVX2.
unsafe impl Vector for V256 {
    const BYTES: usize = 32;
    op!(load(p: *const u8) -> Self = V256(_mm256_loadu_si256(p.cast())));
    op!(splat8(b: u8) -> Self = V256(_mm256_set1_epi8(b as i8)));
    op!(splat16(u: u16) -> Self = V256(_mm256_set1_epi16(u as i16)));
    op!(narrow(lo: Self, hi: Self) -> Self = {
        // packus works in each half: put its quarters in order.
        V256(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(lo.0, hi.0)))
    });
    op!(or = _mm256_or_si256);
    op!(and = _mm256_and_si256);
    op!(eq8 = _mm256_cmpeq_epi8);
    op!(eq16 = _mm256_cmpeq_epi16);
    op!(gt8 = _mm256_cmpgt_epi8);
    op!(min8 = _mm256_min_epu8);
    op!(max8 = _mm256_max_epu8);
    op!(sub8 = _mm256_sub_epi8);
    op!(subs16 = _mm256_subs_epu16);
    #[inline(always)]
    unsafe fn store(self, p: *mut u8) {
        // SAFETY: as in `op!`.
        unsafe { _mm256_storeu_si256(p.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn mask(self) -> u32 {
        // SAFETY: as in `op!`.
        unsafe { _mm256_movemask_epi8(self.0) as u32 }
    }
    #[inline(always)]
    unsafe fn sum8(self) -> usize {
        // SAFETY: as in `op!`.
        unsafe {
            let v = _mm256_sad_epu8(self.0, _mm256_setzero_si256());
            let v = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            (_mm_cvtsi128_si64(v) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v))) as usize
        }
    }
    #[inline(always)]
    unsafe fn or_u16(self) -> u16 {
        // SAFETY: as in `op!`.
        unsafe {
            let v = _mm_or_si128(
                _mm256_castsi256_si128(self.0),
                _mm256_extracti128_si256::<1>(self.0),
            );
            let v = _mm_or_si128(v, _mm_unpackhi_epi64(v, v));
            let v = _mm_cvtsi128_si64(v) as u64;
            let v = (v | v >> 32) as u32;
            (v | v >> 16) as u16
        }
    }
    #[inline(always)]
    unsafe fn max_u8(self) -> u8 {
        // SAFETY: as in `op!`.
        unsafe {
            let v = _mm_max_epu8(
                _mm256_castsi256_si128(self.0),
                _mm256_extracti128_si256::<1>(self.0),
            );
            let v = _mm_max_epu8(v, _mm_unpackhi_epi64(v, v));
            let v = _mm_max_epu8(v, _mm_srli_epi64::<32>(v));
            let v = _mm_max_epu8(v, _mm_srli_epi64::<16>(v));
            let v = _mm_max_epu8(v, _mm_srli_epi64::<8>(v));
            _mm_cvtsi128_si32(v) as u8
        }
    }
}

/// # Safety
/// The processor has AVX2, and `src` has more than `SHORT_BYTES` bytes (so for all below).
#[target_feature(enable = "avx2")]
pub(super) unsafe fn is_ascii(src: &[u8]) -> bool {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::is_ascii::<V256>(src.as_ptr(), src.len()) }
}

/// # Safety
/// As [`is_ascii`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn scan_utf8(src: &[u8]) -> Scan8 {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::scan_utf8::<V256>(src.as_ptr(), src.len()) }
}

/// # Safety
/// As [`is_ascii`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn scan_u16(src: &[u16]) -> Scan16 {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::scan_u16::<V256>(src.as_ptr(), src.len()) }
}

/// # Safety
/// As [`is_ascii`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn find_surrogate(src: &[u16]) -> usize {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::find::<V256, Surrogate>(src.as_ptr().cast(), src.len()) }
}

/// # Safety
/// As [`is_ascii`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn find_high(src: &[u8]) -> usize {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::find::<V256, High>(src.as_ptr(), src.len()) }
}

/// # Safety
/// As [`is_ascii`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn find_escape_u8(src: &[u8]) -> usize {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::find::<V256, EscapeU8>(src.as_ptr(), src.len()) }
}

/// # Safety
/// As [`is_ascii`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn find_escape_u16(src: &[u16]) -> usize {
    // SAFETY: the slice is readable and longer than a vector.
    unsafe { generic::find::<V256, EscapeU16>(src.as_ptr().cast(), src.len()) }
}

/// # Safety
/// As [`is_ascii`] and `arch::narrow_u16`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn narrow_u16(src: &[u16], dst: *mut u8) {
    // SAFETY: the slice is longer than two vectors; dst takes src.len() bytes (duty of the caller).
    unsafe { generic::narrow_u16::<V256>(src.as_ptr(), src.len(), dst) }
}

/// # Safety
/// As [`is_ascii`] and `arch::copy_to_escape`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy_to_escape(src: &[u8], dst: *mut u8) -> (usize, bool) {
    // SAFETY: the slice is longer than a vector; dst takes src.len() bytes (duty of the caller).
    unsafe { generic::copy_to_escape::<V256>(src.as_ptr(), src.len(), dst) }
}

/// # Safety
/// As [`is_ascii`] and `arch::narrow_plain`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn narrow_plain<const JSON: bool>(src: &[u16], dst: *mut u8) -> usize {
    // SAFETY: the slice is longer than two vectors; dst takes src.len() bytes (duty of the caller).
    unsafe { generic::narrow_plain::<V256, JSON>(src.as_ptr(), src.len(), dst) }
}

/// # Safety
/// As [`is_ascii`] and `arch::copy_ascii`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy_ascii(src: &[u8], dst: *mut u8) -> usize {
    // SAFETY: the slice is longer than a vector; dst takes src.len() bytes (duty of the caller).
    unsafe { generic::copy_ascii::<V256>(src.as_ptr(), src.len(), dst) }
}

/// # Safety
/// As [`is_ascii`] and `arch::narrow_up_to`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn narrow_up_to<const MAX: u16>(src: &[u16], dst: *mut u8) -> usize {
    // SAFETY: the slice is longer than two vectors; dst takes src.len() bytes (duty of the caller).
    unsafe { generic::narrow_up_to::<V256, MAX>(src.as_ptr(), src.len(), dst) }
}

/// # Safety
/// As [`is_ascii`] and `arch::copy_bmp`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy_bmp(src: &[u16], dst: *mut u16) -> usize {
    // SAFETY: the slice is longer than two vectors; dst takes src.len() units (duty of the caller).
    unsafe { generic::copy_bmp::<V256>(src.as_ptr(), src.len(), dst) }
}
