//! Conversions of short texts, such as table cells.
//!
//! A caller passes the loop over its cells to `with_kernels`, which
//! chooses the kernel family once.

use super::family::{Ascii, Kernels};
#[cfg(target_arch = "x86_64")]
use super::family::{Avx512, CellSteps, Work, on_avx512, steps};
use super::new_cell::{MOST_CELL_BYTES, MaybeBytes, MaybeStr, encoded, one};
#[cfg(target_arch = "x86_64")]
use super::{avx512::cell as avx512, avx512::cell_encode as encode, avx512::cell_utf8};
use crate::new_object::{MadeStr, NewBytes, NewStr};
use crate::{Kind, Units};

#[cfg(target_arch = "x86_64")]
mod avx2;
mod common;
#[cfg(test)]
pub(super) mod tests;

/// A text encoding of table cells.
pub trait CellEncoding {
    /// Makes a `str` from a text of 2 characters to 128 bytes (`MOST_CELL_BYTES`). Returns `None`
    /// for other lengths and malformed text, or if these kernels do not convert the text.
    ///
    /// Copies: the text is copied once.
    ///
    /// # Errors
    /// Returns the error that `new` returns.
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N>;

    /// Converts a short `str` to `bytes`. `is_ascii` is `true` if all `units` are known to be
    /// ASCII. Returns `None` if the text cannot be encoded, or if these kernels do not convert it.
    ///
    /// Copies: the text is copied once.
    ///
    /// # Errors
    /// Returns the error that `new` returns.
    fn encode<K: Kernels, B: NewBytes>(
        kernels: K,
        units: Units<'_>,
        is_ascii: bool,
        new: &mut B,
    ) -> MaybeBytes<B>;
}

/// UTF-16 at any address, in native byte order (reversed if `SWAPPED` is `true`).
#[derive(Debug)]
pub enum CellUtf16<const SWAPPED: bool> {}

/// UTF-8.
#[derive(Debug)]
pub enum CellUtf8 {}

/// Latin-1, or ASCII if `ASCII` is `true`.
#[derive(Debug)]
pub enum CellBytes<const ASCII: bool> {}

/// Makes a `str` from a short ASCII text of at least two characters. Returns `None` for other
/// lengths.
///
/// Copies: the text is copied once.
///
/// # Errors
/// Returns the error that `new` returns.
#[inline(always)]
pub fn make_ascii<K: Kernels, N: NewStr>(kernels: K, text: Ascii<'_>, new: &mut N) -> MaybeStr<N> {
    let text = text.bytes();
    if text.len() > MOST_CELL_BYTES || text.len() <= 1 {
        return None;
    }
    if text.len() > MOST_CELL_BYTES / 2 {
        return Some(copied(kernels, text, Kind::Ascii, new));
    }
    Some(one(new, Kind::Ascii, text.len(), true, |out| {
        // SAFETY: `one` has checked that `out` has as many bytes, at most 64.
        unsafe { kernels.copy_half(text, out) }
    }))
}

/// Makes a `str` from short UTF-8 that is not all ASCII. Returns `None` if the text is malformed,
/// or if these kernels do not convert it.
///
/// Copies: the text is copied once.
///
/// # Errors
/// Returns the error that `new` returns.
#[inline(always)]
pub fn make_other_utf8<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N> {
    if text.len() > MOST_CELL_BYTES || text.len() <= 1 {
        return None;
    }
    kernels.make_utf8(text, new)
}

/// An encoding without kernels for cells. Its conversions always return `None`.
#[derive(Debug)]
pub enum CellOther {}

impl<const SWAPPED: bool> CellEncoding for CellUtf16<SWAPPED> {
    #[inline(always)]
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N> {
        if text.len() > MOST_CELL_BYTES || text.len() <= 2 || !text.len().is_multiple_of(2) {
            return None;
        }
        kernels.make_utf16::<SWAPPED, N>(text, new)
    }

    #[inline(always)]
    fn encode<K: Kernels, B: NewBytes>(
        kernels: K,
        units: Units<'_>,
        _: bool,
        new: &mut B,
    ) -> MaybeBytes<B> {
        match units {
            Units::Latin1(u) if 2 * u.len() <= MOST_CELL_BYTES => {
                kernels.latin1_to_utf16::<SWAPPED, B>(u, new)
            }
            Units::Ucs2(u) if 2 * u.len() <= MOST_CELL_BYTES => {
                kernels.ucs2_to_utf16::<SWAPPED, B>(u, new)
            }
            Units::Utf32(u) if 4 * u.len() <= MOST_CELL_BYTES => {
                kernels.ucs4_to_utf16::<SWAPPED, B>(u, new)
            }
            _ => None,
        }
    }
}

impl CellEncoding for CellUtf8 {
    #[inline(always)]
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N> {
        if text.len() > MOST_CELL_BYTES || text.len() <= 1 {
            return None;
        }
        if kernels.is_ascii(text) {
            return Some(copied(kernels, text, Kind::Ascii, new));
        }
        kernels.make_utf8(text, new)
    }

    #[inline(always)]
    fn encode<K: Kernels, B: NewBytes>(
        kernels: K,
        units: Units<'_>,
        is_ascii: bool,
        new: &mut B,
    ) -> MaybeBytes<B> {
        match units {
            Units::Utf8(u) => encode_copied(kernels, u, new),
            Units::Latin1(u) if is_ascii => encode_copied(kernels, u, new),
            Units::Latin1(u) if 2 * u.len() <= MOST_CELL_BYTES => kernels.latin1_to_utf8(u, new),
            Units::Ucs2(u) if 2 * u.len() <= MOST_CELL_BYTES => kernels.ucs2_to_utf8(u, new),
            Units::Utf32(u) if 4 * u.len() <= MOST_CELL_BYTES => kernels.ucs4_to_utf8(u, new),
            _ => None,
        }
    }
}

impl<const ASCII: bool> CellEncoding for CellBytes<ASCII> {
    #[inline(always)]
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N> {
        if text.len() > MOST_CELL_BYTES || text.len() <= 1 {
            return None;
        }
        if kernels.is_ascii(text) {
            return Some(copied(kernels, text, Kind::Ascii, new));
        }
        (!ASCII).then(|| copied(kernels, text, Kind::Latin1, new))
    }

    #[inline(always)]
    fn encode<K: Kernels, B: NewBytes>(
        kernels: K,
        units: Units<'_>,
        is_ascii: bool,
        new: &mut B,
    ) -> MaybeBytes<B> {
        match units {
            Units::Latin1(u) if is_ascii || !ASCII => encode_copied(kernels, u, new),
            _ => None,
        }
    }
}

impl CellEncoding for CellOther {
    #[inline(always)]
    fn make<K: Kernels, N: NewStr>(_: K, _: &[u8], _: &mut N) -> MaybeStr<N> {
        None
    }

    #[inline(always)]
    fn encode<K: Kernels, B: NewBytes>(_: K, _: Units<'_>, _: bool, _: &mut B) -> MaybeBytes<B> {
        None
    }
}

#[inline(always)]
fn encode_copied<K: Kernels, B: NewBytes>(kernels: K, text: &[u8], new: &mut B) -> MaybeBytes<B> {
    if text.len() > MOST_CELL_BYTES {
        return None;
    }
    Some(encoded(new, text.len(), |out| {
        // SAFETY: `out` has as many bytes.
        unsafe { kernels.copy(text, out) }
    }))
}

#[inline(always)]
fn copied<K: Kernels, N: NewStr>(
    kernels: K,
    text: &[u8],
    kind: Kind,
    new: &mut N,
) -> Result<MadeStr<N::Str>, N::Error> {
    one(new, kind, text.len(), true, |out| {
        // SAFETY: `one` has checked that `out` has as many bytes.
        unsafe { kernels.copy(text, out) }
    })
}

#[cfg(target_arch = "x86_64")]
impl Kernels for Avx512 {
    steps! {
        fn call[W: Work](work: W) -> W::Output = on_avx512;
        fn is_equal(a: &[u8], b: &[u8]) -> bool = avx512::is_equal;
        fn hash(text: &[u8]) -> u32 = avx512::hash;
        fn fetch(text: &[u8], bytes: usize) = avx512::fetch;
    }
}

#[cfg(target_arch = "x86_64")]
impl CellSteps for Avx512 {
    steps! {
        fn make_utf16[const SWAPPED: bool, N: NewStr](text: &[u8], new: &mut N) -> MaybeStr<N>
            = avx512::make_utf16::<SWAPPED, N>;
        fn make_utf8[N: NewStr](text: &[u8], new: &mut N) -> MaybeStr<N> = cell_utf8::make_utf8;
        fn is_ascii(text: &[u8]) -> bool = avx512::is_ascii;
        !unsafe fn copy(text: &[u8], out: *mut u8) = avx512::copy;
        fn latin1_to_utf16[const SWAPPED: bool, B: NewBytes](u: &[u8], new: &mut B)
            -> MaybeBytes<B> = encode::latin1_to_utf16::<SWAPPED, B>;
        fn ucs2_to_utf16[const SWAPPED: bool, B: NewBytes](u: &[u16], new: &mut B)
            -> MaybeBytes<B> = encode::ucs2_to_utf16::<SWAPPED, B>;
        fn ucs4_to_utf16[const SWAPPED: bool, B: NewBytes](u: &[u32], new: &mut B)
            -> MaybeBytes<B> = encode::ucs4_to_utf16::<SWAPPED, B>;
        fn latin1_to_utf8[B: NewBytes](u: &[u8], new: &mut B) -> MaybeBytes<B>
            = encode::latin1_to_utf8;
        fn ucs2_to_utf8[B: NewBytes](u: &[u16], new: &mut B) -> MaybeBytes<B>
            = encode::ucs2_to_utf8;
        fn ucs4_to_utf8[B: NewBytes](u: &[u32], new: &mut B) -> MaybeBytes<B>
            = encode::ucs4_to_utf8;
    }
}
