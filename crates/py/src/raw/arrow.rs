//! Exports and imports capsules of Arrow's PyCapsule interface.
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

/// Returns a capsule with an Arrow stream. The capsule releases the stream if no reader takes it.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    batches: Box<dyn Batches>,
) -> PyResult<Bound<'py, PyCapsule>> {
    // The drop of `ArrowArrayStream` releases the stream.
    PyCapsule::new_with_value(py, stream_of(batches), STREAM)
}

/// Returns a capsule with the Arrow schema of the columns.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    fields: &[Field],
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, schema_of(fields), SCHEMA)
}

/// Returns the columns of an Arrow schema. `None` if a column type is not supported.
pub(crate) fn fields_of_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Field>>> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let at = capsule.pointer_checked(Some(SCHEMA))?.cast::<ArrowSchema>();
    // SAFETY: a capsule of this name contains a schema. We only read it, while the capsule exists.
    let schema = unsafe { at.as_ref() };
    Ok(fields_of(schema).ok())
}

/// Returns the Arrow stream of an object with `__arrow_c_stream__`.
///
/// # Errors
/// `TypeError` if `__arrow_c_stream__` is missing, or its result is not a capsule. Also any
/// exception of the object, and the stream's error for its columns.
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
    // SAFETY: a capsule of this name contains a stream. We are attached and hold the new capsule,
    // so no other code takes the stream.
    unsafe { ForeignStream::take(at) }.map_err(|e| errors::to_py(py, &e))
}
