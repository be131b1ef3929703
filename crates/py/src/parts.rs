//! The functions of `onecopy.parts`: plan the parts of a query, and execute one part.

use onecopy_export as export;
use onecopy_export::plan::{PartSpec, PlanOptions, plan};
use onecopy_rows::{Error, ErrorKind};
use onecopy_text::Ledger;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::connection::Connection;
use crate::cursor::Cursor;
use crate::errors;

/// Divides a query into parts, and returns this plan as JSON. The parts can be read independently.
#[pyfunction]
#[pyo3(signature = (connection, sql, parameters, parts, key, sample_rows, hold))]
#[allow(clippy::too_many_arguments)] // the arguments of `onecopy.parts.plan`
pub(crate) fn plan_query(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    sql: &Bound<'_, PyString>,
    parameters: Option<Bound<'_, PyAny>>,
    parts: usize,
    key: Vec<String>,
    sample_rows: Option<u64>,
    hold: bool,
) -> PyResult<String> {
    let connection = connection.get();
    let parameters = parameters.unwrap_or_else(|| PyTuple::empty(py).into_any());
    let (sql, values) = connection.bind(py, sql, &parameters, Vec::new(), &Ledger::off())?;
    let options = PlanOptions {
        n_parts: parts,
        key,
        sample_rows,
        hold,
    };
    connection.call_within(py, connection.limit.get(), |db| {
        let made = plan(db, &sql, &values, &options).map_err(rows_error)?;
        Ok(made.to_json())
    })
}

/// Executes one part of a plan in JSON on a new cursor. Returns the cursor.
#[pyfunction]
pub(crate) fn execute_part<'py>(
    connection: Bound<'py, Connection>,
    part: &str,
) -> PyResult<Bound<'py, Cursor>> {
    let py = connection.py();
    let part = PartSpec::from_json(part).map_err(|e| errors::to_py(py, &rows_error(e)))?;
    let cursor = Bound::new(py, Cursor::new(py, connection.unbind()))?;
    Cursor::run_call(&cursor, |db| part.execute(db).map_err(rows_error))?;
    Ok(cursor)
}

/// Converts an error of a plan to a connection error.
fn rows_error(error: export::Error) -> Error {
    match error {
        export::Error::Rows(error) => error,
        error => Error::new(ErrorKind::Programming, error.to_string()),
    }
}
