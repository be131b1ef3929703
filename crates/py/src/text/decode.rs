//! Decodes the bytes of a buffer to a `str`.

use std::mem::MaybeUninit;

use onecopy_text::convert::{MOST_CELL_BYTES, VolatileBytes, with_kernels};
use onecopy_text::{Encoding, Order as ByteOrder, Policy, Stage, Tally, Units};
use pyo3::Borrowed;
use pyo3::prelude::*;

use super::cell::{MIDDLING_BYTES, Short, with_encoding};
use super::codec::{Codec, Order};
use super::direct::direct_functions;
use crate::ledger;
use crate::raw::buffer::{self, BorrowedBytes, as_units};
use crate::raw::codecs;
use crate::raw::function::{self, Args, Function};
use crate::raw::private_bytes::PrivateBytes;
use crate::raw::text::{self, MakeError};

/// Decodes a short text in a `bytes` if no ledger is active. Returns `None` for other text. It is
/// always inlined, so that `codec` can be a constant.
#[inline(always)]
fn decode_quickly<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    codec: Codec,
) -> Option<Bound<'py, PyAny>> {
    let bytes = buffer::of_bytes(object)?;
    if bytes.len() <= MOST_CELL_BYTES {
        decode_short(py, bytes, codec)
    } else {
        decode_middling(py, bytes, codec)
    }
}

/// Decodes a text of less than [`MIDDLING_BYTES`] with a check and a `memcpy`. Returns `None` if a
/// ledger counts the bytes or the text needs other code.
#[inline(never)]
fn decode_middling<'py>(py: Python<'py>, bytes: &[u8], codec: Codec) -> Option<Bound<'py, PyAny>> {
    if ledger::is_kept() || bytes.len() >= MIDDLING_BYTES {
        return None;
    }
    match codec {
        Codec::Utf8 | Codec::Ascii => text::make_bytes_uncounted(py, bytes, false),
        Codec::Latin1 => text::make_bytes_uncounted(py, bytes, true),
        _ => None,
    }
}

#[inline(always)]
fn decode_short<'py>(py: Python<'py>, bytes: &[u8], codec: Codec) -> Option<Bound<'py, PyAny>> {
    // The results are so small that they remain in registers.
    if ledger::is_kept() || bytes.len() > MOST_CELL_BYTES {
        return None;
    }
    with_encoding!(codec, E => with_kernels(Short::<E>::new(py, bytes)))
}

/// Decodes the bytes of `object` to a `str`.
///
/// Only malformed text uses the error handler `errors`, through CPython's codec.
#[inline(never)]
fn decode<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    buffer::with_source(object, |source| match source {
        BorrowedBytes::Stable(bytes) => decode_bytes(py, bytes, codec, errors),
        BorrowedBytes::Volatile(bytes) => match decode_volatile(py, bytes, codec)? {
            Some(made) => Ok(made),
            None => decode_private(py, bytes, codec, errors),
        },
    })
}

/// The maximum size of a text that is copied to the stack, in bytes.
const STACK_BYTES: usize = 1024;

/// Copies a buffer that other code may change, and decodes the copy.
fn decode_private<'py>(
    py: Python<'py>,
    bytes: VolatileBytes<'_>,
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if bytes.len() <= STACK_BYTES {
        let mut copy = [MaybeUninit::uninit(); STACK_BYTES];
        let copy = bytes.copy_to(0, &mut copy[..bytes.len()]);
        return decode_bytes(py, copy, codec, errors);
    }
    let copy = PrivateBytes::copy_of(bytes)?;
    decode_bytes(py, copy.as_slice(), codec, errors)
}

/// Decodes a long text from a buffer that other code may change. If it returns `None`, the caller
/// must decode a private copy of the buffer.
fn decode_volatile<'py>(
    py: Python<'py>,
    bytes: VolatileBytes<'_>,
    codec: Codec,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut start = [MaybeUninit::uninit(); 4];
    let start = &mut start[..bytes.len().min(4)];
    let start = bytes.copy_to(0, start);
    let n_mark = |mark: &[u8]| {
        if start.starts_with(mark) {
            mark.len()
        } else {
            0
        }
    };
    let (encoding, n_mark) = match codec {
        Codec::Utf8Marked => (Encoding::Utf8, n_mark(b"\xEF\xBB\xBF")),
        Codec::Utf16(Order::Marked) => match (n_mark(&[0xFF, 0xFE]), n_mark(&[0xFE, 0xFF])) {
            (0, 2) => (Encoding::Utf16(ByteOrder::Big), 2),
            (n, _) => (Encoding::Utf16(ByteOrder::Little), n),
        },
        Codec::Utf32(Order::Marked) => {
            match (n_mark(&[0xFF, 0xFE, 0, 0]), n_mark(&[0, 0, 0xFE, 0xFF])) {
                (0, 4) => (Encoding::Utf32(ByteOrder::Big), 4),
                (n, _) => (Encoding::Utf32(ByteOrder::Little), n),
            }
        }
        codec => (codec.into(), 0),
    };
    let mut tally = Tally::default();
    let made = text::make_volatile(py, bytes.after(n_mark), encoding, &mut tally)?;
    if made.is_some() {
        ledger::enter(py, &mut tally, Stage::Decode)?;
    }
    Ok(made)
}

/// Decodes immutable bytes to a `str`, like [`decode`].
pub(super) fn decode_bytes<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(made) = decode_short(py, bytes, codec) {
        return Ok(made);
    }
    if let Some(made) = decode_middling(py, bytes, codec) {
        return Ok(made);
    }
    let mut tally = Tally::default();
    match by_kernels(py, bytes, codec, &mut tally)? {
        Some(made) => {
            ledger::enter(py, &mut tally, Stage::Decode)?;
            Ok(made)
        }
        None => decode_otherwise(py, bytes, codec, errors),
    }
}

/// Decodes malformed text, and encodings without kernels.
pub(super) fn decode_otherwise<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match codec {
        Codec::Legacy(encoding) => super::legacy::decode(py, bytes, encoding, errors),
        _ => codecs::decode(py, bytes, codec.name(), errors),
    }
}

/// Decodes well-formed text with the kernels. Returns `None` if the text is malformed or has no
/// kernels.
pub(super) fn by_kernels<'py>(
    py: Python<'py>,
    bytes: &[u8],
    codec: Codec,
    tally: &mut Tally,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let make = |units, tally: &mut Tally| text::make(py, units, Policy::Strict, tally);
    let made = match codec {
        Codec::Utf8 => make(Units::Utf8(bytes), tally),
        Codec::Utf8Marked => {
            let rest = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            make(Units::Utf8(rest), tally)
        }
        Codec::Latin1 => make(Units::Latin1(bytes), tally),
        Codec::Ascii => match text::make_ascii(py, bytes, tally) {
            Ok(made) => return Ok(made),
            Err(e) => Err(e),
        },
        Codec::Utf16(order) if bytes.len().is_multiple_of(2) => {
            let (rest, order) = without_mark(bytes, order, [0xFF, 0xFE], [0xFE, 0xFF]);
            match as_units(rest) {
                Some(units) if order != Order::Big => make(Units::Utf16(units), tally),
                _ if rest.len() <= 2 => {
                    let units = rest.as_chunks().0.first().map(|&unit| match order {
                        Order::Big => u16::from_be_bytes(unit),
                        _ => u16::from_le_bytes(unit),
                    });
                    make(Units::Utf16(units.as_slice()), tally)
                }
                _ if order == Order::Big => {
                    return text::make_ordered_utf16::<true>(py, rest, tally);
                }
                _ => return text::make_ordered_utf16::<false>(py, rest, tally),
            }
        }
        Codec::Utf32(order) if bytes.len().is_multiple_of(4) => {
            let marks = ([0xFF, 0xFE, 0, 0], [0, 0, 0xFE, 0xFF]);
            let (rest, order) = without_mark(bytes, order, marks.0, marks.1);
            if rest.len() <= 4 {
                let units = rest.as_chunks().0.first().map(|&unit| match order {
                    Order::Big => u32::from_be_bytes(unit),
                    _ => u32::from_le_bytes(unit),
                });
                make(Units::Utf32(units.as_slice()), tally)
            } else if order == Order::Big {
                return text::make_ordered_utf32::<true>(py, rest, tally);
            } else {
                return text::make_ordered_utf32::<false>(py, rest, tally);
            }
        }
        Codec::Utf16(_) | Codec::Utf32(_) | Codec::Legacy(_) => return Ok(None),
    };
    match made {
        Ok(made) => Ok(Some(made)),
        Err(MakeError::Malformed(_)) => Ok(None),
        Err(MakeError::Python(e)) => Err(e),
    }
}

/// Removes the byte order mark, and returns the text and its byte order. Without a mark, it is
/// little-endian. If `order` is not [`Order::Marked`], nothing changes.
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

struct DecodeText;

impl Function for DecodeText {
    const NAME: &'static str = "decode";
    const SIGNATURE: &'static str = "(buffer, encoding='utf-8', errors='strict')";
    const DOC: &'static str = "\
The text of any buffer.

Accepts any object with the buffer protocol (PEP 3118, PEP 688). ``encoding`` is UTF-8, UTF-16 or
UTF-32 (both byte orders, with a mark or without), Latin-1, ASCII, or any encoding of the WHATWG
Encoding Standard. ``errors`` is the name of an error handler of :mod:`codecs`.

Raises `UnicodeDecodeError` as :meth:`bytes.decode` does: with the same ``start``, ``end`` and
``reason``.

Copies: none besides the conversion, and one more of a buffer that is not ``bytes`` and so may
change while it is read, if it is shorter than 1 KiB, malformed, not contiguous or in an encoding of
the WHATWG standard.

>>> onecopy.text.decode(b'Z\\xc3\\xbcrich')
'Zürich'
";
    const PARAMETERS: &'static [&'static str] = &["buffer", "encoding", "errors"];
    const REQUIRED: usize = 1;

    #[inline(always)]
    fn quick<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> Option<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8).ok()?;
        decode_quickly(py, args.get(0)?, codec)
    }

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8)?;
        decode(py, args.required(0), codec, args.get(2))
    }
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_direct(module)?;
    function::add::<DecodeText>(module)
}

direct_functions! {
    decode, decode_quickly, "buffer", "The text of a buffer in ";
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
