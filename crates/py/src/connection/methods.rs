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

    /// Executes one statement for each row of parameters on a new cursor, and returns the cursor:
    /// see `Cursor.executemany`.
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

    /// Rolls the transaction back. If this ends the rows of a cursor, the next fetch of that cursor
    /// raises an error.
    ///
    /// Raises:
    ///     InterfaceError: the connection is closed, or was opened in another process.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, db::Connection::rollback)
    }

    /// `True` if calls to this database can be suspended instead of blocking, so that `onecopy.aio`
    /// runs them without a thread.
    #[getter]
    fn _suspends(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.db(py)?.suspends())
    }

    /// Starts `commit`, and returns it as a `PendingCall`, which an event loop runs.
    fn _begin_commit(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.begin(py, None, db::Connection::commit, |py, (), _is_late| {
            Ok(py.None())
        })
    }

    /// Starts `rollback`, and returns it as a `PendingCall`, which an event loop runs.
    fn _begin_rollback(&self, py: Python<'_>) -> PyResult<PendingCall> {
        self.begin(py, None, db::Connection::rollback, |py, (), _is_late| {
            Ok(py.None())
        })
    }

    /// Starts the assignment of `autocommit`, and returns it as a `PendingCall`, which an event
    /// loop runs.
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

    /// Returns a new `Connection` object for the same database connection, with the settings of
    /// this object. Afterwards, every use of this object or of its cursors raises an error. `Pool`
    /// calls this method.
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

    /// Cancels the statement that runs on this connection. Any thread may call this method.
    pub(super) fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        gil::detach(py, || db.cancel_handle().cancel());
        Ok(())
    }

    /// The row factory of new cursors: ``None`` for tuples, ``onecopy.rows.dict_row``,
    /// ``namedtuple_row``, ``dataclass_row(cls)``, or any function that is called with the executed
    /// cursor and returns a function that converts a tuple to a row.
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
        drop(before); // Python code may run here, so the lock was released first.
    }

    /// A dict that maps a class to a function. A parameter whose class is this class, or is derived
    /// from it, is passed to the function, and the function's result is sent to the database
    /// instead.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.adapters[complex] = str
    /// >>> con.execute("select ?", [1 + 2j]).fetchone()
    /// ('(1+2j)',)
    #[getter]
    fn adapters(&self, py: Python<'_>) -> Py<PyDict> {
        self.adapters.clone_ref(py)
    }

    /// A dict from the name of a column type in lower case (``"jsonb"``), or from a type code
    /// (``"decimal"``), to a function that converts the values of such columns. NULL remains
    /// ``None``. A function in `Cursor.converters` takes precedence.
    #[getter(converters)]
    fn converters_of(&self, py: Python<'_>) -> Py<PyDict> {
        self.converters.clone_ref(py)
    }

    /// The time limit in seconds for the execution of a statement and for each fetch of its rows;
    /// ``None`` for no limit. A new value applies to cursors that are created afterwards. A
    /// statement that exceeds the limit is cancelled, and raises an `OperationalError` with
    /// SQLSTATE HYT00. The limit does not apply to streams.
    #[getter]
    fn query_timeout(&self) -> Option<f64> {
        self.limit.seconds()
    }

    #[setter]
    fn set_query_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        self.limit.set(seconds)
    }

    /// The name of the database, as its driver reports it: ``"PostgreSQL"``, ``"MariaDB"``,
    /// ``"Microsoft SQL Server"``, ``"SQLite"``.
    #[getter]
    fn dbms_name(&self) -> &str {
        &self.names.dbms
    }

    /// The version of the database, as the driver reports it.
    #[getter]
    fn dbms_version(&self) -> &str {
        &self.names.dbms_version
    }

    /// The name of the driver, as the driver reports it; usually its file name. It is ``"onecopy"``
    /// for SQLite, which is built in.
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

    /// ``True`` if autocommit is on, so that each statement is its own transaction.
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

    /// ``True`` if the connection can be used: it is not closed, no call has detected that it is
    /// lost, and it was opened in this process. If it is ``False``, open a new connection. The
    /// check sends nothing to the server. If the server has closed the connection since the last
    /// call, only the next call detects it.
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
        // The block's exception is the reason for the rollback. An error of the rollback, for
        // example on a lost connection, does not replace it.
        match self.rollback(py) {
            Err(e) if e.matches(py, errors::class(py, "Error")?)? => Ok(()),
            done => done,
        }
    }

    fn __repr__(&self) -> String {
        format!("<onecopy.Connection: {}>", self.about)
    }

    // The exception classes as attributes (PEP 249, optional extensions).
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
