//! Buffer to `str`.

use onecopy_text::{Policy, Stage, Tally, Units};
use pyo3::Borrowed;
use pyo3::prelude::*;

use super::codec::{Codec, Order};
use super::direct::direct_functions;
use crate::ledger;
use crate::raw::buffer::{self, Bytes, as_units};
use crate::raw::codecs;
use crate::raw::method::{self, Args, Function};
use crate::raw::text::{self, MakeError};

/// Decodes the bytes of `object`.
///
/// `errors` matters where the text is malformed: CPython's codec is asked then.
#[inline]
pub(super) fn decode<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(bytes) = buffer::of_bytes(object) {
        return decode_bytes(py, bytes, codec, errors);
    }
    let bytes = Bytes::of(object)?;
    decode_bytes(py, bytes.as_slice(), codec, errors)
}

/// As [`decode`].
#[inline]
pub(super) fn decode_bytes<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    // A short text first, where nobody counts: nothing of it passes through memory.
    if !ledger::is_kept() {
        let made = match codec {
            Codec::Utf8 => text::make_utf8_cell(py, bytes),
            Codec::Utf16(Order::Little) => {
                as_units(bytes).and_then(|units| text::make_utf16_cell(py, units))
            }
            _ => None,
        };
        if let Some(made) = made {
            return made;
        }
    }
    decode_any(py, bytes, codec, errors)
}

/// As [`decode`], for any text.
#[inline(never)]
fn decode_any<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut tally = Tally::default();
    let made = match codec {
        Codec::Utf8 => text::make(py, Units::Utf8(bytes), Policy::Strict, &mut tally),
        Codec::Latin1 => text::make(py, Units::Latin1(bytes), Policy::Strict, &mut tally),
        Codec::Utf16(Order::Little) => match as_units(bytes) {
            Some(units) => text::make(py, Units::Utf16(units), Policy::Strict, &mut tally),
            None => return decode_rarer(py, bytes, codec, errors),
        },
        _ => return decode_rarer(py, bytes, codec, errors),
    };
    match made {
        Ok(made) => {
            ledger::enter(py, &mut tally, Stage::Decode)?;
            Ok(made)
        }
        Err(e) => fall_back(py, bytes, codec, errors, e),
    }
}

/// The encodings that ask for a look, a mark or another byte order first; and bytes at a place that no unit stands at.
#[inline(never)]
fn decode_rarer<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut tally = Tally::default();
    let strict = Policy::Strict;
    let made = match codec {
        Codec::Utf8 => text::make(py, Units::Utf8(bytes), strict, &mut tally),
        Codec::Utf8Marked => {
            let rest = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            text::make(py, Units::Utf8(rest), strict, &mut tally)
        }
        Codec::Latin1 => text::make(py, Units::Latin1(bytes), strict, &mut tally),
        Codec::Ascii if bytes.is_ascii() => {
            text::make(py, Units::Latin1(bytes), strict, &mut tally)
        }
        Codec::Utf16(order) if bytes.len().is_multiple_of(2) => {
            let (rest, order) = without_mark(bytes, order, [0xFF, 0xFE], [0xFE, 0xFF]);
            with_units(
                rest,
                order,
                &mut tally,
                u16::from_le_bytes,
                u16::from_be_bytes,
                |u, tally| text::make(py, Units::Utf16(u), strict, tally),
            )
        }
        Codec::Utf32(order) if bytes.len().is_multiple_of(4) => {
            let marks = ([0xFF, 0xFE, 0, 0], [0, 0, 0xFE, 0xFF]);
            let (rest, order) = without_mark(bytes, order, marks.0, marks.1);
            with_units(
                rest,
                order,
                &mut tally,
                u32::from_le_bytes,
                u32::from_be_bytes,
                |u, tally| text::make(py, Units::Utf32(u), strict, tally),
            )
        }
        Codec::Legacy(encoding) => return super::legacy::decode(py, bytes, encoding, errors),
        Codec::Ascii | Codec::Utf16(_) | Codec::Utf32(_) => {
            return codecs::decode(py, bytes, codec.name(), errors);
        }
    };
    match made {
        Ok(made) => {
            ledger::enter(py, &mut tally, Stage::Decode)?;
            Ok(made)
        }
        Err(e) => fall_back(py, bytes, codec, errors, e),
    }
}

/// The text behind its byte order mark, where it may have one, and its order.
fn without_mark<const N: usize>(
    bytes: &[u8],
    order: Order,
    little: [u8; N],
    big: [u8; N],
) -> (&[u8], Order) {
    if order != Order::Marked {
        return (bytes, order);
    }
    match (bytes.strip_prefix(&little), bytes.strip_prefix(&big)) {
        (Some(rest), _) => (rest, Order::Little),
        (_, Some(rest)) => (rest, Order::Big),
        _ => (bytes, Order::Little),
    }
}

/// The units of the bytes: as they stand, or a copy in the order and at a place that the machine takes.
fn with_units<const N: usize, U: crate::raw::buffer::Unit, R>(
    bytes: &[u8],
    order: Order,
    tally: &mut Tally,
    little: fn([u8; N]) -> U,
    big: fn([u8; N]) -> U,
    make: impl FnOnce(&[U], &mut Tally) -> R,
) -> R {
    if order != Order::Big
        && let Some(units) = as_units(bytes)
    {
        return make(units, tally);
    }
    let of = if order == Order::Big { big } else { little };
    let parts = bytes.chunks_exact(N);
    let units: Vec<U> = parts
        .map(|unit| of(unit.try_into().expect("a chunk of N bytes")))
        .collect();
    tally.copied_again(bytes.len());
    make(&units, tally)
}

/// What is malformed goes to CPython's codec, which raises, or replaces as `errors` says.
#[cold]
fn fall_back<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
    error: MakeError,
) -> PyResult<Bound<'py, PyAny>> {
    match error {
        MakeError::Malformed(_) => codecs::decode(py, bytes, codec.name(), errors),
        MakeError::Python(e) => Err(e),
    }
}

struct Decode;

impl Function for Decode {
    const NAME: &'static str = "decode";
    const SIGNATURE: &'static str = "(buffer, encoding='utf-8', errors='strict')";
    const DOC: &'static str = "\
The text of any buffer.

Takes any object with the buffer protocol (PEP 3118, PEP 688). ``encoding`` is UTF-8, UTF-16 or UTF-32 (both byte orders,
with a mark or without), Latin-1, ASCII, or any encoding of the WHATWG Encoding Standard. ``errors`` is the name of an error
handler of :mod:`codecs`.

Raises `UnicodeDecodeError` as :meth:`bytes.decode` does: with the same ``start``, ``end`` and ``reason``.

Copies: none besides the conversion; one more for big-endian units, for a buffer in pieces, and for 16 or 32-bit units at
an odd address.

>>> onecopy.text.decode(b'Z\\xc3\\xbcrich')
'Zürich'
";
    const PARAMETERS: &'static [&'static str] = &["buffer", "encoding", "errors"];
    const REQUIRED: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8)?;
        decode(py, args.required(0), codec, args.get(2))
    }
}

/// Adds the functions to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_direct(module)?;
    method::add::<Decode>(module)
}

direct_functions! {
    decode, "buffer", "The text of a buffer in ";
    Utf8 "utf_8_decode" Codec::Utf8, "UTF-8";
    Utf16Le "utf_16_le_decode" Codec::Utf16(Order::Little), "UTF-16, little-endian";
    Utf16Be "utf_16_be_decode" Codec::Utf16(Order::Big), "UTF-16, big-endian";
    Utf16 "utf_16_decode" Codec::Utf16(Order::Marked), "UTF-16, in the order of its mark";
    Utf32Le "utf_32_le_decode" Codec::Utf32(Order::Little), "UTF-32, little-endian";
    Utf32Be "utf_32_be_decode" Codec::Utf32(Order::Big), "UTF-32, big-endian";
    Utf32 "utf_32_decode" Codec::Utf32(Order::Marked), "UTF-32, in the order of its mark";
    Latin1 "latin_1_decode" Codec::Latin1, "Latin-1 (ISO 8859-1)";
    Ascii "ascii_decode" Codec::Ascii, "ASCII";
}
