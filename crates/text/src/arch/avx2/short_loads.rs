//! Loads the start of a text in whole vectors.
//!
//! A load may include bytes after the text in the same memory page. Rust does not permit such a
//! load, so it is written in assembly. At the end of a page, the text is first copied.

use std::arch::asm;
use std::arch::x86_64::*;

/// The smallest size of a memory page in bytes.
const PAGE: usize = 4096;

/// Returns `true` if `n` bytes may be loaded from the start of `text`.
#[inline(always)]
fn is_readable(text: &[u8], n: usize) -> bool {
    let is_in_page = text.as_ptr() as usize % PAGE <= PAGE - n;
    (text.len() >= n) | (is_in_page & !text.is_empty())
}

/// Returns `true` if the 64 bytes after `text` may be loaded.
#[inline(always)]
pub(super) fn is_readable_behind(text: &[u8]) -> bool {
    let last = (text.as_ptr() as usize)
        .wrapping_add(text.len())
        .wrapping_sub(1);
    last % PAGE < PAGE - 64 && !text.is_empty()
}

/// Loads 32 bytes, some of which may be outside of the text.
///
/// # Safety
/// All 32 bytes must be in pages that contain a readable byte.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load(p: *const u8) -> __m256i {
    let v: __m256i;
    // SAFETY: the instruction only loads, from mapped pages (this function's contract).
    unsafe {
        asm!(
            "vmovdqu {v}, ymmword ptr [{p}]",
            v = out(ymm_reg) v,
            p = in(reg) p,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    v
}

/// Loads the first 32 bytes of `text`. Bytes after its end are unspecified.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_half(text: &[u8]) -> __m256i {
    // SAFETY: `is_readable` permits the load, or a copy is loaded.
    unsafe {
        if is_readable(text, 32) {
            load(text.as_ptr())
        } else {
            _mm256_loadu_si256(copied(text).as_ptr().cast())
        }
    }
}

/// Loads the first 64 bytes of `text`. Bytes after its end are unspecified.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_start(text: &[u8]) -> (__m256i, __m256i) {
    // SAFETY: `is_readable` permits the load, or a copy is loaded.
    unsafe {
        if is_readable(text, 64) {
            (load(text.as_ptr()), load(text.as_ptr().wrapping_add(32)))
        } else {
            let all = copied(text);
            let p = all.as_ptr();
            (
                _mm256_loadu_si256(p.cast()),
                _mm256_loadu_si256(p.add(32).cast()),
            )
        }
    }
}

/// Loads the first 48 bytes of `text`. Bytes after its end are unspecified.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_most(text: &[u8]) -> (__m256i, __m128i) {
    // SAFETY: `is_readable` permits the load, or a copy is loaded.
    unsafe {
        if is_readable(text, 48) {
            (
                load(text.as_ptr()),
                load_quarter(text.as_ptr().wrapping_add(32)),
            )
        } else {
            let all = copied(text);
            let p = all.as_ptr();
            (
                _mm256_loadu_si256(p.cast()),
                _mm_loadu_si128(p.add(32).cast()),
            )
        }
    }
}

/// The number of bytes that [`with_more`] makes loadable: 64 bytes of text, and 16 more.
const MOST: usize = 80;

/// Calls `work` with the address of `text` or a copy, from which 80 bytes may be loaded.
///
/// `work` should call a function with the target features.
#[inline(always)]
pub(super) fn with_more(text: &[u8], work: impl FnOnce(*const u8)) {
    if is_readable(text, MOST) {
        work(text.as_ptr());
    } else {
        work(copied(text).as_ptr());
    }
}

/// Loads 16 bytes, some of which may be after the text.
///
/// # Safety
/// All 16 bytes must be in pages that contain a readable byte.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_quarter(p: *const u8) -> __m128i {
    let v: __m128i;
    // SAFETY: the instruction only loads, from mapped pages (this function's contract).
    unsafe {
        asm!(
            "vmovdqu {v}, xmmword ptr [{p}]",
            v = out(xmm_reg) v,
            p = in(reg) p,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    v
}

/// Loads 4 bytes, some of which may be after the text.
///
/// # Safety
/// All 4 bytes must be in pages that contain a readable byte.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_four(p: *const u8) -> u32 {
    let v: u32;
    // SAFETY: the instruction only loads, from mapped pages (this function's contract).
    unsafe {
        asm!(
            "mov {v:e}, dword ptr [{p}]",
            v = out(reg) v,
            p = in(reg) p,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    v
}

/// Copies the first 80 bytes of `text`, followed by zeros.
#[cold]
#[inline(never)]
fn copied(text: &[u8]) -> [u8; MOST] {
    let mut all = [0; MOST];
    let n = text.len().min(MOST);
    all[..n].copy_from_slice(&text[..n]);
    all
}

/// Returns the memory of the units as a slice of bytes.
#[inline(always)]
pub(super) fn bytes<U>(units: &[U]) -> &[u8] {
    // SAFETY: the units are integers without padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), size_of_val(units)) }
}
