//! What a cursor runs: one statement, one for many rows of parameters, and rows as a stream.

use onecopy_rows::Format;
use onecopy_rows::arrow::ArrowOptions;
use onecopy_rows::connect::Statement;
use onecopy_rows::{Declared, DeclaredKind};
use onecopy_text::Ledger;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::Cursor;
use super::pulled::State;
use crate::arrow::ArrowStream;
use crate::connection::{Connection, RanMany, Said};
use crate::fetch::Active;
use crate::raw::ending;
use crate::stream::RowStream;
use crate::{errors, ledger};

impl Cursor {
    /// What was told for the next statement, which uses it up.
    pub(super) fn said(&self, py: Python<'_>) -> PyResult<Said> {
        Ok(Said {
            limit: self.limit.get(),
            declared: std::mem::take(&mut *self.declared.lock(py)?),
            row_by_row: false,
        })
    }

    /// Sizes and types of the next statement's parameters: see `Cursor.setinputsizes`.
    pub(super) fn declare(&self, py: Python<'_>, sizes: &Bound<'_, PyAny>) -> PyResult<()> {
        type Told = Option<(String, usize, i16)>;
        let told = py
            .import("onecopy.sizes")?
            .call_method1("declared", (sizes,))?;
        let told: Vec<Told> = told.extract()?;
        let declared = told.into_iter().map(|told| {
            told.map(|(kind, size, digits)| Declared {
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
        let before = std::mem::replace(&mut *state, State::nothing());
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

    pub(crate) fn run_many(
        slf: &Bound<'_, Cursor>,
        sql: &Bound<'_, PyString>,
        rows: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, cursor) = (slf.py(), slf.get());
        let said = cursor.said(py)?;
        let mut state = cursor.open(py)?;
        *state = State::nothing();
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

    /// Runs statements that give no rows; notes how many rows they changed.
    pub(super) fn change(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&Connection, &Ledger) -> PyResult<Option<u64>>,
    ) -> PyResult<()> {
        let mut state = self.open(py)?;
        *state = State::nothing();
        let changed = run(self.connection.get(), &ledger::current(py)?)?;
        state.row_count = changed.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        Ok(())
    }

    /// The statement, none of whose rows was fetched.
    fn untouched(&self, py: Python<'_>) -> PyResult<Statement> {
        let mut state = self.with_rows(py)?;
        let active = state.active.take().filter(|_| state.ready.len() == 0);
        active.and_then(Active::into_untouched).ok_or_else(|| {
            errors::programming(
                py,
                "rows of this statement were fetched already\nexecute it again for a stream of all its rows",
            )
        })
    }

    /// The rows still to come, as a stream of batches.
    pub(super) fn batches(&self, py: Python<'_>, options: &ArrowOptions) -> PyResult<ArrowStream> {
        let statement = self.untouched(py)?;
        let ledger = ledger::current(py)?;
        let stream = ending::detach(py, || {
            onecopy_rows::arrow::ArrowStream::new(statement, options, &ledger)
        });
        let stream = stream.map_err(|e| errors::to_py(py, &e))?;
        Ok(ArrowStream::new(self.connection.clone_ref(py), stream))
    }

    /// The rows still to come, as a stream of bytes.
    pub(super) fn stream(&self, py: Python<'_>, format: Format) -> PyResult<RowStream> {
        let statement = self.untouched(py)?;
        let ledger = ledger::current(py)?;
        let source = ending::detach(py, || statement.into_chunks(format, &ledger));
        RowStream::new(
            py,
            self.connection.clone_ref(py),
            source.map_err(|e| errors::to_py(py, &e))?,
            format,
            ledger,
        )
    }
}

/// The kind of a type by its word in `onecopy.sizes`.
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
