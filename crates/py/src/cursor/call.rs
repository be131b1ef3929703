//! Calls of stored procedures: output parameters that come as the last result.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::Cursor;
use super::pulled::State;
use crate::errors;

/// Where the values of output parameters go when their row comes.
pub(super) struct Outputs {
    list: Py<PyList>,
    places: Vec<usize>,
    /// The names of those parameters, which are those of the row's columns.
    names: Vec<String>,
}

impl Outputs {
    /// Whether a result may be theirs.
    fn are_named(&self, state: &State) -> bool {
        let columns = state.schema.columns.iter().map(|c| c.name.as_str());
        let alike = |(name, column): (&String, &str)| name.is_empty() || name == column;
        state.n_columns == self.places.len() && self.names.iter().zip(columns).all(alike)
    }
}

/// Runs the statement of `onecopy.procedures` on a cursor. `result` is given the values of output parameters: its items `places`
/// become the one row of the last result, of columns `names`, now or when `nextset` comes to it.
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
    /// Where the current result is that of output parameters: puts their values in their places, and leaves no result. Whether
    /// it was.
    pub(super) fn settle(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.state.lock(py)?;
        let Some(outputs) = state.outputs.take() else {
            return Ok(false);
        };
        if state.active.is_none() || !outputs.are_named(&state) {
            state.outputs = Some(outputs);
            return Ok(false);
        }
        // One row, and nothing behind it: a result of the procedure's own may have the same names.
        let mut rows = Vec::new();
        let pulled = self.pull(py, &mut state, 2, |sink| {
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
                *state = State {
                    messages,
                    ..State::nothing()
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
    /// Calls a stored procedure or function, and returns a copy of ``parameters`` in which output parameters have their values.
    ///
    /// Args:
    ///     name: its name, with a schema where one is needed; quoted as in SQL where it must be.
    ///     parameters: a value for each parameter; for those of output alone any, ``None`` say.
    ///
    /// Returns:
    ///     A ``list``. Results with rows come by ``fetchall`` and `nextset`; values that come behind them stand in the list when
    ///     `nextset` has passed the last.
    ///
    /// Raises:
    ///     ProgrammingError: there is no such procedure, or it has more or fewer parameters.
    ///     NotSupportedError: SQLite, databases whose output parameters are not known, and parameters that are tables or cursors.
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
        // Rows of an earlier statement keep a connection to SQL Server busy, and the catalog is asked by another cursor.
        *slf.get().open(py)? = State::nothing();
        py.import("onecopy.procedures")?
            .call_method1("call", (slf, name, parameters))
    }
}
