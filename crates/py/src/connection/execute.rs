//! Executes statements with the GIL released and a time limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onecopy_rows::connect as db;
use onecopy_rows::{Declared, Value};
use onecopy_text::{Ledger, Policy};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::Connection;
use crate::active_statement::Detached;
use crate::limit::CallWatch;
use crate::pending::PendingCall;
use crate::raw::{gil, interrupt, process};
use crate::{errors, parameters};

/// A cursor's settings for its next statement.
pub(crate) struct Said {
    pub(crate) limit: Option<Duration>,
    pub(crate) declared: Vec<Option<Declared>>,
    /// `true` if rows are fetched one by one, because the caller reads long values in parts.
    pub(crate) row_by_row: bool,
}

impl Connection {
    /// Returns the database connection. Fails in a forked child, and after the return to the pool.
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

    /// Returns the database connection as an `Arc`. The call does not borrow this object.
    pub(super) fn shared_db(&self, py: Python<'_>) -> PyResult<Arc<db::Connection>> {
        self.db(py)?;
        Ok(Arc::clone(self.db.as_ref().expect("`db` has found it")))
    }

    /// Fails if the connection was returned to its pool.
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

    /// Returns the row factory of new cursors.
    pub(crate) fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let factory = gil::lock(py, &self.row_factory);
        factory.as_ref().map(|f| f.clone_ref(py))
    }

    /// Returns the dict of converter functions. Its keys are column types.
    pub(crate) fn converters<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.converters.bind(py)
    }

    /// Runs `call` with the GIL released. Ctrl-C cancels it.
    pub(super) fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<T> {
        self.call_within(py, None, call)
    }

    /// Runs `call` with the GIL released. Ctrl-C or the time limit cancels it.
    pub(crate) fn call_within<T: Send>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<T> {
        self.call_watched(py, limit, call).map(|(value, _)| value)
    }

    /// Same as [`Connection::call_within`]. Also returns `true` if `call` succeeded after its time
    /// limit.
    pub(crate) fn call_watched<T: Send>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send,
    ) -> PyResult<(T, bool)> {
        let db = self.db(py)?;
        let watch = CallWatch::start(limit, || db.cancel_handle());
        let called = interrupt::detached(py, || db.cancel_handle(), || call(db))?;
        let late = watch.and_then(CallWatch::ran_out);
        match called {
            Ok(value) => Ok((value, late.is_some())),
            Err(e) => Err(errors::to_py(py, &late.unwrap_or(e))),
        }
    }

    /// Converts the SQL and its parameters to the form of the database.
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

    /// Ends the statement `ended`, then executes a new one. Also returns `true` if the time limit
    /// has expired.
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        ended: Option<Box<Detached<db::Statement>>>,
        sql: &Bound<'_, PyString>,
        parameters: &Bound<'_, PyAny>,
        said: Said,
        ledger: &Ledger,
    ) -> PyResult<(db::Statement, bool)> {
        let (sql, values) = self.bind(py, sql, parameters, said.declared, ledger)?;
        self.call_watched(py, said.limit, move |db| {
            drop(ended.map(|ended| ended.into_inner()));
            match said.row_by_row {
                true => db.execute_row_by_row(&sql, &values),
                false => db.execute(&sql, &values),
            }
        })
    }

    /// Creates a `PendingCall` for `call`.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        call: impl FnOnce(&db::Connection) -> Result<T, onecopy_rows::Error> + Send + 'static,
        make_result: impl FnOnce(Python<'_>, T, bool) -> PyResult<Py<PyAny>> + 'static,
    ) -> PyResult<PendingCall> {
        let (cancel, db) = (self.db(py)?.cancel_handle(), self.shared_db(py)?);
        let call = move || match call(&db) {
            Ok(value) => (Ok(()), Some(value)),
            Err(error) => (Err(error), None),
        };
        PendingCall::new(limit, cancel, call, make_result)
    }

    /// Returns the parameter names in a statement. `None` if the database does not support named
    /// parameters.
    pub(super) fn names_in(&self, py: Python<'_>, sql: &str) -> PyResult<Option<Vec<String>>> {
        if !self.db(py)?.reads_parameter_names() {
            return Ok(None);
        }
        self.call(py, |db| db.parameter_names(sql).map(Some))
    }
}
