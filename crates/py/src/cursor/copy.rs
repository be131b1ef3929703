//! `Cursor.copy_in` and `Cursor.copy_out`: PostgreSQL's COPY statement, with data in chunks.

use onecopy_rows as rows;
use onecopy_rows::connect as db;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyString, PyTuple};

use super::Cursor;
use crate::active_statement::Detached;
use crate::connection::{Changes, Connection, ReadingCall};
use crate::guard::Guarded;
use crate::pending::PendingCall;
use crate::raw::{buffer, gil, interrupt};
use crate::{errors, parameters};

/// The number of bytes per read from a file.
const READ_BYTES: usize = 256 << 10;

#[pymethods]
impl Cursor {
    /// Executes a ``COPY … FROM STDIN`` of PostgreSQL (without an ODBC driver), and returns the
    /// cursor. Its ``rowcount`` is the number of copied rows.
    ///
    /// Args:
    ///     sql: the statement; its options define the format.
    ///     chunks: the data in chunks of any size: bytes (any buffer) or text, an iterable of them,
    ///         or an object with ``read``.
    ///
    /// Raises:
    ///     Error: the server reports an error. If the iterable raises an exception, the statement
    ///         ends, no row is inserted, and the exception is raised.
    ///     NotSupportedError: the database is not PostgreSQL, or is accessed through ODBC.
    fn copy_in<'py>(
        slf: Bound<'py, Self>,
        sql: &Bound<'py, PyString>,
        chunks: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        Cursor::run_reading(&slf, |_, _, _| CopyIn::of(sql, chunks))?;
        Ok(slf)
    }

    /// Starts `copy_in`, and returns a `PendingCall` for an event loop.
    fn _begin_copy_in(
        slf: &Bound<'_, Self>,
        sql: &Bound<'_, PyString>,
        chunks: &Bound<'_, PyAny>,
    ) -> PyResult<PendingCall> {
        Cursor::begin_reading(slf, |_, _, _| CopyIn::of(sql, chunks))
    }

    /// Starts a ``COPY … TO STDOUT`` of PostgreSQL (without an ODBC driver). Returns an iterator of
    /// its bytes in chunks, which is also a context manager. The connection cannot execute anything
    /// else before the iterator ends or is closed.
    ///
    /// Raises:
    ///     Error: the server reports an error.
    ///     NotSupportedError: the database is not PostgreSQL, or is accessed through ODBC.
    fn copy_out(&self, py: Python<'_>, sql: &Bound<'_, PyString>) -> PyResult<CopyOut> {
        let sql = parameters::utf8(py, sql, "the statement", &mut Default::default())?;
        let connection = self.connection.clone_ref(py);
        let limit = self.limit.get();
        let copy = connection
            .get()
            .call_within(py, limit, |db| db.postgres()?.copy_out(&sql))?;
        Ok(CopyOut::new(connection, copy))
    }

    /// Starts `copy_out`, and returns a `PendingCall` for an event loop.
    fn _begin_copy_out(&self, py: Python<'_>, sql: &Bound<'_, PyString>) -> PyResult<PendingCall> {
        let sql = parameters::utf8(py, sql, "the statement", &mut Default::default())?;
        let connection = self.connection.clone_ref(py);
        let start = move |db: &db::Connection| db.postgres()?.copy_out(&sql);
        let make_result = move |py: Python<'_>, copy, _is_late| {
            Ok(Py::new(py, CopyOut::new(connection, copy))?.into_any())
        };
        self.connection
            .get()
            .begin(py, self.limit.get(), start, make_result)
    }
}

/// The statement and data of a `copy_in` call.
struct CopyIn {
    sql: String,
    chunks: Chunks,
}

impl CopyIn {
    fn of(sql: &Bound<'_, PyString>, chunks: &Bound<'_, PyAny>) -> PyResult<Box<dyn ReadingCall>> {
        Ok(Box::new(CopyIn {
            sql: parameters::utf8(sql.py(), sql, "the statement", &mut Default::default())?,
            chunks: Chunks::of(chunks)?,
        }))
    }
}

impl ReadingCall for CopyIn {
    fn execute(&mut self, db: &db::Connection) -> Result<Changes, rows::Error> {
        let n_rows = db.postgres()?.copy_in(&self.sql, &mut self.chunks)?;
        Ok(Changes::Count(n_rows))
    }

    fn failure(&mut self) -> Option<PyErr> {
        self.chunks.failure.take()
    }
}

/// An iterator over the chunks of bytes that `copy_in` sends.
struct Chunks {
    /// The caller's chunks. If `None`, the method `read` of a file returns the chunks.
    iterator: Option<Py<PyIterator>>,
    read: Option<Py<PyAny>>,
    single: Option<Vec<u8>>,
    failure: Option<PyErr>,
}

impl Chunks {
    fn of(chunks: &Bound<'_, PyAny>) -> PyResult<Chunks> {
        let mut made = Chunks {
            iterator: None,
            read: None,
            single: None,
            failure: None,
        };
        if let Some(bytes) = bytes_of(chunks)? {
            made.single = Some(bytes);
        } else if let Some(read) = chunks.getattr_opt("read")? {
            made.read = Some(read.unbind());
        } else {
            made.iterator = Some(chunks.try_iter()?.unbind());
        }
        Ok(made)
    }

    fn next_of(&mut self, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        let next = if let Some(read) = &self.read {
            Some(read.bind(py).call1((READ_BYTES,))?)
        } else if let Some(iterator) = &self.iterator {
            iterator.bind(py).clone().next().transpose()?
        } else {
            None
        };
        let Some(next) = next else { return Ok(None) };
        let bytes = bytes_of(&next)?.ok_or_else(|| {
            PyTypeError::new_err("a chunk of `copy_in` is neither bytes nor text")
        })?;
        Ok((self.read.is_none() || !bytes.is_empty()).then_some(bytes))
    }
}

/// Returns the bytes of a buffer, or the UTF-8 of a `str`.
fn bytes_of(chunk: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(text) = chunk.cast::<PyString>() {
        let text = parameters::utf8(chunk.py(), text, "a chunk", &mut Default::default())?;
        return Ok(Some(text.into_bytes()));
    }
    buffer::copy_of(chunk.as_borrowed())
}

impl Iterator for Chunks {
    type Item = Result<Vec<u8>, rows::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(single) = self.single.take() {
            return Some(Ok(single));
        }
        match gil::attach(|py| self.next_of(py)) {
            Ok(chunk) => chunk.map(Ok),
            Err(error) => {
                self.failure = Some(error);
                let message = "the chunks ended with an exception";
                Some(Err(rows::Error::new(rows::ErrorKind::Interface, message)))
            }
        }
    }
}

/// An iterator over the bytes that a ``COPY … TO STDOUT`` returns: see `Cursor.copy_out`.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct CopyOut {
    _connection: Py<Connection>,
    copy: Guarded<Option<Detached<rows::CopyOut>>>,
}

impl CopyOut {
    fn new(connection: Py<Connection>, copy: rows::CopyOut) -> CopyOut {
        CopyOut {
            _connection: connection,
            copy: Guarded::new("copy", Some(Detached::new(copy))),
        }
    }
}

fn closed(py: Python<'_>) -> PyErr {
    errors::interface(py, "the copy is closed")
}

#[pymethods]
impl CopyOut {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        let mut copy = self.copy.lock(py)?;
        let copy = copy.as_mut().ok_or_else(|| closed(py))?.inner();
        let cancel = copy.cancel_handle();
        let chunk = interrupt::detached(py, || cancel, || copy.next_chunk())?;
        let chunk = chunk.map_err(|e| errors::to_py(py, &e))?;
        Ok(chunk.map(|chunk| PyBytes::new(py, &chunk).unbind()))
    }

    /// Starts `__next__`, and returns a `PendingCall` for an event loop. The call returns ``None``
    /// after the last chunk.
    fn _begin_next(slf: &Bound<'_, Self>) -> PyResult<PendingCall> {
        let py = slf.py();
        let mut copy = slf.get().copy.lock(py)?.take().ok_or_else(|| closed(py))?;
        let cancel = copy.inner().cancel_handle();
        let next = move || match copy.inner().next_chunk() {
            Ok(chunk) => (Ok(()), Some((chunk, copy))),
            Err(error) => (Err(error), Some((None, copy))),
        };
        let slf = slf.clone().unbind();
        let make_result = move |py: Python<'_>, (chunk, copy): (Option<Vec<u8>>, _), _is_late| {
            *slf.get().copy.lock(py)? = Some(copy);
            Ok(match chunk {
                Some(chunk) => PyBytes::new(py, &chunk).into_any().unbind(),
                None => py.None(),
            })
        };
        PendingCall::new(None, cancel, next, make_result)
    }

    /// Returns all remaining bytes of the COPY as one ``bytes``.
    fn read(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let mut all = Vec::new();
        while let Some(chunk) = self.__next__(py)? {
            all.extend_from_slice(chunk.bind(py).as_bytes());
        }
        Ok(PyBytes::new(py, &all).unbind())
    }

    /// The number of copied rows; -1 until the last chunk has been read.
    #[getter]
    fn rowcount(&self, py: Python<'_>) -> PyResult<i64> {
        let mut copy = self.copy.lock(py)?;
        let n_rows = copy.as_mut().and_then(|copy| copy.inner().row_count());
        Ok(n_rows.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1))
    }

    /// Starts `close`, and returns a `PendingCall` for an event loop. Returns ``None`` if the COPY
    /// has ended.
    fn _begin_close(&self, py: Python<'_>) -> PyResult<Option<PendingCall>> {
        let Some(copy) = self.copy.lock(py)?.take() else {
            return Ok(None);
        };
        let mut copy = copy.into_inner();
        let cancel = copy.cancel_handle();
        let close = move || {
            copy.close();
            (Ok(()), Some(()))
        };
        PendingCall::new(None, cancel, close, |py, (), _| Ok(py.None())).map(Some)
    }

    /// Ends the COPY, and discards the bytes that have not been read. Closing twice is not an
    /// error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let copy = self.copy.lock(py)?.take();
        drop(copy);
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
