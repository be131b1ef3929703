//! The table of kernels. For each operation, it lists the function to call, depending on the kernel
//! family of this process and on the length of the text. Only this table chooses kernels, except
//! for the inlined operations of [`family`](super::family), which [`with_kernels`] chooses once for
//! a whole loop.
//!
//! Each line of an operation has a kernel family, optionally a smallest or largest length in bytes,
//! and a function. An operation uses the first of its lines whose family is available and which
//! permits the length of the text. The lines with inlined kernels for short texts are first.
//! `simdutf` is used with every family except `scalar`. `_` is the scalar implementation, or a
//! function composed of other operations. A test compares the table with that of
//! `docs/architecture/kernels.md`.
//!
//! No function writes past its destination or reads past its text, regardless of the contents of
//! the text, because the text can have changed since it was measured. A conversion returns the
//! number of units written, or `None` if the destination is too short. A function with the prefix
//! `valid_` receives text that was valid when it was measured; the other functions also return
//! `None` for malformed text. After `None`, the contents of the destination are unspecified.
#![allow(unused_unsafe)] // Some of the functions are safe.

use std::mem::MaybeUninit;

use super::family::{Work, on_common};
#[cfg(target_arch = "x86_64")]
use super::family::{on_avx2, on_avx512};
#[cfg(target_arch = "x86_64")]
use super::kernel::{Kernel, number};
use super::kernel::{Scan8, Scan16};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, by_simdutf, sse2};
use super::{bulk, scalar};
use crate::Shape;

#[cfg(target_arch = "x86_64")]
macro_rules! runs {
    (avx512, $kernel:ident) => {
        $kernel == Kernel::Avx512 as u8
    };
    (avx2, $kernel:ident) => {
        $kernel == Kernel::Avx2 as u8
    };
    // The lines `sse2` and `simdutf`, which apply unless the scalar implementation is forced.
    ($other:ident, $kernel:ident) => {
        $kernel != Kernel::Scalar as u8
    };
}

/// Generates the code that runs an operation: it calls the function in the first line of the
/// operation's table that matches the processor and the length of the text.
macro_rules! lines {
    ($kernel:ident $len:ident $call:tt _ => $f:expr,) => {
        // SAFETY: a function of plain Rust; a text and a destination are slices.
        unsafe { $f $call }
    };
    ($kernel:ident $len:ident $call:tt
        $set:ident $(from $least:literal)? $(up to $most:literal)? => $f:expr, $($rest:tt)*
    ) => {{
        #[cfg(target_arch = "x86_64")]
        if true $(&& $len >= $least)? $(&& $len <= $most)? && runs!($set, $kernel) {
            // SAFETY: `kernel` has found the instructions of the family; a text and a destination
            // are slices, and the functions stay inside them.
            unsafe { $f $call }
        } else {
            lines!($kernel $len $call $($rest)*)
        }
        #[cfg(not(target_arch = "x86_64"))]
        lines!($kernel $len $call $($rest)*)
    }};
}

macro_rules! kernels {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $([$($generics:tt)*])? ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?,
        of $bytes:expr, $(needs $needs:expr,)? $(inline $always:ident,)? { $($lines:tt)* }
    )+) => {
        $(
            $(#[$meta])*
            #[inline $(($always))?]
            $vis fn $name $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
                $(assert!($needs, "the destination is too short");)?
                #[cfg(target_arch = "x86_64")]
                let (kernel, _len) = (number(), $bytes);
                lines!(kernel _len ($($arg),*) $($lines)*)
            }
        )+

        /// The dispatch table as text: the name of each operation, and the lines that select its
        /// kernels. A test compares this text with the documentation.
        #[cfg(test)]
        const TABLE: &[(&str, &str)] = &[$((stringify!($name), stringify!($($lines)*))),+];
    };
}

kernels! {
    /// Returns `true` if all bytes are ASCII.
    pub(crate) fn is_ascii(src: &[u8]) -> bool, of src.len(), {
        sse2 up to 128 => sse2::is_ascii,
        avx512 => avx512::scan::is_ascii,
        avx2 => avx2::is_ascii,
        sse2 => sse2::is_ascii,
        _ => scalar::is_ascii,
    }

    /// Returns the largest byte and the number of characters of a text that is valid UTF-8.
    pub(crate) fn scan_utf8(src: &[u8]) -> Scan8, of src.len(), {
        sse2 up to 128 => sse2::scan_utf8,
        avx512 => avx512::scan::scan_utf8,
        avx2 => avx2::scan_utf8,
        sse2 => sse2::scan_utf8,
        _ => scalar::scan_utf8,
    }

    /// Returns the narrowest `str` kind for the units, and `true` if one of them is a surrogate.
    pub(crate) fn scan_u16(src: &[u16]) -> Scan16, of 2 * src.len(), inline always, {
        sse2 up to 128 => sse2::scan_u16,
        avx512 => avx512::scan::scan_u16,
        avx2 => avx2::scan_u16,
        sse2 => sse2::scan_u16,
        _ => scalar::scan_u16,
    }

    /// Returns the index of the first surrogate, or `src.len()` if there is none.
    pub(crate) fn find_surrogate(src: &[u16]) -> usize, of 2 * src.len(), {
        sse2 up to 128 => sse2::find_surrogate,
        avx512 => avx512::scan::find_surrogate,
        avx2 => avx2::find_surrogate,
        sse2 => sse2::find_surrogate,
        _ => scalar::find_surrogate,
    }

    /// Returns the index of the first byte that is not ASCII, or `src.len()` if there is none.
    pub(crate) fn find_high(src: &[u8]) -> usize, of src.len(), {
        sse2 up to 128 => sse2::find_high,
        avx512 => avx512::scan::find_high,
        avx2 => avx2::find_high,
        sse2 => sse2::find_high,
        _ => scalar::find_high,
    }

    /// Returns the index of the first byte that must be escaped in JSON (`"`, `\`, below U+0020),
    /// or `src.len()` if there is none.
    pub(crate) fn find_escape_u8(src: &[u8]) -> usize, of src.len(), {
        sse2 up to 128 => sse2::find_escape_u8,
        avx512 => avx512::scan::find_escape_u8,
        avx2 => avx2::find_escape_u8,
        sse2 => sse2::find_escape_u8,
        _ => scalar::find_escape_u8,
    }

    /// Returns the index of the first 16-bit unit that must be escaped in JSON, or `src.len()` if
    /// there is none.
    pub(crate) fn find_escape_u16(src: &[u16]) -> usize, of 2 * src.len(), {
        sse2 up to 128 => sse2::find_escape_u16,
        avx512 => avx512::scan::find_escape_u16,
        avx2 => avx2::find_escape_u16,
        sse2 => sse2::find_escape_u16,
        _ => scalar::find_escape_u16,
    }

    /// Copies the low byte of each 16-bit unit. The result is meaningful only if no unit is above
    /// U+00FF. `out` must not be shorter than `src`.
    pub(crate) fn narrow_u16(src: &[u16], out: &mut [MaybeUninit<u8>]), of 2 * src.len(),
    needs out.len() >= src.len(), inline always, {
        sse2 up to 128 => sse2::narrow_u16,
        avx512 => avx512::scan::narrow_u16,
        avx2 => avx2::narrow_u16,
        sse2 => sse2::narrow_u16,
        _ => scalar::narrow_u16,
    }

    /// Copies the bytes before the first byte that must be escaped in JSON. Returns their number,
    /// and `true` if one of them is not ASCII. `out` must not be shorter than `src`.
    pub(crate) fn copy_to_escape(src: &[u8], out: &mut [MaybeUninit<u8>]) -> (usize, bool), of src.len(),
    needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::copy_to_escape,
        avx512 => avx512::scan::copy_to_escape,
        avx2 => avx2::copy_to_escape,
        sse2 => sse2::copy_to_escape,
        _ => scalar::copy_to_escape,
    }

    /// Copies 16-bit units as bytes, at most up to the first unit that is not ASCII. If `JSON` is
    /// `true`, a unit that must be escaped in JSON ends the copy too. The copy may end some units
    /// before such a unit. Returns the number of units copied. `out` must not be shorter than
    /// `src`.
    pub(crate) fn narrow_plain[const JSON: bool](src: &[u16], out: &mut [MaybeUninit<u8>]) -> usize,
    of 2 * src.len(), needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::narrow_plain::<JSON>,
        avx512 => avx512::scan::narrow_plain::<JSON>,
        avx2 => avx2::narrow_plain::<JSON>,
        sse2 => sse2::narrow_plain::<JSON>,
        _ => scalar::narrow_plain::<JSON>,
    }

    /// Copies ASCII bytes, at most up to the first non-ASCII byte; the copy may end before that
    /// byte. Returns the number of bytes copied, which is the length of `src` if all are ASCII.
    /// `out` must not be shorter than `src`.
    pub(crate) fn copy_ascii(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize, of src.len(),
    needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::copy_ascii,
        avx512 => avx512::scan::copy_ascii,
        avx2 => avx2::copy_ascii,
        sse2 => sse2::copy_ascii,
        _ => scalar::copy_ascii,
    }

    /// Copies 16-bit units as bytes, at most up to the first unit above `MAX` (0x7F or 0xFF); the
    /// copy may end before that unit. Returns the number of units copied. `out` must not be shorter
    /// than `src`.
    pub(crate) fn narrow_up_to[const MAX: u16](src: &[u16], out: &mut [MaybeUninit<u8>]) -> usize,
    of 2 * src.len(), needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::narrow_up_to::<MAX>,
        avx512 => avx512::scan::narrow_up_to::<MAX>,
        avx2 => avx2::narrow_up_to::<MAX>,
        sse2 => sse2::narrow_up_to::<MAX>,
        _ => scalar::narrow_up_to::<MAX>,
    }

    /// Copies 16-bit units, at most up to the first surrogate; the copy may end before it. Returns
    /// the number of units copied. `out` must not be shorter than `src`.
    pub(crate) fn copy_bmp(src: &[u16], out: &mut [MaybeUninit<u16>]) -> usize, of 2 * src.len(),
    needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::copy_bmp,
        avx512 => avx512::scan::copy_bmp,
        avx2 => avx2::copy_bmp,
        sse2 => sse2::copy_bmp,
        _ => scalar::copy_bmp,
    }

    /// Writes each byte as a unit of `W` bytes (2 or 4) in native byte order (reversed if `SWAPPED`
    /// is `true`). `out` must have the length of `src`.
    pub(crate) fn widen[const W: usize, const SWAPPED: bool](src: &[u8], out: &mut [[MaybeUninit<u8>; W]]),
    of src.len(), needs out.len() == src.len(), {
        avx512 from 65 => avx512::widen::widen::<W, SWAPPED>,
        avx512 => avx2::widen::<W, SWAPPED>,
        avx2 => avx2::widen::<W, SWAPPED>,
        _ => scalar::widen::<W, SWAPPED>,
    }

    /// Returns `true` if the bytes are well-formed UTF-8.
    pub(crate) fn is_utf8(src: &[u8]) -> bool, of src.len(), {
        simdutf => by_simdutf::is_utf8,
        _ => scalar::is_utf8,
    }

    /// Returns the approximate position of the first malformed UTF-8 sequence, which starts at most
    /// 3 bytes before that position; `None` if the text is well-formed.
    pub(crate) fn utf8_error_near(src: &[u8]) -> Option<usize>, of src.len(), {
        simdutf => by_simdutf::utf8_error_near,
        _ => scalar::utf8_error_near,
    }

    /// Returns `true` if the units are well-formed UTF-16: each surrogate is part of a pair.
    pub(crate) fn is_utf16(src: &[u16]) -> bool, of 2 * src.len(), {
        avx512 => avx512::utf8_len::is_utf16,
        avx2 => avx2::utf16::is_valid,
        simdutf => by_simdutf::is_utf16,
        _ => scalar::is_utf16,
    }

    /// Returns the approximate position of the first lone surrogate; `None` if the text is
    /// well-formed.
    pub(crate) fn utf16_error_near(src: &[u16]) -> Option<usize>, of 2 * src.len(), {
        simdutf => by_simdutf::utf16_error_near,
        _ => scalar::utf16_error_near,
    }

    /// Returns the shape (kind and length) of the `str` that the bytes need; `None` if they are not
    /// well-formed UTF-8.
    pub(crate) fn shape_of_utf8(src: &[u8]) -> Option<Shape>, of src.len(), {
        avx512 => avx512::utf8::measure,
        _ => bulk::shape_of_utf8,
    }

    /// Returns the number of characters of valid UTF-16. For malformed text, returns the number of
    /// units that are not the second half of a surrogate pair.
    pub(crate) fn count_utf16(src: &[u16]) -> usize, of 2 * src.len(), {
        avx512 => avx512::utf16::count,
        avx2 => avx2::utf16::count,
        _ => scalar::count_utf16,
    }

    /// Returns the number of characters of valid UTF-16, as [`count_utf16`] does. The units may be
    /// at any address, in native byte order (reversed if `SWAPPED` is `true`).
    pub(crate) fn count_ordered_utf16[const SWAPPED: bool](src: &[[u8; 2]]) -> usize, of 2 * src.len(), {
        avx512 => avx512::utf16::count_ordered::<SWAPPED>,
        _ => scalar::count_ordered_utf16::<SWAPPED>,
    }

    /// Returns the number of 16-bit units of UTF-8 text converted to UTF-16. For malformed text,
    /// the number is at least that of the units that the kernel writes.
    pub(crate) fn utf16_len_from_utf8(src: &[u8]) -> usize, of src.len(), {
        avx512 => avx512::utf8::units_of,
        avx2 => avx2::utf8::units_of,
        simdutf => by_simdutf::utf16_len_from_utf8,
        _ => scalar::utf16_len_from_utf8,
    }

    /// Returns the length in bytes of Latin-1 text converted to UTF-8.
    pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize, of src.len(), {
        avx512 => avx512::utf8_len::latin1,
        avx2 => avx2::utf8_len::latin1,
        _ => scalar::utf8_len_of_latin1,
    }

    /// Returns the length in bytes of 16-bit units converted to UTF-8. Each half of a surrogate
    /// pair counts as 2 bytes. Also returns `true` if any of the units is a surrogate.
    pub(crate) fn utf8_len_from_units(src: &[u16]) -> (usize, bool), of 2 * src.len(), {
        avx512 => avx512::utf8_len::wide,
        avx2 => avx2::utf8_len::wide,
        _ => scalar::utf8_len_of_wide,
    }

    /// Returns the length in bytes of 32-bit units converted to UTF-8; `None` if one is a surrogate
    /// or past U+10FFFF.
    pub(crate) fn utf8_len_from_ucs4(src: &[u32]) -> Option<usize>, of 4 * src.len(), {
        avx512 => avx512::utf8_len::ucs4,
        avx2 => avx2::utf8_len::ucs4,
        _ => scalar::utf8_len_of_ucs4,
    }

    /// Converts valid UTF-8, whose characters are all below U+0100, to Latin-1. Returns the number
    /// of bytes written; `None` if the result does not fit into `out`.
    pub(crate) fn valid_utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize>,
    of src.len(), {
        avx512 => avx512::utf8::to_latin1::<false>,
        avx2 => avx2::utf8::to_latin1,
        simdutf => by_simdutf::valid_utf8_to_latin1,
        _ => scalar::valid_utf8_to_latin1,
    }

    /// Converts valid UTF-8 to UTF-16. If `PAIRS` is `false`, the text must have no character past
    /// U+FFFF (no surrogate pairs are written). Returns the number of units written; `None` if the
    /// result does not fit into `out`.
    pub(crate) fn valid_utf8_to_utf16[const PAIRS: bool](src: &[u8], out: &mut [MaybeUninit<u16>])
    -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_utf16::<false, PAIRS>,
        avx2 => avx2::utf8::to_utf16::<false, PAIRS>,
        simdutf => by_simdutf::valid_utf8_to_utf16,
        _ => scalar::valid_utf8_to_utf16,
    }

    /// Converts valid UTF-8 to code points, one in each 32-bit unit. Returns their number; `None`
    /// if they do not fit into `out`.
    pub(crate) fn valid_utf8_to_ucs4(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize>,
    of src.len(), {
        avx512 => avx512::utf8::to_ucs4::<false>,
        avx2 => avx2::utf8::to_ucs4,
        simdutf => by_simdutf::valid_utf8_to_ucs4,
        _ => scalar::valid_utf8_to_ucs4,
    }

    /// Converts valid UTF-16 to code points, one in each 32-bit unit. Returns their number; `None`
    /// if they do not fit into `out`.
    pub(crate) fn valid_utf16_to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize>,
    of 2 * src.len(), {
        avx512 up to 256 => avx512::utf16::to_ucs4,
        avx2 => avx2::utf16::to_ucs4,
        simdutf => by_simdutf::valid_utf16_to_ucs4,
        _ => scalar::valid_utf16_to_ucs4,
    }

    /// Converts UTF-8 to Latin-1. No byte of the text may be above 0xC3, and `out` must have a unit
    /// for each byte of the text that is not a continuation byte. Returns the number of bytes
    /// written; `None` for malformed text.
    pub(crate) fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_latin1::<true>,
        avx2 => avx2::utf8::to_latin1_checked,
        simdutf => by_simdutf::utf8_to_latin1,
        _ => scalar::utf8_to_latin1,
    }

    /// Converts UTF-8 to UTF-16. `out` must have at least as many units as [`utf16_len_from_utf8`]
    /// returns. If `PAIRS` is `false`, the text must have no byte above 0xEF (no character of four
    /// bytes). Returns the number of units written; `None` for malformed text.
    pub(crate) fn utf8_to_utf16[const PAIRS: bool](src: &[u8], out: &mut [MaybeUninit<u16>])
    -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_utf16::<true, PAIRS>,
        avx2 from 32 => avx2::utf8::to_utf16::<true, PAIRS>,
        simdutf => by_simdutf::utf8_to_utf16,
        _ => scalar::utf8_to_utf16,
    }

    /// Converts UTF-8 to code points, one in each 32-bit unit. Returns their number; `None` if the
    /// text is malformed or does not fit into `out`.
    pub(crate) fn utf8_to_ucs4(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_ucs4::<true>,
        _ => bulk::utf8_to_ucs4_by_blocks,
    }

    /// Converts UTF-16 to code points, one in each 32-bit unit. Returns their number; `None` if the
    /// text is malformed or does not fit into `out`.
    pub(crate) fn utf16_to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize>,
    of 2 * src.len(), {
        avx512 => avx512::utf16::to_ucs4,
        _ => bulk::utf16_to_ucs4,
    }

    /// Converts UTF-16 to code points as [`utf16_to_ucs4`] does. The units may be at any address,
    /// in native byte order (reversed if `SWAPPED` is `true`).
    pub(crate) fn ordered_utf16_to_ucs4[const SWAPPED: bool](src: &[[u8; 2]], out: &mut [MaybeUninit<u32>])
    -> Option<usize>, of 2 * src.len(), {
        avx512 => avx512::utf16::to_ucs4_ordered::<SWAPPED>,
        _ => bulk::ordered_utf16_to_ucs4::<SWAPPED>,
    }

    /// Converts Latin-1 to UTF-8. Returns the number of bytes written; `None` if the result does
    /// not fit into `out`.
    pub(crate) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize>, of src.len(), {
        avx512 => avx512::encode::latin1,
        avx2 => avx2::encode::latin1,
        simdutf => by_simdutf::latin1_to_utf8,
        _ => scalar::latin1_to_utf8,
    }

    /// Converts UTF-16 to UTF-8. Returns the number of bytes written; `None` if the text is
    /// malformed or the result does not fit into `out`. With AVX2, leading ASCII units are first
    /// copied as bytes. For 1,000 ASCII units, this takes 27 ns, whereas the AVX2 kernel for any
    /// UTF-16 takes 75 ns.
    pub(crate) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize>,
    of 2 * src.len(), {
        avx512 => avx512::encode::wide,
        avx2 from 200 => bulk::utf16_to_utf8_after_ascii,
        avx2 => avx2::encode::wide,
        simdutf => by_simdutf::utf16_to_utf8,
        _ => scalar::utf16_to_utf8,
    }

    /// Converts UTF-32 to UTF-8. Returns the number of bytes written; `None` if the text is
    /// malformed or the result does not fit into `out`. The table in the documentation has no row
    /// for simdutf here, because simdutf converts emoji more slowly than CPython.
    pub(crate) fn ucs4_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize>, of 4 * src.len(), {
        avx512 => avx512::encode::ucs4,
        avx2 => avx2::encode::ucs4,
        _ => scalar::ucs4_to_utf8,
    }

    /// Converts the code points of a `str` to UTF-16 in native byte order. Returns the number of
    /// units written. `out` must have two units for each code point.
    pub(crate) fn valid_ucs4_to_utf16(src: &[u32], out: &mut [MaybeUninit<u16>]) -> Option<usize>,
    of 4 * src.len(), needs out.len() >= 2 * src.len(), {
        simdutf => by_simdutf::valid_ucs4_to_utf16,
        _ => scalar::valid_ucs4_to_utf16,
    }

    /// Converts the code points of a `str` to UTF-16 in native byte order (reversed if `SWAPPED` is
    /// `true`). `out` must have exactly as many units as the result.
    pub(crate) fn valid_ucs4_to_ordered_utf16[const SWAPPED: bool](
        src: &[u32], out: &mut [[MaybeUninit<u8>; 2]]), of 4 * src.len(),
    needs out.len() == scalar::utf16_len_from_ucs4(src), {
        avx512 => avx512::cell_encode::store_all_pairs::<SWAPPED>,
        _ => bulk::valid_ucs4_to_ordered_utf16::<SWAPPED>,
    }

    /// Runs `work`, which is a loop over many short texts, with the kernel family of this process.
    /// The loop is compiled for the instruction set of that family.
    pub fn with_kernels[W: Work](work: W) -> W::Output, of 0, {
        avx512 => on_avx512,
        avx2 => on_avx2,
        _ => on_common,
    }
}

/// Returns `true` if all bytes of a short text are ASCII. Always inlined, because a call would take
/// as long as the check itself.
#[inline(always)]
pub(crate) fn is_short_ascii(src: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number() != Kernel::Scalar as u8 {
        return sse2::is_ascii(src);
    }
    is_ascii(src)
}

#[cfg(test)]
mod tests;
