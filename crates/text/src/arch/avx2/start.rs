//! The start of a text of any length, in whole vectors.
//!
//! AVX2 has no loads of bytes under a mask, and to choose by the length costs a branch that is guessed wrong for every other
//! short text. So whole vectors are loaded, with what stands behind the text: a processor that may read one byte of a page may
//! read all of it. Such a load is written in assembly: the compiler has no word for it. Near the end of a page the text
//! is copied first.

use std::arch::asm;
use std::arch::x86_64::*;

/// Bytes of the smallest page.
const PAGE: usize = 4096;

/// Whether `n` bytes from here on may be read: the text has as many, or any, and they lie in one page.
#[inline(always)]
fn is_readable(text: &[u8], n: usize) -> bool {
    // One branch, that is nearly always the same.
    let is_in_page = text.as_ptr() as usize % PAGE <= PAGE - n;
    (text.len() >= n) | (is_in_page & !text.is_empty())
}

/// Whether 64 bytes behind the end may be read too.
#[inline(always)]
pub(super) fn is_readable_behind(text: &[u8]) -> bool {
    let last = (text.as_ptr() as usize)
        .wrapping_add(text.len())
        .wrapping_sub(1);
    last % PAGE < PAGE - 64 && !text.is_empty()
}

/// # Safety
/// All 32 bytes lie in pages of which something is readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load(p: *const u8) -> __m256i {
    let v: __m256i;
    // SAFETY: a load and nothing else, by the caller's word from pages that are mapped.
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

/// The first 32 bytes; what is behind the end of the text is of no meaning (so for all below).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_half(text: &[u8]) -> __m256i {
    // SAFETY: readable, or copied.
    unsafe {
        if is_readable(text, 32) {
            load(text.as_ptr())
        } else {
            _mm256_loadu_si256(copied(text).as_ptr().cast())
        }
    }
}

/// The first 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_start(text: &[u8]) -> (__m256i, __m256i) {
    // SAFETY: readable, or copied.
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

/// The first 48 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_most(text: &[u8]) -> (__m256i, __m128i) {
    // SAFETY: readable, or copied.
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

/// Bytes that may be loaded from the start of a text of at most 64, and from up to two places behind.
const MOST: usize = 80;

/// Hands on a place from which 80 bytes may be loaded by [`load_quarter`]: the text's, or that of a copy.
///
/// What is done with it is to be a function of its own, compiled for the instructions.
#[inline(always)]
pub(super) fn with_more(text: &[u8], work: impl FnOnce(*const u8)) {
    if is_readable(text, MOST) {
        work(text.as_ptr());
    } else {
        work(copied(text).as_ptr());
    }
}

/// # Safety
/// All 16 bytes lie in pages of which something is readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_quarter(p: *const u8) -> __m128i {
    let v: __m128i;
    // SAFETY: a load and nothing else, by the caller's word from pages that are mapped.
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

/// # Safety
/// All 4 bytes lie in pages of which something is readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_four(p: *const u8) -> u32 {
    let v: u32;
    // SAFETY: a load and nothing else, by the caller's word from pages that are mapped.
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

/// The first 80 bytes at most, and zeros.
#[cold]
#[inline(never)]
fn copied(text: &[u8]) -> [u8; MOST] {
    let mut all = [0; MOST];
    let n = text.len().min(MOST);
    all[..n].copy_from_slice(&text[..n]);
    all
}

/// The bytes of units.
#[inline(always)]
pub(super) fn bytes<U>(units: &[U]) -> &[u8] {
    // SAFETY: integers, seen as their bytes.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), size_of_val(units)) }
}
