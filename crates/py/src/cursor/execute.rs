//! Executes the statements of a cursor, once or for many rows of parameters, and returns their rows
//! as streams.

use onecopy_rows::Format;
use onecopy_rows::arrow::ArrowOptions;
use onecopy_rows::connect::{self as db, Statement};
use onecopy_rows::{Declared, DeclaredKind};
use onecopy_text::Ledger;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::Cursor;
use super::current_rows::CursorState;
use crate::active_statement::Active;
use crate::arrow::ArrowStream;
use crate::connection::{Connection, RanMany, Said};
use crate::pending::PendingCall;
use crate::raw::gil;
use crate::stream::RowStream;
use crate::{errors, ledger};

impl Cursor {
    /// Returns the settings for the next statement, and resets those that apply to one statement
    /// only.
    pub(super) fn said(&self, py: Python<'_>) -> PyResult<Said> {
        Ok(Said {
            limit: self.limit.get(),
            declared: std::mem::take(&mut *self.declared.lock(py)?),
            row_by_row: false,
        })
    }

    /// Stores the types and sizes of the next statement's parameters: see `Cursor.setinputsizes`.
    pub(super) fn declare(&self, py: Python<'_>, sizes: &Bound<'_, PyAny>) -> PyResult<()> {
        type ParameterSize = Option<(String, usize, i16)>;
        let sizes = py
            .import("onecopy._input_sizes")?
            .call_method1("declared", (sizes,))?;
        let sizes: Vec<ParameterSize> = sizes.extract()?;
        let declared = sizes.into_iter().map(|size| {
            size.map(|(kind, size, digits)| Declared {
                kind: kind_of(&kind),
                size,
                digits,
            })
        });
        *self.declared.lock(py)? = declared.collect();
        Ok(())
    }

    pub(crate) fn run(
        slf: &Bound<'_, Cursor>,
        sql: &Bound<'_, PyString>,
        parameters: Option<Bound<'_, PyAny>>,
        defer: &[Bound<'_, PyAny>],
    ) -> PyResult<()> {
        let (py, cursor) = (slf.py(), slf.get());
        let mut state = cursor.open(py)?;
        let before = std::mem::replace(&mut *state, CursorState::nothing());
        let ended = before.active.and_then(Active::into_statement);
        let parameters = parameters.unwrap_or_else(|| PyTuple::empty(py).into_any());
        let ledger = ledger::current(py)?;
        let connection = cursor.connection.get();
        let said = Said {
            row_by_row: !defer.is_empty(),
            ..cursor.said(py)?
        };
        let mut statement = connection.run(py, ended, sql, &parameters, said, &ledger)?;
        statement.set_takes_more(true);
        cursor.begin_result(slf, state, statement)?;
        if defer.is_empty() {
            return Ok(());
        }
        cursor.leave_out(py, defer)
    }

    /// Starts [`Cursor::run`], and returns it as a `PendingCall`, which an event loop runs.
    pub(super) fn begin_run(
        slf: &Bound<'_, Cursor>,
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
        let begin_result = move |py: Python<'_>, mut statement: Statement| {
            statement.set_takes_more(true);
            let slf = slf.bind(py);
            slf.get()
                .begin_result(slf, slf.get().open(py)?, statement)?;
            Ok(py.None())
        };
        let execute = move |db: &db::Connection| {
            drop(ended.map(|ended| ended.into_inner()));
            db.execute(&sql, &values)
        };
        connection.begin(py, said.limit, execute, begin_result)
    }

    /// Creates a `PendingCall` with which an event loop waits until the next rows have arrived.
    /// Returns `None` if they can be fetched without waiting.
    pub(super) fn begin_receive(slf: &Bound<'_, Cursor>) -> PyResult<Option<PendingCall>> {
        let (py, cursor) = (slf.py(), slf.get());
        let mut state = cursor.with_rows(py)?;
        if state.is_ready() {
            return Ok(None);
        }
        let active = state.active.as_mut();
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
        PendingCall::new(cursor.limit.get(), cancel, call, put_back).map(Some)
    }

    pub(crate) fn run_many(
        slf: &Bound<'_, Cursor>,
        sql: &Bound<'_, PyString>,
        rows: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, cursor) = (slf.py(), slf.get());
        let said = cursor.said(py)?;
        let mut state = cursor.open(py)?;
        *state = CursorState::nothing();
        let (connection, ledger) = (cursor.connection.get(), ledger::current(py)?);
        let ran = match (rows, columns) {
            (Some(rows), None) => connection.run_many(py, sql, rows, said, &ledger),
            (None, Some(columns)) => connection.run_columns(py, sql, columns, &said, &ledger),
            _ => Err(PyTypeError::new_err("give either rows or `columns`")),
        };
        match ran? {
            RanMany::Changed(changed) => {
                state.row_count = changed.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
                Ok(())
            }
            RanMany::Rows(statement) => cursor.begin_result(slf, state, *statement),
        }
    }

    /// Executes a statement that returns no rows, and stores the number of changed rows.
    pub(super) fn change(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&Connection, &Ledger) -> PyResult<Option<u64>>,
    ) -> PyResult<()> {
        let mut state = self.open(py)?;
        *state = CursorState::nothing();
        let changed = run(self.connection.get(), &ledger::current(py)?)?;
        state.row_count = changed.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        Ok(())
    }

    /// Removes the statement from the cursor and returns it. Returns an error if rows of the
    /// statement were fetched.
    fn untouched(&self, py: Python<'_>) -> PyResult<Statement> {
        let mut state = self.with_rows(py)?;
        let active = state.active.take().filter(|_| state.ready.len() == 0);
        active.and_then(Active::into_untouched).ok_or_else(|| {
            errors::programming(
                py,
                "rows of this statement were fetched already\n\
                 execute it again for a stream of all its rows",
            )
        })
    }

    /// Returns the remaining rows as a stream of Arrow batches.
    pub(super) fn batches(&self, py: Python<'_>, options: &ArrowOptions) -> PyResult<ArrowStream> {
        let statement = self.untouched(py)?;
        let ledger = ledger::current(py)?;
        let stream = gil::detach(py, || {
            onecopy_rows::arrow::ArrowStream::new(statement, options, &ledger)
        });
        let stream = stream.map_err(|e| errors::to_py(py, &e))?;
        Ok(ArrowStream::new(self.connection.clone_ref(py), stream))
    }

    /// Returns the remaining rows as a stream of bytes.
    pub(super) fn stream(&self, py: Python<'_>, format: Format) -> PyResult<RowStream> {
        let statement = self.untouched(py)?;
        let ledger = ledger::current(py)?;
        let source = gil::detach(py, || statement.into_chunks(format, &ledger));
        RowStream::new(
            py,
            self.connection.clone_ref(py),
            source.map_err(|e| errors::to_py(py, &e))?,
            format,
            ledger,
        )
    }
}

/// Returns the kind of parameter for a word that `onecopy._input_sizes` uses.
fn kind_of(word: &str) -> DeclaredKind {
    match word {
        "number" => DeclaredKind::Number,
        "moment" => DeclaredKind::Moment,
        "bool" => DeclaredKind::Bool,
        "integer" => DeclaredKind::Integer,
        "double" => DeclaredKind::Double,
        "decimal" => DeclaredKind::Decimal,
        "text" => DeclaredKind::Text,
        "binary" => DeclaredKind::Binary,
        "date" => DeclaredKind::Date,
        "time" => DeclaredKind::Time,
        "timestamp" => DeclaredKind::Timestamp,
        "uuid" => DeclaredKind::Uuid,
        _ => DeclaredKind::Sized,
    }
}
