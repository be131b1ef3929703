//! `ArrowStream`: a cursor's rows for any library that knows Arrow's C interface.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use onecopy_rows::arrow::{self, ArrowOptions, Batch, DataType, Field};
use onecopy_rows::arrow_c::Batches;
use onecopy_rows::{Error, ErrorKind};
use onecopy_text::Tally;
use onecopy_wire::CancelHandle;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::connection::Connection;
use crate::errors;
use crate::fetch::Detached;
use crate::guard::Guarded;
use crate::parameters;
use crate::raw::{self, ending, interrupt, process};

/// What is known of a stream wherever it is.
#[derive(Default)]
struct Seen {
    n_rows: AtomicU64,
    failure: Mutex<Option<Error>>,
}

/// A stream in other hands: it keeps the connection, and ends the statement when it is released.
struct Given {
    stream: Option<Detached<arrow::ArrowStream>>,
    seen: Arc<Seen>,
    generation: u32,
    _connection: Py<Connection>,
}

impl Given {
    /// Runs `work` with the GIL released, if this thread holds it; on the main thread Ctrl-C cancels it.
    fn run<T: Send>(
        &mut self,
        work: impl FnOnce(&mut arrow::ArrowStream) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        if self.generation != process::generation() {
            let message = "this stream was opened in another process (before a fork)\nopen one in this process";
            return Err(Error::new(ErrorKind::Interface, message));
        }
        let stream = self.stream.as_mut();
        let stream = stream.expect("it is taken in `drop` alone").inner();
        let cancel = stream.cancel_handle();
        let done = interrupt::anywhere(|| cancel, || work(stream));
        if let Err(error) = &done {
            let failure = self.seen.failure.lock();
            *failure.unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        }
        done
    }
}

impl Batches for Given {
    fn fields(&mut self) -> Result<Vec<Field>, Error> {
        self.run(arrow::ArrowStream::fields)
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        let batch = self.run(arrow::ArrowStream::next_batch)?;
        if let Some(batch) = &batch {
            self.seen.n_rows.fetch_add(batch.n_rows as u64, Relaxed);
        }
        Ok(batch)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            // Leaked in a forked child: closing it would say goodbye on the parent's socket.
            std::mem::forget(self.stream.take());
        }
    }
}

/// The rows of a statement as a stream of Arrow's batches, for any library that takes ``__arrow_c_stream__``: pyarrow, polars,
/// pandas, duckdb, …. None of them is needed to make it.
///
/// It is given once. Batches are made as they are asked for, and each is the reader's own; the statement ends when the reader
/// releases the stream. A stream that fails says so to its reader and never just ends; `error` has the exception.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct ArrowStream {
    connection: Py<Connection>,
    stream: Guarded<Option<Detached<arrow::ArrowStream>>>,
    seen: Arc<Seen>,
    cancel: CancelHandle,
}

impl ArrowStream {
    pub(crate) fn new(connection: Py<Connection>, stream: arrow::ArrowStream) -> ArrowStream {
        ArrowStream {
            connection,
            cancel: stream.cancel_handle(),
            stream: Guarded::new("stream", Some(Detached::new(stream))),
            seen: Arc::default(),
        }
    }

    /// The capsule of the stream, which it gives up.
    pub(crate) fn give<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.connection.get().db(py)?;
        let requested = match requested_schema {
            Some(capsule) if !capsule.is_none() => raw::arrow::fields_of_capsule(capsule)?,
            _ => None,
        };
        let stream = self.stream.lock(py)?.take();
        let Some(mut stream) = stream else {
            return Err(errors::programming(
                py,
                "the stream was given away or closed\nexecute the statement again for another one",
            ));
        };
        if let Some(fields) = requested {
            stream.inner().request(&fields);
        }
        let given = Given {
            stream: Some(stream),
            seen: self.seen.clone(),
            generation: process::generation(),
            _connection: self.connection.clone_ref(py),
        };
        raw::arrow::stream_capsule(py, Box::new(given))
    }
}

impl ArrowStream {
    /// A capsule with the schema.
    pub(crate) fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.connection.get().db(py)?;
        let mut stream = self.stream.lock(py)?;
        let Some(stream) = stream.as_mut() else {
            let message = "the stream was given away or closed";
            return Err(errors::programming(py, message));
        };
        let stream = stream.inner();
        let fields = interrupt::detached(py, || self.cancel.clone(), || stream.fields())?;
        let fields = fields.map_err(|e| errors::to_py(py, &e))?;
        raw::arrow::schema_capsule(py, &fields)
    }
}

#[pymethods]
impl ArrowStream {
    /// The stream in a capsule, once.
    ///
    /// Args:
    ///     requested_schema: a capsule with the schema that the reader would rather have. Types that can be made of the
    ///         columns are; what it asks for besides is for the reader to cast.
    ///
    /// Source: Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.give(py, requested_schema)
    }

    /// The columns' names and types in a capsule. Where values tell the types (SQLite), the first batch is fetched.
    ///
    /// Source: Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.schema(py)
    }

    /// Stops the statement, from any thread: the reader's call under way fails, and each later one.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().db(py)?;
        ending::detach(py, || self.cancel.cancel());
        Ok(())
    }

    /// Ends the statement, where the stream was not given away.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().db(py)?;
        let stream = self.stream.lock(py)?.take();
        drop(stream);
        Ok(())
    }

    /// Rows in the batches given so far.
    #[getter]
    fn n_rows(&self) -> u64 {
        self.seen.n_rows.load(Relaxed)
    }

    /// The exception of a stream that failed, whose reader can tell no more than its words; ``None`` of any other.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        let failure = self.seen.failure.lock();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).clone();
        failure.map(|error| errors::to_py(py, &error))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

/// What a caller wants of a stream: `batch_bytes`, and a dict of types by the names of columns.
pub(crate) fn options(
    batch_bytes: Option<usize>,
    types: Option<&Bound<'_, PyDict>>,
) -> PyResult<ArrowOptions> {
    let mut options = ArrowOptions::default();
    if let Some(batch_bytes) = batch_bytes {
        if batch_bytes == 0 || batch_bytes > 1 << 30 {
            return Err(PyValueError::new_err(
                "`batch_bytes` is the size of a batch, from 1 to 2**30",
            ));
        }
        options.batch_bytes = batch_bytes;
    }
    for (name, data_type) in types.into_iter().flatten() {
        let Ok(name) = name.cast::<PyString>() else {
            return Err(PyTypeError::new_err("`types` has a name that is no `str`"));
        };
        let name = parameters::utf8(name.py(), name, "a name", &mut Tally::default())?;
        // A type of pyarrow's is written as its name, too.
        let text = data_type.str()?.to_string();
        let Some(data_type) = DataType::of_name(&text) else {
            return Err(PyValueError::new_err(format!(
                "`{text}` is no type that a column is made as\ntake a name as Arrow has it: \"int64\", \"string\", \"decimal128(12, 2)\", \"timestamp[us]\""
            )));
        };
        options.types.push((name, data_type));
    }
    Ok(options)
}
