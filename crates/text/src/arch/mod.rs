//! The kernels: vector code beside its scalar twin, and the one place that chooses between them.
//!
//! From the bottom; a module uses only those above its line, and `mod.rs` chooses the kernel for
//! single scans and copies.
//!
//! | module | what it holds |
//! |---|---|
//! | `kernel` | which kernels run in this process: [`kernel()`]; what their looks return |
//! | `memory` | units as memory that need not be initialised |
//! | `validity` | well-formedness by simdutf |
//! | `new_cell` | a fresh `str` or `bytes` of a cell, checked before a kernel fills it |
//! | `family` | the families of kernels as types, the steps that each has, and [`family::with_kernels`], which chooses one |
//! | `scalar` | the twin of every kernel, in plain Rust: always compiled, and all that runs under Miri |
//! | `generic` | each vector algorithm once, over a [`generic::Vector`] |
//! | `sse2` | 16-byte vectors, part of every x86-64: inlined into the short paths, so a cell pays no call |
//! | `avx2` | 32-byte vectors, behind one direct call; for JSON inlined |
//! | `avx512` | 64-byte vectors, for texts of any length |
//! | `bulk` | long texts decoded and validated; where simdutf does it, it has its own choice of kernels |
//! | `private` | text that may be written to meanwhile, converted by private copies of its parts |
//! | `decode` | UTF-8 to UTF-16 and Latin-1, in places of any size |
//! | `encode` | text of any form and length to UTF-8 |
//! | `ordered` | UTF-16 with pairs, in any order of bytes |
//! | `float` | floats as their shortest decimals |
//! | `json` | short texts as the bodies of JSON strings, step by step in the caller |
//! | `utf8` | the same kernels without escapes: short texts as UTF-8 |
//! | `json_read` | the steps of the reader of JSON |
//! | `cell` | short text into a `str`, step by step in the caller |
//! | `measured` | text that was validated and measured, and its way into a `str` |
//! | `large` | long text into a `str`, looked at and written in one pass |
//! | `bytes` | bytes of a stream as units, and units as bytes |
//! | `put` | kernels that end in a [`Window`](crate::Window) |
//!
//! `ONECOPY_KERNEL` = `scalar`, `sse2`, `avx2` or `avx512` forces a kernel where the processor has it (a better one is
//! never chosen then; `scalar` leaves simdutf out too). simdutf's own kernels below `scalar` are forced by its
//! variable `SIMDUTF_FORCE_IMPLEMENTATION` (`icelake`, `haswell`, `westmere`, `fallback`).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod bulk;
pub(crate) mod bytes;
pub(crate) mod cell;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod family;
pub(crate) mod float;
#[cfg(target_arch = "x86_64")]
mod generic;
pub(crate) mod json;
pub(crate) mod json_read;
mod kernel;
pub(crate) mod large;
pub(crate) mod measured;
pub(crate) mod memory;
pub(crate) mod new_cell;
pub(crate) mod ordered;
mod private;
pub(crate) mod put;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;
pub(crate) mod utf8;
pub(crate) mod validity;

#[cfg(test)]
mod changing_tests;
#[cfg(test)]
#[path = "../../tests/support/skips.rs"]
mod skips;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(test)]
mod texts;

pub use kernel::{Kernel, kernel};
pub(crate) use kernel::{Scan8, Scan16};

/// Past this many bytes of input the wider vectors repay the call that reaches them.
#[cfg(target_arch = "x86_64")]
const SHORT_BYTES: usize = 128;

/// Runs a kernel: `run!(len_bytes, name(arguments))`. The scalar twin is `scalar::name`, and so on.
macro_rules! run {
    ($len_bytes:expr, $name:ident $(::<$generic:ident>)? ($($arg:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            match kernel() {
                Kernel::Scalar => {
                    #[allow(unused_unsafe)]
                    // SAFETY: the twins have the same duties as the function around this, which passes them on.
                    unsafe { scalar::$name $(::<$generic>)? ($($arg),*) }
                }
                k => {
                    if $len_bytes <= SHORT_BYTES || k == Kernel::Sse2 {
                        #[allow(unused_unsafe)]
                        // SAFETY: SSE2 is part of x86-64; duties as above.
                        unsafe { sse2::$name $(::<$generic>)? ($($arg),*) }
                    } else if k == Kernel::Avx2 {
                        // SAFETY: `best` found AVX2, and the text is longer than a vector; duties as above.
                        unsafe { avx2::$name $(::<$generic>)? ($($arg),*) }
                    } else {
                        // SAFETY: `best` found AVX-512 with VBMI2; duties as above.
                        unsafe { avx512::$name $(::<$generic>)? ($($arg),*) }
                    }
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            #[allow(unused_unsafe)]
            // SAFETY: the twin has the same duties as the function around this, which passes them on.
            unsafe { scalar::$name $(::<$generic>)? ($($arg),*) }
        }
    }};
}

/// Whether all bytes are ASCII.
#[inline]
pub(crate) fn is_ascii(src: &[u8]) -> bool {
    run!(src.len(), is_ascii(src))
}

/// Largest byte and number of characters, for UTF-8 that is valid.
#[inline]
pub(crate) fn scan_utf8(src: &[u8]) -> Scan8 {
    run!(src.len(), scan_utf8(src))
}

/// Union of the units, and whether there is a surrogate.
#[inline]
pub(crate) fn scan_u16(src: &[u16]) -> Scan16 {
    run!(src.len() * 2, scan_u16(src))
}

/// Index of the first surrogate, or the length.
#[inline]
pub(crate) fn find_surrogate(src: &[u16]) -> usize {
    run!(src.len() * 2, find_surrogate(src))
}

/// Index of the first byte that is not ASCII, or the length.
#[inline]
pub(crate) fn find_high(src: &[u8]) -> usize {
    run!(src.len(), find_high(src))
}

/// Index of the first unit that JSON escapes (`"`, `\`, below U+0020), or the length.
#[inline]
pub(crate) fn find_escape_u8(src: &[u8]) -> usize {
    run!(src.len(), find_escape_u8(src))
}

/// As [`find_escape_u8`], of 16-bit units.
#[inline]
pub(crate) fn find_escape_u16(src: &[u16]) -> usize {
    run!(src.len() * 2, find_escape_u16(src))
}

/// Copies units one byte each, the low one.
///
/// # Safety
/// `dst` takes `src.len()` bytes and does not overlap `src`. Units above U+00FF give bytes of no meaning.
#[inline]
pub(crate) unsafe fn narrow_u16(src: &[u16], dst: *mut u8) {
    run!(src.len() * 2, narrow_u16(src, dst));
}

/// Copies up to the first unit that JSON escapes; returns how many, and whether a byte of them is not ASCII.
///
/// # Safety
/// `dst` takes `src.len()` bytes, all of which may be written, and does not overlap `src`.
#[inline]
pub(crate) unsafe fn copy_to_escape(src: &[u8], dst: *mut u8) -> (usize, bool) {
    run!(src.len(), copy_to_escape(src, dst))
}

/// Copies 16-bit units as bytes up to the first that is not ASCII or (where `JSON`) that JSON escapes, at the
/// latest; it may stop some units earlier. Returns how many.
///
/// # Safety
/// As [`copy_to_escape`].
#[inline]
pub(crate) unsafe fn narrow_plain<const JSON: bool>(src: &[u16], dst: *mut u8) -> usize {
    run!(src.len() * 2, narrow_plain::<JSON>(src, dst))
}

/// Copies bytes up to some place before the first that is not ASCII; returns how many: all, where all are.
///
/// # Safety
/// `dst` takes `src.len()` units, all of which may be written, and does not overlap `src` (so for all below).
#[inline]
pub(crate) unsafe fn copy_ascii(src: &[u8], dst: *mut u8) -> usize {
    run!(src.len(), copy_ascii(src, dst))
}

/// As [`copy_ascii`], 16-bit units as bytes, up to one above `MAX`: 0x7F or 0xFF.
///
/// # Safety
/// As [`copy_ascii`].
#[inline]
pub(crate) unsafe fn narrow_up_to<const MAX: u16>(src: &[u16], dst: *mut u8) -> usize {
    run!(src.len() * 2, narrow_up_to::<MAX>(src, dst))
}

/// As [`copy_ascii`], 16-bit units, up to a surrogate.
///
/// # Safety
/// As [`copy_ascii`].
#[inline]
pub(crate) unsafe fn copy_bmp(src: &[u16], dst: *mut u16) -> usize {
    run!(src.len() * 2, copy_bmp(src, dst))
}
