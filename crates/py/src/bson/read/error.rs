//! Converts an error of the BSON reader to a `BSONDecodeError`.

use onecopy_wire::bson::read::ReadError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Creates a `BSONDecodeError`. Its offset counts from the start of the user's buffer.
#[cold]
pub(in crate::bson) fn to_py(py: Python<'_>, error: ReadError) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = CLASS
        .import(py, "onecopy.bson", "BSONDecodeError")
        .and_then(|class| class.call1((error.reason.to_string(), error.offset_bytes)));
    made.map_or_else(|e| e, PyErr::from_value)
}
