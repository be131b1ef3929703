//! `ArrowStream`: the rows of a cursor for any library that supports Arrow's C interface.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use onecopy_wire::lock::unpoisoned;

use onecopy_rows::arrow::{self, ArrowOptions, Batch, DataType, Field};
use onecopy_rows::arrow_c::Batches;
use onecopy_rows::{Error, ErrorKind};
use onecopy_text::Tally;
use onecopy_wire::CancelHandle;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::active_statement::Detached;
use crate::connection::Connection;
use crate::errors;
use crate::guard::Guarded;
use crate::parameters;
use crate::raw::{self, gil, interrupt, process};

/// The row counter and the error of a stream.
#[derive(Default)]
struct StreamShared {
    n_rows: AtomicU64,
    failure: Mutex<Option<Error>>,
}

/// The exported stream. It keeps the connection alive.
struct Given {
    stream: Option<Detached<arrow::ArrowStream>>,
    seen: Arc<StreamShared>,
    generation: u32,
    _connection: Py<Connection>,
}

impl Given {
    /// Calls `work` without the GIL. On the main thread, Ctrl-C cancels `work`.
    fn run<T: Send>(
        &mut self,
        work: impl FnOnce(&mut arrow::ArrowStream) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        if self.generation != process::generation() {
            let message = "this stream was opened in another process (before a fork)\n\
                           open one in this process";
            return Err(Error::new(ErrorKind::Interface, message));
        }
        let stream = self.stream.as_mut();
        let stream = stream.expect("it is taken only in `drop`").inner();
        let cancel = stream.cancel_handle();
        let done = interrupt::anywhere(|| cancel, || work(stream));
        if let Err(error) = &done {
            let failure = self.seen.failure.lock();
            *unpoisoned(failure) = Some(error.clone());
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
            // A forked child leaks the stream: closing the socket would end the session of the
            // parent.
            std::mem::forget(self.stream.take());
        }
    }
}

/// The rows of a statement as a stream of Arrow batches. Any library that calls
/// ``__arrow_c_stream__`` can read it: pyarrow, polars, pandas, duckdb, …. onecopy requires none of
/// these libraries.
///
/// The stream can be read once. Each batch is created when the reader requests it. The reader then
/// owns the batch. The statement ends when the reader releases the stream. If the stream fails, the
/// reader gets an error. The attribute `error` is then the exception.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct ArrowStream {
    connection: Py<Connection>,
    stream: Guarded<Option<Detached<arrow::ArrowStream>>>,
    seen: Arc<StreamShared>,
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

    /// Moves the stream into a `PyCapsule`, the new owner of the stream.
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
    /// Returns a capsule with the Arrow schema.
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
    /// Returns the stream in a capsule. The stream can be exported only once.
    ///
    /// Args:
    ///     requested_schema: a capsule with the schema that the reader prefers. A column is
    ///         converted to the preferred type if this is possible; otherwise the reader has to
    ///         cast it.
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

    /// Returns a capsule with the names and types of the columns. For SQLite, this method fetches
    /// the first batch to determine the types.
    ///
    /// Source: Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.schema(py)
    }

    /// Cancels the statement. Any thread may call this method. A reader that waits for a batch gets
    /// an error. Each later call of the reader fails too.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().db(py)?;
        gil::detach(py, || self.cancel.cancel());
        Ok(())
    }

    /// Ends the statement. Has no effect after the stream was exported.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().db(py)?;
        let stream = self.stream.lock(py)?.take();
        drop(stream);
        Ok(())
    }

    /// The number of rows that the reader has received so far.
    #[getter]
    fn n_rows(&self) -> u64 {
        self.seen.n_rows.load(Relaxed)
    }

    /// The exception if the stream failed, otherwise ``None``. The reader of the stream receives
    /// only its message.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        let failure = self.seen.failure.lock();
        let failure = unpoisoned(failure).clone();
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

/// Parses the options of a stream: `batch_bytes` and the Arrow types of columns.
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
        // For a type object of pyarrow, `str` returns its name.
        let text = data_type.str()?.to_string();
        let Some(data_type) = DataType::of_name(&text) else {
            return Err(PyValueError::new_err(format!(
                "`{text}` is not a type that a column can have\n\
                 use a name of Arrow's: \"int64\", \"string\", \"decimal128(12, 2)\", \"timestamp[us]\""
            )));
        };
        options.types.push((name, data_type));
    }
    Ok(options)
}
