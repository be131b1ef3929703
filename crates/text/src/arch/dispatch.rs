//! The table of kernels. It chooses a function by the kernel family and the length of the text.
//!
//! Each line has a kernel family, an optional limit of the length in bytes, and a function. The
//! first line that applies is used. `simdutf` applies to every family except `scalar`, and `_`
//! always applies. A test compares the table with `docs/architecture/kernels.md`.
//!
//! No function writes past its destination or reads past its text, even if the text changes. A
//! conversion returns the number of units, or `None` if the destination is too short. A `valid_`
//! function requires valid text. The others return `None` for malformed text.
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
    // `sse2` and `simdutf` apply unless the scalar implementation is forced.
    ($other:ident, $kernel:ident) => {
        $kernel != Kernel::Scalar as u8
    };
}

/// Calls the function of the first line that matches the processor and the length of the text.
macro_rules! lines {
    ($kernel:ident $len:ident $call:tt _ => $f:expr,) => {
        // SAFETY: safe Rust; the text and the destination are slices.
        unsafe { $f $call }
    };
    ($kernel:ident $len:ident $call:tt
        $set:ident $(from $least:literal)? $(up to $most:literal)? => $f:expr, $($rest:tt)*
    ) => {{
        #[cfg(target_arch = "x86_64")]
        if true $(&& $len >= $least)? $(&& $len <= $most)? && runs!($set, $kernel) {
            // SAFETY: the processor has the instructions of the family. The functions stay inside
            // the slices.
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

        /// The table as text: each operation with its lines.
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

    /// Returns the largest byte and the number of characters of valid UTF-8.
    pub(crate) fn scan_utf8(src: &[u8]) -> Scan8, of src.len(), {
        sse2 up to 128 => sse2::scan_utf8,
        avx512 => avx512::scan::scan_utf8,
        avx2 => avx2::scan_utf8,
        sse2 => sse2::scan_utf8,
        _ => scalar::scan_utf8,
    }

    /// Returns the narrowest `str` kind, and `true` if a unit is a surrogate.
    pub(crate) fn scan_u16(src: &[u16]) -> Scan16, of 2 * src.len(), inline always, {
        sse2 up to 128 => sse2::scan_u16,
        avx512 => avx512::scan::scan_u16,
        avx2 => avx2::scan_u16,
        sse2 => sse2::scan_u16,
        _ => scalar::scan_u16,
    }

    /// Returns the index of the first surrogate, otherwise `src.len()`.
    pub(crate) fn find_surrogate(src: &[u16]) -> usize, of 2 * src.len(), {
        sse2 up to 128 => sse2::find_surrogate,
        avx512 => avx512::scan::find_surrogate,
        avx2 => avx2::find_surrogate,
        sse2 => sse2::find_surrogate,
        _ => scalar::find_surrogate,
    }

    /// Returns the index of the first non-ASCII byte, otherwise `src.len()`.
    pub(crate) fn find_high(src: &[u8]) -> usize, of src.len(), {
        sse2 up to 128 => sse2::find_high,
        avx512 => avx512::scan::find_high,
        avx2 => avx2::find_high,
        sse2 => sse2::find_high,
        _ => scalar::find_high,
    }

    /// Returns the index of the first byte to escape in JSON (`"`, `\`, below U+0020), otherwise
    /// `src.len()`.
    pub(crate) fn find_escape_u8(src: &[u8]) -> usize, of src.len(), {
        sse2 up to 128 => sse2::find_escape_u8,
        avx512 => avx512::scan::find_escape_u8,
        avx2 => avx2::find_escape_u8,
        sse2 => sse2::find_escape_u8,
        _ => scalar::find_escape_u8,
    }

    /// Returns the index of the first unit to escape in JSON, otherwise `src.len()`.
    pub(crate) fn find_escape_u16(src: &[u16]) -> usize, of 2 * src.len(), {
        sse2 up to 128 => sse2::find_escape_u16,
        avx512 => avx512::scan::find_escape_u16,
        avx2 => avx2::find_escape_u16,
        sse2 => sse2::find_escape_u16,
        _ => scalar::find_escape_u16,
    }

    /// Copies the low byte of each unit. No unit may be above U+00FF. `out` must not be shorter
    /// than `src`.
    pub(crate) fn narrow_u16(src: &[u16], out: &mut [MaybeUninit<u8>]), of 2 * src.len(),
    needs out.len() >= src.len(), inline always, {
        sse2 up to 128 => sse2::narrow_u16,
        avx512 => avx512::scan::narrow_u16,
        avx2 => avx2::narrow_u16,
        sse2 => sse2::narrow_u16,
        _ => scalar::narrow_u16,
    }

    /// Copies the bytes before the first JSON escape. Returns their number, and `true` if one is
    /// not ASCII.
    pub(crate) fn copy_to_escape(src: &[u8], out: &mut [MaybeUninit<u8>]) -> (usize, bool), of src.len(),
    needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::copy_to_escape,
        avx512 => avx512::scan::copy_to_escape,
        avx2 => avx2::copy_to_escape,
        sse2 => sse2::copy_to_escape,
        _ => scalar::copy_to_escape,
    }

    /// Copies the leading ASCII units as bytes and returns their number. May stop some units early.
    /// If `JSON` is `true`, also stops at JSON escapes.
    pub(crate) fn narrow_plain[const JSON: bool](src: &[u16], out: &mut [MaybeUninit<u8>]) -> usize,
    of 2 * src.len(), needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::narrow_plain::<JSON>,
        avx512 => avx512::scan::narrow_plain::<JSON>,
        avx2 => avx2::narrow_plain::<JSON>,
        sse2 => sse2::narrow_plain::<JSON>,
        _ => scalar::narrow_plain::<JSON>,
    }

    /// Copies the leading ASCII bytes and returns their number. May stop some bytes early.
    pub(crate) fn copy_ascii(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize, of src.len(),
    needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::copy_ascii,
        avx512 => avx512::scan::copy_ascii,
        avx2 => avx2::copy_ascii,
        sse2 => sse2::copy_ascii,
        _ => scalar::copy_ascii,
    }

    /// Copies the leading units up to `MAX` (0x7F or 0xFF) as bytes and returns their number. May
    /// stop some units early.
    pub(crate) fn narrow_up_to[const MAX: u16](src: &[u16], out: &mut [MaybeUninit<u8>]) -> usize,
    of 2 * src.len(), needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::narrow_up_to::<MAX>,
        avx512 => avx512::scan::narrow_up_to::<MAX>,
        avx2 => avx2::narrow_up_to::<MAX>,
        sse2 => sse2::narrow_up_to::<MAX>,
        _ => scalar::narrow_up_to::<MAX>,
    }

    /// Copies 16-bit units up to the first surrogate and returns their number. May stop some units
    /// early.
    pub(crate) fn copy_bmp(src: &[u16], out: &mut [MaybeUninit<u16>]) -> usize, of 2 * src.len(),
    needs out.len() >= src.len(), {
        sse2 up to 128 => sse2::copy_bmp,
        avx512 => avx512::scan::copy_bmp,
        avx2 => avx2::copy_bmp,
        sse2 => sse2::copy_bmp,
        _ => scalar::copy_bmp,
    }

    /// Writes each byte as a unit of `W` bytes (2 or 4). If `SWAPPED` is `true`, the bytes of each
    /// unit are swapped.
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

    /// Returns a position at most 3 bytes after the start of the first UTF-8 error.
    pub(crate) fn utf8_error_near(src: &[u8]) -> Option<usize>, of src.len(), {
        simdutf => by_simdutf::utf8_error_near,
        _ => scalar::utf8_error_near,
    }

    /// Returns `true` if all surrogates are in pairs.
    pub(crate) fn is_utf16(src: &[u16]) -> bool, of 2 * src.len(), {
        avx512 => avx512::utf8_len::is_utf16,
        avx2 => avx2::utf16::is_valid,
        simdutf => by_simdutf::is_utf16,
        _ => scalar::is_utf16,
    }

    /// Returns the approximate position of the first lone surrogate. `None` if there is none.
    pub(crate) fn utf16_error_near(src: &[u16]) -> Option<usize>, of 2 * src.len(), {
        simdutf => by_simdutf::utf16_error_near,
        _ => scalar::utf16_error_near,
    }

    /// Returns the kind and length of the `str`. `None` for malformed UTF-8.
    pub(crate) fn shape_of_utf8(src: &[u8]) -> Option<Shape>, of src.len(), {
        avx512 => avx512::utf8::measure,
        _ => bulk::shape_of_utf8,
    }

    /// Returns the number of characters of valid UTF-16: the units except second halves of pairs.
    pub(crate) fn count_utf16(src: &[u16]) -> usize, of 2 * src.len(), {
        avx512 => avx512::utf16::count,
        avx2 => avx2::utf16::count,
        _ => scalar::count_utf16,
    }

    /// Returns the same as [`count_utf16`] for units at any address. Their bytes are swapped if
    /// `SWAPPED` is `true`.
    pub(crate) fn count_ordered_utf16[const SWAPPED: bool](src: &[[u8; 2]]) -> usize, of 2 * src.len(), {
        avx512 => avx512::utf16::count_ordered::<SWAPPED>,
        _ => scalar::count_ordered_utf16::<SWAPPED>,
    }

    /// Returns the UTF-16 length of UTF-8 text. The number may be too large for malformed text.
    pub(crate) fn utf16_len_from_utf8(src: &[u8]) -> usize, of src.len(), {
        avx512 => avx512::utf8::units_of,
        avx2 => avx2::utf8::units_of,
        simdutf => by_simdutf::utf16_len_from_utf8,
        _ => scalar::utf16_len_from_utf8,
    }

    /// Returns the UTF-8 length of Latin-1 text.
    pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize, of src.len(), {
        avx512 => avx512::utf8_len::latin1,
        avx2 => avx2::utf8_len::latin1,
        _ => scalar::utf8_len_of_latin1,
    }

    /// Returns the UTF-8 length of 16-bit units, and `true` if one is a surrogate. A surrogate
    /// counts as 2 bytes.
    pub(crate) fn utf8_len_from_units(src: &[u16]) -> (usize, bool), of 2 * src.len(), {
        avx512 => avx512::utf8_len::wide,
        avx2 => avx2::utf8_len::wide,
        _ => scalar::utf8_len_of_wide,
    }

    /// Returns the UTF-8 length of 32-bit units. `None` if a unit is not a valid character.
    pub(crate) fn utf8_len_from_ucs4(src: &[u32]) -> Option<usize>, of 4 * src.len(), {
        avx512 => avx512::utf8_len::ucs4,
        avx2 => avx2::utf8_len::ucs4,
        _ => scalar::utf8_len_of_ucs4,
    }

    /// Converts valid UTF-8 below U+0100 to Latin-1. Returns the number of bytes, or `None` if they
    /// do not fit.
    pub(crate) fn valid_utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize>,
    of src.len(), {
        avx512 => avx512::utf8::to_latin1::<false>,
        avx2 => avx2::utf8::to_latin1,
        simdutf => by_simdutf::valid_utf8_to_latin1,
        _ => scalar::valid_utf8_to_latin1,
    }

    /// Converts valid UTF-8 to UTF-16. Returns the number of units, or `None` if they do not fit.
    /// If `PAIRS` is `false`, no character may be past U+FFFF.
    pub(crate) fn valid_utf8_to_utf16[const PAIRS: bool](src: &[u8], out: &mut [MaybeUninit<u16>])
    -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_utf16::<false, PAIRS>,
        avx2 => avx2::utf8::to_utf16::<false, PAIRS>,
        simdutf => by_simdutf::valid_utf8_to_utf16,
        _ => scalar::valid_utf8_to_utf16,
    }

    /// Converts valid UTF-8 to code points. Returns their number, or `None` if they do not fit.
    pub(crate) fn valid_utf8_to_ucs4(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize>,
    of src.len(), {
        avx512 => avx512::utf8::to_ucs4::<false>,
        avx2 => avx2::utf8::to_ucs4,
        simdutf => by_simdutf::valid_utf8_to_ucs4,
        _ => scalar::valid_utf8_to_ucs4,
    }

    /// Converts valid UTF-16 to code points. Returns their number, or `None` if they do not fit.
    pub(crate) fn valid_utf16_to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize>,
    of 2 * src.len(), {
        avx512 up to 256 => avx512::utf16::to_ucs4,
        avx2 => avx2::utf16::to_ucs4,
        simdutf => by_simdutf::valid_utf16_to_ucs4,
        _ => scalar::valid_utf16_to_ucs4,
    }

    /// Converts UTF-8 without bytes above 0xC3 to Latin-1. Returns the number of bytes, or `None`
    /// for malformed text. `out` must have a unit for each character.
    pub(crate) fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_latin1::<true>,
        avx2 => avx2::utf8::to_latin1_checked,
        simdutf => by_simdutf::utf8_to_latin1,
        _ => scalar::utf8_to_latin1,
    }

    /// Converts UTF-8 to UTF-16. Returns the number of units, or `None` for malformed text. `out`
    /// must have [`utf16_len_from_utf8`] units. If `PAIRS` is `false`, no byte may be above 0xEF.
    pub(crate) fn utf8_to_utf16[const PAIRS: bool](src: &[u8], out: &mut [MaybeUninit<u16>])
    -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_utf16::<true, PAIRS>,
        avx2 from 32 => avx2::utf8::to_utf16::<true, PAIRS>,
        simdutf => by_simdutf::utf8_to_utf16,
        _ => scalar::utf8_to_utf16,
    }

    /// Converts UTF-8 to code points. Returns their number, or `None` if the text is malformed or
    /// does not fit.
    pub(crate) fn utf8_to_ucs4(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize>, of src.len(), {
        avx512 => avx512::utf8::to_ucs4::<true>,
        _ => bulk::utf8_to_ucs4_by_blocks,
    }

    /// Converts UTF-16 to code points. Returns their number, or `None` if the text is malformed or
    /// does not fit.
    pub(crate) fn utf16_to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize>,
    of 2 * src.len(), {
        avx512 => avx512::utf16::to_ucs4,
        _ => bulk::utf16_to_ucs4,
    }

    /// Does the same as [`utf16_to_ucs4`] for units at any address. Their bytes are swapped if
    /// `SWAPPED` is `true`.
    pub(crate) fn ordered_utf16_to_ucs4[const SWAPPED: bool](src: &[[u8; 2]], out: &mut [MaybeUninit<u32>])
    -> Option<usize>, of 2 * src.len(), {
        avx512 => avx512::utf16::to_ucs4_ordered::<SWAPPED>,
        _ => bulk::ordered_utf16_to_ucs4::<SWAPPED>,
    }

    /// Converts Latin-1 to UTF-8. Returns the number of bytes, or `None` if they do not fit.
    pub(crate) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize>, of src.len(), {
        avx512 => avx512::encode::latin1,
        avx2 => avx2::encode::latin1,
        simdutf => by_simdutf::latin1_to_utf8,
        _ => scalar::latin1_to_utf8,
    }

    /// Converts UTF-16 to UTF-8. Returns the number of bytes, or `None` if the text is malformed or
    /// does not fit.
    pub(crate) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize>,
    of 2 * src.len(), {
        avx512 => avx512::encode::wide,
        avx2 from 200 => bulk::utf16_to_utf8_after_ascii,
        avx2 => avx2::encode::wide,
        simdutf => by_simdutf::utf16_to_utf8,
        _ => scalar::utf16_to_utf8,
    }

    /// Converts UTF-32 to UTF-8. Returns the number of bytes, or `None` if the text is malformed or
    /// does not fit.
    pub(crate) fn ucs4_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize>, of 4 * src.len(), {
        avx512 => avx512::encode::ucs4,
        avx2 => avx2::encode::ucs4,
        _ => scalar::ucs4_to_utf8,
    }

    /// Converts code points to UTF-16 and returns the number of units. `out` must have two units
    /// for each code point.
    pub(crate) fn valid_ucs4_to_utf16(src: &[u32], out: &mut [MaybeUninit<u16>]) -> Option<usize>,
    of 4 * src.len(), needs out.len() >= 2 * src.len(), {
        simdutf => by_simdutf::valid_ucs4_to_utf16,
        _ => scalar::valid_ucs4_to_utf16,
    }

    /// Converts code points to UTF-16. `out` must have the exact length. If `SWAPPED` is `true`,
    /// the bytes of each unit are swapped.
    pub(crate) fn valid_ucs4_to_ordered_utf16[const SWAPPED: bool](
        src: &[u32], out: &mut [[MaybeUninit<u8>; 2]]), of 4 * src.len(),
    needs out.len() == scalar::utf16_len_from_ucs4(src), {
        avx512 => avx512::cell_encode::store_all_pairs::<SWAPPED>,
        _ => bulk::valid_ucs4_to_ordered_utf16::<SWAPPED>,
    }

    /// Runs `work`, a loop over many short texts, with the kernel family of this process.
    pub fn with_kernels[W: Work](work: W) -> W::Output, of 0, {
        avx512 => on_avx512,
        avx2 => on_avx2,
        _ => on_common,
    }
}

/// Returns `true` if a short text is all ASCII. Always inlined: a call takes as long as the check.
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
