//! `Cursor`: PEP 249, over pulled rows.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use onecopy_rows::LongValues;
use onecopy_rows::connect::Format;
use onecopy_text::Stage;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::connection::Connection;
use crate::fetch::{Active, BATCH_ROWS};
use crate::guard::{Guarded, Locked};
use crate::rows::PyRows;
use crate::stream::RowStream;
use crate::{errors, ledger, types};

/// What the last statement left.
#[derive(Default)]
struct State {
    closed: bool,
    /// Its rows; `None` for a statement without rows, and after a stream took them.
    active: Option<Active>,
    n_columns: usize,
    description: Option<Py<PyTuple>>,
    row_count: i64,
    last_row_id: Option<i64>,
    /// Tuples made ahead of `fetchone` and iteration.
    ready: std::vec::IntoIter<Py<PyTuple>>,
    /// How many to make ahead next time: 1, 16, then all, so that the first row comes at once.
    ahead: usize,
    /// An error that came after the rows in `ready`.
    failure: Option<PyErr>,
}

/// A cursor (PEP 249): runs statements and gives their rows as tuples.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct Cursor {
    connection: Py<Connection>,
    arraysize: AtomicUsize,
    state: Guarded<State>,
}

impl Cursor {
    pub(crate) fn new(connection: Py<Connection>) -> Cursor {
        let state = State {
            row_count: -1,
            ..State::default()
        };
        Cursor {
            connection,
            arraysize: AtomicUsize::new(1),
            state: Guarded::new("cursor", state),
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

    pub(crate) fn run(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        parameters: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut state = self.open(py)?;
        *state = State {
            row_count: -1,
            ..State::default()
        };
        let parameters = parameters.unwrap_or_else(|| PyTuple::empty(py).into_any());
        let ledger = ledger::current(py)?;
        let mut statement = self.connection.get().run(py, sql, &parameters, &ledger)?;
        let schema = statement.schema();
        state.n_columns = schema.n_columns();
        state.description = types::description(py, schema)?.map(Bound::unbind);
        let row_count = statement.row_count();
        state.row_count = row_count.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        state.last_row_id = statement.last_row_id();
        if state.n_columns > 0 {
            statement.set_long_values(LongValues::Whole);
            state.active = Some(Active::new(statement));
        } else {
            drop(crate::fetch::Detached::new(statement));
        }
        Ok(())
    }

    pub(crate) fn run_many(
        &self,
        py: Python<'_>,
        sql: &Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut state = self.open(py)?;
        *state = State {
            row_count: -1,
            ..State::default()
        };
        let ledger = ledger::current(py)?;
        let changed = self.connection.get().run_many(py, sql, rows, &ledger)?;
        state.row_count = changed.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        Ok(())
    }

    /// The rows still to come, as a stream of bytes.
    fn stream(&self, py: Python<'_>, format: Format) -> PyResult<RowStream> {
        let mut state = self.with_rows(py)?;
        let active = state.active.take().filter(|_| state.ready.len() == 0);
        let Some(statement) = active.and_then(Active::into_untouched) else {
            return Err(errors::programming(
                py,
                "rows of this statement were fetched already\nexecute it again for a stream of all its rows",
            ));
        };
        let ledger = ledger::current(py)?;
        let source = py.detach(|| statement.into_chunks(format, &ledger));
        RowStream::new(
            py,
            self.connection.clone_ref(py),
            source.map_err(|e| errors::to_py(py, &e))?,
        )
    }

    /// Up to `limit` further rows, handed to `take` in batches; an error comes after the rows before it.
    fn pull<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        limit: usize,
        mut take: impl FnMut(&mut PyRows<'py>) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut sink = PyRows::new(py, state.n_columns, self.connection.get().policy())?;
        let ledger = ledger::current(py)?;
        let mut left = limit;
        let mut last_turn = Instant::now();
        while left > 0 {
            let Some(active) = state.active.as_mut().filter(|a| !a.is_at_end()) else {
                break;
            };
            let pulled = active.pull(py, left.min(BATCH_ROWS), &mut sink);
            sink.fetched.enter(&ledger, Stage::Fetch);
            sink.tally.enter(&ledger, Stage::Decode);
            left -= sink.rows().len();
            take(&mut sink)?;
            pulled?;
            if left > 0 {
                active.between(py, &mut last_turn)?;
            }
        }
        Ok(())
    }

    /// The next row for `fetchone` and iteration.
    #[inline]
    fn next_row(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let mut state = self.with_rows(py)?;
        if let Some(row) = state.ready.next() {
            return Ok(Some(row));
        }
        self.refill(py, &mut state)?;
        Ok(state.ready.next())
    }

    #[cold]
    fn refill(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        state.ahead = (state.ahead * 16).clamp(1, AHEAD_ROWS);
        let mut rows = Vec::with_capacity(state.ahead);
        let ahead = state.ahead;
        let pulled = self.pull(py, state, ahead, |sink| {
            rows.extend(sink.rows().take().map(Bound::unbind));
            Ok(())
        });
        let is_empty = rows.is_empty();
        state.ready = rows.into_iter();
        match pulled {
            // The rows before it come first. What a signal handler raised does not wait.
            Err(failure) if !is_empty && errors::is_ours(py, &failure) => {
                state.failure = Some(failure);
                Ok(())
            }
            pulled => pulled,
        }
    }

    fn fetch(&self, py: Python<'_>, limit: usize) -> PyResult<Py<PyList>> {
        let mut state = self.with_rows(py)?;
        let n_ready = state.ready.len().min(limit);
        let rows = PyList::empty(py);
        for row in state.ready.by_ref().take(n_ready) {
            rows.append(row)?;
        }
        if n_ready < limit {
            if let Some(failure) = state.failure.take() {
                return partial(&mut state, rows, limit, failure);
            }
            let pulled = self.pull(py, &mut state, limit - n_ready, |sink| {
                sink.rows().append_to(&rows)
            });
            if let Err(failure) = pulled {
                return partial(&mut state, rows, limit, failure);
            }
        }
        Ok(rows.unbind())
    }
}

/// What a fetch gives that failed after `rows`: the rows before the failure, and the failure with the next call. One that
/// asked for all rows gives the failure alone: a result cut short would look complete.
fn partial(
    state: &mut State,
    rows: Bound<'_, PyList>,
    limit: usize,
    failure: PyErr,
) -> PyResult<Py<PyList>> {
    if limit == usize::MAX || rows.is_empty() || !errors::is_ours(rows.py(), &failure) {
        return Err(failure);
    }
    state.failure = Some(failure);
    Ok(rows.unbind())
}

/// At most this many rows are made ahead of iteration: enough to spread a call over, few enough to stay in cache.
const AHEAD_ROWS: usize = 256;

#[pymethods]
impl Cursor {
    /// Runs one statement with its parameters bound, and returns the cursor.
    ///
    /// Args:
    ///     sql: one statement; parameters are written ``?``.
    ///     parameters: a sequence of None, bool, int, float, str, bytes (any buffer), Decimal, date, time, datetime, UUID.
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
    #[pyo3(signature = (sql, parameters=None, /))]
    fn execute<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        parameters: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().run(slf.py(), sql, parameters)?;
        Ok(slf)
    }

    /// Runs one statement for each row of parameters, and returns the cursor; ``rowcount`` is the sum.
    ///
    /// Args:
    ///     sql: one statement that gives no rows.
    ///     rows: any iterable of rows of parameters; 1,024 are read ahead.
    ///
    /// Raises:
    ///     Error: as `execute`; ``error.row`` is the row of parameters that failed, from 0. Those before it are in the
    ///         transaction.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> _ = con.execute("create table t (a)")
    /// >>> con.cursor().executemany("insert into t values (?)", ([i] for i in range(3))).rowcount
    /// 3
    #[pyo3(signature = (sql, rows, /))]
    fn executemany<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().run_many(slf.py(), sql, rows)?;
        Ok(slf)
    }

    /// The next row, or ``None`` after the last one. Copies: one of each text, into its ``str``.
    ///
    /// Raises:
    ///     ProgrammingError: there are no rows to fetch.
    ///     DataError: text is malformed, or Python has no such value; ``error.row`` and ``error.column`` say where.
    fn fetchone(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
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

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        self.next_row(py)
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

    /// Does nothing (PEP 249 lets it): sizes come from the values.
    #[pyo3(signature = (sizes, /))]
    fn setinputsizes(&self, sizes: &Bound<'_, PyAny>) {
        let _ = sizes;
    }

    /// Does nothing (PEP 249 lets it): long values always come whole.
    #[pyo3(signature = (size, column=None, /))]
    fn setoutputsize(&self, size: &Bound<'_, PyAny>, column: Option<&Bound<'_, PyAny>>) {
        let _ = (size, column);
    }

    /// Closes the cursor; closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        *state = State {
            closed: true,
            row_count: -1,
            ..State::default()
        };
        Ok(())
    }
}
