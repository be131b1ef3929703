//! `uuid.UUID` without its Python-level constructor.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::instance;

/// `uuid.UUID`, imported once.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")
}

/// A `UUID` of these bytes (RFC 9562 order).
///
/// `UUID.__init__` parses its arguments in Python code for over a microsecond and ends in two calls of
/// `object.__setattr__`, for `int` and `is_safe`; these two are made here. Nothing is written past the class's own
/// descriptors, so a change of its layout cannot make this unsound.
pub(crate) fn make(py: Python<'_>, bytes: [u8; 16]) -> PyResult<Bound<'_, PyAny>> {
    static UNKNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = class(py)?;
    let unknown = UNKNOWN.get_or_try_init(py, || -> PyResult<_> {
        Ok(py
            .import("uuid")?
            .getattr("SafeUUID")?
            .getattr("unknown")?
            .unbind())
    })?;
    let value = u128::from_be_bytes(bytes).into_pyobject(py)?;
    let made = instance::new(class)?;
    instance::set(&made, pyo3::intern!(py, "int"), value.as_any())?;
    instance::set(&made, pyo3::intern!(py, "is_safe"), unknown.bind(py))?;
    Ok(made)
}
