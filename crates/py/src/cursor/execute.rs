//! Executes the statements of a cursor.

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
use crate::connection::{Changes, Connection, ReadingCall, Said};
use crate::guard::Locked;
use crate::raw::gil;
use crate::stream::RowStream;
use crate::{errors, ledger};

impl Cursor {
    /// Returns the time limit and parameter types for the next statement, and resets the types.
    pub(super) fn said(&self, py: Python<'_>) -> PyResult<Said> {
        Ok(Said {
            limit: self.limit.get(),
            declared: std::mem::take(&mut *self.declared.lock(py)?),
            row_by_row: false,
        })
    }

    /// Stores the parameter types of the next statement: see `Cursor.setinputsizes`.
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
        let (mut statement, is_late) =
            connection.run(py, ended, sql, &parameters, said, &ledger)?;
        statement.set_takes_more(true);
        cursor.begin_result(slf, state, statement, is_late)?;
        if defer.is_empty() {
            return Ok(());
        }
        cursor.leave_out(py, defer)
    }

    /// Executes a statement on this new cursor, and stores its result in the cursor.
    pub(crate) fn run_call(
        slf: &Bound<'_, Cursor>,
        call: impl FnOnce(&db::Connection) -> Result<Statement, onecopy_rows::Error> + Send,
    ) -> PyResult<()> {
        let (py, cursor) = (slf.py(), slf.get());
        let state = cursor.open(py)?;
        let limit = cursor.limit.get();
        let (statement, is_late) = cursor.connection.get().call_watched(py, limit, call)?;
        cursor.begin_result(slf, state, statement, is_late)
    }

    /// Removes the current result and returns its statement. The returned state of the cursor stays
    /// locked.
    pub(super) fn leave_result(
        &self,
        py: Python<'_>,
    ) -> PyResult<(Locked<'_, CursorState>, Option<Active>)> {
        let mut state = self.open(py)?;
        let active = state.active.take();
        if active.is_some() {
            *state = CursorState {
                outputs: state.outputs.take(),
                ..CursorState::nothing()
            };
        }
        Ok((state, active))
    }

    /// Creates a call with `make`, executes it, and stores its rows or its number of changed rows.
    pub(crate) fn run_reading(
        slf: &Bound<'_, Cursor>,
        make: impl FnOnce(&Connection, Said, &Ledger) -> PyResult<Box<dyn ReadingCall>>,
    ) -> PyResult<()> {
        let (py, cursor) = (slf.py(), slf.get());
        let said = cursor.said(py)?;
        let mut state = cursor.open(py)?;
        *state = CursorState::nothing();
        let (connection, limit) = (cursor.connection.get(), said.limit);
        let call = make(connection, said, &ledger::current(py)?)?;
        let changes = connection.run_reading(py, limit, call)?;
        cursor.keep_changes(slf, state, changes)
    }

    pub(super) fn keep_changes(
        &self,
        slf: &Bound<'_, Cursor>,
        mut state: Locked<'_, CursorState>,
        changes: Changes,
    ) -> PyResult<()> {
        match changes {
            Changes::Count(n) => {
                state.row_count = n.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
                Ok(())
            }
            Changes::Rows(statement) => self.begin_result(slf, state, *statement, false),
        }
    }

    /// Removes the statement from the cursor. It is an error if rows have been fetched.
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

    /// Returns all rows of the statement as a stream of Arrow batches.
    pub(super) fn batches(&self, py: Python<'_>, options: &ArrowOptions) -> PyResult<ArrowStream> {
        let statement = self.untouched(py)?;
        let ledger = ledger::current(py)?;
        let stream = gil::detach(py, || {
            onecopy_rows::arrow::ArrowStream::new(statement, options, &ledger)
        });
        let stream = stream.map_err(|e| errors::to_py(py, &e))?;
        Ok(ArrowStream::new(self.connection.clone_ref(py), stream))
    }

    /// Returns all rows of the statement as a stream of bytes.
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

/// Returns a function that creates the call for `executemany`, for [`Cursor::run_reading`].
pub(crate) fn executemany<'a>(
    sql: &'a Bound<'_, PyString>,
    rows: Option<&'a Bound<'_, PyAny>>,
    columns: Option<&'a Bound<'_, PyAny>>,
) -> impl FnOnce(&Connection, Said, &Ledger) -> PyResult<Box<dyn ReadingCall>> + 'a {
    move |connection, said, ledger| match (rows, columns) {
        (Some(rows), None) => connection.for_rows(sql.py(), sql, rows, said, ledger),
        (None, Some(columns)) => connection.for_columns(sql.py(), sql, columns, ledger),
        _ => Err(PyTypeError::new_err("give either rows or `columns`")),
    }
}

/// Converts a type name of the module `onecopy._input_sizes` to a declared type.
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
