//! Why an object cannot be written, as an exception.

use onecopy_wire::WriteError;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::json::class;
use crate::raw::walk::{Failed, Stop};

/// The exception for a walk that ended early.
#[cold]
pub(super) fn to_py(py: Python<'_>, failed: Failed, max_depth: usize) -> PyErr {
    let path = failed.path;
    let value = |message: String| match class(py, "JSONEncodeError") {
        Ok(class) => match class.call1((message,)) {
            Ok(error) => PyErr::from_value(error),
            Err(e) => e,
        },
        Err(e) => e,
    };
    match failed.stop {
        Stop::Python(error) => error,
        Stop::Full => PyMemoryError::new_err(()),
        Stop::TooDeep { is_circular: true } => {
            value(format!("an object holds itself, at `{}`", shortened(&path)))
        }
        Stop::TooDeep { is_circular: false } => value(format!(
            "more than {max_depth} objects inside of each other, at `{}`\nask for more with `max_depth=`",
            shortened(&path)
        )),
        Stop::Surrogate { at, unit } => value(format!(
            "the str has a lone surrogate, \\u{unit:04x} at character {at}, at `{path}`\nask for `surrogates=\"replace\"` or `\"escape\"`"
        )),
        Stop::NonFinite => value(format!(
            "NaN and infinities have no form in JSON, at `{path}`\nask for `nan=\"null\"` or `\"text\"`"
        )),
        Stop::BigInt => value(format!(
            "the int is past what was asked for, at `{path}`\nask for `big_ints=\"exact\"` or `\"text\"`"
        )),
        Stop::Changed => PyRuntimeError::new_err(format!(
            "the dict was changed while it was written, at `{path}`"
        )),
        Stop::ArrayChanged => PyRuntimeError::new_err(format!(
            "the array was changed while it was written, at `{path}`"
        )),
        Stop::Moment => value(format!(
            "the datetime64 is outside of the years 0 to 9999, or has no unit, at `{path}`"
        )),
        Stop::Row { index } => value(format!(
            "row {index} has not as many values as there are names, or is no list or tuple"
        )),
        Stop::Unknown { class } => PyTypeError::new_err(format!(
            "an object of type `{class}` has no form in JSON, at `{path}`\nname a function that gives one with `default=`"
        )),
        Stop::Key { class } => PyTypeError::new_err(format!(
            "a key is of type `{class}`, not `str`, at `{path}`\nask for `non_str_keys=True`"
        )),
        Stop::Value(WriteError::YearOutOfRange(year)) => value(format!(
            "year {year} is outside 0 to 9999 (RFC 3339), at `{path}`"
        )),
        Stop::Value(_) => value(format!("the value has no form in JSON, at `{path}`")),
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
