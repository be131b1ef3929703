//! `Fragment`: JSON text that the encoder writes unchanged.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::raw::{buffer, text};

/// Encoded JSON, which is written unchanged.
///
/// `Fragment(data)` accepts a `bytes`, another object with a buffer, or a `str`. The data is one
/// unchecked JSON value in UTF-8. An invalid value makes the surrounding JSON invalid too.
///
/// Copies: the constructor copies a `str`, or a buffer that may change, once. Each write of the
/// fragment copies its data once.
///
/// Raises `TypeError` for any other object.
///
/// >>> import onecopy
/// >>> onecopy.json.dumps({"a": onecopy.json.Fragment(b"[1,2]")})
/// b'{"a":[1,2]}'
#[pyclass(frozen, module = "onecopy.json")]
pub(crate) struct Fragment {
    contents: Py<PyAny>,
    bytes: Vec<u8>,
}

impl Fragment {
    /// The JSON text.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[pymethods]
impl Fragment {
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: Bound<'_, PyAny>) -> PyResult<Fragment> {
        let bytes = if let Ok(string) = data.cast::<PyString>() {
            let made = text::to_string(string.as_borrowed(), &mut onecopy_text::Tally::default());
            made.map_err(|e| match e {
                text::MakeError::Python(e) => e,
                text::MakeError::Malformed(e) => {
                    PyValueError::new_err(format!("the str is not valid text: {e}"))
                }
            })?
            .into_bytes()
        } else {
            buffer::copy_of(data.as_borrowed())?.ok_or_else(|| {
                PyTypeError::new_err("a Fragment takes a str or an object with a buffer")
            })?
        };
        Ok(Fragment {
            contents: data.unbind(),
            bytes,
        })
    }

    /// The argument of the constructor.
    #[getter]
    fn contents(&self, py: Python<'_>) -> Py<PyAny> {
        self.contents.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Fragment({})", self.contents.bind(py).repr()?))
    }
}
