//! `Cursor`: rows as Arrow's batches and as columns, and Arrow's batches as parameters.

use onecopy_rows::arrow::ArrowOptions;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};

use super::Cursor;
use crate::arrow::{self, ArrowStream};

#[pymethods]
impl Cursor {
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
}
