//! `int`, `float`, `bool`, `decimal.Decimal`.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An `int`.
#[inline]
pub(crate) fn int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the call takes any value.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLongLong(value)) }
}

/// A `float`.
#[inline]
pub(crate) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the call takes any value.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyFloat_FromDouble(value)) }
}

/// `decimal.Decimal`, imported once.
pub(crate) fn decimal_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "decimal", "Decimal")
}

/// A `Decimal` of these ASCII digits, exact: the constructor ignores the context's precision.
#[inline]
pub(crate) fn decimal<'py>(
    class: &Bound<'py, PyType>,
    digits: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are objects that we hold; the call returns a new reference or null with an error set.
    unsafe {
        Bound::from_owned_ptr_or_err(
            class.py(),
            ffi::PyObject_CallOneArg(class.as_ptr(), digits.as_ptr()),
        )
    }
}
