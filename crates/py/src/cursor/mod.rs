//! `Cursor` (PEP 249): executes statements and returns rows.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use onecopy_rows::Declared;
use onecopy_rows::Format;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::connection::Connection;
use crate::guard::{Guarded, Locked};
use crate::limit::TimeLimit;
use crate::next_rows::BATCH_ROWS;
use crate::stream::RowStream;
use crate::{errors, types};

mod arrow;
mod bson;
mod call;
mod copy;
mod current_rows;
mod event_loop;
mod execute;
mod long_value;

pub(crate) use copy::CopyOut;
use current_rows::{CursorState, Receiving};
pub(crate) use event_loop::PendingColumns;
pub(crate) use execute::executemany;
pub(crate) use long_value::LongValue;

/// A cursor (PEP 249): executes statements and returns their rows as tuples.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct Cursor {
    connection: Py<Connection>,
    arraysize: AtomicUsize,
    row_factory: Guarded<Option<Py<PyAny>>>,
    /// The functions that convert values. A key is the name or the index of a column.
    converters: PyOnceLock<Py<PyDict>>,
    /// The number of results of this cursor so far. It identifies the current result.
    n_results: AtomicU64,
    /// The parameter types from `setinputsizes`.
    declared: Guarded<Vec<Option<Declared>>>,
    limit: TimeLimit,
    state: Guarded<CursorState>,
}

impl Cursor {
    pub(crate) fn new(py: Python<'_>, connection: Py<Connection>) -> Cursor {
        let row_factory = connection.get().row_factory(py);
        let limit = connection.get().limit.copy();
        Cursor {
            connection,
            arraysize: AtomicUsize::new(1),
            row_factory: Guarded::new("cursor", row_factory),
            converters: PyOnceLock::new(),
            n_results: AtomicU64::new(0),
            declared: Guarded::new("cursor", Vec::new()),
            limit,
            state: Guarded::new("cursor", CursorState::nothing()),
        }
    }

    #[inline(always)]
    fn open(&self, py: Python<'_>) -> PyResult<Locked<'_, CursorState>> {
        let state = self.state.lock(py)?;
        if state.closed {
            return Err(errors::interface(py, "the cursor is closed"));
        }
        self.connection.get().check_lent(py)?;
        Ok(state)
    }

    /// Skips at most `n` rows, and returns their number.
    ///
    /// # Errors
    /// `IndexError` if no rows are left.
    fn skip(&self, py: Python<'_>, n: usize, receiving: Receiving) -> PyResult<usize> {
        let mut state = self.with_rows(py)?;
        let rows = self.fetch_tuples(py, &mut state, n.min(BATCH_ROWS), receiving)?;
        state.n_taken += rows.len();
        match rows.len() {
            0 => Err(PyIndexError::new_err("there are fewer rows")),
            n => Ok(n),
        }
    }

    /// Locks the state. Fails if the cursor has no rows.
    #[inline(always)]
    fn with_rows(&self, py: Python<'_>) -> PyResult<Locked<'_, CursorState>> {
        let state = self.open(py)?;
        if state.active.is_none() {
            return Err(errors::programming(
                py,
                "there are no rows to fetch: the last statement returned none, or a stream has taken them",
            ));
        }
        Ok(state)
    }
}

#[pymethods]
impl Cursor {
    /// Executes one statement with bound parameters, and returns the cursor.
    ///
    /// Args:
    ///     sql: one statement. Its parameters are written as ``?``, or as ``:name`` or
    ///         ``%(name)s``.
    ///     parameters: a sequence of values for ``?``, or a mapping from names to values (other
    ///         keys are ignored). Accepted values: None, bool, int, float, str, bytes (any buffer),
    ///         Decimal, date, time, datetime, timedelta, UUID, and the types of
    ///         `Connection.adapters`.
    ///     defer: columns of long values that are omitted from rows: see `defer`. With ``defer``, a
    ///         driver that requests rows in batches (PostgreSQL) requests one row at a time.
    ///
    /// Raises:
    ///     ProgrammingError: the statement is invalid, or the number of values differs from the
    ///         number of ``?``.
    ///     DataError: a parameter contains a lone surrogate, or a value that no SQL type can
    ///         represent.
    ///     TypeError: a parameter has an unsupported type.
    ///
    /// Copies: each ``str`` is copied once, to UTF-8. The ``str`` does not cache it.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").cursor()
    /// >>> cur.execute("select ? || ?", ["Ær", "ø"]).fetchone()
    /// ('Ærø',)
    /// >>> cur.execute("select :a, ':a', %(b)s", {"a": 1, "b": 2}).fetchone()
    /// (1, ':a', 2)
    #[pyo3(signature = (sql, parameters=None, /, *, defer=Vec::new()))]
    fn execute<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        parameters: Option<Bound<'py, PyAny>>,
        defer: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        Cursor::run(&slf, sql, parameters, &defer)?;
        Ok(slf)
    }

    /// Executes one statement for each row of parameters, and returns the cursor. ``rowcount`` is
    /// the total number of changed rows.
    ///
    /// A statement that returns rows (``returning``, ``output`` in SQL Server) has one result for
    /// each row of parameters, in the same order. The cursor starts at the first result, and
    /// ``nextset`` advances to the next. All results are in memory, with one copy of their text. If
    /// autocommit is on and a row fails, no row is changed.
    ///
    /// Args:
    ///     sql: one INSERT, UPDATE, DELETE, REPLACE or MERGE.
    ///     rows: any iterable of rows of parameters, either all sequences or all mappings. They are
    ///         read in batches of 1,024 rows (fewer if their text exceeds 1 MiB). While the
    ///         database executes a batch, the next one is prepared.
    ///     columns: instead of rows, a column of values for each ``?``, all of the same length. A
    ///         column is a one-dimensional array (a `Column`, a NumPy array, ``array.array`` or
    ///         ``memoryview``) of integers, floats, booleans or ``datetime64``; a pair of such an
    ///         array and a mask that is true for NULL; or a sequence of values. No Python objects
    ///         are created for the numbers in an array.
    ///
    /// Raises:
    ///     Error: as for `execute`; ``error.row`` is the index, from 0, of the row of parameters
    ///         that failed. The rows before it have been executed in the transaction.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> _ = con.execute("create table t (a)")
    /// >>> con.cursor().executemany("insert into t values (?)", ([i] for i in range(3))).rowcount
    /// 3
    /// >>> import array
    /// >>> columns = [array.array("q", [3, 4]), ["Ær", None]]
    /// >>> con.execute("create table u (i, t)").executemany("insert into u values (?, ?)", columns=columns).rowcount
    /// 2
    /// >>> cur = con.cursor().executemany("insert into u values (?, 'x') returning i", [[7], [8]])
    /// >>> cur.fetchall(), cur.nextset(), cur.fetchall(), cur.nextset()
    /// ([(7,)], True, [(8,)], None)
    #[pyo3(signature = (sql, rows=None, /, *, columns=None))]
    fn executemany<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        rows: Option<&Bound<'py, PyAny>>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        Cursor::run_reading(&slf, executemany(sql, rows, columns))?;
        Ok(slf)
    }

    /// Returns the next row, or ``None`` after the last one. Copies: each string is copied once,
    /// into its ``str``.
    ///
    /// Raises:
    ///     ProgrammingError: there are no rows to fetch.
    ///     DataError: text is malformed, or Python cannot represent the value; ``error.row`` and
    ///         ``error.column`` are the position of the value.
    fn fetchone(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next_row(py)
    }

    /// Returns the next ``size`` rows (by default ``arraysize``). It returns fewer rows at the end,
    /// or before a row that fails. The next call then raises the error.
    #[pyo3(signature = (size=None))]
    fn fetchmany(&self, py: Python<'_>, size: Option<usize>) -> PyResult<Py<PyList>> {
        let size = size.unwrap_or_else(|| self.arraysize.load(Relaxed));
        self.fetch(py, size, Receiving::AsNeeded)
    }

    /// Returns all remaining rows. If one of them fails, raises its error and returns no rows.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1, 2.5, 'é', x'00', null").fetchall()
    /// [(1, 2.5, 'é', b'\x00', None)]
    fn fetchall(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        self.fetch(py, usize::MAX, Receiving::AsNeeded)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next_row(py)
    }

    /// Discards the remaining rows, and advances to the next result that has rows. Several
    /// statements and procedures can have several results. Returns ``True``, or ``None`` if no such
    /// result is left.
    ///
    /// Raises:
    ///     Error: one of the later statements failed. Some databases execute these statements only
    ///         when this method is called.
    ///
    /// Source: PEP 249, ``.nextset()``.
    fn nextset(slf: &Bound<'_, Self>) -> PyResult<Option<bool>> {
        let (py, cursor) = (slf.py(), slf.get());
        let (state, active) = cursor.leave_result(py)?;
        let Some(statement) = active.map_or(Ok(None), |active| active.into_next(py))? else {
            return Ok(None);
        };
        cursor.begin_result(slf, state, statement, false)?;
        let is_output = cursor.settle(py, Receiving::AsNeeded)? == Some(true);
        Ok((!is_output).then_some(true))
    }

    /// Skips ``value`` rows (``mode="relative"``), or moves to the row with this index
    /// (``"absolute"``). A cursor can only move forward.
    ///
    /// Raises:
    ///     IndexError: there are fewer rows.
    ///     NotSupportedError: the cursor would move backward.
    #[pyo3(signature = (value, mode="relative", /))]
    fn scroll(&self, py: Python<'_>, value: i64, mode: &str) -> PyResult<()> {
        let n_taken = self.with_rows(py)?.n_taken as i64;
        let n = match mode {
            "relative" => value,
            "absolute" => value - n_taken,
            _ => {
                return Err(PyValueError::new_err(
                    "`mode` is neither \"relative\" nor \"absolute\"",
                ));
            }
        };
        let Ok(n) = usize::try_from(n) else {
            let message = "a cursor only moves forward\n\
                           execute the statement again, or keep the rows that are needed twice";
            let error = onecopy_rows::Error::new(onecopy_rows::ErrorKind::NotSupported, message);
            return Err(errors::to_py(py, &error));
        };
        let mut left = n;
        while left > 0 {
            left -= self.skip(py, left, Receiving::AsNeeded)?;
        }
        Ok(())
    }

    /// Returns the rows as one JSON array of objects (RFC 8259), as a `RowStream`. No Python object
    /// is created for a cell.
    ///
    /// Raises:
    ///     ProgrammingError: two columns have the same name, a column has no name, or rows were
    ///         fetched already.
    ///
    /// Copies: none. Each cell is converted once, into the returned chunk.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id, 'Zoë' as name").json().read().decode()
    /// '[{"id":1,"name":"Zoë"}]'
    fn json(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.stream(py, Format::Json)
    }

    /// Returns the rows as one JSON object per line, as a `RowStream`; see `json`.
    ///
    /// >>> for chunk in onecopy.connect("sqlite::memory:").execute("select 1 as id").ndjson():
    /// ...     print(chunk)
    /// b'{"id":1}\n'
    fn ndjson(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.stream(py, Format::Ndjson)
    }

    /// Returns the rows as CSV with a header line (RFC 4180), as a `RowStream`.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id, 'a,b' as name").csv().read()
    /// b'id,name\n1,"a,b"\n'
    fn csv(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.stream(py, Format::Csv)
    }

    /// A tuple for each column: name, type code, None, size, precision, scale, and whether it may
    /// contain NULL. It is ``None`` for a statement without rows. A type code is a ``str`` that
    /// equals a type object (``onecopy.NUMBER``, …). In SQLite, it is derived from the affinity of
    /// the declared type, or is ``"any"``.
    #[getter]
    fn description(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let mut state = self.state.lock(py)?;
        if state.description.is_none() {
            state.description = types::description(py, &state.schema)?.map(Bound::unbind);
        }
        Ok(state.description.as_ref().map(|d| d.clone_ref(py)))
    }

    /// The type names of the columns in lower case, as the database reports them. They are the keys
    /// of `Connection.converters`. In SQLite, the name is the declared type. A name is empty if it
    /// is not reported, for example for an expression in SQLite.
    #[getter]
    fn type_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let columns = &self.state.lock(py)?.schema.columns;
        Ok(columns.iter().map(|c| c.type_name.to_lowercase()).collect())
    }

    /// The number of rows that the last statement inserted, changed or deleted. It is -1 for
    /// queries, or if the database does not report it.
    #[getter]
    fn rowcount(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.state.lock(py)?.row_count)
    }

    /// The row id of the last row that the last statement inserted (SQLite), or ``None``.
    #[getter]
    fn lastrowid(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.state.lock(py)?.last_row_id)
    }

    /// The index (from 0) of the next row, or ``None`` if there is no result.
    #[getter]
    fn rownumber(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let state = self.state.lock(py)?;
        Ok(state.active.as_ref().map(|_| state.n_taken))
    }

    /// The warnings, notices and procedure output of the last call, as a list. Each item is a tuple
    /// of the class `Warning` and an instance of it.
    ///
    /// Source: PEP 249, ``.messages``.
    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        let state = self.state.lock(py)?;
        Ok(PyList::new(py, &state.messages)?.unbind())
    }

    /// The row factory of this cursor: see `Connection.row_factory`. A new value applies from the
    /// next statement on.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.row_factory.lock(py)?.as_ref().map(|f| f.clone_ref(py)))
    }

    #[setter]
    fn set_row_factory(&self, py: Python<'_>, row_factory: Option<Py<PyAny>>) -> PyResult<()> {
        let before = std::mem::replace(&mut *self.row_factory.lock(py)?, row_factory);
        drop(before); // may run Python code, so the lock was released
        Ok(())
    }

    /// A dict of functions that convert values. A key is the name or the index (from 0) of a
    /// column. Changes apply from the next statement on. NULL remains ``None``.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").cursor()
    /// >>> cur.converters["at"] = onecopy.json.loads
    /// >>> cur.execute("select '[47.4,8.5]' as at").fetchone()
    /// ([47.4, 8.5],)
    #[getter]
    fn converters(&self, py: Python<'_>) -> Py<PyDict> {
        let dict = self.converters.get_or_init(py, || PyDict::new(py).unbind());
        dict.clone_ref(py)
    }

    /// The number of rows that `fetchmany` returns by default.
    #[getter]
    fn arraysize(&self) -> usize {
        self.arraysize.load(Relaxed)
    }

    #[setter]
    fn set_arraysize(&self, size: usize) -> PyResult<()> {
        if size == 0 {
            return Err(PyValueError::new_err("`arraysize` is at least 1"));
        }
        self.arraysize.store(size, Relaxed);
        Ok(())
    }

    /// The connection that created the cursor.
    #[getter]
    fn connection(&self, py: Python<'_>) -> Py<Connection> {
        self.connection.clone_ref(py)
    }

    /// The time limit in seconds for the execution of a statement and for each fetch. A new value
    /// applies from the next statement on. The initial value is `Connection.query_timeout`.
    #[getter]
    fn query_timeout(&self) -> Option<f64> {
        self.limit.seconds()
    }

    #[setter]
    fn set_query_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        self.limit.set(seconds)
    }

    /// Sets the types and sizes of the next statement's parameters. Without this call, the values
    /// determine the types. A call is useful if a parameter is NULL, which has no type.
    ///
    /// Args:
    ///     sizes: for each parameter ``None``, a type object (``onecopy.NUMBER``), a type code
    ///         (``"decimal"``), a class, a size in characters or bytes, or a tuple of type, size
    ///         and digits. A size never truncates a value.
    ///
    /// Source: PEP 249, ``.setinputsizes()``. SQLite's parameters have no types.
    #[pyo3(signature = (sizes, /))]
    fn setinputsizes(&self, py: Python<'_>, sizes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.declare(py, sizes)
    }

    /// Does nothing, as PEP 249 permits. Long values are returned whole, or read in parts after
    /// `defer`.
    #[pyo3(signature = (size, column=None, /))]
    fn setoutputsize(&self, size: &Bound<'_, PyAny>, column: Option<&Bound<'_, PyAny>>) {
        let _ = (size, column);
    }

    /// Closes the cursor. Closing twice is not an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        *state = CursorState {
            closed: true,
            ..CursorState::nothing()
        };
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
