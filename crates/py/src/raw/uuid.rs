//! Creates `uuid.UUID` objects without calling their Python-level constructor.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::instance;

/// Returns the class `uuid.UUID`.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")
}

/// Creates a `UUID` from its bytes in the byte order of RFC 9562.
///
/// `UUID.__init__` parses its arguments in Python code, which takes more than a microsecond. Then
/// it sets the attributes `int` and `is_safe` with two calls to `object.__setattr__`. This function
/// makes only these two calls. They are safe for any memory layout of the class, because they use
/// the descriptors of the class.
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
