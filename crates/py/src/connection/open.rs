//! `onecopy.connect`: opens a connection with the caller's options.

use std::ffi::CString;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use onecopy_rows::connect::{self as db};
use onecopy_rows::{self as rows, ConnectCancel, ConnectOptions, Names, PrepareMode, ZeroDates};
use onecopy_text::{Policy, Tally};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList, PyString};

use super::Connection;
use crate::limit::TimeLimit;
use crate::pending::PendingCall;
use crate::raw::{interrupt, process};
use crate::{command, errors, parameters};

/// Returns a Python function that applies `loads` to each element of a nested list.
fn json_elements<'py>(loads: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCFunction>> {
    fn convert<'py>(
        loads: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match value.cast::<PyList>() {
            Ok(list) => {
                let elements = list.iter().map(|element| convert(loads, &element));
                let elements = elements.collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(value.py(), elements)?.into_any())
            }
            Err(_) if value.is_none() => Ok(value.clone()),
            Err(_) => loads
                .call1((value,))
                .map_err(|e| errors::of_json(value.py(), e)),
        }
    }
    let (py, loads) = (loads.py(), loads.clone().unbind());
    PyCFunction::new_closure(py, None, None, move |arguments, _| {
        let value = arguments.get_item(0)?;
        convert(loads.bind(value.py()), &value).map(Bound::unbind)
    })
}

/// Defines a Python function with the arguments of `connect`. PyO3 requires the keywords in the
/// signature of each function.
macro_rules! with_connect_keywords {
    ($(#[$doc:meta])* fn $name:ident() -> $result:ty = $run:expr) => {
        $(#[$doc])*
        #[pyfunction]
        #[allow(clippy::too_many_arguments)] // Keywords of Python.
        #[pyo3(signature = (
            target, *, read_only=false, autocommit=false, connect_timeout=15.0, errors="strict",
            row_factory=None, zero_dates="null", query_timeout=None, stream=None,
            local_infile=false, datetime_range="error", json="text", prepare="auto",
        ))]
        pub(crate) fn $name(
            py: Python<'_>,
            target: &Bound<'_, PyString>,
            read_only: bool,
            autocommit: bool,
            connect_timeout: f64,
            errors: &str,
            row_factory: Option<Py<PyAny>>,
            zero_dates: &str,
            query_timeout: Option<f64>,
            stream: Option<bool>,
            local_infile: bool,
            datetime_range: &str,
            json: &str,
            prepare: &str,
        ) -> PyResult<$result> {
            let given = ConnectKeywords {
                read_only,
                autocommit,
                connect_timeout,
                errors,
                row_factory,
                zero_dates,
                query_timeout,
                stream,
                local_infile,
                datetime_range,
                json,
                prepare,
            };
            $run(py, Attempt::new(py, target, given)?)
        }
    };
}

with_connect_keywords! {
    /// Opens a connection to a database.
    ///
    /// Args:
    ///     target: a ``sqlite:`` or ``postgresql://`` URL, an ODBC connection string, ``DSN=name``,
    ///         or an ``odbc+postgresql://``, ``mysql://`` or ``mssql://`` URL, which selects an
    ///         ODBC driver that is installed on this machine.
    ///     read_only: ``True`` to open the database read-only; through ODBC, in a transaction that
    ///         is always rolled back.
    ///     autocommit: ``True`` if each statement is its own transaction.
    ///     connect_timeout: the largest time for connecting, in seconds, above 0.
    ///     errors: the treatment of malformed text in a cell. ``"strict"`` raises a `DataError`,
    ///         ``"replace"`` replaces the malformed parts with U+FFFD.
    ///     row_factory: a function that makes the row objects, which are tuples by default: see
    ///         `Connection.row_factory`.
    ///     zero_dates: the treatment of ``0000-00-00`` of MariaDB and MySQL: ``None`` (``"null"``),
    ///         a `DataError` (``"error"``) or a ``str`` (``"text"``). A date in which only the
    ///         month or day is zero is an error except with ``"text"``.
    ///     query_timeout: the time limit of a statement in seconds: see `Connection.query_timeout`.
    ///     stream: ``True``: rows are returned as they are read (a `NotSupportedError` if the
    ///         driver cannot); ``False``: the whole result is read before its first row is
    ///         returned, if the driver offers the choice; ``None``: like ``True`` if the driver
    ///         supports it, otherwise like ``False``.
    ///     local_infile: MariaDB and MySQL: ``LOAD DATA LOCAL`` may send files of this machine to the
    ///         server. Without this option the statement raises a `NotSupportedError`.
    ///     datetime_range: PostgreSQL without an ODBC driver: dates and timestamps outside of the years
    ///         1 to 9999, and infinities, are a `DataError` (``"error"``) or a ``str`` as the server
    ///         writes it (``"text"``).
    ///     json: values of the types ``json`` and ``jsonb`` are their text (``"text"``) or Python's
    ///         objects (``"objects"``).
    ///     prepare: PostgreSQL without an ODBC driver: ``"auto"`` prepares a statement on the
    ///         server from its second execution on, except through a pooler that changes sessions.
    ///         ``"always"`` prepares from the first execution on, without a check for a pooler.
    ///         ``"never"`` does not prepare.
    ///
    /// Returns:
    ///     A `Connection`. A known fault of the driver causes a `DriverWarning`.
    ///
    /// Raises:
    ///     OperationalError: the connection failed; the message lists the attempts and the software
    ///         to install, and contains no password.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.execute("select 'Zoë', ?", [7]).fetchall()
    /// [('Zoë', 7)]
    ///
    /// Source: PEP 249, "Constructors".
    fn connect() -> Connection = open_blocking
}

with_connect_keywords! {
    /// Starts `connect`, and returns a `PendingCall` for an event loop. Returns ``None`` if
    /// connections to this database cannot be suspended.
    fn begin_connect() -> Option<PendingCall> = begin
}

fn open_blocking(py: Python<'_>, attempt: Attempt) -> PyResult<Connection> {
    let opened = interrupt::detached(py, || attempt.cancel.cancel_handle(), || attempt.open())?;
    let opened = opened.map_err(|e| errors::to_py(py, &e))?;
    attempt.settings.connection(py, opened)
}

fn begin(_py: Python<'_>, attempt: Attempt) -> PyResult<Option<PendingCall>> {
    if !db::Connection::suspends_at(&attempt.target) {
        return Ok(None);
    }
    let Attempt {
        target,
        options,
        cancel,
        settings,
    } = attempt;
    let handle = cancel.cancel_handle();
    let open = move || match open(&target, &options, &cancel) {
        Ok(opened) => (Ok(()), Some(opened)),
        Err(error) => (Err(error), None),
    };
    let make_result = move |py: Python<'_>, opened, _is_late| {
        Ok(Py::new(py, settings.connection(py, opened)?)?.into_any())
    };
    PendingCall::new(None, handle, open, make_result).map(Some)
}

/// The keyword arguments of `connect`, not yet validated.
struct ConnectKeywords<'a> {
    read_only: bool,
    autocommit: bool,
    connect_timeout: f64,
    errors: &'a str,
    row_factory: Option<Py<PyAny>>,
    zero_dates: &'a str,
    query_timeout: Option<f64>,
    stream: Option<bool>,
    local_infile: bool,
    datetime_range: &'a str,
    json: &'a str,
    prepare: &'a str,
}

/// The checked arguments of a `connect` call, and its cancel handle.
struct Attempt {
    target: String,
    options: ConnectOptions,
    cancel: ConnectCancel,
    settings: Settings,
}

/// Settings that only the `Connection` object uses, not the driver.
struct Settings {
    policy: Policy,
    converters: Py<PyDict>,
    row_factory: Option<Py<PyAny>>,
    limit: TimeLimit,
}

/// The description, driver warnings, names and connection of a newly opened database.
type Opened = (String, Vec<String>, Names, db::Connection);

fn open(
    target: &str,
    options: &ConnectOptions,
    cancel: &ConnectCancel,
) -> Result<Opened, rows::Error> {
    let db = db::Connection::open_with(target, options, cancel)?;
    Ok((db.describe(), db.notices(), db.names(), db))
}

impl Attempt {
    /// Validates the keywords.
    ///
    /// # Errors
    /// `ValueError` if the value of a keyword is not accepted.
    fn new(
        py: Python<'_>,
        target: &Bound<'_, PyString>,
        given: ConnectKeywords<'_>,
    ) -> PyResult<Attempt> {
        let target = parameters::utf8(py, target, "the connection string", &mut Tally::default())?;
        let seconds = given.connect_timeout;
        if !(seconds > 0.0 && seconds <= 86_400.0) {
            return Err(PyValueError::new_err(
                "`connect_timeout` is the time to connect in seconds, above 0 and up to 86400",
            ));
        }
        let text_policy = Policy::of_name(given.errors, &Policy::BASIC)
            .map_err(|e| PyValueError::new_err(e.to_string()))?;
        if !target.starts_with("sqlite:") {
            command::know_packages(py);
        }
        let zero_dates = match given.zero_dates {
            "null" => ZeroDates::Null,
            "error" => ZeroDates::Error,
            "text" => ZeroDates::Text,
            _ => {
                return Err(PyValueError::new_err(
                    "`zero_dates` is none of \"null\", \"error\", \"text\"",
                ));
            }
        };
        let far_dates_as_text = match given.datetime_range {
            "error" => false,
            "text" => true,
            _ => {
                return Err(PyValueError::new_err(
                    "`datetime_range` is neither \"error\" nor \"text\"",
                ));
            }
        };
        let prepare = match given.prepare {
            "auto" => PrepareMode::Auto,
            "always" => PrepareMode::Always,
            "never" => PrepareMode::Never,
            _ => {
                return Err(PyValueError::new_err(
                    "`prepare` is none of \"auto\", \"always\", \"never\"",
                ));
            }
        };
        let converters = PyDict::new(py);
        match given.json {
            "text" => {}
            "objects" => {
                let loads = py.import("onecopy.json")?.getattr("loads")?;
                converters.set_item("json", &loads)?;
                converters.set_item("jsonb", &loads)?;
                let elements = json_elements(&loads)?;
                converters.set_item("json[]", &elements)?;
                converters.set_item("jsonb[]", &elements)?;
            }
            _ => {
                return Err(PyValueError::new_err(
                    "`json` is neither \"text\" nor \"objects\"",
                ));
            }
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        let login_timeout_s = seconds.ceil() as u32;
        Ok(Attempt {
            target,
            options: ConnectOptions {
                read_only: given.read_only,
                create: true,
                autocommit: given.autocommit,
                login_timeout_s,
                text_policy,
                zero_dates,
                far_dates_as_text,
                prepare,
                stream: given.stream,
                guesses_short: true,
                local_infile: given.local_infile,
            },
            cancel: ConnectCancel::default(),
            settings: Settings {
                policy: text_policy,
                converters: converters.unbind(),
                row_factory: given.row_factory,
                limit: TimeLimit::of(given.query_timeout)?,
            },
        })
    }

    fn open(&self) -> Result<Opened, rows::Error> {
        open(&self.target, &self.options, &self.cancel)
    }
}

impl Settings {
    /// Creates the `Connection` object. Warns about each known fault of its driver.
    fn connection(
        self,
        py: Python<'_>,
        (about, notices, names, db): Opened,
    ) -> PyResult<Connection> {
        let connection = Connection {
            db: Some(Arc::new(db)),
            is_returned: AtomicBool::new(false),
            about,
            policy: self.policy,
            generation: process::generation(),
            adapters: PyDict::new(py).unbind(),
            converters: self.converters,
            row_factory: Mutex::new(self.row_factory),
            limit: self.limit,
            names,
        };
        let category = errors::class(py, "DriverWarning")?;
        for notice in notices {
            let notice = CString::new(notice.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &category, &notice, 1)?;
        }
        Ok(connection)
    }
}
