//! Creates memoryviews of the UTF-8 of a `str`.

use std::ffi::c_int;

use onecopy_text::Units;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use super::text;

/// Owns the memory of a UTF-8 memoryview.
#[pyclass(frozen, name = "Utf8", module = "onecopy.text")]
struct Utf8Owner(Py<PyString>);

#[pymethods]
impl Utf8Owner {
    /// Fills `view` with the UTF-8 of the `str`.
    ///
    /// # Safety
    /// Only CPython may call this function. `view` must be a writable `Py_buffer`.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let string = slf.get().0.bind(slf.py());
        let Units::Utf8(utf8) = text::units(string.as_borrowed())? else {
            return Err(PyBufferError::new_err(
                "the UTF-8 form of the str is not in memory",
            ));
        };
        // SAFETY: attached; `view` is a valid pointer from CPython. The call takes a reference to
        // the owner, which refers to the `str`, so its bytes do not move. The view is read-only.
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

/// Returns a read-only memoryview of existing UTF-8 (ASCII, or the UTF-8 cache). Copies: none.
pub(crate) fn of_utf8<'py>(
    string: Borrowed<'_, 'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = string.py();
    if !matches!(text::units(string)?, Units::Utf8(_)) {
        return Ok(None);
    }
    let owner = Bound::new(py, Utf8Owner(string.to_owned().unbind()))?;
    // SAFETY: the call accepts any object. A new reference or null with an error.
    unsafe {
        let view = ffi::PyMemoryView_FromObject(owner.as_ptr());
        Bound::from_owned_ptr_or_err(py, view).map(Some)
    }
}
