//! Short texts, the size of a cell: looked at in a vector or two, and nothing of what was seen passes through memory.
//!
//! They do what [`measure`](crate::measure) and [`Measured::write`](crate::Measured::write) do for
//! any text. Who has one cell or a column of them gives the whole work to
//! [`with_kernels`](super::family::with_kernels), which compiles it for each family of kernels: the
//! choice is made once, and each step is inlined into the caller's loop.

use super::family::{Ascii, Kernels};
#[cfg(target_arch = "x86_64")]
use super::family::{Avx512, CellSteps, Work, on_avx512};
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

/// An encoding of cells.
pub trait CellEncoding {
    /// Makes a `str` of a short well-formed text of at least two characters; `None` for any other, and where these kernels do
    /// not know it.
    ///
    /// Copies: one, the conversion, into the `str`.
    ///
    /// # Errors
    /// Those of `new`.
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N>;

    /// Makes `bytes` of a short text of a `str`, of which `is_ascii` tells what the `str` knows; `None` for any other, for text
    /// that cannot be encoded, and where these kernels do not know it.
    ///
    /// Copies: one, the conversion, into the `bytes`.
    ///
    /// # Errors
    /// Those of `new`.
    fn encode<K: Kernels, B: NewBytes>(
        kernels: K,
        units: Units<'_>,
        is_ascii: bool,
        new: &mut B,
    ) -> MaybeBytes<B>;
}

/// UTF-16, in the machine's order of bytes or (`SWAPPED`) the other one, at any address.
#[derive(Debug)]
pub enum CellUtf16<const SWAPPED: bool> {}

/// UTF-8.
#[derive(Debug)]
pub enum CellUtf8 {}

/// Latin-1, or (`ASCII`) ASCII alone.
#[derive(Debug)]
pub enum CellBytes<const ASCII: bool> {}

/// Makes a `str` of a short text of at least two characters that is known to be ASCII; `None` for any other.
///
/// Copies: one, into the `str`.
///
/// # Errors
/// Those of `new`.
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
        // SAFETY: `one` has checked that out takes as many bytes, here at most 64.
        unsafe { kernels.copy_half(text, out) }
    }))
}

/// As [`make_ascii`], of UTF-8 that is known not to be ASCII; `None` where it is malformed too.
///
/// # Errors
/// Those of `new`.
#[inline(always)]
pub fn make_other_utf8<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> MaybeStr<N> {
    if text.len() > MOST_CELL_BYTES || text.len() <= 1 {
        return None;
    }
    kernels.make_utf8(text, new)
}

/// What no kernels for cells know.
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
        // SAFETY: out takes as many bytes.
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
        // SAFETY: `one` has checked that out takes as many bytes.
        unsafe { kernels.copy(text, out) }
    })
}

#[cfg(target_arch = "x86_64")]
impl Kernels for Avx512 {
    #[inline(always)]
    fn call<W: Work>(self, work: W) -> W::Output {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { on_avx512(work) }
    }

    #[inline(always)]
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { avx512::is_equal(a, b) }
    }

    #[inline(always)]
    fn hash(self, text: &[u8]) -> u32 {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { avx512::hash(text) }
    }

    #[inline(always)]
    fn fetch(self, text: &[u8], bytes: usize) {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { avx512::fetch(text, bytes) }
    }
}

#[cfg(target_arch = "x86_64")]
impl CellSteps for Avx512 {
    #[inline(always)]
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { avx512::make_utf16::<SWAPPED, N>(text, new) }
    }

    #[inline(always)]
    fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { cell_utf8::make_utf8(text, new) }
    }

    #[inline(always)]
    fn is_ascii(self, text: &[u8]) -> bool {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { avx512::is_ascii(text) }
    }

    #[inline(always)]
    unsafe fn copy(self, text: &[u8], out: *mut u8) {
        // SAFETY: a value of this type proves that AVX-512 is there; the duty of the caller.
        unsafe { avx512::copy(text, out) }
    }

    #[inline(always)]
    fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u8],
        new: &mut B,
    ) -> MaybeBytes<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::latin1_to_utf16::<SWAPPED, B>(u, new) }
    }

    #[inline(always)]
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u16],
        new: &mut B,
    ) -> MaybeBytes<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs2_to_utf16::<SWAPPED, B>(u, new) }
    }

    #[inline(always)]
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u32],
        new: &mut B,
    ) -> MaybeBytes<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs4_to_utf16::<SWAPPED, B>(u, new) }
    }

    #[inline(always)]
    fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> MaybeBytes<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::latin1_to_utf8(u, new) }
    }

    #[inline(always)]
    fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> MaybeBytes<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs2_to_utf8(u, new) }
    }

    #[inline(always)]
    fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> MaybeBytes<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs4_to_utf8(u, new) }
    }
}
