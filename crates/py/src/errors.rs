//! Maps kinds of errors to PEP 249 exception classes and creates exceptions.

use onecopy_rows::{Error, ErrorKind, Message};
use onecopy_wire::ChunkError;
use onecopy_wire::chunk_source::ChunkErrorKind;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// Returns the exception class name for a kind of error.
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

/// Returns all kinds of errors with the names of their exception classes. A test checks that no
/// name is missing.
#[pyfunction]
pub(crate) fn error_classes() -> Vec<(String, Option<&'static str>)> {
    ErrorKind::ALL
        .iter()
        .map(|&k| (format!("{k:?}"), class_of(k)))
        .collect()
}

/// Returns the class `name` of `onecopy.errors`.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("onecopy.errors")?.getattr(name)?.cast_into()?)
}

/// Converts an error to an exception with the same fields as attributes.
pub(crate) fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    let name = class_of(error.kind).unwrap_or("DatabaseError");
    let replace = "connect with `errors=\"replace\"` to read U+FFFD instead";
    let error = error.clone().or_else_replace(replace);
    let made = class(py, name).and_then(|class| {
        let parts = PyDict::new(py);
        parts.set_item("sqlstate", &error.sqlstate)?;
        parts.set_item("native_code", error.native)?;
        parts.set_item(
            "column",
            error.column.as_deref().map(|(i, n)| (*i, n.as_str())),
        )?;
        parts.set_item("row", error.row)?;
        let details = PyDict::new(py);
        for (name, value) in &error.details {
            details.set_item(name, value)?;
        }
        parts.set_item("details", details)?;
        class.call((error.to_string(),), Some(&parts))
    });
    made.map_or_else(|e| e, PyErr::from_value)
}

/// Converts a database message to an item of `Cursor.messages`: an exception class and its
/// instance.
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

/// Converts the error of a row stream to an exception for its reader.
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

/// Copies a stored exception that several calls raise. The traceback of a raised original would
/// create a reference cycle.
pub(crate) fn again(py: Python<'_>, error: &PyErr) -> PyErr {
    py.import("copy")
        .and_then(|copy| copy.call_method1("copy", (error.value(py),)))
        .map_or_else(|e| e, PyErr::from_value)
}

/// Creates an `InterfaceError` for a misuse of the library.
pub(crate) fn interface(py: Python<'_>, message: &str) -> PyErr {
    to_py(py, &Error::new(ErrorKind::Interface, message))
}

/// Creates a `ProgrammingError` for a call in the wrong state of an object.
pub(crate) fn programming(py: Python<'_>, message: &str) -> PyErr {
    to_py(py, &Error::new(ErrorKind::Programming, message))
}

/// Converts a `JSONDecodeError` to a `DataError` with this cause. Returns other exceptions
/// unchanged.
pub(crate) fn of_json(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyValueError>(py) {
        return error;
    }
    let message = format!("the value is not valid JSON: {}", error.value(py));
    let data = to_py(py, &Error::new(ErrorKind::Data, message));
    data.set_cause(py, Some(error));
    data
}

/// Returns `true` if the exception's class is in `onecopy.errors`.
pub(crate) fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    class(py, "Error").is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}
