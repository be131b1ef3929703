//! Calls that read their input from Python objects: rows of parameters or an Arrow stream.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onecopy_rows::arrow::{Batch, BatchRows};
use onecopy_rows::arrow_c::ForeignStream;
use onecopy_rows::connect as db;
use onecopy_rows::sql::statements::returns_rows;
use onecopy_rows::{Error, Value, task};
use onecopy_text::{Ledger, Stage, Tally};
use onecopy_wire::lock::lock;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::Connection;
use super::execute::Said;
use crate::active_statement::Detached;
use crate::arrow::{ColumnRows, Destination};
use crate::parameter_rows::ParameterRows;
use crate::parameters;
use crate::pending::PendingCall;
use crate::raw;

/// A call to the database that reads Python objects while it runs.
pub(crate) trait ReadingCall: Send {
    /// Executes the call, with the GIL released.
    fn execute(&mut self, db: &db::Connection) -> Result<Changes, Error>;

    /// Returns the Python exception that stopped the input. Call it once, after
    /// [`ReadingCall::execute`]. An exception replaces the result of `execute`.
    fn failure(&mut self) -> Option<PyErr>;
}

/// The result of a statement for many rows of parameters.
pub(crate) enum Changes {
    /// The number of changed rows, if the database reports it.
    Count(Option<u64>),
    /// The rows that the statement returned.
    Rows(Box<db::Statement>),
}

/// An iterator over rows of parameters, which runs while the database executes the statement.
trait RowsOfParameters: Iterator<Item = Result<Vec<Value>, Error>> + Send {
    /// Returns the Python exception that ended the iteration. Call it after the last row.
    fn failure(&mut self) -> Option<PyErr> {
        None
    }
}

impl RowsOfParameters for ParameterRows {
    fn failure(&mut self) -> Option<PyErr> {
        self.take_failure()
    }
}

impl RowsOfParameters for ColumnRows {}

/// Rows of parameters from another library's Arrow stream.
struct ArrowRows {
    /// The iterator over the rows; `None` after [`RowsOfParameters::failure`] was called.
    rows: Option<BatchRows<NextBatch>>,
    ledger: Ledger,
}

type NextBatch = Box<dyn FnMut() -> Result<Option<Batch>, Error> + Send>;

impl ArrowRows {
    fn new(stream: ForeignStream, names: Vec<String>, ledger: &Ledger) -> ArrowRows {
        // Releasing the stream can wait for the GIL, so the GIL is released first.
        let mut stream = Detached::new(stream);
        let next_batch = move || task::call_outside(|| stream.inner().next_batch());
        ArrowRows {
            rows: Some(BatchRows::new(names, Box::new(next_batch))),
            ledger: ledger.clone(),
        }
    }
}

impl Iterator for ArrowRows {
    type Item = Result<Vec<Value>, Error>;

    fn next(&mut self) -> Option<Result<Vec<Value>, Error>> {
        self.rows.as_mut()?.next()
    }
}

impl RowsOfParameters for ArrowRows {
    fn failure(&mut self) -> Option<PyErr> {
        let mut rows = self.rows.take()?;
        std::mem::take(&mut rows.tally).enter(&self.ledger, Stage::Parameters);
        None
    }
}

/// Executes a statement for many rows of parameters, or inserts rows into a table.
struct ManyRows<R> {
    into: Destination,
    returns_rows: bool,
    rows: R,
}

impl<R: RowsOfParameters> ReadingCall for ManyRows<R> {
    fn execute(&mut self, db: &db::Connection) -> Result<Changes, Error> {
        let rows = &mut self.rows;
        match &self.into {
            Destination::Statement(sql) if self.returns_rows => db
                .execute_many_returning(sql, rows)
                .map(|rows| Changes::Rows(Box::new(rows))),
            Destination::Statement(sql) => db.execute_many(sql, rows).map(Changes::Count),
            Destination::Table(insert) => db.insert_rows(insert, rows).map(Changes::Count),
        }
    }

    fn failure(&mut self) -> Option<PyErr> {
        self.rows.failure()
    }
}

impl Connection {
    /// Executes `call` on the connection, without the GIL. Cancels the call after the time `limit`.
    pub(crate) fn run_reading(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        mut call: Box<dyn ReadingCall>,
    ) -> PyResult<Changes> {
        let done = self.call_within(py, limit, |db| call.execute(db));
        call.failure().map_or(done, Err)
    }

    /// Creates a `PendingCall`, with which an event loop runs `call`. Python objects are read on
    /// the stack of the interpreter (see `pending.rs`).
    pub(crate) fn begin_reading(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: Box<dyn ReadingCall>,
        keep: impl FnOnce(Python<'_>, Changes) -> PyResult<()> + 'static,
    ) -> PyResult<PendingCall> {
        let (cancel, db) = (self.db(py)?.cancel_handle(), self.shared_db(py)?);
        // The task borrows the Python objects, so that it does not drop them on its own stack.
        let call = Arc::new(Mutex::new(call));
        let borrowed = Arc::clone(&call);
        let execute = move || match lock(&borrowed).execute(&db) {
            Ok(changes) => (Ok(()), Some(Some(changes))),
            Err(error) => (Err(error), Some(None)),
        };
        let make_result = move |py: Python<'_>, changes, _is_late| {
            let failure = lock(&call).failure();
            if let Some(failure) = failure {
                return Err(failure);
            }
            if let Some(changes) = changes {
                keep(py, changes)?;
            }
            Ok(py.None())
        };
        PendingCall::new(limit, cancel, execute, make_result)
    }

    /// Creates a call that executes a statement for each row in `rows`.
    pub(crate) fn for_rows(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
        said: Said,
        ledger: &Ledger,
    ) -> PyResult<Box<dyn ReadingCall>> {
        let dialect = self.db(py)?.dialect();
        let adapters = self.adapters.bind(py);
        let mut rows = ParameterRows::new(
            sql,
            rows,
            dialect,
            |sql| self.names_in(py, sql),
            Some(adapters),
            ledger,
        )?;
        rows.declare(said.declared);
        let sql = rows.sql();
        Ok(Box::new(ManyRows {
            returns_rows: returns_rows(&sql, dialect),
            into: Destination::Statement(sql),
            rows,
        }))
    }

    /// Creates a call that executes a statement for parameters in columns.
    pub(crate) fn for_columns(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        columns: &Bound<'_, PyAny>,
        ledger: &Ledger,
    ) -> PyResult<Box<dyn ReadingCall>> {
        let sql = parameters::utf8(py, sql, "the statement", &mut Tally::default())?;
        let dialect = self.db(py)?.dialect();
        Ok(Box::new(ManyRows {
            returns_rows: returns_rows(&sql, dialect),
            into: Destination::Statement(sql),
            rows: ColumnRows::new(columns, Some(self.adapters.bind(py)), dialect, ledger)?,
        }))
    }

    /// Creates a call that inserts an Arrow stream with an SQL statement or into a table.
    pub(crate) fn for_arrow(
        &self,
        py: Python<'_>,
        into: &Bound<'_, PyString>,
        stream: &Bound<'_, PyAny>,
        ledger: &Ledger,
    ) -> PyResult<Box<dyn ReadingCall>> {
        let dialect = self.db(py)?.dialect();
        let stream = raw::arrow::foreign_stream(stream)?;
        let names: Vec<String> = stream.fields().iter().map(|f| f.name.clone()).collect();
        Ok(Box::new(ManyRows {
            returns_rows: false,
            into: Destination::of(into, &names, dialect)?,
            rows: ArrowRows::new(stream, names, ledger),
        }))
    }
}
