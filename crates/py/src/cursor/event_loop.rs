//! The methods of `Cursor` that `onecopy.aio` calls. They never block the event loop.

use onecopy_rows::connect::{self as db, Statement};
use onecopy_text::Ledger;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use super::Cursor;
use super::current_rows::{CursorState, Receiving};
use super::execute::executemany;
use crate::active_statement::Active;
use crate::arrow::ColumnValues;
use crate::connection::{Connection, ReadingCall, Said};
use crate::guard::Guarded;
use crate::pending::PendingCall;
use crate::raw::gil;
use crate::{errors, ledger};

impl Cursor {
    /// Creates a `PendingCall` for [`Cursor::run_reading`].
    pub(super) fn begin_reading(
        slf: &Bound<'_, Cursor>,
        make: impl FnOnce(&Connection, Said, &Ledger) -> PyResult<Box<dyn ReadingCall>>,
    ) -> PyResult<PendingCall> {
        let (py, cursor) = (slf.py(), slf.get());
        let said = cursor.said(py)?;
        *cursor.open(py)? = CursorState::nothing();
        let (connection, limit) = (cursor.connection.get(), said.limit);
        let call = make(connection, said, &ledger::current(py)?)?;
        let slf = slf.clone().unbind();
        connection.begin_reading(py, limit, call, move |py, changes| {
            let slf = slf.bind(py);
            slf.get().keep_changes(slf, slf.get().open(py)?, changes)
        })
    }
}

#[pymethods]
impl Cursor {
    /// Returns a `PendingCall` for `execute`.
    #[pyo3(signature = (sql, parameters=None, /))]
    fn _begin_execute(
        slf: &Bound<'_, Self>,
        sql: &Bound<'_, PyString>,
        parameters: Option<Bound<'_, PyAny>>,
    ) -> PyResult<PendingCall> {
        let (py, cursor) = (slf.py(), slf.get());
        let mut state = cursor.open(py)?;
        let before = std::mem::replace(&mut *state, CursorState::nothing());
        drop(state);
        let ended = before.active.and_then(Active::into_statement);
        let parameters = parameters.unwrap_or_else(|| PyTuple::empty(py).into_any());
        let (connection, ledger) = (cursor.connection.get(), ledger::current(py)?);
        let said = cursor.said(py)?;
        let (sql, values) = connection.bind(py, sql, &parameters, said.declared, &ledger)?;
        let slf = slf.clone().unbind();
        let begin_result = move |py: Python<'_>, mut statement: Statement, is_late| {
            statement.set_takes_more(true);
            let slf = slf.bind(py);
            slf.get()
                .begin_result(slf, slf.get().open(py)?, statement, is_late)?;
            Ok(py.None())
        };
        let execute = move |db: &db::Connection| {
            drop(ended.map(|ended| ended.into_inner()));
            db.execute(&sql, &values)
        };
        connection.begin(py, said.limit, execute, begin_result)
    }

    /// Returns a `PendingCall` for `executemany`.
    fn _begin_executemany(
        slf: &Bound<'_, Self>,
        sql: &Bound<'_, PyString>,
        rows: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PendingCall> {
        Cursor::begin_reading(slf, executemany(sql, rows, columns))
    }

    /// Returns a `PendingCall` for `nextset`, or ``None`` if there is no next result. The call
    /// returns ``True`` if it found a result. That result may be the row of output parameters: see
    /// `_settle_ready`.
    fn _begin_nextset(slf: &Bound<'_, Self>) -> PyResult<Option<PendingCall>> {
        let (py, cursor) = (slf.py(), slf.get());
        let (state, active) = cursor.leave_result(py)?;
        drop(state);
        let Some(statement) = active.map_or(Ok(None), |active| active.into_further(py))? else {
            return Ok(None);
        };
        let mut statement = statement.into_inner();
        // This handle cancels only the current result, not the next statement.
        let cancel = cursor.connection.get().db(py)?.cancel_handle();
        let call = move || match statement.next_set() {
            Ok(found) => (Ok(()), Some(found.then_some(statement))),
            Err(error) => (Err(error), None),
        };
        let slf = slf.clone().unbind();
        let begin_result = move |py: Python<'_>, statement, is_late| {
            let Some(statement) = statement else {
                return Ok(py.None());
            };
            let slf = slf.bind(py);
            slf.get()
                .begin_result(slf, slf.get().open(py)?, statement, is_late)?;
            Ok(PyBool::new(py, true).to_owned().into_any().unbind())
        };
        PendingCall::new(cursor.limit.get(), cancel, call, begin_result).map(Some)
    }

    /// Returns a `PendingCall` that waits for the next rows, or ``None`` if there is nothing to
    /// wait for.
    fn _begin_receive(slf: &Bound<'_, Self>) -> PyResult<Option<PendingCall>> {
        let (py, cursor) = (slf.py(), slf.get());
        let mut state = cursor.with_rows(py)?;
        if state.is_ready() {
            return Ok(None);
        }
        let active = state.active.as_mut();
        let is_late = active.as_ref().is_some_and(|active| active.is_late());
        let Some(mut statement) = active.and_then(Active::take_away) else {
            return Ok(None);
        };
        let result = state.result;
        drop(state);
        let cancel = statement.inner().cancel_handle();
        let slf = slf.clone().unbind();
        let call = move || {
            let received = statement.inner().receive();
            (received, Some(statement))
        };
        let put_back = move |py: Python<'_>, statement, is_late| {
            let mut state = slf.get().open(py)?;
            if state.result == result
                && let Some(active) = state.active.as_mut()
            {
                active.put_back(statement, is_late);
            }
            Ok(py.None())
        };
        let call = PendingCall::new(cursor.limit.get(), cancel, call, put_back)?;
        if is_late {
            // The error of this call is that of the limit, which has expired in `execute`.
            call.note_late();
        }
        Ok(Some(call))
    }

    /// Cancels the statement of this cursor. `onecopy.aio` calls it if a task was cancelled between
    /// two calls.
    fn _cancel(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.open(py)?;
        if let Some(handle) = state.active.as_mut().and_then(Active::cancel_handle) {
            drop(state);
            gil::detach(py, || handle.cancel());
        }
        Ok(())
    }

    /// ``True`` if the next fetch does not wait for the database.
    #[getter]
    fn _is_ready(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.with_rows(py)?.is_ready())
    }

    /// Returns up to ``size`` rows that have already arrived. The list is empty at the end.
    fn _fetch_ready(&self, py: Python<'_>, size: usize) -> PyResult<Py<PyList>> {
        self.fetch(py, size, Receiving::OnlyReady)
    }

    /// Skips up to ``n`` rows that have already arrived, and returns their number.
    ///
    /// Raises:
    ///     IndexError: there are no more rows.
    fn _skip_ready(&self, py: Python<'_>, n: usize) -> PyResult<usize> {
        self.skip(py, n, Receiving::OnlyReady)
    }

    /// Stores the output parameters if the current result contains them, and returns ``True``.
    /// Returns ``False`` for another result. Returns ``None`` if more rows must arrive first.
    fn _settle_ready(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        self.settle(py, Receiving::OnlyReady)
    }

    /// Starts `fetch_columns` on an event loop.
    fn _begin_columns(slf: &Bound<'_, Self>, size: Option<usize>) -> PyResult<PendingColumns> {
        let state = slf.get().with_rows(slf.py())?;
        Ok(PendingColumns {
            values: Guarded::new("fetch of columns", Some(ColumnValues::new(&state.schema))),
            result: state.result,
            limit: size.unwrap_or(usize::MAX),
            cursor: slf.clone().unbind(),
        })
    }
}

/// The columns of a `fetch_columns` call on an event loop.
#[pyclass(frozen, module = "onecopy._core")]
pub(crate) struct PendingColumns {
    cursor: Py<Cursor>,
    /// The number of the cursor's result.
    result: u64,
    limit: usize,
    /// The values so far. `None` after the last row and after an error.
    values: Guarded<Option<ColumnValues>>,
}

#[pymethods]
impl PendingColumns {
    /// Adds the rows that have already arrived. Returns the columns, or ``None`` if more rows must
    /// arrive.
    fn add_ready(&self, py: Python<'_>) -> PyResult<Option<Py<PyList>>> {
        let mut values = self.values.lock(py)?;
        let cursor = self.cursor.get();
        let mut state = cursor.with_rows(py)?;
        let values_so_far = values.take().filter(|_| state.result == self.result);
        let Some(values_so_far) = values_so_far else {
            return Err(errors::interface(
                py,
                "the cursor has executed another statement",
            ));
        };
        let receiving = Receiving::OnlyReady;
        let (made, is_complete) =
            cursor.add_columns(py, &mut state, self.limit, receiving, values_so_far)?;
        if is_complete {
            return Ok(Some(made.finish(py, &state.schema)?.unbind()));
        }
        *values = Some(made);
        Ok(None)
    }
}
