//! `Cursor.callproc`: calls stored procedures. The values of output parameters are read from the
//! last result.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::Cursor;
use super::current_rows::{CursorState, Receiving};
use crate::errors;

/// The list that `callproc` returns. The values of output parameters replace its items at the
/// indices `places`.
pub(super) struct Outputs {
    list: Py<PyList>,
    places: Vec<usize>,
    /// The names of the output parameters. The last result is a row whose columns have these names.
    names: Vec<String>,
}

impl Outputs {
    /// Returns `true` if the columns of the current result have the names of the output parameters.
    fn are_named(&self, state: &CursorState) -> bool {
        let columns = state.schema.columns.iter().map(|c| c.name.as_str());
        let alike = |(name, column): (&String, &str)| name.is_empty() || name == column;
        state.n_columns == self.places.len() && self.names.iter().zip(columns).all(alike)
    }
}

/// Executes the statement that `onecopy._callproc` created for a procedure call. The last result
/// set is one row of output values with the columns `names`. `callproc` returns the list `result`.
/// The output values replace its items at the indices `places`. This happens at once if the output
/// row is the first result set, otherwise when `nextset` reaches the output row.
#[pyfunction]
pub(crate) fn run_call(
    cursor: &Bound<'_, Cursor>,
    sql: &Bound<'_, PyString>,
    parameters: Bound<'_, PyAny>,
    result: Bound<'_, PyList>,
    places: Vec<usize>,
    names: Vec<String>,
) -> PyResult<()> {
    Cursor::run(cursor, sql, Some(parameters), &[])?;
    if places.is_empty() {
        return Ok(());
    }
    let py = cursor.py();
    cursor.get().state.lock(py)?.outputs = Some(Outputs {
        list: result.unbind(),
        places,
        names,
    });
    cursor.get().settle(py).map(drop)
}

impl Cursor {
    /// If the current result is the row of output parameters, stores its values in the list that
    /// `callproc` returned, and discards the result. Returns `true` if it was that row.
    pub(super) fn settle(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.state.lock(py)?;
        let Some(outputs) = state.outputs.take() else {
            return Ok(false);
        };
        if state.active.is_none() || !outputs.are_named(&state) {
            state.outputs = Some(outputs);
            return Ok(false);
        }
        // The row of output parameters is the only row of its result, and is in the last result.
        // Both are checked, because a result of the procedure itself may have the same column
        // names.
        let mut rows = Vec::new();
        let pulled = self.pull(py, &mut state, 2, Receiving::AsNeeded, |sink| {
            rows.extend(sink.rows().take().map(Bound::unbind));
            Ok(())
        });
        let is_last = state
            .active
            .as_ref()
            .is_some_and(|a| a.is_at_end() && !a.has_further());
        match (&pulled, &rows[..]) {
            (Ok(()), [row]) if is_last => {
                for (place, value) in outputs.places.iter().zip(row.bind(py).iter()) {
                    outputs.list.bind(py).set_item(*place, value)?;
                }
                let messages = std::mem::take(&mut state.messages);
                *state = CursorState {
                    messages,
                    ..CursorState::nothing()
                };
                Ok(true)
            }
            _ => {
                state.ready = rows.into_iter();
                state.failure = pulled.err();
                if let Some(failure) = state.failure.take_if(|f| !errors::is_ours(py, f)) {
                    return Err(failure);
                }
                state.outputs = Some(outputs);
                Ok(false)
            }
        }
    }
}

#[pymethods]
impl Cursor {
    /// Calls a stored procedure or function, and returns a copy of ``parameters`` in which output
    /// parameters have their new values.
    ///
    /// Args:
    ///     name: the procedure's name, with a schema if needed; quoted as in SQL if necessary.
    ///     parameters: a value for each parameter; for parameters that are only output, any value,
    ///         such as ``None``.
    ///
    /// Returns:
    ///     A ``list``. Results with rows are read by ``fetchall`` and `nextset`. If the database
    ///     sends the output values after these results, they are in the list when `nextset` has
    ///     passed the last result.
    ///
    /// Raises:
    ///     ProgrammingError: there is no such procedure, or it has more or fewer parameters.
    ///     NotSupportedError: the database is SQLite, or one whose output parameters are not
    ///         supported; or a parameter is a table or a cursor.
    ///
    /// Source: PEP 249, ``.callproc()``.
    #[pyo3(signature = (name, parameters=None, /))]
    fn callproc<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        parameters: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let parameters = parameters.unwrap_or_else(|| PyTuple::empty(py).into_any());
        // Rows of an earlier statement are closed first: they would block a connection to SQL
        // Server, on which another cursor reads the catalog.
        *slf.get().open(py)? = CursorState::nothing();
        py.import("onecopy._callproc")?
            .call_method1("call", (slf, name, parameters))
    }
}
