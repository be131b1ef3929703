//! Creates a `JSONDecodeError` from an error of the JSON reader.

use onecopy_text::Units;
use onecopy_wire::json::read::{ReadError, TextPosition};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Returns the exception for invalid JSON. `data` is the argument of the caller, and `text` is its
/// content.
#[cold]
pub(super) fn to_py(data: &Bound<'_, PyAny>, text: Units<'_>, error: ReadError) -> PyErr {
    raise(data, text, &error.reason.to_string(), error.at_units)
}

/// Creates the exception. `at_units` is the position of the error in code units.
#[cold]
pub(crate) fn raise(
    data: &Bound<'_, PyAny>,
    text: Units<'_>,
    reason: &str,
    at_units: usize,
) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let place = TextPosition::of(text, at_units);
    let py = data.py();
    let made = CLASS
        .import(py, "onecopy.json", "JSONDecodeError")
        .and_then(|class| {
            class.call1((
                reason,
                data,
                place.char_index,
                place.line,
                place.column,
                place.byte_index,
            ))
        });
    made.map_or_else(|e| e, PyErr::from_value)
}
