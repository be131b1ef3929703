//! Converts an error of the BSON encoder to an exception.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use super::options::BsonWriteOptions;
use crate::object_path::shortened;
use crate::python_class::python_class;
use crate::raw::encode::bson::{BsonStop, EncodeFailure};

#[cold]
pub(super) fn to_py(py: Python<'_>, failed: EncodeFailure, options: &BsonWriteOptions) -> PyErr {
    let EncodeFailure {
        stop,
        path,
        culprit,
    } = failed;
    let make = |name: &str, kind: &str, path: &str, reason: String| {
        let made = python_class(py, "onecopy.bson", name).and_then(|class| {
            let error = class.call1((reason, path, kind))?;
            error.setattr(pyo3::intern!(py, "value"), &culprit)?;
            Ok(error)
        });
        made.map_or_else(|e| e, PyErr::from_value)
    };
    let value = |kind: &str, reason: String| make("BSONEncodeError", kind, &path, reason);
    let of_type = |reason: String| make("BSONTypeError", "type", &path, reason);
    match stop {
        BsonStop::Python(error) => error,
        BsonStop::Full => PyMemoryError::new_err(()),
        BsonStop::TooDeep { is_circular: true } => make(
            "BSONEncodeError",
            "depth",
            &shortened(&path),
            "an object contains itself".to_owned(),
        ),
        BsonStop::TooDeep { is_circular: false } => make(
            "BSONEncodeError",
            "depth",
            &shortened(&path),
            format!(
                "more than {} objects inside of each other\nask for more with `max_depth=`",
                options.style.max_depth
            ),
        ),
        BsonStop::TooLong => value(
            "size",
            format!(
                "the document would be longer than {} bytes",
                options.style.max_bytes
            ),
        ),
        BsonStop::Surrogate { at, unit } => value(
            "text",
            format!(
                "the str has a lone surrogate, \\u{unit:04x} at character {at}\n\
                 pass `errors=\"replace\"`"
            ),
        ),
        BsonStop::Int => value("int", "the int is past 64 bits".to_owned()),
        BsonStop::NulInKey => value(
            "key",
            "a key contains NUL, which ends a key in BSON\nrename it".to_owned(),
        ),
        BsonStop::KeyForm => value(
            "key",
            "a key begins with a dollar or contains a dot\nleave `check_keys` off to write it"
                .to_owned(),
        ),
        BsonStop::Key { class } => make(
            "BSONTypeError",
            "key",
            &path,
            format!("a key is of type `{class}`, not `str`"),
        ),
        BsonStop::Changed => PyRuntimeError::new_err(format!(
            "the dict was changed while it was written, at `{path}`"
        )),
        BsonStop::Unknown { class } => of_type(format!(
            "an object of type `{class}` has no form in BSON\n\
             name a function that gives one with `default=`"
        )),
        BsonStop::NotADocument { class } => of_type(format!(
            "a document is a mapping or a dataclass, not an object of type `{class}`"
        )),
        BsonStop::Value { kind, reason } => value(kind, reason),
    }
}
