//! Safe functions for context variables (PEP 567).

use std::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

/// Creates a context variable. Its default value is `None`.
pub(crate) fn new<'py>(py: Python<'py>, name: &CStr) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: attached. The name ends in a zero byte, and None is a valid default. Returns a new
    // reference, or null with an error.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyContextVar_New(name.as_ptr(), ffi::Py_None()))
    }
}

/// Returns the value of `variable` in the current context. The default is Python's `None`.
pub(crate) fn get<'py>(variable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = variable.py();
    let mut value = std::ptr::null_mut();
    // SAFETY: the call fails with TypeError if the object is not a variable. On success `value` is
    // a new reference, and not null, because the variable has a default.
    unsafe {
        if ffi::PyContextVar_Get(variable.as_ptr(), std::ptr::null_mut(), &raw mut value) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr_or_opt(py, value).unwrap_or_else(|| py.None().into_bound(py)))
    }
}

/// Sets `variable`, and returns the token that resets it.
pub(crate) fn set<'py>(
    variable: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as in `get`. Returns a new reference, or null with an error.
    unsafe {
        let token = ffi::PyContextVar_Set(variable.as_ptr(), value.as_ptr());
        Bound::from_owned_ptr_or_err(variable.py(), token)
    }
}

/// Restores the value of `variable` before `token`.
pub(crate) fn reset(variable: &Bound<'_, PyAny>, token: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: as in `get`. A token of another context is a ValueError.
    match unsafe { ffi::PyContextVar_Reset(variable.as_ptr(), token.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(variable.py())),
    }
}
