//! `onecopy.connect` and `Connection`.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onecopy_rows::Dialect;
use onecopy_rows::connect::{self as db};
use onecopy_rows::{ConnectCancel, ConnectOptions, Names, ZeroDates};
use onecopy_text::{Policy, Tally};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::cursor::Cursor;
use crate::limit::TimeLimit;
use crate::raw::{ending, interrupt, process};
use crate::{command, errors, parameters};

mod run;
mod sqlite;

pub(crate) use run::{RanMany, Said};
pub(crate) use sqlite::Blob;

/// A connection to a database (PEP 249).
///
/// As a context manager it commits when the block ends and rolls back when the block raises; it stays open. Threads may
/// share it: their calls wait for each other. In a forked child every use raises `InterfaceError`.
///
/// >>> con = onecopy.connect("sqlite::memory:")
/// >>> with con:
/// ...     _ = con.execute("create table city (name text)")
/// ...     _ = con.executemany("insert into city values (?)", [["Ærø"], ["東京"]])
/// >>> con.execute("select count(*) from city").fetchone()
/// (2,)
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct Connection {
    /// Always there until the drop.
    db: Option<Arc<db::Connection>>,
    /// It went back to its pool, and is used by another object.
    is_returned: AtomicBool,
    /// Name and version of the database and its driver; never a password.
    about: String,
    policy: Policy,
    generation: u32,
    /// Functions for what parameters are of other classes, and for values of columns by their types.
    adapters: Py<PyDict>,
    converters: Py<PyDict>,
    row_factory: Mutex<Option<Py<PyAny>>>,
    /// For cursors made from now on.
    pub(crate) limit: TimeLimit,
    names: Names,
}

/// Opens a connection to a database.
///
/// Args:
///     target: a ``sqlite:`` URL, an ODBC connection string, ``DSN=name``, or a ``postgresql://``, ``mysql://`` or
///         ``mssql://`` URL, which goes to the ODBC driver found on this machine.
///     read_only: open it for reading alone; ODBC: in a transaction that is always rolled back.
///     autocommit: each statement is its own transaction.
///     timeout: seconds to connect, above 0.
///     errors: malformed text in a cell is a `DataError` (``"strict"``) or read with U+FFFD (``"replace"``).
///     row_factory: what rows are instead of tuples: see `Connection.row_factory`.
///     zero_dates: ``0000-00-00`` of MariaDB and MySQL is ``None`` (``"null"``), a `DataError` (``"error"``) or a ``str``
///         (``"text"``); a zero month or day is refused but for ``"text"``.
///     query_timeout: seconds that a statement may take: see `Connection.timeout`.
///     stream: whether rows come as they are read (``True``: a `NotSupportedError` where the driver cannot), or a result comes whole
///         before its first row (``False``), where that can be chosen. ``None``: as they are read, where the driver can.
///     local_infile: MariaDB and MySQL: ``LOAD DATA LOCAL`` may send files of this machine to the server. Without it the statement
///         is a `NotSupportedError`.
///
/// Returns:
///     A `Connection`. What one should know about the driver found comes as a `DriverWarning`.
///
/// Raises:
///     OperationalError: no connection; the message says what was tried and what to install, never a password.
///
/// >>> con = onecopy.connect("sqlite::memory:")
/// >>> con.execute("select 'Zoë', ?", [7]).fetchall()
/// [('Zoë', 7)]
///
/// Source: PEP 249, "Constructors".
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Keywords of Python.
#[pyo3(signature = (target, *, read_only=false, autocommit=false, timeout=15.0, errors="strict", row_factory=None, zero_dates="null", query_timeout=None, stream=None, local_infile=false))]
pub(crate) fn connect(
    py: Python<'_>,
    target: &Bound<'_, PyString>,
    read_only: bool,
    autocommit: bool,
    timeout: f64,
    errors: &str,
    row_factory: Option<Py<PyAny>>,
    zero_dates: &str,
    query_timeout: Option<f64>,
    stream: Option<bool>,
    local_infile: bool,
) -> PyResult<Connection> {
    let target = parameters::utf8(py, target, "the connection string", &mut Tally::default())?;
    if !(timeout > 0.0 && timeout <= 86_400.0) {
        return Err(PyValueError::new_err(
            "`timeout` is the time to connect in seconds, above 0 and up to 86400",
        ));
    }
    let text_policy = match errors {
        "strict" => Policy::Strict,
        "replace" => Policy::Replace,
        _ => {
            return Err(PyValueError::new_err(
                "`errors` is neither \"strict\" nor \"replace\"",
            ));
        }
    };
    if !target.starts_with("sqlite:") {
        command::know_packages(py);
    }
    let zero_dates = match zero_dates {
        "null" => ZeroDates::Null,
        "error" => ZeroDates::Error,
        "text" => ZeroDates::Text,
        _ => {
            return Err(PyValueError::new_err(
                "`zero_dates` is none of \"null\", \"error\", \"text\"",
            ));
        }
    };
    let limit = TimeLimit::of(query_timeout)?;
    let options = ConnectOptions {
        read_only,
        create: true,
        autocommit,
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        login_timeout_s: timeout.ceil() as u32,
        text_policy,
        zero_dates,
        stream,
        guesses_short: true,
        local_infile,
    };
    let cancel = ConnectCancel::default();
    let opened = interrupt::detached(
        py,
        || cancel.cancel_handle(),
        || {
            db::Connection::open_with(&target, &options, &cancel)
                .map(|db| (db.describe(), db.notices(), db.names(), db))
        },
    )?;
    let (about, notices, names, db) = opened.map_err(|e| errors::to_py(py, &e))?;
    let connection = Connection {
        db: Some(Arc::new(db)),
        is_returned: AtomicBool::new(false),
        about,
        policy: text_policy,
        generation: process::generation(),
        adapters: PyDict::new(py).unbind(),
        converters: PyDict::new(py).unbind(),
        row_factory: Mutex::new(row_factory),
        limit,
        names,
    };
    let category = errors::class(py, "DriverWarning")?;
    for notice in notices {
        let notice = CString::new(notice.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &category, &notice, 1)?;
    }
    Ok(connection)
}

#[pymethods]
impl Connection {
    /// A new cursor.
    fn cursor(slf: Bound<'_, Self>) -> PyResult<Cursor> {
        slf.get().db(slf.py())?;
        let py = slf.py();
        Ok(Cursor::new(py, slf.unbind()))
    }

    /// Runs one statement on a new cursor, and returns the cursor: see `Cursor.execute`.
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

    /// Runs one statement for each row of parameters on a new cursor, and returns the cursor: see `Cursor.executemany`.
    #[pyo3(signature = (sql, rows=None, /, *, columns=None))]
    fn executemany<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        rows: Option<&Bound<'py, PyAny>>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Cursor>> {
        let py = slf.py();
        let cursor = Bound::new(py, Cursor::new(py, slf.unbind()))?;
        Cursor::run_many(&cursor, sql, rows, columns)?;
        Ok(cursor)
    }

    /// Commits the transaction.
    ///
    /// Raises:
    ///     InterfaceError: the connection is closed, or was opened in another process.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, db::Connection::commit)
    }

    /// Rolls the transaction back; a cursor whose rows it ends raises an error that says so.
    ///
    /// Raises:
    ///     InterfaceError: the connection is closed, or was opened in another process.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, db::Connection::rollback)
    }

    /// Closes the connection; an open transaction is rolled back. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_returned.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.call(py, db::Connection::close)
    }

    /// The same connection for its next user, with the settings of this object, which is closed for
    /// its former user from now on, and so are its cursors. For `Pool`.
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

    /// Stops, from any thread, what runs on this connection at the moment.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db(py)?;
        ending::detach(py, || db.cancel_handle().cancel());
        Ok(())
    }

    /// What rows are, for cursors made from now on: ``None`` for tuples, ``onecopy.rows.dict_row``, ``namedtuple_row``,
    /// ``dataclass_row(cls)``, or any function that takes a cursor which was executed and gives a function that takes a tuple.
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
        let factory = ending::lock(py, &self.row_factory);
        let before = std::mem::replace(
            &mut *factory.unwrap_or_else(PoisonError::into_inner),
            row_factory,
        );
        drop(before); // Code may run here: behind the lock.
    }

    /// A dict of functions that parameters of other classes are given to first: by their class, or one that it is derived
    /// from. What a function gives is bound.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.adapters[complex] = str
    /// >>> con.execute("select ?", [1 + 2j]).fetchone()
    /// ('(1+2j)',)
    #[getter]
    fn adapters(&self, py: Python<'_>) -> Py<PyDict> {
        self.adapters.clone_ref(py)
    }

    /// A dict of functions that values are given to on their way into rows: by the name of the column's type as the database
    /// has it (in lower case: ``"jsonb"``), or by type code (``"decimal"``). NULL stays ``None``; `Cursor.converters` goes first.
    #[getter(converters)]
    fn converters_of(&self, py: Python<'_>) -> Py<PyDict> {
        self.converters.clone_ref(py)
    }

    /// Seconds that a statement of a cursor made from now on may take, to run and for each fetch of rows; ``None`` for no limit.
    /// What takes longer is cancelled: an `OperationalError` with SQLSTATE HYT00. Streams have no limit.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.limit.seconds()
    }

    #[setter]
    fn set_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        self.limit.set(seconds)
    }

    /// The database's name as its driver tells it: ``"PostgreSQL"``, ``"MariaDB"``, ``"Microsoft SQL Server"``, ``"SQLite"``.
    #[getter]
    fn dbms_name(&self) -> &str {
        &self.names.dbms
    }

    /// The database's version, as it writes it.
    #[getter]
    fn dbms_version(&self) -> &str {
        &self.names.dbms_version
    }

    /// The driver's name: its file, as a rule; ``"onecopy"`` for SQLite, which is built in.
    #[getter]
    fn driver_name(&self) -> &str {
        &self.names.driver
    }

    /// The driver's version, as it writes it.
    #[getter]
    fn driver_version(&self) -> &str {
        &self.names.driver_version
    }

    /// Whose SQL it takes: ``"sqlite"``, ``"postgresql"``, ``"mysql"``, ``"mssql"``, or ``"generic"`` where that is not known.
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

    /// Whether each statement is its own transaction.
    #[getter]
    fn autocommit(&self, py: Python<'_>) -> PyResult<bool> {
        let db = self.db(py)?;
        Ok(ending::detach(py, || db.autocommit()))
    }

    #[setter]
    fn set_autocommit(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        self.call(py, move |db| db.set_autocommit(on))
    }

    /// Whether it was closed by `close`.
    #[getter]
    fn closed(&self) -> bool {
        self.is_returned.load(Ordering::SeqCst)
            || self.db.as_deref().is_none_or(db::Connection::is_closed)
    }

    /// Whether it can be used: it was not closed, no call has found it lost, and it was opened in this process. Where it is
    /// false open a new one. Nothing is sent to ask: that a server went away since the last call is found by the next one.
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
            self.commit(py)
        } else {
            self.rollback(py)
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

impl Drop for Connection {
    fn drop(&mut self) {
        let db = self.db.take();
        if self.generation != process::generation() {
            // In a forked child: closing would say goodbye on the parent's socket, and SQLite forbids it.
            std::mem::forget(db);
            return;
        }
        drop(crate::fetch::Detached::new(db));
    }
}
