//! `is_valid` and `utf8_view`: examine text without creating an object.

use onecopy_text::{Units, find_malformed, is_utf8};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};
use pyo3::{Borrowed, PyTypeInfo};

use super::codec::{Codec, Order};
use super::decode::decode_bytes;
use crate::raw::buffer::{BufferBytes, as_units};
use crate::raw::function::{self, Args, Function};
use crate::raw::{text, utf8_view};

struct IsValid;

impl Function for IsValid {
    const NAME: &'static str = "is_valid";
    const SIGNATURE: &'static str = "(buffer, encoding='utf-8')";
    const DOC: &'static str = "\
True if a buffer holds well-formed text in an encoding, which :func:`decode` accepts.

Copies: none (for other byte orders and UTF-32, those of a decode).

>>> onecopy.text.is_valid(b'\\xff')
False
";
    const PARAMETERS: &'static [&'static str] = &["buffer", "encoding"];
    const REQUIRED: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let codec = Codec::of_argument(args.get(1), Codec::Utf8)?;
        let bytes = BufferBytes::of(args.required(0))?;
        let valid = is_valid(py, bytes.as_slice(), codec)?;
        Ok(PyBool::new(py, valid).to_owned().into_any())
    }
}

fn is_valid(py: Python<'_>, bytes: &[u8], codec: Codec) -> PyResult<bool> {
    Ok(match codec {
        Codec::Utf8 | Codec::Utf8Marked => is_utf8(bytes),
        Codec::Latin1 => true,
        Codec::Ascii => bytes.is_ascii(),
        Codec::Legacy(encoding) => super::legacy::is_valid(bytes, encoding),
        Codec::Utf16(Order::Little) if as_units::<u16>(bytes).is_some() => {
            let units = as_units(bytes).unwrap_or_default();
            find_malformed(Units::Utf16(units)).is_none()
        }
        Codec::Utf16(_) | Codec::Utf32(_) => match decode_bytes(py, bytes, codec, None) {
            Ok(_) => true,
            Err(e) if e.is_instance_of::<pyo3::exceptions::PyUnicodeDecodeError>(py) => false,
            Err(e) => return Err(e),
        },
    })
}

struct Utf8View;

impl Function for Utf8View {
    const NAME: &'static str = "utf8_view";
    const SIGNATURE: &'static str = "(string)";
    const DOC: &'static str = "\
A read-only memoryview of the UTF-8 of a `str`, without a copy.

An ASCII `str` has one, because its data is UTF-8, and so has another one with a UTF-8 cache. Raises
`ValueError` otherwise: no cache is made, since it would stay as long as the `str`.

Copies: none. The view keeps the `str` alive.

>>> bytes(onecopy.text.utf8_view('plain'))
b'plain'
";
    const PARAMETERS: &'static [&'static str] = &["string"];
    const REQUIRED: usize = 1;

    fn call<'py>(_py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let object: Borrowed<'_, 'py, PyAny> = args.required(0);
        if !PyString::is_type_of(&object) {
            let kind = object.get_type().name()?;
            return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                "a str is required, not '{kind}'"
            )));
        }
        let string = text::as_str_object(object);
        match utf8_view::of_utf8(string)? {
            Some(view) => Ok(view),
            None => Err(PyValueError::new_err(
                "the UTF-8 form of this str is not in memory: it is not ASCII and not cached\n\
                 onecopy.text.encode(string) converts it",
            )),
        }
    }
}

/// Adds the Python functions of this file to `module`.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<IsValid>(module)?;
    function::add::<Utf8View>(module)
}
