//! Creates `int`, `float` and `decimal.Decimal` objects.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyType};

#[inline]
pub(crate) fn int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the call takes any value.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLongLong(value)) }
}

/// Returns the value of an `int` if it fits into `i64`.
pub(crate) fn to_i64(value: &Bound<'_, PyInt>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: attached, and an `int`. The call reports an overflow without an exception.
    let n = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(n)
}

#[inline]
pub(crate) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the call takes any value.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyFloat_FromDouble(value)) }
}

pub(crate) fn decimal_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "decimal", "Decimal")
}

/// Creates a `Decimal` of the class `class` from ASCII text. The constructor ignores the decimal
/// context, so the result is exact.
#[inline]
pub(crate) fn decimal<'py>(
    class: &Bound<'py, PyType>,
    digits: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are objects that we hold; the call returns a new reference or null with an error
    // set.
    unsafe {
        Bound::from_owned_ptr_or_err(
            class.py(),
            ffi::PyObject_CallOneArg(class.as_ptr(), digits.as_ptr()),
        )
    }
}
