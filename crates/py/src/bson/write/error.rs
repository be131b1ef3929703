//! Why a document cannot be written, as an exception.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use super::options::Options;
use crate::bson::class;
use crate::raw::walk::bson::{Failed, Stop};

/// The exception for a walk that ended early.
#[cold]
pub(super) fn to_py(py: Python<'_>, failed: Failed, options: &Options) -> PyErr {
    let Failed {
        stop,
        path,
        culprit,
    } = failed;
    let make = |name: &str, kind: &str, path: &str, reason: String| {
        let made = class(py, name).and_then(|class| {
            let error = class.call1((reason, path, kind))?;
            error.setattr(pyo3::intern!(py, "value"), &culprit)?;
            Ok(error)
        });
        made.map_or_else(|e| e, PyErr::from_value)
    };
    let value = |kind: &str, reason: String| make("BSONEncodeError", kind, &path, reason);
    let of_type = |reason: String| make("BSONTypeError", "type", &path, reason);
    match stop {
        Stop::Python(error) => error,
        Stop::Full => PyMemoryError::new_err(()),
        Stop::TooDeep { is_circular: true } => make(
            "BSONEncodeError",
            "depth",
            &shortened(&path),
            "an object holds itself".to_owned(),
        ),
        Stop::TooDeep { is_circular: false } => make(
            "BSONEncodeError",
            "depth",
            &shortened(&path),
            format!(
                "more than {} objects inside of each other\nask for more with `max_depth=`",
                options.style.max_depth
            ),
        ),
        Stop::TooLong => value(
            "size",
            format!(
                "the document would be longer than {} bytes",
                options.style.max_size
            ),
        ),
        Stop::Surrogate { at, unit } => value(
            "text",
            format!(
                "the str has a lone surrogate, \\u{unit:04x} at character {at}\nask for `surrogates=\"replace\"`"
            ),
        ),
        Stop::Int => value("int", "the int is past 64 bits".to_owned()),
        Stop::NulInKey => value(
            "key",
            "a key holds NUL, which ends it in BSON\ngive it another name".to_owned(),
        ),
        Stop::KeyForm => value(
            "key",
            "a key begins with a dollar or holds a dot\nleave `check_keys` off to write it"
                .to_owned(),
        ),
        Stop::Key { class } => make(
            "BSONTypeError",
            "key",
            &path,
            format!("a key is of type `{class}`, not `str`"),
        ),
        Stop::Changed => PyRuntimeError::new_err(format!(
            "the dict was changed while it was written, at `{path}`"
        )),
        Stop::Unknown { class } => of_type(format!(
            "an object of type `{class}` has no form in BSON\nname a function that gives one with `default=`"
        )),
        Stop::NotADocument { class } => of_type(format!(
            "a document is a mapping or a dataclass, not an object of type `{class}`"
        )),
        Stop::Value { kind, reason } => value(kind, reason),
    }
}

/// A path with its ends alone, where it is long.
fn shortened(path: &str) -> String {
    const ENDS: usize = 60;
    let n = path.chars().count();
    if n <= 2 * ENDS {
        return path.to_owned();
    }
    let head: String = path.chars().take(ENDS).collect();
    let tail: String = path.chars().skip(n - ENDS).collect();
    format!("{head}…{tail}")
}
