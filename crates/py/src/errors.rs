//! Errors of the rooms to the classes of PEP 249: one table.

use onecopy_rows::{Error, ErrorKind, Message};
use onecopy_wire::ChunkError;
use onecopy_wire::chunk_source::ChunkErrorKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// The class in `onecopy.errors` for each kind of error; `None` for a kind that this table does not know yet (a test
/// asks it for each).
fn class_of(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Connect
        | ErrorKind::Operational
        | ErrorKind::Cancelled
        | ErrorKind::Timeout
        | ErrorKind::ReadOnly => "OperationalError",
        ErrorKind::Programming => "ProgrammingError",
        ErrorKind::Data | ErrorKind::Malformed => "DataError",
        ErrorKind::Integrity => "IntegrityError",
        ErrorKind::Internal => "InternalError",
        ErrorKind::NotSupported => "NotSupportedError",
        ErrorKind::Interface => "InterfaceError",
        _ => return None,
    })
}

/// Each kind of error with the name of its class, or `None` where the table has a hole. For the test that it has none.
#[pyfunction]
pub(crate) fn error_classes() -> Vec<(String, Option<&'static str>)> {
    ErrorKind::ALL
        .iter()
        .map(|&k| (format!("{k:?}"), class_of(k)))
        .collect()
}

/// A class of `onecopy.errors`.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("onecopy.errors")?.getattr(name)?.cast_into()?)
}

/// The exception for an error of the rows room, with its whole message and its parts as attributes.
pub(crate) fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    let name = class_of(error.kind).unwrap_or("DatabaseError");
    let replace = "connect with `errors=\"replace\"` to read it with U+FFFD there";
    let error = error.clone().or_else_replace(replace);
    let made = class(py, name).and_then(|class| {
        let parts = PyDict::new(py);
        parts.set_item("sqlstate", &error.sqlstate)?;
        parts.set_item("native_code", error.native)?;
        parts.set_item(
            "column",
            error.column.as_ref().map(|(i, n)| (*i, n.as_str())),
        )?;
        parts.set_item("row", error.row)?;
        class.call((error.to_string(),), Some(&parts))
    });
    made.map_or_else(|e| e, PyErr::from_value)
}

/// What a database said, as PEP 249 has it in `Cursor.messages`: a class and its instance.
pub(crate) fn message<'py>(
    py: Python<'py>,
    message: &Message,
) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyAny>)> {
    let class = class(py, "Warning")?;
    let parts = PyDict::new(py);
    parts.set_item("sqlstate", &message.sqlstate)?;
    parts.set_item("native_code", message.native)?;
    let made = class.call((&message.text,), Some(&parts))?;
    Ok((class, made))
}

/// The exception for a stream that failed: that of the room behind it.
pub(crate) fn from_chunks(py: Python<'_>, error: &ChunkError) -> PyErr {
    if let Some(error) = error.source.downcast_ref::<Error>() {
        return to_py(py, error);
    }
    let kind = match error.kind {
        ChunkErrorKind::Value => ErrorKind::Data,
        ChunkErrorKind::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Operational,
    };
    to_py(py, &Error::new(kind, error.to_string()))
}

/// The same exception anew. One that is kept to be raised again is never raised itself: its traceback would hold the frames it
/// went through, and one of those holds who keeps it.
pub(crate) fn again(py: Python<'_>, error: &PyErr) -> PyErr {
    py.import("copy")
        .and_then(|copy| copy.call_method1("copy", (error.value(py),)))
        .map_or_else(|e| e, PyErr::from_value)
}

/// `InterfaceError`: the library was used wrongly.
pub(crate) fn interface(py: Python<'_>, message: &str) -> PyErr {
    to_py(py, &Error::new(ErrorKind::Interface, message))
}

/// `ProgrammingError`: the call makes no sense now.
pub(crate) fn programming(py: Python<'_>, message: &str) -> PyErr {
    to_py(py, &Error::new(ErrorKind::Programming, message))
}

/// Whether it is one of `onecopy.errors`, and not what a signal handler raised or want of memory.
pub(crate) fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    class(py, "Error").is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}
