//! Short texts, the size of a cell: looked at in a vector or two, and nothing of what was seen passes through memory.
//!
//! They do what [`measure`](crate::measure) and [`Measured::write`](crate::Measured::write) do for any text. Who has one cell
//! or a column of them gives the whole work to [`with_kernels`], which compiles it for each family of kernels: the choice is
//! made once, and each step is inlined into the caller's loop.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::{
    Kernel, avx512::cell as avx512, avx512::cell_encode as encode, avx512::cell_utf8, kernel,
};
use crate::arch::json::JsonKernels;
use crate::arch::json_read::{Ascii, JsonSteps};
use crate::arch::large::{Made, NewStr};
use crate::arch::utf8::Utf8Kernels;
use crate::convert::StrData;
use crate::{Kind, Shape, Units};

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(super) mod common;
#[cfg(test)]
pub(super) mod tests;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use avx2::with_avx2;
pub(crate) use common::Common;

/// Bytes that a cell has at most; longer text goes the way of any text.
pub const MOST_CELL_BYTES: usize = 128;

/// Something to be done with the kernels of this process.
pub trait Work {
    /// What comes of it.
    type Output;

    /// Does it. This is to be `#[inline(always)]`, with all that is done for each cell: what is not inlined is not compiled
    /// for the kernels' instructions, and pays a call for each of them.
    fn run<K: Kernels>(self, kernels: K) -> Self::Output;
}

/// Does the work with the best kernels.
#[inline(always)]
pub fn with_kernels<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    match kernel() {
        // SAFETY: `best` has found AVX-512 with VBMI2.
        Kernel::Avx512 => return unsafe { on_avx512(work) },
        // SAFETY: `best` has found AVX2.
        Kernel::Avx2 => return unsafe { avx2::on_avx2(work) },
        _ => {}
    }
    on_common(work)
}

/// A function of its own, as of the other kernels: its variables are not on the stack of the caller.
#[inline(never)]
fn on_common<W: Work>(work: W) -> W::Output {
    work.run(Common)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512bw,avx512vl,avx512cd,avx512ifma,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt"
)]
#[inline(never)]
fn on_avx512<W: Work>(work: W) -> W::Output {
    work.run(Avx512(()))
}

/// A family of kernels for cells: a value of it proves that this processor has them.
pub trait Kernels: steps::Steps + JsonSteps + JsonKernels + Utf8Kernels {
    /// Does more work, compiled for the same instructions as a function of its own: for what calls itself, or is called from more
    /// than one place.
    fn call<W: Work>(self, work: W) -> W::Output;

    /// Whether two texts are the same.
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool;

    /// A number that most short texts have for themselves.
    fn hash(self, text: &[u8]) -> u32;

    /// Fetches what lies `bytes` behind the start of a text into the first cache, if there is anything.
    fn fetch(self, text: &[u8], bytes: usize);
}

/// Makes fresh `bytes`.
pub trait NewBytes {
    /// Fresh `bytes`.
    type Bytes;
    /// Why none could be made.
    type Error;

    /// `bytes` of this length, their data not yet written.
    ///
    /// # Errors
    /// No memory.
    fn new_bytes(&mut self, len: usize) -> Result<Self::Bytes, Self::Error>;

    /// The data: as many bytes.
    fn data<'a>(&self, made: &'a mut Self::Bytes) -> &'a mut [MaybeUninit<u8>];
}

/// What became of a `str`: `None` where it is not for these kernels.
type Encoded<B> = Option<Result<<B as NewBytes>::Bytes, <B as NewBytes>::Error>>;

/// What became of a text: `None` where it is not for these kernels.
type Tried<N> = Option<Result<Made<<N as NewStr>::Str>, <N as NewStr>::Error>>;

/// An encoding of cells.
pub trait CellEncoding {
    /// Makes a `str` of a short well-formed text of at least two characters; `None` for any other, and where these kernels do
    /// not know it.
    ///
    /// Copies: one, the conversion, into the `str`.
    ///
    /// # Errors
    /// Those of `new`.
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> Tried<N>;

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
    ) -> Encoded<B>;
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
pub fn make_ascii<K: Kernels, N: NewStr>(kernels: K, text: Ascii<'_>, new: &mut N) -> Tried<N> {
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
pub fn make_other_utf8<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> Tried<N> {
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
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> Tried<N> {
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
    ) -> Encoded<B> {
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
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> Tried<N> {
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
    ) -> Encoded<B> {
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
    fn make<K: Kernels, N: NewStr>(kernels: K, text: &[u8], new: &mut N) -> Tried<N> {
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
    ) -> Encoded<B> {
        match units {
            Units::Latin1(u) if is_ascii || !ASCII => encode_copied(kernels, u, new),
            _ => None,
        }
    }
}

impl CellEncoding for CellOther {
    #[inline(always)]
    fn make<K: Kernels, N: NewStr>(_: K, _: &[u8], _: &mut N) -> Tried<N> {
        None
    }

    #[inline(always)]
    fn encode<K: Kernels, B: NewBytes>(_: K, _: Units<'_>, _: bool, _: &mut B) -> Encoded<B> {
        None
    }
}

#[inline(always)]
fn encode_copied<K: Kernels, B: NewBytes>(kernels: K, text: &[u8], new: &mut B) -> Encoded<B> {
    if text.len() > MOST_CELL_BYTES {
        return None;
    }
    Some(encoded(new, text.len(), |out| {
        // SAFETY: out takes as many bytes.
        unsafe { kernels.copy(text, out) }
    }))
}

/// New `bytes` of this length, which `write` fills from their start.
#[inline(always)]
pub(super) fn encoded<B: NewBytes>(
    new: &mut B,
    len: usize,
    write: impl FnOnce(*mut u8),
) -> Result<B::Bytes, B::Error> {
    let mut made = new.new_bytes(len)?;
    let out = new.data(&mut made);
    assert_eq!(out.len(), len, "bytes of another length were made");
    write(out.as_mut_ptr().cast());
    Ok(made)
}

#[inline(always)]
fn copied<K: Kernels, N: NewStr>(
    kernels: K,
    text: &[u8],
    kind: Kind,
    new: &mut N,
) -> Result<Made<N::Str>, N::Error> {
    one(new, kind, text.len(), true, |out| {
        // SAFETY: `one` has checked that out takes as many bytes.
        unsafe { kernels.copy(text, out) }
    })
}

macro_rules! writers {
    ($($name:ident: $unit:ty, $variant:ident;)*) => {$(
        /// A new `str` of this shape, which `write` fills from its start.
        #[inline(always)]
        pub(super) fn $name<N: NewStr>(
            new: &mut N,
            kind: Kind,
            n_chars: usize,
            is_copied: bool,
            write: impl FnOnce(*mut $unit),
        ) -> Result<Made<N::Str>, N::Error> {
            let mut made = new.new_str(Shape { kind, n_chars })?;
            match new.data(&mut made) {
                StrData::$variant(out) if out.len() == n_chars => write(out.as_mut_ptr().cast()),
                _ => of_another_shape(),
            }
            Ok(Made {
                made,
                is_copied,
                in_vain_bytes: 0,
            })
        }
    )*};
}

writers! {
    one: u8, One;
    two: u16, Two;
    four: u32, Four;
}

#[cold]
pub(super) fn of_another_shape() -> ! {
    panic!("a str of another shape was made")
}

mod steps {
    use super::{Encoded, NewBytes, NewStr, Tried};

    /// What a family of kernels does for each encoding. Each text is one of at most 128 bytes as UTF-16.
    pub trait Steps: Copy {
        fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N>;
        fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N>;
        fn is_ascii(self, text: &[u8]) -> bool;
        /// # Safety
        /// `out` takes the bytes, apart from the text.
        unsafe fn copy(self, text: &[u8], out: *mut u8);
        fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
            self,
            u: &[u8],
            new: &mut B,
        ) -> Encoded<B>;
        fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
            self,
            u: &[u16],
            new: &mut B,
        ) -> Encoded<B>;
        fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
            self,
            u: &[u32],
            new: &mut B,
        ) -> Encoded<B>;
        fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> Encoded<B>;
        fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> Encoded<B>;
        fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> Encoded<B>;
    }
}

/// The kernels for 64-byte vectors, one or two for each cell, loaded and stored under a mask.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

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
impl steps::Steps for Avx512 {
    #[inline(always)]
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { avx512::make_utf16::<SWAPPED, N>(text, new) }
    }

    #[inline(always)]
    fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N> {
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
    ) -> Encoded<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::latin1_to_utf16::<SWAPPED, B>(u, new) }
    }

    #[inline(always)]
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(self, u: &[u16], new: &mut B) -> Encoded<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs2_to_utf16::<SWAPPED, B>(u, new) }
    }

    #[inline(always)]
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(self, u: &[u32], new: &mut B) -> Encoded<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs4_to_utf16::<SWAPPED, B>(u, new) }
    }

    #[inline(always)]
    fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> Encoded<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::latin1_to_utf8(u, new) }
    }

    #[inline(always)]
    fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> Encoded<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs2_to_utf8(u, new) }
    }

    #[inline(always)]
    fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> Encoded<B> {
        // SAFETY: a value of this type proves that AVX-512 is there.
        unsafe { encode::ucs4_to_utf8(u, new) }
    }
}
