//! `Cursor.callproc`: calls stored procedures, and reads the values of output parameters from the
//! last result.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::Cursor;
use super::current_rows::{CursorState, Receiving};
use crate::active_statement::Active;
use crate::errors;

/// The output parameters of a `callproc` call. `list` is the list that `callproc` returns. The
/// values of the output parameters replace its items at the indices `places`.
pub(super) struct Outputs {
    list: Py<PyList>,
    places: Vec<usize>,
    /// The names of the output parameters. The last result has one row, whose columns have these
    /// names.
    names: Vec<String>,
}

impl Outputs {
    /// Returns `true` if the columns of the current result have the same names as the output
    /// parameters.
    fn are_named(&self, state: &CursorState) -> bool {
        let columns = state.schema.columns.iter().map(|c| c.name.as_str());
        let alike = |(name, column): (&String, &str)| name.is_empty() || name == column;
        state.n_columns == self.places.len() && self.names.iter().zip(columns).all(alike)
    }
}

impl Cursor {
    /// If the current result is the row of output parameters, stores its values in the list that
    /// `callproc` returned, and discards the result. Returns `true` if it was that row, `false` if
    /// it was not, and `None` if this is not known until further rows arrive.
    pub(super) fn settle(&self, py: Python<'_>, receiving: Receiving) -> PyResult<Option<bool>> {
        let mut state = self.state.lock(py)?;
        let Some(outputs) = state.outputs.take() else {
            return Ok(Some(false));
        };
        if state.active.is_none() || !outputs.are_named(&state) {
            state.outputs = Some(outputs);
            return Ok(Some(false));
        }
        // The row of output parameters is the only row of its result, and is in the last result.
        // Both are checked, because a result of the procedure itself may have the same column
        // names.
        let mut rows: Vec<_> = std::mem::take(&mut state.ready).collect();
        let n_missing = 2_usize.saturating_sub(rows.len());
        let pulled = self.pull(py, &mut state, n_missing, receiving, |sink| {
            rows.extend(sink.rows().take().map(Bound::unbind));
            Ok(())
        });
        let active = state.active.as_ref();
        let is_at_end = active.is_some_and(Active::is_at_end);
        let is_last = is_at_end && active.is_some_and(|active| !active.has_further());
        if receiving == Receiving::OnlyReady && pulled.is_ok() && rows.len() < 2 && !is_at_end {
            state.ready = rows.into_iter();
            state.outputs = Some(outputs);
            return Ok(None);
        }
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
                Ok(Some(true))
            }
            _ => {
                state.ready = rows.into_iter();
                state.failure = pulled.err();
                if let Some(failure) = state.failure.take_if(|f| !errors::is_ours(py, f)) {
                    return Err(failure);
                }
                state.outputs = Some(outputs);
                Ok(Some(false))
            }
        }
    }
}

#[pymethods]
impl Cursor {
    /// Records that the last result of the executed statement will be one row of output values, with
    /// the columns ``names``. When the row is read, each value is stored in ``result``, the list that
    /// `callproc` returns, at its index in ``places``. If the row is the only result, `_settle` or
    /// `_settle_ready` reads it. If other results precede it, `nextset` reads it.
    fn _expect_outputs(
        &self,
        py: Python<'_>,
        result: Bound<'_, PyList>,
        places: Vec<usize>,
        names: Vec<String>,
    ) -> PyResult<()> {
        if !places.is_empty() {
            self.state.lock(py)?.outputs = Some(Outputs {
                list: result.unbind(),
                places,
                names,
            });
        }
        Ok(())
    }

    /// Waits for the row of output parameters, and stores the values of the row. `_settle_ready`
    /// stores the values only if the row can be read without waiting.
    fn _settle(&self, py: Python<'_>) -> PyResult<()> {
        self.settle(py, Receiving::AsNeeded).map(drop)
    }

    /// Calls a stored procedure or function, and returns a copy of ``parameters`` in which output
    /// parameters have their new values.
    ///
    /// Args:
    ///     name: the procedure's name, with a schema if needed; quoted as in SQL if necessary.
    ///     parameters: a value for each parameter; for parameters that are output only, any value,
    ///         such as ``None``. With PostgreSQL also a mapping of names to values; the result then
    ///         has the values in the order of the mapping.
    ///
    /// Returns:
    ///     A ``list``. Result sets of the procedure are read with ``fetchall`` and `nextset`. If
    ///     the database sends the output values after these result sets, the list contains the
    ///     values only after `nextset` has returned ``None``.
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
        // Rows of an earlier statement are closed first. On a connection to SQL Server, they would
        // block the other cursor, which reads the catalog.
        *slf.get().open(py)? = CursorState::nothing();
        py.import("onecopy._callproc")?
            .call_method1("call", (slf, name, parameters))
    }
}
