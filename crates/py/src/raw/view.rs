//! Views of the UTF-8 that stands behind a `str`.

use std::ffi::c_int;

use onecopy_text::Units;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use super::text;

/// What the view is of: holds the `str`.
#[pyclass(frozen, module = "onecopy.text")]
struct Utf8(Py<PyString>);

#[pymethods]
impl Utf8 {
    /// # Safety
    /// CPython's: `view` is a place for a buffer.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let string = slf.get().0.bind(slf.py());
        let Units::Utf8(utf8) = text::units(string.as_borrowed())? else {
            return Err(PyBufferError::new_err("no UTF-8 stands behind the str"));
        };
        // SAFETY: attached; `view` is the place that CPython gave. The call takes a reference of the owner, which keeps the
        // `str` and so its bytes where they are (a UTF-8 cache lives as long as its `str`); read-only is all it gives.
        let failed = unsafe {
            let (data, len) = (utf8.as_ptr().cast_mut(), utf8.len() as ffi::Py_ssize_t);
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data.cast(), len, 1, flags)
        };
        if failed != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        Ok(())
    }
}

/// A read-only memoryview of the UTF-8 of `string`; `None` where none stands. Copies: none.
pub(crate) fn of_utf8<'py>(
    string: Borrowed<'_, 'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = string.py();
    if !matches!(text::units(string)?, Units::Utf8(_)) {
        return Ok(None);
    }
    let owner = Bound::new(py, Utf8(string.to_owned().unbind()))?;
    // SAFETY: any object may be asked. A new reference or null with an error.
    unsafe {
        let view = ffi::PyMemoryView_FromObject(owner.as_ptr());
        Bound::from_owned_ptr_or_err(py, view).map(Some)
    }
}
