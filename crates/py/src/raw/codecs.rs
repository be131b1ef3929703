//! Calls CPython's codecs for malformed text and for error handlers.

use std::ffi::{CStr, CString};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use super::text;

/// Converts the name of an error handler to a C string. `None` is `strict`.
fn handler(errors: Option<Borrowed<'_, '_, PyAny>>) -> PyResult<CString> {
    let Some(errors) = errors else {
        return Ok(c"strict".into());
    };
    if !errors.is_instance_of::<PyString>() {
        let kind = errors.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "errors must be str, not '{kind}'"
        )));
    };
    let written = text::ascii(errors).unwrap_or(b"\0");
    CString::new(written).map_err(|_| PyValueError::new_err("no error handler has such a name"))
}

/// Decodes `bytes` like Python's `bytes.decode(encoding, errors)`.
#[cold]
pub(crate) fn decode<'py>(
    py: Python<'py>,
    bytes: &[u8],
    encoding: &CStr,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let errors = handler(errors)?;
    // SAFETY: attached; a valid slice and two C strings. A new reference, or null with an error.
    unsafe {
        let made = ffi::PyUnicode_Decode(
            bytes.as_ptr().cast(),
            bytes.len() as ffi::Py_ssize_t,
            encoding.as_ptr(),
            errors.as_ptr(),
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Encodes a `str` like Python's `str.encode(encoding, errors)`.
#[cold]
pub(crate) fn encode<'py>(
    string: Borrowed<'_, 'py, PyString>,
    encoding: &CStr,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let errors = handler(errors)?;
    // SAFETY: attached; a `str` and two C strings. A new reference or null with an error.
    unsafe {
        let made =
            ffi::PyUnicode_AsEncodedString(string.as_ptr(), encoding.as_ptr(), errors.as_ptr());
        Bound::from_owned_ptr_or_err(string.py(), made)
    }
}
