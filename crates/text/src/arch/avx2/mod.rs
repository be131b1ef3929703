//! The kernels for AVX2, with vectors of 32 bytes. Those in this file require more than 128 bytes
//! of text.
//!
//! | module | contents |
//! |---|---|
//! | `utf8` | converts UTF-8 to the units of a `str`, and to UTF-16 |
//! | `utf8_check` | validates UTF-8 while it is decoded |
//! | `utf16` | converts UTF-16 with surrogate pairs to 32-bit units |
//! | `utf8_len` | computes the length of units of any width in UTF-8 |
//! | `encode` | converts units of any width to UTF-8 |
//! | `lanes` | assembles UTF-8 in vector lanes, and removes the unused bytes |
//! | `out` | the destinations that the kernels write to |
//! | `short_loads` | loads the start of a text of any length in whole vectors |
//! | `json` | converts units of any width to the body of a JSON string |
//! | `json_read` | the searches of the JSON reader |
//! | `cell` | converts short UTF-8 texts to a `str` |
//! | `float` | writes floats as text |
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::generic::{self, EscapeU8, EscapeU16, High, Surrogate, Vector};
use super::kernel::{Scan8, Scan16};
use super::scalar;

pub(super) mod cell;
pub(super) mod copy;
pub(super) mod encode;
pub(super) mod float;
pub(super) mod json;
pub(super) mod json_read;
mod lanes;
mod out;
mod short_loads;
pub(super) mod utf16;
pub(super) mod utf8;
mod utf8_check;
pub(super) mod utf8_len;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy)]
struct V256(__m256i);

macro_rules! op {
    ($name:ident($($arg:ident: $t:ty),*) -> $ret:ty = $body:expr) => {
        #[inline(always)]
        unsafe fn $name($($arg: $t),*) -> $ret {
            // SAFETY: the caller is compiled for AVX2, and its pointers are valid.
            unsafe { $body }
        }
    };
    // Combines two vectors.
    ($name:ident = $intrinsic:ident) => {
        #[inline(always)]
        unsafe fn $name(self, o: Self) -> Self {
            // SAFETY: the caller is compiled for AVX2. No pointer is passed.
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
        // `packus` packs each 128-bit half separately, so the quarters are reordered.
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
        // SAFETY: the caller is compiled for AVX2, and `p` is valid.
        unsafe { _mm256_storeu_si256(p.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn mask(self) -> u32 {
        // SAFETY: the caller is compiled for AVX2. No pointer is passed.
        unsafe { _mm256_movemask_epi8(self.0) as u32 }
    }
    #[inline(always)]
    unsafe fn sum8(self) -> usize {
        // SAFETY: the caller is compiled for AVX2. No pointer is passed.
        unsafe {
            let v = _mm256_sad_epu8(self.0, _mm256_setzero_si256());
            let v = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            (_mm_cvtsi128_si64(v) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v))) as usize
        }
    }
    #[inline(always)]
    unsafe fn or_u16(self) -> u16 {
        // SAFETY: the caller is compiled for AVX2. No pointer is passed.
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
        // SAFETY: the caller is compiled for AVX2. No pointer is passed.
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

macro_rules! functions {
    ($($name:ident $([$generic:ident: $of:ty])? ($src:ident: $unit:ty $(, $out:ident: $to:ty)?)
        -> $ret:ty = $generic_name:ident$(::<$($argument:ty),+>)?;)+) => {$(
        /// Runs the generic algorithm with AVX2.
        ///
        /// # Safety
        /// The processor must support AVX2. The text must have more than 128 bytes. The destination
        /// must be as long as the text, in units.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name $(<const $generic: $of>)? (
            $src: &[$unit] $(, $out: &mut [MaybeUninit<$to>])?
        ) -> $ret {
            // SAFETY: the slices have the required lengths.
            unsafe {
                generic::$generic_name::<V256 $(, $generic)? $($(, $argument)+)?>(
                    $src.as_ptr().cast(),
                    $src.len()
                    $(, $out.as_mut_ptr().cast())?
                )
            }
        }
    )+};
}

functions! {
    is_ascii(src: u8) -> bool = is_ascii;
    scan_utf8(src: u8) -> Scan8 = scan_utf8;
    scan_u16(src: u16) -> Scan16 = scan_u16;
    find_surrogate(src: u16) -> usize = find::<Surrogate>;
    find_high(src: u8) -> usize = find::<High>;
    find_escape_u8(src: u8) -> usize = find::<EscapeU8>;
    find_escape_u16(src: u16) -> usize = find::<EscapeU16>;
    narrow_u16(src: u16, out: u8) -> () = narrow_u16;
    copy_to_escape(src: u8, out: u8) -> (usize, bool) = copy_to_escape;
    narrow_plain[JSON: bool](src: u16, out: u8) -> usize = narrow_plain;
    copy_ascii(src: u8, out: u8) -> usize = copy_ascii;
    narrow_up_to[MAX: u16](src: u16, out: u8) -> usize = narrow_up_to;
    copy_bmp(src: u16, out: u16) -> usize = copy_bmp;
}

/// Widens bytes to units. The compiler vectorizes the scalar loop for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn widen<const W: usize, const SWAPPED: bool>(
    src: &[u8],
    out: &mut [[MaybeUninit<u8>; W]],
) {
    scalar::widen::<W, SWAPPED>(src, out);
}
