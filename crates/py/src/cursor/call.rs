//! `Cursor.callproc`: calls stored procedures and reads their output parameters.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::Cursor;
use super::current_rows::{CursorState, Receiving};
use crate::active_statement::Active;
use crate::errors;

/// The output parameters of a `callproc` call. Their values replace the items of `list` at the
/// indices `places`.
pub(super) struct Outputs {
    list: Py<PyList>,
    places: Vec<usize>,
    /// The names of the output parameters, in column order.
    names: Vec<String>,
}

impl Outputs {
    /// Returns `true` if the columns of the current result have these names.
    fn are_named(&self, state: &CursorState) -> bool {
        let columns = state.schema.columns.iter().map(|c| c.name.as_str());
        let alike = |(name, column): (&String, &str)| name.is_empty() || name == column;
        state.n_columns == self.places.len() && self.names.iter().zip(columns).all(alike)
    }
}

impl Cursor {
    /// If the current result contains the output parameters, stores them in `callproc`'s result
    /// list, discards the result and returns `true`. Returns `None` if further rows must arrive
    /// first.
    pub(super) fn settle(&self, py: Python<'_>, receiving: Receiving) -> PyResult<Option<bool>> {
        let mut state = self.state.lock(py)?;
        let Some(outputs) = state.outputs.take() else {
            return Ok(Some(false));
        };
        if state.active.is_none() || !outputs.are_named(&state) {
            state.outputs = Some(outputs);
            return Ok(Some(false));
        }
        // The output row is the only row of the last result. Another result may have the same
        // column names.
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
    /// Expects one row of output values in the last result, with the columns ``names``. Its values
    /// replace the items of ``result``, the list that `callproc` returns, at the indices
    /// ``places``. If it is the only result, `_settle` or `_settle_ready` reads it. Otherwise
    /// `nextset` reads it.
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

    /// Waits for the output row and stores its values. `_settle_ready` does not wait.
    fn _settle(&self, py: Python<'_>) -> PyResult<()> {
        self.settle(py, Receiving::AsNeeded).map(drop)
    }

    /// Calls a stored procedure or function. Returns a copy of ``parameters`` with the new values
    /// of output parameters.
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
        // Closes the rows of an earlier statement. On SQL Server, they would block the cursor that
        // reads the catalog.
        *slf.get().open(py)? = CursorState::nothing();
        py.import("onecopy._callproc")?
            .call_method1("call", (slf, name, parameters))
    }
}
