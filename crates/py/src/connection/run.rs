//! What cursors run through their connection, detached and within their limit of time.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onecopy_rows::Declared;
use onecopy_rows::arrow::BatchRows;
use onecopy_rows::connect as db;
use onecopy_rows::sql::statements::returns_rows;
use onecopy_text::{Ledger, Policy, Stage, Tally};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::Connection;
use crate::arrow::{ColumnRows, Into};
use crate::fetch::Detached;
use crate::limit::Watch;
use crate::raw::{self, ending, interrupt, process};
use crate::{errors, parameters};

/// What a cursor was told for its next statement.
pub(crate) struct Said {
    pub(crate) limit: Option<Duration>,
    pub(crate) declared: Vec<Option<Declared>>,
    /// Long values are deferred.
    pub(crate) row_by_row: bool,
}

/// The result of a statement for many rows of parameters.
pub(crate) enum RanMany {
    /// How many rows it changed, if the database reports it.
    Changed(Option<u64>),
    /// The rows that it returned.
    Rows(Box<db::Statement>),
}

impl Connection {
    /// The connection, in the process that opened it.
    pub(crate) fn db(&self, py: Python<'_>) -> PyResult<&db::Connection> {
        if self.generation != process::generation() {
            return Err(errors::interface(
                py,
                "this connection was opened in another process (before a fork)\nopen one in this process",
            ));
        }
        self.check_lent(py)?;
        Ok(self.db.as_deref().expect("it is taken only in `drop`"))
    }

    /// An error after it went back to its pool.
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

    /// What cursors make of rows, unless they are told otherwise.
    pub(crate) fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let factory = ending::lock(py, &self.row_factory);
        let factory = factory.unwrap_or_else(PoisonError::into_inner);
        factory.as_ref().map(|f| f.clone_ref(py))
    }

    /// Functions for the values of columns, by type.
    pub(crate) fn converters<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.converters.bind(py)
    }

    /// Runs a call of the connection detached; Ctrl-C cancels it.
    pub(super) fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<T> {
        self.call_within(py, None, call)
    }

    /// As [`Connection::call`], cancelled where it lasts longer than the limit.
    fn call_within<T: Send>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<T> {
        let db = self.db(py)?;
        let watch = Watch::start(limit, || db.cancel_handle());
        let called = interrupt::detached(py, || db.cancel_handle(), || call(db))?;
        called.map_err(|e| errors::to_py(py, &watch.and_then(Watch::ran_out).unwrap_or(e)))
    }

    /// Ends the statement before, and runs one. Its text is counted in `ledger`.
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        ended: Option<Box<Detached<db::Statement>>>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
        said: Said,
        ledger: &Ledger,
    ) -> PyResult<db::Statement> {
        let dialect = self.db(py)?.dialect();
        let mut statement = parameters::Statement::new(sql, Some(parameters), dialect, |sql| {
            self.names_in(py, sql)
        })?;
        statement.declared = said.declared;
        let values = statement.values(parameters, Some(self.adapters.bind(py)), ledger)?;
        self.call_within(py, said.limit, move |db| {
            drop(ended.map(|ended| ended.into_inner()));
            match said.row_by_row {
                true => db.execute_row_by_row(&statement.sql, &values),
                false => db.execute(&statement.sql, &values),
            }
        })
    }

    /// The names of the parameters of a statement, as the database reads them; `None` where it reads none.
    fn names_in(&self, py: Python<'_>, sql: &str) -> PyResult<Option<Vec<String>>> {
        if !self.db(py)?.reads_parameter_names() {
            return Ok(None);
        }
        self.call(py, |db| db.parameter_names(sql).map(Some))
    }

    /// Runs one statement for each row of parameters that `rows` gives.
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
        let mut rows = parameters::Rows::new(
            sql,
            rows,
            dialect,
            |sql| self.names_in(py, sql),
            Some(adapters),
            ledger,
        )?;
        rows.declare(said.declared);
        let sql = rows.sql();
        let returns_rows = returns_rows(&sql, dialect);
        let done = self.call_within(py, said.limit, |db| match returns_rows {
            true => db
                .execute_many_returning(&sql, &mut rows)
                .map(|rows| RanMany::Rows(Box::new(rows))),
            false => db.execute_many(&sql, &mut rows).map(RanMany::Changed),
        });
        // What the iterable raised ended it early: that comes first.
        rows.failure().map_or(done, Err)
    }

    /// Runs one statement for each row that columns of parameters have.
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
        let returns_rows = returns_rows(&sql, dialect);
        let done = self.call_within(py, said.limit, |db| match returns_rows {
            true => db
                .execute_many_returning(&sql, &mut rows)
                .map(|rows| RanMany::Rows(Box::new(rows))),
            false => db.execute_many(&sql, &mut rows).map(RanMany::Changed),
        });
        let failure = rows.failure().map(|e| errors::to_py(py, &e));
        failure.map_or(done, Err)
    }

    /// Puts the rows of another library's stream where `into` says.
    pub(crate) fn insert_arrow(
        &self,
        py: Python<'_>,
        into: &Bound<'_, PyString>,
        stream: &Bound<'_, PyAny>,
        said: &Said,
        ledger: &Ledger,
    ) -> PyResult<Option<u64>> {
        let dialect = self.db(py)?.dialect();
        let into = Into::of(into)?;
        let mut stream = raw::arrow::foreign_stream(stream)?;
        let names: Vec<String> = stream.fields().iter().map(|f| f.name.clone()).collect();
        let sql = into.sql(
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
            dialect,
        );
        let (done, failure) = {
            let mut rows = BatchRows::new(names, || stream.next_batch());
            let done = self.call_within(py, said.limit, |db| db.execute_many(&sql, &mut rows));
            rows.tally.enter(ledger, Stage::Parameters);
            (done, rows.failure())
        };
        // The stream's release is its library's code, which may want the lock that we hold.
        ending::detach(py, || drop(stream));
        // What ended the rows early comes first.
        failure.map_or(done, |e| Err(errors::to_py(py, &e)))
    }
}
