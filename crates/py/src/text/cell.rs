//! Fast paths for short strings, compiled separately for each encoding.

use std::marker::PhantomData;

use onecopy_text::convert::{CellEncoding, Kernels, Work};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::raw::fresh::Blanks;
use crate::raw::text::{encode_cell, make_cell};

/// Strings of at least this size in bytes use the general code, which is faster for long strings.
pub(super) const MIDDLING_BYTES: usize = 64 * 1024;

/// Evaluates `$run`. In it, `$type` is the fast path of the encoding `$codec`.
macro_rules! with_encoding {
    ($codec:expr, $type:ident => $run:expr) => {{
        use onecopy_text::convert::{CellBytes, CellOther, CellUtf8, CellUtf16};
        macro_rules! run {
            ($encoding:ty) => {{
                type $type = $encoding;
                $run
            }};
        }
        match $codec {
            Codec::Utf8 => run!(CellUtf8),
            Codec::Utf16(Order::Little) => run!(CellUtf16<false>),
            Codec::Utf16(Order::Big) => run!(CellUtf16<true>),
            Codec::Latin1 => run!(CellBytes<false>),
            Codec::Ascii => run!(CellBytes<true>),
            Codec::Utf8Marked | Codec::Utf16(Order::Marked) => run!(CellOther),
            Codec::Utf32(_) | Codec::Legacy(_) => run!(CellOther),
        }
    }};
}
pub(super) use with_encoding;

/// A call that decodes a short text while no ledger is active. [`Work::run`] is compiled for each
/// instruction set.
pub(super) struct Short<'a, 'py, E>(Python<'py>, &'a [u8], PhantomData<E>);

impl<'a, 'py, E> Short<'a, 'py, E> {
    #[inline(always)]
    pub(super) fn new(py: Python<'py>, text: &'a [u8]) -> Self {
        Short(py, text, PhantomData)
    }
}

impl<'py, E: CellEncoding> Work for Short<'_, 'py, E> {
    type Output = Option<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        make_cell::<K, E>(Blanks::new(self.0), kernels, self.1, None)
    }
}

/// A call that encodes a short `str` while no ledger is active. [`Work::run`] is compiled for each
/// instruction set.
pub(super) struct ShortStr<'a, 'py, E>(Borrowed<'a, 'py, PyString>, PhantomData<E>);

impl<'a, 'py, E> ShortStr<'a, 'py, E> {
    #[inline(always)]
    pub(super) fn new(string: Borrowed<'a, 'py, PyString>) -> Self {
        ShortStr(string, PhantomData)
    }
}

impl<'py, E: CellEncoding> Work for ShortStr<'_, 'py, E> {
    type Output = Option<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        encode_cell::<K, E>(kernels, self.0)
    }
}
