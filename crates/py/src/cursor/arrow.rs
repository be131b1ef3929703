//! Methods of `Cursor` that return and insert Arrow batches.

use onecopy_rows::arrow::ArrowOptions;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};

use super::Cursor;
use crate::arrow::{self, ArrowStream};
use crate::pending::PendingCall;

#[pymethods]
impl Cursor {
    /// Inserts the rows of an Arrow stream into the database, and returns the cursor. Its
    /// ``rowcount`` is the number of inserted rows.
    ///
    /// Args:
    ///     into: a statement with a ``?`` for each column of the stream, or the name of a table.
    ///         The name is quoted as a whole, but a dot separates schema and table. The columns of
    ///         the stream and of the table are matched by name.
    ///     stream: any object with ``__arrow_c_stream__``: a table of pyarrow, a data frame, a
    ///         cursor of another connection.
    ///
    /// Raises:
    ///     Error: as for `executemany`; ``error.row`` is the index, from 0, of the row that failed.
    ///         The rows before it have been inserted in the transaction.
    ///     NotSupportedError: a column has a type without an equivalent in SQL (a list, a struct).
    /// Copies: each string is copied once; no Python object is created for a value.
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
        Cursor::run_reading(&slf, |connection, _, ledger| {
            connection.for_arrow(slf.py(), into, stream, ledger)
        })?;
        Ok(slf)
    }

    /// Starts `insert_arrow`, and returns a `PendingCall` for an event loop.
    fn _begin_insert_arrow(
        slf: &Bound<'_, Self>,
        into: &Bound<'_, PyString>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<PendingCall> {
        Cursor::begin_reading(slf, |connection, _, ledger| {
            connection.for_arrow(slf.py(), into, stream, ledger)
        })
    }

    /// Returns up to ``size`` rows, or all remaining rows, as a list of columns. A column of
    /// numbers, booleans or timestamps is a `Column`; NumPy can share its writable memory. Any
    /// other column is a list of values as in `fetchall`. If no rows are left, the columns are
    /// empty. Row factories and converters are not applied.
    ///
    /// Raises:
    ///     ProgrammingError: there are no rows to fetch, some were prefetched for `fetchone` or
    ///         iteration, or columns were deferred.
    ///     DataError: as for `fetchone`; for SQLite also if a column of numbers contains a value
    ///         that is not a number.
    ///
    /// Copies: each string is copied once, into its ``str``.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").execute("select 1 as id, 'Zoë' as name union all select 2, null")
    /// >>> id, name = cur.fetch_columns()
    /// >>> memoryview(id).tolist(), name
    /// ([1, 2], ['Zoë', None])
    #[pyo3(signature = (size=None))]
    fn fetch_columns(&self, py: Python<'_>, size: Option<usize>) -> PyResult<Py<PyList>> {
        self.columns(py, size.unwrap_or(usize::MAX))
    }

    /// Returns the rows as a stream of Arrow batches, for any library that reads Arrow. The cursor
    /// itself can also be passed to such a library, with the default options.
    ///
    /// Args:
    ///     batch_bytes: the approximate size of a batch in bytes; 4 MiB by default.
    ///     types: a dict from column names to Arrow types (``"string"``, ``"decimal128(12, 2)"``,
    ///         ``"timestamp[us]"``). Each type overrides the type that the database reports.
    ///
    /// Raises:
    ///     ProgrammingError: rows were fetched already, or a name is not the name of a column.
    ///
    /// Copies: each string is copied once, into the batch.
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

    /// Returns a capsule with the rows as a stream of Arrow batches. pyarrow, polars, pandas and
    /// duckdb call this method. The cursor then has no rows left. The statement ends when the
    /// reader releases the stream.
    ///
    /// Args:
    ///     requested_schema: a capsule with the schema that the reader prefers; see `ArrowStream`.
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

    /// Returns a capsule with the names and types of the columns, for readers that request them
    /// first. After this call, the rows can only be read as an Arrow stream.
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
}
