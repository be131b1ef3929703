//! Encodes a `str` to a `bytes`, or into a buffer.

use std::mem::MaybeUninit;

use onecopy_text::convert::{
    ordered_utf16, ordered_utf32, utf8_exact, utf8_len_exact, utf16_len_exact, utf32_len_exact,
    with_kernels,
};
use onecopy_text::{Stage, Tally, Units};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, PyTypeInfo};

use super::cell::{MIDDLING_BYTES, ShortStr, with_encoding};
use super::codec::{Codec, Order};
use super::direct::direct_functions;
use crate::ledger;
use crate::raw::buffer::{put, with_writable};
use crate::raw::function::{self, Args, Function};
use crate::raw::{binary, fresh_bytes, text};

/// Returns the argument if it is a `str`, otherwise a `TypeError`.
#[inline(always)]
fn string<'a, 'py>(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Borrowed<'a, 'py, PyString>> {
    if PyString::is_type_of(&object) {
        return Ok(text::as_str_object(object));
    }
    Err(no_str(object))
}

#[cold]
fn no_str(object: Borrowed<'_, '_, PyAny>) -> PyErr {
    match object.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("a str is required, not '{kind}'")),
        Err(e) => e,
    }
}

/// Returns the encoded length in bytes. For `None`, the caller must call `legacy::encode_or`.
#[inline]
fn len_of(units: Units<'_>, codec: Codec) -> Option<usize> {
    match codec {
        Codec::Utf8 => utf8_len_exact(units),
        Codec::Utf16(Order::Little | Order::Big) => utf16_len_exact(units).map(|n| 2 * n),
        Codec::Utf16(Order::Marked) => utf16_len_exact(units).map(|n| 2 * n + 2),
        Codec::Latin1 => match units {
            Units::Latin1(u) => Some(u.len()),
            _ => None,
        },
        Codec::Ascii => match units {
            Units::Latin1(u) if u.is_ascii() => Some(u.len()),
            _ => None,
        },
        Codec::Utf8Marked => utf8_len_exact(units).map(|n| n + 3),
        Codec::Utf32(Order::Little | Order::Big) => utf32_len_exact(units).map(|n| 4 * n),
        Codec::Utf32(Order::Marked) => utf32_len_exact(units).map(|n| 4 * n + 4),
        Codec::Legacy(_) => None,
    }
}

/// Returns the encoded length in bytes, like [`len_of`]. For UTF-32, does not check the characters.
#[inline]
fn likely_len_of(units: Units<'_>, codec: Codec) -> Option<usize> {
    match codec {
        Codec::Utf32(Order::Little | Order::Big) => Some(4 * units.len_units()),
        Codec::Utf32(Order::Marked) => Some(4 * units.len_units() + 4),
        _ => len_of(units, codec),
    }
}

/// Writes the encoded text to `out`. The length of `out` must be the result of [`likely_len_of`] or
/// [`len_of`]. Returns `false` if the text cannot be encoded.
#[inline]
fn write(units: Units<'_>, codec: Codec, out: &mut [MaybeUninit<u8>]) -> bool {
    match codec {
        Codec::Utf8 => utf8_exact(units, out),
        Codec::Utf8Marked => {
            let (mark, rest) = out.split_at_mut(3);
            put(mark, b"\xEF\xBB\xBF");
            utf8_exact(units, rest);
        }
        Codec::Latin1 | Codec::Ascii => write_bytes(units, out),
        Codec::Utf16(Order::Little) => ordered_utf16::<false>(units, out),
        Codec::Utf16(Order::Big) => ordered_utf16::<true>(units, out),
        Codec::Utf16(Order::Marked) => {
            let (mark, rest) = out.split_at_mut(2);
            put(mark, b"\xFF\xFE");
            ordered_utf16::<false>(units, rest);
        }
        Codec::Utf32(Order::Little) => return ordered_utf32::<false>(units, out),
        Codec::Utf32(Order::Big) => return ordered_utf32::<true>(units, out),
        Codec::Utf32(Order::Marked) => {
            let (mark, rest) = out.split_at_mut(4);
            put(mark, b"\xFF\xFE\0\0");
            return ordered_utf32::<false>(units, rest);
        }
        Codec::Legacy(_) => unreachable!("another codec encodes it"),
    }
    true
}

/// Copies the one-byte code units of a text to `out`.
fn write_bytes(units: Units<'_>, out: &mut [MaybeUninit<u8>]) {
    if let Units::Latin1(u) = units {
        put(out, u);
    }
}

/// Encodes a short `str` if no ledger is active. `None` for any other `str`.
#[inline(always)]
fn encode_quickly<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    codec: Codec,
) -> Option<Bound<'py, PyAny>> {
    if ledger::is_kept() || !PyString::is_type_of(&object) {
        return None;
    }
    let string = text::as_str_object(object);
    if let Some(made) = with_encoding!(codec, E => with_kernels(ShortStr::<E>::new(string))) {
        return Some(made);
    }
    // Copies ASCII, and also Latin-1 if the characters have one byte each.
    let bytes = match codec {
        Codec::Utf8 | Codec::Ascii => text::known_ascii(string).ok()??,
        Codec::Latin1 => match text::own_units(string).ok()? {
            Units::Latin1(units) => units,
            _ => return None,
        },
        _ => return None,
    };
    (bytes.len() < MIDDLING_BYTES).then(|| binary::make(py, bytes).ok())?
}

/// Encodes a `str` of any length to a `bytes`.
#[inline(never)]
pub(super) fn encode<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(made) = encode_quickly(py, object, codec) {
        return Ok(made);
    }
    let string = string(object)?;
    // Copies UTF-8 from an existing cache. Other encodings convert the characters.
    let units = match codec {
        Codec::Utf8 | Codec::Utf8Marked => text::units(string)?,
        _ => text::own_units(string)?,
    };
    let ascii = match codec {
        Codec::Utf8 | Codec::Latin1 | Codec::Ascii => text::known_ascii(string)?,
        _ => None,
    };
    let made = match (ascii, units) {
        // The characters and the UTF-8 cache of a `str` are well-formed.
        (Some(ascii), _) => binary::make(py, ascii)?,
        (None, Units::Utf8(utf8)) if codec == Codec::Utf8 => binary::make(py, utf8)?,
        _ => {
            let Some(len) = likely_len_of(units, codec) else {
                return super::legacy::encode_or(string, codec, errors);
            };
            let mut is_good = true;
            let made = fresh_bytes::make_with(py, len, |out| is_good = write(units, codec, out))?;
            if !is_good {
                drop(made);
                return super::legacy::encode_or(string, codec, errors);
            }
            made
        }
    };
    let mut tally = Tally::default();
    tally.encoded(units);
    ledger::enter(py, &mut tally, Stage::Encode)?;
    Ok(made)
}

struct EncodeText;

impl Function for EncodeText {
    const NAME: &'static str = "encode";
    const SIGNATURE: &'static str = "(string, encoding='utf-8', errors='strict')";
    const DOC: &'static str = "\
The text of a `str` as `bytes`.

Encodings and errors as in :func:`decode`. Raises `UnicodeEncodeError` as :meth:`str.encode` does.
No UTF-8 cache is left on the `str`; an existing one is used.

Copies: none besides the conversion, into a `bytes` of its size.

>>> onecopy.text.encode('Zürich', 'utf-16-le')
b'Z\\x00\\xfc\\x00r\\x00i\\x00c\\x00h\\x00'
";
    const PARAMETERS: &'static [&'static str] = &["string", "encoding", "errors"];
    const REQUIRED: usize = 1;

    #[inline(always)]
    fn quick<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> Option<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8).ok()?;
        encode_quickly(py, args.get(0)?, codec)
    }

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8)?;
        encode(py, args.required(0), codec, args.get(2))
    }
}

struct EncodeInto;

impl Function for EncodeInto {
    const NAME: &'static str = "encode_into";
    const SIGNATURE: &'static str = "(string, buffer, offset=0, encoding='utf-8', errors='strict')";
    const DOC: &'static str = "\
Encode a `str` into a writable buffer from byte ``offset`` on; the number of bytes written.

The buffer is contiguous (PEP 3118). Raises `ValueError` if the text does not fit, `BufferError` if
the buffer is read-only, `IndexError` if ``offset`` is outside of it; the buffer is then unchanged.

Copies: none besides the conversion.

>>> place = bytearray(8)
>>> onecopy.text.encode_into('Zürich', place, 1)
7
>>> place
bytearray(b'\\x00Z\\xc3\\xbcrich')
";
    const PARAMETERS: &'static [&'static str] =
        &["string", "buffer", "offset", "encoding", "errors"];
    const REQUIRED: usize = 2;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(3), Codec::Utf8)?;
        let offset: usize = match args.get(2) {
            None => 0,
            Some(offset) => offset.extract().map_err(|_| {
                PyIndexError::new_err("offset is a whole number from 0 to the end of the buffer")
            })?,
        };
        let string = string(args.required(0))?;
        let units = match codec {
            Codec::Utf8 | Codec::Utf8Marked => text::units(string)?,
            _ => text::own_units(string)?,
        };
        let len = len_of(units, codec);
        // CPython's codec encodes a text of unknown length. The buffer receives a copy.
        let made = match len {
            Some(_) => None,
            None => Some(super::legacy::encode_or(string, codec, args.get(4))?),
        };
        let made = made.as_ref().map(|made| binary::bytes_of(made));
        let len = made.map_or(len.unwrap_or(0), <[u8]>::len);
        with_writable(args.required(1), |buffer| {
            let size = buffer.len();
            let Some(rest) = buffer.get_mut(offset..) else {
                return Err(PyIndexError::new_err(format!(
                    "offset {offset} is after the end of a buffer of {size} bytes"
                )));
            };
            let left = rest.len();
            let Some(out) = rest.get_mut(..len) else {
                return Err(PyValueError::new_err(format!(
                    "the text is {len} bytes long, and {left} are left in the buffer from offset {offset} on"
                )));
            };
            match made {
                Some(made) => put(out, made),
                None => {
                    let is_good = write(units, codec, out);
                    assert!(is_good, "the text was measured");
                }
            }
            Ok(())
        })?;
        let mut tally = Tally::default();
        tally.encoded(units);
        ledger::enter(py, &mut tally, Stage::Encode)?;
        Ok(len.into_pyobject(py)?.into_any())
    }
}

struct EncodedLength;

impl Function for EncodedLength {
    const NAME: &'static str = "encoded_length";
    const SIGNATURE: &'static str = "(string, encoding='utf-8')";
    const DOC: &'static str = "\
Bytes that a `str` has in an encoding, without encoding it.

Raises `UnicodeEncodeError` where it cannot be encoded.

>>> onecopy.text.encoded_length('Zürich')
7
";
    const PARAMETERS: &'static [&'static str] = &["string", "encoding"];
    const REQUIRED: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8)?;
        let string = string(args.required(0))?;
        let len = match len_of(text::own_units(string)?, codec) {
            Some(len) => len,
            None => super::legacy::encode_or(string, codec, None)?.len()?,
        };
        Ok(len.into_pyobject(py)?.into_any())
    }
}

/// Adds the Python functions of this file to `module`.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_direct(module)?;
    function::add::<EncodeText>(module)?;
    function::add::<EncodeInto>(module)?;
    function::add::<EncodedLength>(module)
}

direct_functions! {
    encode, encode_quickly, "string", "A `str` as `bytes` in ";
    Utf8 "utf_8_encode" Codec::Utf8, "UTF-8";
    Utf16Le "utf_16_le_encode" Codec::Utf16(Order::Little), "UTF-16, little-endian, without a mark";
    Utf16Be "utf_16_be_encode" Codec::Utf16(Order::Big), "UTF-16, big-endian, without a mark";
    Utf16 "utf_16_encode" Codec::Utf16(Order::Marked), "UTF-16, little-endian, with a byte order mark";
    Utf32Le "utf_32_le_encode" Codec::Utf32(Order::Little), "UTF-32, little-endian, without a mark";
    Utf32Be "utf_32_be_encode" Codec::Utf32(Order::Big), "UTF-32, big-endian, without a mark";
    Utf32 "utf_32_encode" Codec::Utf32(Order::Marked), "UTF-32, little-endian, with a byte order mark";
    Latin1 "latin_1_encode" Codec::Latin1, "Latin-1 (ISO 8859-1)";
    Ascii "ascii_encode" Codec::Ascii, "ASCII";
}
