//! The encodings that `onecopy.text` implements, and their names.

use std::ffi::CStr;

use onecopy_text::{Encoding, Legacy, Order as ByteOrder};
use pyo3::exceptions::{PyLookupError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, PyTypeInfo};

use crate::raw::text;

/// The byte order of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Little-endian.
    Little,
    /// Big-endian.
    Big,
    /// The order of the byte order mark, or little-endian without a mark. The encoder writes a
    /// mark.
    Marked,
}

/// An encoding that `onecopy.text` implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Utf8,
    /// UTF-8 with a byte order mark. The decoder removes the mark.
    Utf8Marked,
    Utf16(Order),
    Utf32(Order),
    Latin1,
    Ascii,
    /// An encoding of the WHATWG Encoding Standard.
    Legacy(Legacy),
}

impl Codec {
    /// Returns the name of CPython's codec for the encoding.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Codec::Utf8 => c"utf-8",
            Codec::Utf8Marked => c"utf-8-sig",
            Codec::Utf16(Order::Little) => c"utf-16-le",
            Codec::Utf16(Order::Big) => c"utf-16-be",
            Codec::Utf16(Order::Marked) => c"utf-16",
            Codec::Utf32(Order::Little) => c"utf-32-le",
            Codec::Utf32(Order::Big) => c"utf-32-be",
            Codec::Utf32(Order::Marked) => c"utf-32",
            Codec::Latin1 => c"latin-1",
            Codec::Ascii => c"ascii",
            // CPython's codecs have other tables than the WHATWG Encoding Standard.
            Codec::Legacy(_) => c"unknown",
        }
    }

    /// Returns the encoding with this name. Ignores case, `-`, `_` and spaces.
    ///
    /// # Errors
    /// `LookupError` for an unknown name. `TypeError` if the object is not a `str`.
    #[inline]
    pub(crate) fn of(name: Borrowed<'_, '_, PyAny>) -> PyResult<Codec> {
        if !PyString::is_exact_type_of(&name) {
            let kind = name.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "encoding must be str, not '{kind}'"
            )));
        }
        let written = text::ascii(name);
        match written.and_then(Codec::by_name) {
            Some(codec) => Ok(codec),
            None => Err(unknown(name)),
        }
    }

    /// Returns the encoding of an argument, or the default.
    ///
    /// # Errors
    /// Same as [`Codec::of`].
    #[inline(always)]
    pub(crate) fn of_argument(
        name: Option<Borrowed<'_, '_, PyAny>>,
        default: Codec,
    ) -> PyResult<Codec> {
        name.map_or(Ok(default), Codec::of)
    }

    fn by_name(name: &[u8]) -> Option<Codec> {
        Some(match name {
            // The usual spellings, without normalization of the name.
            b"utf-8" => Codec::Utf8,
            b"utf-16-le" | b"utf-16le" => Codec::Utf16(Order::Little),
            b"utf-16" => Codec::Utf16(Order::Marked),
            b"utf-32" => Codec::Utf32(Order::Marked),
            b"latin-1" => Codec::Latin1,
            b"ascii" => Codec::Ascii,
            _ => return Codec::by_any_spelling(name),
        })
    }

    #[inline(never)]
    fn by_any_spelling(name: &[u8]) -> Option<Codec> {
        Encoding::by_name(str::from_utf8(name).ok()?).map(Codec::from)
    }
}

impl From<Encoding> for Codec {
    fn from(encoding: Encoding) -> Codec {
        let of = |order| match order {
            ByteOrder::Little => Order::Little,
            ByteOrder::Big => Order::Big,
            ByteOrder::Marked => Order::Marked,
        };
        match encoding {
            Encoding::Utf8 => Codec::Utf8,
            Encoding::Utf8Marked => Codec::Utf8Marked,
            Encoding::Utf16(order) => Codec::Utf16(of(order)),
            Encoding::Utf32(order) => Codec::Utf32(of(order)),
            Encoding::Latin1 => Codec::Latin1,
            Encoding::Ascii => Codec::Ascii,
            Encoding::Legacy(legacy) => Codec::Legacy(legacy),
        }
    }
}

impl From<Codec> for Encoding {
    fn from(codec: Codec) -> Encoding {
        let of = |order| match order {
            Order::Little => ByteOrder::Little,
            Order::Big => ByteOrder::Big,
            Order::Marked => ByteOrder::Marked,
        };
        match codec {
            Codec::Utf8 => Encoding::Utf8,
            Codec::Utf8Marked => Encoding::Utf8Marked,
            Codec::Utf16(order) => Encoding::Utf16(of(order)),
            Codec::Utf32(order) => Encoding::Utf32(of(order)),
            Codec::Latin1 => Encoding::Latin1,
            Codec::Ascii => Encoding::Ascii,
            Codec::Legacy(legacy) => Encoding::Legacy(legacy),
        }
    }
}

#[cold]
fn unknown(name: Borrowed<'_, '_, PyAny>) -> PyErr {
    let name = name.repr().map(|name| name.to_string());
    let name = name.unwrap_or_default();
    PyLookupError::new_err(format!(
        "unknown encoding: {name}\n\
         the encodings are UTF-8, UTF-16 and UTF-32 (with -le, -be), Latin-1, ASCII, \
         and the WHATWG Encoding Standard's;\n\
         for others there are `bytes.decode` and `str.encode`"
    ))
}
