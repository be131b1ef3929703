//! `Cursor`: PEP 249, over pulled rows.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use onecopy_rows::Declared;
use onecopy_rows::arrow::ArrowOptions;
use onecopy_rows::connect::Format;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::arrow::{self, ArrowStream};
use crate::connection::Connection;
use crate::errors;
use crate::fetch::BATCH_ROWS;
use crate::guard::{Guarded, Locked};
use crate::limit::TimeLimit;
use crate::stream::RowStream;

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

    fn open(&self, py: Python<'_>) -> PyResult<Locked<'_, State>> {
        let state = self.state.lock(py)?;
        if state.closed {
            return Err(errors::interface(py, "the cursor is closed"));
        }
        Ok(state)
    }

    /// The state of a cursor that has rows to give.
    #[inline]
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
    /// Args:
    ///     sql: one statement that gives no rows.
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
    #[pyo3(signature = (sql, rows=None, /, *, columns=None))]
    fn executemany<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        rows: Option<&Bound<'py, PyAny>>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().run_many(slf.py(), sql, rows, columns)?;
        Ok(slf)
    }

    /// Puts the rows of a stream of Arrow's into the database, and returns the cursor; ``rowcount`` is their number.
    ///
    /// Args:
    ///     into: a statement with a ``?`` for each column of the stream; or the name of a table, as it is but for a point
    ///         between its schema and itself: then the columns go by their names.
    ///     stream: anything with ``__arrow_c_stream__``: a table of pyarrow's, a data frame, a cursor of another connection.
    ///
    /// Raises:
    ///     Error: as `executemany`; ``error.row`` is the row of the stream that failed, from 0. Those before it are in the
    ///         transaction.
    ///     NotSupportedError: a column has a type that SQL has no like of (a list, a struct).
    ///
    /// Copies: one of each text; no Python object is made for a value.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> cur = con.execute("create table city (id integer, name text)")
    /// >>> cur.insert_arrow("city", con.execute("select 1 as id, 'Zürich' as name")).rowcount
    /// 1
    #[pyo3(signature = (into, stream, /))]
    fn insert_arrow<'py>(
        slf: Bound<'py, Self>,
        into: &Bound<'py, PyString>,
        stream: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let said = slf.get().said(py)?;
        slf.get().change(py, |connection, ledger| {
            connection.insert_arrow(py, into, stream, &said, ledger)
        })?;
        Ok(slf)
    }

    /// Calls a stored procedure or function, and returns a copy of ``parameters`` in which output parameters have their values.
    ///
    /// Args:
    ///     name: its name, with a schema where one is needed; quoted as in SQL where it must be.
    ///     parameters: a value for each parameter; for those of output alone any, ``None`` say.
    ///
    /// Returns:
    ///     A ``list``. Results with rows come by ``fetchall`` and `nextset`; values that come behind them stand in the list when
    ///     `nextset` has passed the last.
    ///
    /// Raises:
    ///     ProgrammingError: there is no such procedure, or it has more or fewer parameters.
    ///     NotSupportedError: SQLite, and databases whose output parameters are not known.
    ///
    /// Source: PEP 249, ``.callproc()``.
    #[pyo3(signature = (name, parameters=None, /))]
    fn callproc<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        parameters: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let parameters = parameters.unwrap_or_else(|| PyTuple::empty(py).into_any());
        py.import("onecopy.procedures")?
            .call_method1("call", (slf, name, parameters))
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

    /// Up to ``size`` rows, or all still to come, as a list of columns: numbers, booleans and timestamps as `Column`, whose
    /// memory can be written to and shared with NumPy; all else as a list of what `fetchall` gives. Behind the last row the
    /// columns are empty. Row factories and converters have no part in it.
    ///
    /// Raises:
    ///     ProgrammingError: there are no rows to fetch, or some were made ahead for `fetchone` or iteration.
    ///     DataError: SQLite: a value is no number where its column has numbers; as `fetchone`.
    ///
    /// Copies: one of each text, into its ``str``.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").execute("select 1 as id, 'Zoë' as name union all select 2, null")
    /// >>> id, name = cur.fetch_columns()
    /// >>> memoryview(id).tolist(), name
    /// ([1, 2], ['Zoë', None])
    #[pyo3(signature = (size=None))]
    fn fetch_columns(&self, py: Python<'_>, size: Option<usize>) -> PyResult<Py<PyList>> {
        self.columns(py, size.unwrap_or(usize::MAX))
    }

    /// The rows as Arrow's batches, for any library that takes them; the cursor itself is such a stream too, with the
    /// defaults.
    ///
    /// Args:
    ///     batch_bytes: about how many bytes a batch takes; 4 MiB where it is left out.
    ///     types: types for columns by their names, as Arrow writes them (``"string"``, ``"decimal128(12, 2)"``,
    ///         ``"timestamp[us]"``), each before what the database says.
    ///
    /// Raises:
    ///     ProgrammingError: rows were fetched already, or a name is no column's.
    ///
    /// Copies: one of each text, into the batch.
    ///
    /// >>> stream = onecopy.connect("sqlite::memory:").execute("select 1 as id").arrow(types={"id": "int32"})
    /// >>> hasattr(stream, "__arrow_c_stream__")
    /// True
    #[pyo3(signature = (*, batch_bytes=None, types=None))]
    fn arrow(
        &self,
        py: Python<'_>,
        batch_bytes: Option<usize>,
        types: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ArrowStream> {
        self.batches(py, &arrow::options(batch_bytes, types)?)
    }

    /// The rows as a stream of Arrow's batches in a capsule: what pyarrow, polars, pandas and duckdb ask a cursor for. It takes
    /// the rows; the statement ends when its reader releases it.
    ///
    /// Args:
    ///     requested_schema: a capsule with the schema that the reader would rather have; see `ArrowStream`.
    ///
    /// Source: Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let described = self.open(py)?.stream.take();
        match described {
            Some(stream) => stream.get().give(py, requested_schema),
            None => {
                let stream = self.batches(py, &ArrowOptions::default())?;
                stream.give(py, requested_schema)
            }
        }
    }

    /// The columns' names and types in a capsule, for readers that ask for them before they ask for the rows. The rows are the
    /// stream's from here on.
    ///
    /// Source: Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let described = self.open(py)?.stream.as_ref().map(|s| s.clone_ref(py));
        let stream = match described {
            Some(stream) => stream,
            None => {
                let stream = self.batches(py, &ArrowOptions::default())?;
                let stream = Py::new(py, stream)?;
                self.open(py)?.stream = Some(stream.clone_ref(py));
                stream
            }
        };
        stream.get().schema(py)
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

    /// Leaves columns of long text or bytes out of the rows to come, and returns the cursor: ``...`` stands in their place, and
    /// `open_text` and `open_binary` read the values of the current row in parts.
    ///
    /// Args:
    ///     columns: names, or indices from 0.
    ///
    /// Raises:
    ///     ProgrammingError: rows were fetched already, there is no such column, or it holds neither text nor bytes.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").execute("select 7 as id, 'a long story' as body").defer("body")
    /// >>> cur.fetchone()
    /// (7, Ellipsis)
    /// >>> cur.open_text("body").read(6)
    /// 'a long'
    #[pyo3(signature = (*columns))]
    fn defer<'py>(
        slf: Bound<'py, Self>,
        columns: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, Self>> {
        let columns: Vec<_> = columns.iter().collect();
        slf.get().leave_out(slf.py(), &columns)?;
        Ok(slf)
    }

    /// Opens the text in a deferred column of the row fetched last: an `io.TextIOBase`, or ``None`` for NULL. It is good until
    /// the next row is fetched or another value is opened, and each value can be opened once.
    ///
    /// Args:
    ///     column: a name, or an index from 0.
    ///
    /// Raises:
    ///     ProgrammingError: the column was not deferred or holds bytes, there is no row, or it was opened before.
    ///
    /// Copies: none besides the conversion to ``str``; SQLite: one. Memory: 64 KiB, and what the driver holds.
    fn open_text(slf: &Bound<'_, Self>, column: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        LongValue::open(slf, column, true)
    }

    /// Opens the bytes in a deferred column of the row fetched last: an `io.BufferedReader`, or ``None`` for NULL. As `open_text`.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").execute("select zeroblob(100000) as picture").defer("picture")
    /// >>> for _ in cur:
    /// ...     with cur.open_binary("picture") as file:
    /// ...         print(len(file.read(8)), len(file.read()))
    /// 8 99992
    fn open_binary(slf: &Bound<'_, Self>, column: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        LongValue::open(slf, column, false)
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
    /// statement without rows. A type code is a ``str`` that equals one of the type objects (``onecopy.NUMBER``, …), and
    /// ``"any"`` for SQLite, where each value has its own type.
    #[getter]
    fn description(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let state = self.state.lock(py)?;
        Ok(state.description.as_ref().map(|d| d.clone_ref(py)))
    }

    /// The names of the columns' types as the database or its driver has them, in lower case: keys of `Connection.converters`.
    /// Empty where it does not tell, and for SQLite.
    #[getter]
    fn type_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.state.lock(py)?.type_names.clone())
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
