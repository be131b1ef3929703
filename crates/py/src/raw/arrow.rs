//! The unsafe boundary of Arrow's PyCapsule interface: exports and imports capsules.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::ffi::CStr;

use onecopy_rows::arrow::Field;
use onecopy_rows::arrow_c::{ArrowArrayStream, ArrowSchema, Batches, ForeignStream, fields_of};
use onecopy_rows::arrow_c::{schema_of, stream_of};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// Returns a capsule with an Arrow stream of `batches`. If no reader has moved the stream out of
/// the capsule, the capsule's destructor releases the stream.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    batches: Box<dyn Batches>,
) -> PyResult<Bound<'py, PyCapsule>> {
    // The capsule contains the struct itself, whose drop (`ArrowArrayStream::drop`) releases the
    // stream.
    PyCapsule::new_with_value(py, stream_of(batches), STREAM)
}

/// Returns a capsule with the Arrow schema for the columns `fields`.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    fields: &[Field],
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, schema_of(fields), SCHEMA)
}

/// Returns the columns of the Arrow schema in a capsule from another library; `None` if the type of
/// a column is not supported.
pub(crate) fn fields_of_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Field>>> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let at = capsule.pointer_checked(Some(SCHEMA))?.cast::<ArrowSchema>();
    // SAFETY: a capsule of this name has a schema, by the interface; it lives as long as the
    // capsule, and is only read.
    let schema = unsafe { at.as_ref() };
    Ok(fields_of(schema).ok())
}

/// Returns the Arrow stream that an object of another library exports with `__arrow_c_stream__`.
///
/// # Errors
/// `TypeError` if the object has no method `__arrow_c_stream__`, or its result is not a capsule; the
/// exception that the object raises; the error that the stream reports for its columns.
pub(crate) fn foreign_stream(object: &Bound<'_, PyAny>) -> PyResult<ForeignStream> {
    let py = object.py();
    let Some(give) = object.getattr_opt("__arrow_c_stream__")? else {
        return Err(PyTypeError::new_err(format!(
            "a `{}` has no `__arrow_c_stream__`\ngive a table, a data frame or a stream of batches",
            object.get_type().name()?
        )));
    };
    let capsule = give.call0()?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let at = capsule.pointer_checked(Some(STREAM))?;
    let at = at.cast::<ArrowArrayStream>().as_ptr();
    // SAFETY: a capsule of this name has a stream, by the interface; we are attached and hold the
    // capsule, which was made for us, so no other code takes the stream meanwhile.
    unsafe { ForeignStream::take(at) }.map_err(|e| errors::to_py(py, &e))
}
