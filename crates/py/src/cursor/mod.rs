//! `Cursor`: PEP 249, over pulled rows.

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
use crate::pull::BATCH_ROWS;
use crate::stream::RowStream;
use crate::{errors, types};

mod arrow;
mod bson;
mod call;
mod long;
mod pulled;
mod running;

pub(crate) use call::run_call;
pub(crate) use long::LongValue;
use pulled::State;

/// A cursor (PEP 249): runs statements and gives their rows as tuples.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct Cursor {
    connection: Py<Connection>,
    arraysize: AtomicUsize,
    row_factory: Guarded<Option<Py<PyAny>>>,
    /// Functions for the values of single columns.
    converters: PyOnceLock<Py<PyDict>>,
    /// Results begun: a row is known by its result and its number.
    n_results: AtomicU64,
    /// What `setinputsizes` said for the next statement.
    declared: Guarded<Vec<Option<Declared>>>,
    limit: TimeLimit,
    state: Guarded<State>,
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
            state: Guarded::new("cursor", State::nothing()),
        }
    }

    #[inline(always)]
    fn open(&self, py: Python<'_>) -> PyResult<Locked<'_, State>> {
        let state = self.state.lock(py)?;
        if state.closed {
            return Err(errors::interface(py, "the cursor is closed"));
        }
        self.connection.get().check_lent(py)?;
        Ok(state)
    }

    /// The state of a cursor that has rows to give.
    #[inline(always)]
    fn with_rows(&self, py: Python<'_>) -> PyResult<Locked<'_, State>> {
        let state = self.open(py)?;
        if state.active.is_none() {
            return Err(errors::programming(
                py,
                "there are no rows to fetch: the last statement gave none, or a stream took them",
            ));
        }
        Ok(state)
    }
}

#[pymethods]
impl Cursor {
    /// Runs one statement with its parameters bound, and returns the cursor.
    ///
    /// Args:
    ///     sql: one statement; parameters are written ``?``, or ``:name`` and ``%(name)s``.
    ///     parameters: a sequence for ``?``, a mapping for names (what it has besides is left alone), of None, bool, int,
    ///         float, str, bytes (any buffer), Decimal, date, time, datetime, timedelta, UUID, and what
    ///         `Connection.adapters` knows.
    ///     defer: columns of long values that are left out of rows: see `defer`. Said here, a driver that asks for rows some at a
    ///         time (PostgreSQL) asks for one.
    ///
    /// Raises:
    ///     ProgrammingError: the statement is wrong, or there are more or fewer parameters than ``?``.
    ///     DataError: a parameter holds a lone surrogate, or a value that no SQL type holds.
    ///     TypeError: a parameter is of another type.
    ///
    /// Copies: one of each text, to UTF-8; no cache is left behind the ``str``.
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

    /// Runs one statement for each row of parameters, and returns the cursor; ``rowcount`` is the sum.
    ///
    /// A statement that returns rows (``returning``, ``output`` in SQL Server) has one result for each row of parameters, in
    /// their order: the cursor is on the first, and ``nextset`` goes to the next. All of them are kept in memory (one copy
    /// of their text); with autocommit on, nothing of it stays if a row fails.
    ///
    /// Args:
    ///     sql: one INSERT, UPDATE, DELETE, REPLACE or MERGE.
    ///     rows: any iterable of rows of parameters, all sequences or all mappings. They are read ahead in batches of
    ///         1,024 (less where their text takes more than 1 MiB): the next ones are made while the database takes those before.
    ///     columns: in place of rows, a column of values for each ``?``, all of one length: an array of one dimension (a
    ///         `Column`, NumPy's, ``array.array``, ``memoryview``) of integers, floats, booleans or ``datetime64``; a pair of
    ///         such a one and a mask that is true where it is NULL; or a sequence of values. No Python object is made for a
    ///         number of an array.
    ///
    /// Raises:
    ///     Error: as `execute`; ``error.row`` is the row of parameters that failed, from 0. Those before it are in the
    ///         transaction.
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
        Cursor::run_many(&slf, sql, rows, columns)?;
        Ok(slf)
    }

    /// The next row, or ``None`` after the last one. Copies: one of each text, into its ``str``.
    ///
    /// Raises:
    ///     ProgrammingError: there are no rows to fetch.
    ///     DataError: text is malformed, or Python has no such value; ``error.row`` and ``error.column`` say where.
    fn fetchone(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next_row(py)
    }

    /// Up to ``size`` rows (``arraysize`` where it is left out): fewer at the end, or before a row that fails, whose error
    /// the next call raises.
    #[pyo3(signature = (size=None))]
    fn fetchmany(&self, py: Python<'_>, size: Option<usize>) -> PyResult<Py<PyList>> {
        self.fetch(py, size.unwrap_or_else(|| self.arraysize.load(Relaxed)))
    }

    /// All rows still to come. Where one fails, none are given.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1, 2.5, 'é', x'00', null").fetchall()
    /// [(1, 2.5, 'é', b'\x00', None)]
    fn fetchall(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        self.fetch(py, usize::MAX)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next_row(py)
    }

    /// Goes to the next result with rows, where a text of several statements or a procedure gives more than one: ``True``, or
    /// ``None`` where there is none. Rows left of the current one are given up, results without rows are passed.
    ///
    /// Raises:
    ///     Error: of the statements in between, some of which may run only now.
    ///
    /// Source: PEP 249, ``.nextset()``.
    fn nextset(slf: &Bound<'_, Self>) -> PyResult<Option<bool>> {
        let (py, cursor) = (slf.py(), slf.get());
        let mut state = cursor.open(py)?;
        let Some(active) = state.active.take() else {
            return Ok(None);
        };
        *state = State {
            outputs: state.outputs.take(),
            ..State::nothing()
        };
        let Some(statement) = active.into_next(py)? else {
            return Ok(None);
        };
        cursor.begin_result(slf, state, statement)?;
        Ok((!cursor.settle(py)?).then_some(true))
    }

    /// Passes ``value`` rows (``mode="relative"``), or all before the row of that index (``"absolute"``). Cursors go forward.
    ///
    /// Raises:
    ///     IndexError: there are fewer rows.
    ///     NotSupportedError: it would go back.
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
            let message = "a cursor goes forward alone\nexecute the statement again, or keep the rows that are needed twice";
            let error = onecopy_rows::Error::new(onecopy_rows::ErrorKind::NotSupported, message);
            return Err(errors::to_py(py, &error));
        };
        let mut left = n;
        while left > 0 {
            let mut state = self.with_rows(py)?;
            let n_passed = self
                .fetch_tuples(py, &mut state, left.min(BATCH_ROWS))?
                .len();
            state.n_taken += n_passed;
            if n_passed == 0 {
                return Err(PyIndexError::new_err("there are fewer rows"));
            }
            left -= n_passed;
        }
        Ok(())
    }

    /// The rows as one JSON array of objects (RFC 8259), as a `RowStream`; no Python object is made for a cell.
    ///
    /// Raises:
    ///     ProgrammingError: two columns have the same name or one has none, or rows were fetched already.
    ///
    /// Copies: none; each cell is converted once, into the chunk that goes out.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id, 'Zoë' as name").json().read().decode()
    /// '[{"id":1,"name":"Zoë"}]'
    fn json(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.stream(py, Format::Json)
    }

    /// The rows as one JSON object a line, as a `RowStream`: as `json`.
    ///
    /// >>> for chunk in onecopy.connect("sqlite::memory:").execute("select 1 as id").ndjson():
    /// ...     print(chunk)
    /// b'{"id":1}\n'
    fn ndjson(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.stream(py, Format::Ndjson)
    }

    /// The rows as CSV with a header line (RFC 4180), as a `RowStream`.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id, 'a,b' as name").csv().read()
    /// b'id,name\n1,"a,b"\n'
    fn csv(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.stream(py, Format::Csv)
    }

    /// For each column a tuple of name, type code, None, size, precision, scale, and whether NULL may occur; ``None`` for a
    /// statement without rows. A type code is a ``str`` that equals one of the type objects (``onecopy.NUMBER``, …). In
    /// SQLite each value has its own type: the code is that of the declared type's affinity, or ``"any"``.
    #[getter]
    fn description(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let mut state = self.state.lock(py)?;
        if state.description.is_none() {
            state.description = types::description(py, &state.schema)?.map(Bound::unbind);
        }
        Ok(state.description.as_ref().map(|d| d.clone_ref(py)))
    }

    /// The names of the columns' types as the database or its driver has them, in lower case: keys of `Connection.converters`.
    /// Empty where it does not tell, and for SQLite.
    #[getter]
    fn type_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let columns = &self.state.lock(py)?.schema.columns;
        Ok(columns.iter().map(|c| c.type_name.to_lowercase()).collect())
    }

    /// Rows inserted, changed or deleted by the last statement; -1 where the database does not tell, and for queries.
    #[getter]
    fn rowcount(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.state.lock(py)?.row_count)
    }

    /// Row id of the last row that the last statement inserted (SQLite), or ``None``.
    #[getter]
    fn lastrowid(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.state.lock(py)?.last_row_id)
    }

    /// Index (from 0) of the next row of the result, or ``None`` where there is none.
    #[getter]
    fn rownumber(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let state = self.state.lock(py)?;
        Ok(state.active.as_ref().map(|_| state.n_taken))
    }

    /// What the database said beside the results of the last call (warnings, notices, what a procedure printed): a list of
    /// tuples of `Warning` and an instance of it.
    ///
    /// Source: PEP 249, ``.messages``.
    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        let state = self.state.lock(py)?;
        Ok(PyList::new(py, &state.messages)?.unbind())
    }

    /// What rows of this cursor are, from the next statement on: see `Connection.row_factory`.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.row_factory.lock(py)?.as_ref().map(|f| f.clone_ref(py)))
    }

    #[setter]
    fn set_row_factory(&self, py: Python<'_>, row_factory: Option<Py<PyAny>>) -> PyResult<()> {
        let before = std::mem::replace(&mut *self.row_factory.lock(py)?, row_factory);
        drop(before); // Code may run here: behind the lock.
        Ok(())
    }

    /// A dict of functions that the values of columns are given to on their way into rows, from the next statement on: by name or
    /// index (from 0). NULL stays ``None``.
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

    /// Rows that `fetchmany` gives by default.
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

    /// The connection.
    #[getter]
    fn connection(&self, py: Python<'_>) -> Py<Connection> {
        self.connection.clone_ref(py)
    }

    /// Seconds that a statement may take, from the next one on: as `Connection.timeout`, which it is at first.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.limit.seconds()
    }

    #[setter]
    fn set_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        self.limit.set(seconds)
    }

    /// Tells types and sizes of the next statement's parameters, which otherwise come from the values: that of a NULL above all.
    ///
    /// Args:
    ///     sizes: for each parameter ``None``, a type object (``onecopy.NUMBER``), a type code (``"decimal"``), a class, a size
    ///         in characters or bytes, or a tuple of type, size and digits. Never makes a value shorter.
    ///
    /// Source: PEP 249, ``.setinputsizes()``; SQLite has no types of parameters.
    #[pyo3(signature = (sizes, /))]
    fn setinputsizes(&self, py: Python<'_>, sizes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.declare(py, sizes)
    }

    /// Does nothing (PEP 249 lets it): long values come whole, or part by part where they are deferred.
    #[pyo3(signature = (size, column=None, /))]
    fn setoutputsize(&self, size: &Bound<'_, PyAny>, column: Option<&Bound<'_, PyAny>>) {
        let _ = (size, column);
    }

    /// Closes the cursor; closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        *state = State {
            closed: true,
            ..State::nothing()
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
