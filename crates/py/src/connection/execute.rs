//! Executes the statements of cursors on their connection, with the GIL released and within the
//! time limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onecopy_rows::arrow::BatchRows;
use onecopy_rows::connect as db;
use onecopy_rows::sql::statements::returns_rows;
use onecopy_rows::{Declared, Value};
use onecopy_text::{Ledger, Policy, Stage, Tally};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::Connection;
use crate::active_statement::Detached;
use crate::arrow::{ColumnRows, Destination};
use crate::limit::CallWatch;
use crate::pending::PendingCall;
use crate::raw::{self, gil, interrupt, process};
use crate::{errors, parameters};

/// The settings of a cursor for its next statement: the time limit, the declared parameter types,
/// and the way in which long values are read.
pub(crate) struct Said {
    pub(crate) limit: Option<Duration>,
    pub(crate) declared: Vec<Option<Declared>>,
    /// `true` if long values are deferred, so that each is read in parts when the caller requests
    /// it.
    pub(crate) row_by_row: bool,
}

/// The result of a statement for many rows of parameters.
pub(crate) enum RanMany {
    /// The statement returned no rows. The field is the number of changed rows; `None` if the
    /// database does not report this number.
    Changed(Option<u64>),
    /// The statement returned rows, which are read from this statement.
    Rows(Box<db::Statement>),
}

impl Connection {
    /// Returns the database connection. Returns an error in a forked child, and after the
    /// connection was returned to its pool.
    pub(crate) fn db(&self, py: Python<'_>) -> PyResult<&db::Connection> {
        if self.generation != process::generation() {
            return Err(errors::interface(
                py,
                "this connection was opened in another process (before a fork)\n\
                 open one in this process",
            ));
        }
        self.check_lent(py)?;
        Ok(self.db.as_deref().expect("it is taken only in `drop`"))
    }

    /// Returns an error if the connection was returned to its pool.
    #[inline]
    pub(crate) fn check_lent(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_returned.load(Ordering::Relaxed) {
            return Err(errors::interface(
                py,
                "this connection was returned to its pool\nacquire one from the pool",
            ));
        }
        Ok(())
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns the default row factory of cursors.
    pub(crate) fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let factory = gil::lock(py, &self.row_factory);
        factory.as_ref().map(|f| f.clone_ref(py))
    }

    /// Returns the functions that convert the values of columns, by type.
    pub(crate) fn converters<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.converters.bind(py)
    }

    /// Calls a function of the database connection with the GIL released; Ctrl-C cancels it.
    pub(super) fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<T> {
        self.call_within(py, None, call)
    }

    /// Calls a function of the database connection with the GIL released. Ctrl-C cancels the call,
    /// and so does the time limit.
    pub(crate) fn call_within<T: Send>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<T> {
        let db = self.db(py)?;
        let watch = CallWatch::start(limit, || db.cancel_handle());
        let called = interrupt::detached(py, || db.cancel_handle(), || call(db))?;
        called.map_err(|e| errors::to_py(py, &watch.and_then(CallWatch::ran_out).unwrap_or(e)))
    }

    /// Returns the SQL in the database's own parameter style, and the values of its parameters.
    pub(crate) fn bind(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
        declared: Vec<Option<Declared>>,
        ledger: &Ledger,
    ) -> PyResult<(String, Vec<Value>)> {
        let dialect = self.db(py)?.dialect();
        let mut statement = parameters::BoundSql::new(sql, Some(parameters), dialect, |sql| {
            self.names_in(py, sql)
        })?;
        statement.declared = declared;
        let values = statement.values(parameters, Some(self.adapters.bind(py)), ledger)?;
        Ok((statement.sql, values))
    }

    /// Executes a statement. Before that, ends the earlier statement `ended`, if there is one.
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        ended: Option<Box<Detached<db::Statement>>>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
        said: Said,
        ledger: &Ledger,
    ) -> PyResult<db::Statement> {
        let (sql, values) = self.bind(py, sql, parameters, said.declared, ledger)?;
        self.call_within(py, said.limit, move |db| {
            drop(ended.map(|ended| ended.into_inner()));
            match said.row_by_row {
                true => db.execute_row_by_row(&sql, &values),
                false => db.execute(&sql, &values),
            }
        })
    }

    /// Creates a `PendingCall`, by which an event loop runs `call`, a function of the database
    /// connection.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send + 'static,
        make_result: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + 'static,
    ) -> PyResult<PendingCall> {
        let cancel = self.db(py)?.cancel_handle();
        let db = Arc::clone(self.db.as_ref().expect("`db` has found it"));
        let call = move || match call(&db) {
            Ok(value) => (Ok(()), Some(value)),
            Err(error) => (Err(error), None),
        };
        PendingCall::new(limit, cancel, call, |py, value, _| make_result(py, value))
    }

    /// Returns the names of the parameters in a statement, as the database finds them; `None` if
    /// the database does not support named parameters.
    fn names_in(&self, py: Python<'_>, sql: &str) -> PyResult<Option<Vec<String>>> {
        if !self.db(py)?.reads_parameter_names() {
            return Ok(None);
        }
        self.call(py, |db| db.parameter_names(sql).map(Some))
    }

    /// Executes one statement for each row of parameters in `rows`.
    pub(crate) fn run_many(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
        said: Said,
        ledger: &Ledger,
    ) -> PyResult<RanMany> {
        let dialect = self.db(py)?.dialect();
        let adapters = self.adapters.bind(py);
        let mut rows = parameters::ParameterRows::new(
            sql,
            rows,
            dialect,
            |sql| self.names_in(py, sql),
            Some(adapters),
            ledger,
        )?;
        rows.declare(said.declared);
        let sql = rows.sql();
        let done = self.execute_rows(py, said.limit, &sql, &mut rows);
        // An exception of the caller's iterable, which ended the rows early, has precedence over
        // `done`.
        rows.failure().map_or(done, Err)
    }

    /// Executes one statement for each of the rows, with the GIL released.
    fn execute_rows(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        sql: &str,
        rows: &mut (impl Iterator<Item = Vec<Value>> + Send),
    ) -> PyResult<RanMany> {
        let returns_rows = returns_rows(sql, self.db(py)?.dialect());
        self.call_within(py, limit, |db| match returns_rows {
            true => db
                .execute_many_returning(sql, rows)
                .map(|rows| RanMany::Rows(Box::new(rows))),
            false => db.execute_many(sql, rows).map(RanMany::Changed),
        })
    }

    /// Executes one statement for each row of parameters that are passed as columns.
    pub(crate) fn run_columns(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        columns: &Bound<'_, PyAny>,
        said: &Said,
        ledger: &Ledger,
    ) -> PyResult<RanMany> {
        let sql = parameters::utf8(py, sql, "the statement", &mut Tally::default())?;
        let adapters = self.adapters.bind(py);
        let dialect = self.db(py)?.dialect();
        let mut rows = ColumnRows::new(columns, Some(adapters), dialect, ledger)?;
        let done = self.execute_rows(py, said.limit, &sql, &mut rows);
        let failure = rows.failure().map(|e| errors::to_py(py, &e));
        failure.map_or(done, Err)
    }

    /// Inserts the rows of another library's Arrow stream, with a statement or into a table.
    pub(crate) fn insert_arrow(
        &self,
        py: Python<'_>,
        into: &Bound<'_, PyString>,
        stream: &Bound<'_, PyAny>,
        said: &Said,
        ledger: &Ledger,
    ) -> PyResult<Option<u64>> {
        let dialect = self.db(py)?.dialect();
        let mut stream = raw::arrow::foreign_stream(stream)?;
        let names: Vec<String> = stream.fields().iter().map(|f| f.name.clone()).collect();
        let into = Destination::of(into, &names, dialect)?;
        let (done, failure) = {
            let mut rows = BatchRows::new(names, || stream.next_batch());
            let done = self.call_within(py, said.limit, |db| match &into {
                Destination::Statement(sql) => db.execute_many(sql, &mut rows),
                Destination::Table(insert) => db.insert_rows(insert, &mut rows),
            });
            rows.tally.enter(ledger, Stage::Parameters);
            (done, rows.failure())
        };
        // Releasing the stream runs code of another library, which may wait for the GIL.
        gil::detach(py, || drop(stream));
        // The exception that ended the rows early has precedence over `done`.
        failure.map_or(done, |e| Err(errors::to_py(py, &e)))
    }
}
