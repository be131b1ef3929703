//! The methods of `Connection` in Python.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use onecopy_rows::Dialect;
use onecopy_rows::connect::{self as db};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use super::Connection;
use crate::cursor::{Cursor, executemany};
use crate::errors;
use crate::pending::PendingCall;
use crate::raw::{gil, process};

#[pymethods]
impl Connection {
    /// Creates a cursor on this connection.
    fn cursor(slf: Bound<'_, Self>) -> PyResult<Cursor> {
        slf.get().db(slf.py())?;
        let py = slf.py();
        Ok(Cursor::new(py, slf.unbind()))
    }

    /// Executes one statement on a new cursor, and returns the cursor: see `Cursor.execute`.
    #[pyo3(signature = (sql, parameters=None, /, *, defer=Vec::new()))]
    fn execute<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        parameters: Option<Bound<'py, PyAny>>,
        defer: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Cursor>> {
        let py = slf.py();
        let cursor = Bound::new(py, Cursor::new(py, slf.unbind()))?;
        Cursor::run(&cursor, sql, parameters, &defer)?;
        Ok(cursor)
    }

    /// Executes one statement for each row of parameters: see `Cursor.executemany`. Returns the new
    /// cursor.
    #[pyo3(signature = (sql, rows=None, /, *, columns=None))]
    fn executemany<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        rows: Option<&Bound<'py, PyAny>>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Cursor>> {
        let py = slf.py();
        let cursor = Bound::new(py, Cursor::new(py, slf.unbind()))?;
        Cursor::run_reading(&cursor, executemany(sql, rows, columns))?;
        Ok(cursor)
    }

    /// Commits the transaction.
    ///
    /// Raises:
    ///     InterfaceError: the connection is closed, or was opened in another process.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, db::Connection::commit)
    }

    /// Rolls the transaction back. If this ends the rows of a cursor, its next fetch raises an
    /// error.
    ///
    /// Raises:
    ///     InterfaceError: the connection is closed, or was opened in another process.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, db::Connection::rollback)
    }

    /// `True` if `onecopy.aio` can run calls to this database without a thread.
    #[getter]
    fn _suspends(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.db(py)?.suspends())
    }

    /// Returns a `PendingCall` for `commit`.
    fn _begin_commit(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.begin(py, None, db::Connection::commit, |py, (), _is_late| {
            Ok(py.None())
        })
    }

    /// Returns a `PendingCall` for `rollback`.
    fn _begin_rollback(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.begin(py, None, db::Connection::rollback, |py, (), _is_late| {
            Ok(py.None())
        })
    }

    /// Returns a `PendingCall` that sets `autocommit`.
    fn _begin_set_autocommit(&self, py: Python<'_>, on: bool) -> PyResult<PendingCall> {
        let set = move |db: &db::Connection| db.set_autocommit(on);
        self.begin(py, None, set, |py, (), _is_late| Ok(py.None()))
    }

    /// Rolls back an open transaction, and closes the connection. Closing twice is not an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_returned.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.call(py, db::Connection::close)
    }

    /// Returns a new `Connection` object for the same database connection, for `Pool`. This object
    /// and its cursors can no longer be used.
    fn _renewed(&self, py: Python<'_>) -> PyResult<Connection> {
        self.db(py)?;
        self.is_returned.store(true, Ordering::SeqCst);
        Ok(Connection {
            db: self.db.clone(),
            is_returned: AtomicBool::new(false),
            about: self.about.clone(),
            policy: self.policy,
            generation: self.generation,
            adapters: self.adapters.bind(py).copy()?.unbind(),
            converters: self.converters.bind(py).copy()?.unbind(),
            row_factory: Mutex::new(self.row_factory(py)),
            limit: self.limit.copy(),
            names: self.names.clone(),
        })
    }

    /// Cancels the running statement of this connection. Any thread may call this method.
    pub(super) fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        gil::detach(py, || db.cancel_handle().cancel());
        Ok(())
    }

    /// The row factory of new cursors: ``None`` for tuples, ``onecopy.rows.dict_row``,
    /// ``namedtuple_row``, ``dataclass_row(cls)``, or another function. It receives the executed
    /// cursor, and returns a function that converts a tuple to a row.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:", row_factory=onecopy.rows.dict_row)
    /// >>> con.execute("select 1 as id, 'Zoë' as name").fetchone()
    /// {'id': 1, 'name': 'Zoë'}
    #[getter(row_factory)]
    fn row_factory_of(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.row_factory(py)
    }

    #[setter(row_factory)]
    fn set_row_factory(&self, py: Python<'_>, row_factory: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut *gil::lock(py, &self.row_factory), row_factory);
        drop(before); // may run Python code, so the lock was released
    }

    /// A dict that maps a class to a function. The function converts parameters of this class or of
    /// its subclasses. The database receives the result.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.adapters[complex] = str
    /// >>> con.execute("select ?", [1 + 2j]).fetchone()
    /// ('(1+2j)',)
    #[getter]
    fn adapters(&self, py: Python<'_>) -> Py<PyDict> {
        self.adapters.clone_ref(py)
    }

    /// A dict that maps a column type to a function for its values. A key is a type name in lower
    /// case (``"jsonb"``) or a type code (``"decimal"``). NULL remains ``None``.
    /// `Cursor.converters` takes precedence.
    #[getter(converters)]
    fn converters_of(&self, py: Python<'_>) -> Py<PyDict> {
        self.converters.clone_ref(py)
    }

    /// The time limit in seconds for the execution of a statement and for each fetch; ``None`` for
    /// no limit. A new value applies to later cursors. A statement that exceeds the limit is
    /// cancelled, and raises an `OperationalError` with SQLSTATE HYT00. Streams have no limit.
    #[getter]
    fn query_timeout(&self) -> Option<f64> {
        self.limit.seconds()
    }

    #[setter]
    fn set_query_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        self.limit.set(seconds)
    }

    /// The name of the database: ``"PostgreSQL"``, ``"MariaDB"``, ``"Microsoft SQL Server"``,
    /// ``"SQLite"``. The driver reports the name.
    #[getter]
    fn dbms_name(&self) -> &str {
        &self.names.dbms
    }

    /// The version of the database, as the driver reports it.
    #[getter]
    fn dbms_version(&self) -> &str {
        &self.names.dbms_version
    }

    /// The name of the driver, usually its file name. For SQLite, which is built in, it is
    /// ``"onecopy"``.
    #[getter]
    fn driver_name(&self) -> &str {
        &self.names.driver
    }

    /// The version of the driver, as the driver reports it.
    #[getter]
    fn driver_version(&self) -> &str {
        &self.names.driver_version
    }

    /// The SQL dialect: ``"sqlite"``, ``"postgresql"``, ``"mysql"``, ``"mssql"``, or ``"generic"``
    /// if it is unknown.
    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match self.db(py)?.dialect() {
            Dialect::Sqlite => "sqlite",
            Dialect::Postgres => "postgresql",
            Dialect::MySql => "mysql",
            Dialect::SqlServer => "mssql",
            _ => "generic",
        })
    }

    /// ``True`` if autocommit is on. Each statement is then its own transaction.
    #[getter]
    fn autocommit(&self, py: Python<'_>) -> PyResult<bool> {
        let db = self.db(py)?;
        Ok(gil::detach(py, || db.autocommit()))
    }

    #[setter]
    fn set_autocommit(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        self.call(py, move |db| db.set_autocommit(on))
    }

    /// ``True`` after `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.is_returned.load(Ordering::SeqCst)
            || self.db.as_deref().is_none_or(db::Connection::is_closed)
    }

    /// ``True`` if the connection can be used. It is ``False`` if the connection is closed, if a
    /// call has detected that it is lost, or in another process. Then open a new connection. The
    /// check sends nothing to the server. If the server closes the connection, only the next call
    /// detects it.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.usable
    /// True
    /// >>> con.close()
    /// >>> con.usable, con.closed
    /// (False, True)
    #[getter]
    fn usable(&self) -> bool {
        self.generation == process::generation()
            && !self.is_returned.load(Ordering::SeqCst)
            && self.db.as_deref().is_some_and(db::Connection::is_usable)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (exception_type, _exception, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if exception_type.is_none() {
            return self.commit(py);
        }
        // An error of the rollback does not replace the exception of the block.
        match self.rollback(py) {
            Err(e) if e.matches(py, errors::class(py, "Error")?)? => Ok(()),
            done => done,
        }
    }

    fn __repr__(&self) -> String {
        format!("<onecopy.Connection: {}>", self.about)
    }

    // The exception classes (PEP 249, optional extensions).
    #[classattr]
    #[pyo3(name = "Warning")]
    fn warning(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "Warning")
    }
    #[classattr]
    #[pyo3(name = "Error")]
    fn error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "Error")
    }
    #[classattr]
    #[pyo3(name = "InterfaceError")]
    fn interface_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "InterfaceError")
    }
    #[classattr]
    #[pyo3(name = "DatabaseError")]
    fn database_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "DatabaseError")
    }
    #[classattr]
    #[pyo3(name = "DataError")]
    fn data_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "DataError")
    }
    #[classattr]
    #[pyo3(name = "OperationalError")]
    fn operational_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "OperationalError")
    }
    #[classattr]
    #[pyo3(name = "IntegrityError")]
    fn integrity_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "IntegrityError")
    }
    #[classattr]
    #[pyo3(name = "InternalError")]
    fn internal_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "InternalError")
    }
    #[classattr]
    #[pyo3(name = "ProgrammingError")]
    fn programming_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "ProgrammingError")
    }
    #[classattr]
    #[pyo3(name = "NotSupportedError")]
    fn not_supported_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        errors::class(py, "NotSupportedError")
    }
}
