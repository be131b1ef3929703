//! `JSONDecodeError`.

use onecopy_text::Units;
use onecopy_wire::json::read::{Place, ReadError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The exception for a text that is no JSON. `data` is what the caller gave, `text` what of it was read, from byte or
/// character `start` on.
#[cold]
pub(super) fn to_py(data: &Bound<'_, PyAny>, text: Units<'_>, error: ReadError) -> PyErr {
    raise(data, text, &error.reason.to_string(), error.at_units)
}

/// As [`to_py`], of any reason.
#[cold]
pub(crate) fn raise(
    data: &Bound<'_, PyAny>,
    text: Units<'_>,
    reason: &str,
    at_units: usize,
) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let place = Place::of(text, at_units);
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
