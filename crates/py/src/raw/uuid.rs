//! Creates `uuid.UUID` objects without calling their Python constructor.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::instance;

pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")
}

/// Creates a `UUID` from its bytes in the order of RFC 9562.
///
/// `UUID.__init__` parses its arguments in slow Python code. This function only makes the two calls
/// that set `int` and `is_safe`. They use descriptors of the class, so its memory layout does not
/// matter.
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
