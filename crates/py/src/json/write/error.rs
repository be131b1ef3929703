//! Converts an error of the JSON encoder to an exception.

use onecopy_wire::WriteError;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::object_path::shortened;
use crate::python_class::python_class;
use crate::raw::encode::json::{EncodeFailure, JsonStop};

#[cold]
pub(super) fn to_py(py: Python<'_>, failed: EncodeFailure, max_depth: usize) -> PyErr {
    let path = failed.path;
    let value = |message: String| match python_class(py, "onecopy.json", "JSONEncodeError") {
        Ok(class) => match class.call1((message,)) {
            Ok(error) => PyErr::from_value(error),
            Err(e) => e,
        },
        Err(e) => e,
    };
    match failed.stop {
        JsonStop::Python(error) => error,
        JsonStop::Full => PyMemoryError::new_err(()),
        JsonStop::TooDeep { is_circular: true } => value(format!(
            "an object contains itself, at `{}`",
            shortened(&path)
        )),
        JsonStop::TooDeep { is_circular: false } => value(format!(
            "more than {max_depth} objects inside of each other, at `{}`\n\
             ask for more with `max_depth=`",
            shortened(&path)
        )),
        JsonStop::Surrogate { at, unit } => value(format!(
            "the str has a lone surrogate, \\u{unit:04x} at character {at}, at `{path}`\n\
             pass `errors=\"replace\"` or `\"backslashreplace\"`"
        )),
        JsonStop::NonFinite => value(format!(
            "NaN and infinities have no form in JSON, at `{path}`\n\
             pass `nan=\"null\"` or `\"text\"`"
        )),
        JsonStop::BigInt => value(format!(
            "the int is too large for this `big_ints`, at `{path}`\n\
             pass `big_ints=\"exact\"` or `\"text53\"`"
        )),
        JsonStop::Changed => PyRuntimeError::new_err(format!(
            "the dict was changed while it was written, at `{path}`"
        )),
        JsonStop::ArrayChanged => PyRuntimeError::new_err(format!(
            "the array was changed while it was written, at `{path}`"
        )),
        JsonStop::Moment => value(format!(
            "the datetime64 is outside of the years 0 to 9999, or has no unit, at `{path}`"
        )),
        JsonStop::Row { index } => value(format!(
            "row {index} is not a list or tuple with one value for each name"
        )),
        JsonStop::Unknown { class } => PyTypeError::new_err(format!(
            "an object of type `{class}` has no form in JSON, at `{path}`\n\
             name a function that gives one with `default=`"
        )),
        JsonStop::Key { class } => PyTypeError::new_err(format!(
            "a key is of type `{class}`, not `str`, at `{path}`\npass `non_str_keys=True`"
        )),
        JsonStop::Value(WriteError::YearOutOfRange(year)) => value(format!(
            "year {year} is outside 0 to 9999 (RFC 3339), at `{path}`"
        )),
        JsonStop::Value(_) => value(format!("the value has no form in JSON, at `{path}`")),
    }
}
