//! `RowStream`: the rows of a statement as bytes, in chunks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use onecopy_rows::Format;
use onecopy_text::{Chunk, Ledger, planted};
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use self::kept_alive::KeptAlive;
use self::ready_bytes::Ready;
use crate::active_statement::Detached;
use crate::connection::Connection;
use crate::errors;
use crate::guard::{Guarded, Locked};
use crate::pending::PendingCall;
use crate::raw::binary::BytesMemory;
use crate::raw::descriptor::Writer;
use crate::raw::gil;
use crate::raw::interrupt;
use crate::stream_output::Output;

mod event_loop;
mod kept_alive;
mod ready_bytes;
mod server_source;
mod write_to;

pub(crate) use server_source::Left;

/// The size of a chunk in bytes. A system call or `yield` per chunk costs little, and a chunk fits
/// into the L2 cache.
const CHUNK_BYTES: usize = 64 << 10;

/// The least free capacity in bytes before `read` appends rows to a chunk.
const LEAST_ROOM_BYTES: usize = CHUNK_BYTES / 4;

enum StreamState {
    /// The statement may have more rows.
    Open(Detached<Box<dyn ChunkSource>>),
    /// The statement has ended, and all bytes were returned.
    Done,
    /// The stream has failed. Each later call raises a copy of this exception: see
    /// [`errors::again`].
    Failed(PyErr),
    Closed,
    /// A call on an event loop has taken the source. The call returns it at the end, unless it is
    /// abandoned.
    Away,
}

/// The state that the stream's lock protects.
struct StreamRest {
    state: StreamState,
    /// A chunk that was filled in advance.
    ready: Option<Ready>,
    /// `true` if the caller has requested bytes.
    is_touched: bool,
}

/// The rows of a statement as bytes. They can be iterated (also with ``async for``), written to a
/// file or socket, or passed to a WSGI server.
///
/// The stream keeps one chunk in memory, never the whole result. If the statement fails, the read
/// at the failed row and every later call raise the exception. Therefore a truncated stream never
/// looks complete.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct RowStream {
    rest: Guarded<StreamRest>,
    kept_alive: KeptAlive,
    cancel: CancelHandle,
    n_rows: AtomicU64,
    format: Format,
    ledger: Ledger,
}

impl RowStream {
    pub(crate) fn new(
        py: Python<'_>,
        connection: Py<Connection>,
        source: Box<dyn ChunkSource>,
        format: Format,
        ledger: Ledger,
    ) -> PyResult<RowStream> {
        connection.get().db(py)?;
        let cancel = source.cancel_handle();
        let rest = StreamRest {
            state: StreamState::Open(Detached::new(source)),
            ready: None,
            is_touched: false,
        };
        Ok(RowStream {
            rest: Guarded::new("stream", rest),
            kept_alive: KeptAlive::new(connection),
            cancel,
            n_rows: AtomicU64::new(0),
            format,
            ledger,
        })
    }

    fn lock(&self, py: Python<'_>) -> PyResult<Locked<'_, StreamRest>> {
        let rest = self.rest.lock(py)?;
        match &rest.state {
            // The rows before the failure are returned first.
            StreamState::Failed(e) if rest.ready.is_none() => Err(errors::again(py, e)),
            StreamState::Closed => Err(errors::interface(py, "the stream is closed")),
            StreamState::Away => {
                let message = "a call of this stream is under way, or was abandoned\n\
                               await its end, or execute the statement again";
                Err(errors::interface(py, message))
            }
            _ => Ok(rest),
        }
    }

    /// Calls `work` with the locked state. If the statement has ended, then releases the objects of
    /// the stream.
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut StreamRest) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut rest = self.lock(py)?;
        let done = work(&mut rest);
        let has_ended = !matches!(rest.state, StreamState::Open(_));
        drop(rest); // unlocked before Python code runs
        if has_ended {
            self.kept_alive.let_go(py);
        }
        done
    }

    /// Calls `work` with the source, with the GIL released. Then updates `state`.
    fn pump(
        &self,
        py: Python<'_>,
        state: &mut StreamState,
        work: impl FnOnce(&mut dyn ChunkSource) -> Result<Filled, Failure> + Send,
    ) -> PyResult<Filled> {
        let source = match state {
            StreamState::Open(source) => source.inner(),
            StreamState::Failed(e) => return Err(errors::again(py, e)),
            _ => return Ok(Filled::Done),
        };
        let done = interrupt::detached(
            py,
            || self.cancel.clone(),
            || {
                let done = work(&mut **source);
                self.n_rows.store(source.n_rows(), Relaxed);
                done
            },
        );
        let done = failed(py, state, done)?;
        if done == Filled::Done {
            *state = StreamState::Done;
        }
        Ok(done)
    }

    /// Returns the next chunk. `None` at the end.
    fn next_chunk<'py>(
        &self,
        py: Python<'py>,
        rest: &mut StreamRest,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        rest.is_touched = true;
        if let Some(ready) = rest.ready.take() {
            return ready.into_bytes(py, &self.ledger).map(Some);
        }
        while matches!(rest.state, StreamState::Open(_)) {
            let mut chunk = BytesMemory::chunk(CHUNK_BYTES)?;
            let n_rows = self.n_rows();
            match self.fill(py, &mut rest.state, &mut chunk) {
                Ok(_) => {}
                // Rows before a failure are returned first, and the next call raises the failure. A
                // signal handler's exception is raised immediately. So is a failure without new
                // rows, because the chunk may have lost rows.
                Err(e)
                    if self.n_rows() > n_rows && !chunk.is_empty() && errors::is_ours(py, &e) => {}
                Err(e) => return Err(e),
            }
            if !chunk.is_empty() {
                return BytesMemory::finish(py, chunk).map(Some);
            }
        }
        Ok(None)
    }

    fn fill(&self, py: Python<'_>, state: &mut StreamState, chunk: &mut Chunk) -> PyResult<Filled> {
        self.pump(py, state, |source| {
            let filled = source.fill(chunk).map_err(Failure::Source)?;
            planted::extra_work_on_chunk(chunk);
            Ok(filled)
        })
    }
}

enum Failure {
    Source(ChunkError),
    Output(std::io::Error),
}

/// Returns the result of a call. An error becomes an exception, and marks the stream as failed.
fn failed<T>(
    py: Python<'_>,
    state: &mut StreamState,
    done: PyResult<Result<T, Failure>>,
) -> PyResult<T> {
    let error = match done {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(Failure::Source(e))) => errors::from_chunks(py, &e),
        Ok(Err(Failure::Output(e))) => e.into(),
        Err(raised) => {
            // A signal handler (Ctrl-C) has raised this exception, which later calls do not repeat.
            let ended = "the stream ended when it was interrupted\nexecute the statement again";
            *state = StreamState::Failed(errors::interface(py, ended));
            return Err(raised);
        }
    };
    *state = StreamState::Failed(errors::again(py, &error));
    Err(error)
}

impl Drop for RowStream {
    fn drop(&mut self) {
        // During finalization and in a forked child, no function is called.
        gil::try_attach(|py| {
            // Preserves an exception that is being raised when the stream is dropped.
            let raised = PyErr::take(py);
            if let Ok(mut rest) = self.rest.lock(py) {
                rest.state = StreamState::Closed;
                drop(rest);
                self.kept_alive.let_go(py);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

#[pymethods]
impl RowStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.with(py, |rest| self.next_chunk(py, rest))
    }

    fn __aiter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        slf.py()
            .import("onecopy.rows")?
            .getattr("prefetch")?
            .call1((slf,))
    }

    /// Fills the first chunk, which the next read returns. An error in the first rows is raised
    /// here, before a client receives a byte.
    ///
    /// Returns:
    ///     The length in bytes of the whole output, if the first chunk contains all of it; the
    ///     statement has then ended. ``None`` if more bytes may follow, or if bytes were already
    ///     returned.
    ///
    /// Raises:
    ///     Error: the statement failed in its first rows.
    ///
    /// Copies: none. The chunk itself is returned.
    ///
    /// >>> rows = onecopy.connect("sqlite::memory:").execute("select 1 as id").json()
    /// >>> rows.begin(), rows.read()
    /// (10, b'[{"id":1}]')
    fn begin(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.with(py, |rest| {
            if rest.is_touched {
                return Ok(None);
            }
            if let StreamState::Failed(e) = &rest.state {
                // An event loop has filled the first chunk, and the statement has failed.
                rest.ready = None;
                return Err(errors::again(py, e));
            }
            if rest.ready.is_none() && matches!(rest.state, StreamState::Open(_)) {
                let mut chunk = BytesMemory::chunk(CHUNK_BYTES)?;
                self.fill(py, &mut rest.state, &mut chunk)?;
                rest.ready = Ready::new(py, chunk)?;
            }
            let is_whole = matches!(rest.state, StreamState::Done);
            Ok(is_whole.then(|| rest.ready.as_ref().map_or(0, |ready| ready.len(py))))
        })
    }

    /// Returns all remaining bytes as one ``bytes``. With a ``size``, returns at most that many
    /// bytes, and an empty ``bytes`` at the end, like a file.
    ///
    /// Copies: without a ``size``, a result of more than 64 KiB is copied once to larger memory,
    /// which then grows without copies. With a ``size``, each byte is copied once, but whole chunks
    /// are not copied. The ledger counts these copies.
    #[pyo3(signature = (size=None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(py, |rest| match size.map(usize::try_from) {
            Some(Ok(size)) => self.read_some(py, rest, size),
            _ => self.read_all(py, rest),
        })
    }

    /// Writes all remaining bytes to ``target``, and returns their number.
    ///
    /// Args:
    ///     target: a path, a binary file, a socket, or any object with ``write``. A path must end
    ///         with the extension of the stream's format. A file is compressed if ``.gz`` or
    ///         ``.zst`` follows this extension. A file at a path appears only when it is complete.
    ///
    /// Raises:
    ///     Error: the statement failed. A file or socket has then received a truncated output; the
    ///         file at a path keeps its previous content.
    ///     OSError: writing to the target failed. It is a `TimeoutError` if a socket's timeout
    ///         expired.
    ///     TypeError: the target does not accept bytes.
    ///     ValueError: the path does not end with an extension of the stream's format.
    ///
    /// Copies: none after the conversion. Plain files and sockets are written with the GIL
    /// released.
    ///
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id").json().write_to(file), file.getvalue()
    /// (10, b'[{"id":1}]')
    #[pyo3(signature = (target, /))]
    fn write_to(slf: &Bound<'_, Self>, target: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = target.py();
        if target.is_instance_of::<PyString>() || target.hasattr("__fspath__")? {
            return slf.get().write_to_file(py, target.extract()?);
        }
        // Checked before the target, because examining the target flushes a buffered file.
        drop(slf.get().lock(py)?);
        match Output::of(target)? {
            Output::Descriptor(to) => slf.get().with(py, |rest| {
                let mut to = Writer::new(to);
                slf.get()
                    .write_detached(py, rest, |bytes| to.write_some(bytes))
            }),
            Output::Object(write) => slf.get().write_to_object(py, &write),
        }
    }

    /// Cancels the statement. Any thread may call this method. A read in progress and each later
    /// call raise `OperationalError`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.rest.check_process(py)?;
        gil::detach(py, || self.cancel.cancel());
        Ok(())
    }

    /// Returns a `PendingCall` that fills a chunk for the next read, or ``None`` if the read does
    /// not wait.
    fn _begin_fill(slf: &Bound<'_, Self>) -> PyResult<Option<PendingCall>> {
        RowStream::begin_fill(slf)
    }

    /// Returns a `PendingCall` that reads all remaining bytes, or ``None`` if the read does not
    /// wait.
    fn _begin_read(slf: &Bound<'_, Self>) -> PyResult<Option<PendingCall>> {
        RowStream::begin_read(slf)
    }

    /// Ends the statement. If the stream was not read to its end, each later read raises an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut rest = self.rest.lock(py)?;
        let is_open = matches!(rest.state, StreamState::Open(_) | StreamState::Away);
        if is_open || rest.ready.is_some() {
            rest.state = StreamState::Closed;
            rest.ready = None;
        }
        drop(rest);
        self.kept_alive.let_go(py);
        Ok(())
    }

    /// Registers ``function``, which is called without arguments when the statement has ended. This
    /// is after the last row, after a failure, or when the stream is closed or freed. If the
    /// statement has ended already, the call is immediate. `sys.unraisablehook` reports exceptions
    /// of ``function``.
    ///
    /// The function must not refer to the stream: they would keep each other alive.
    ///
    /// >>> rows = onecopy.connect("sqlite::memory:").execute("select 1 as id").json()
    /// >>> rows.on_close(lambda: print("closed"))
    /// >>> rows.read()
    /// closed
    /// b'[{"id":1}]'
    #[pyo3(signature = (function, /))]
    fn on_close(&self, py: Python<'_>, function: Bound<'_, PyAny>) -> PyResult<()> {
        self.rest.check_process(py)?;
        self.kept_alive.add(py, function)
    }

    /// The name of the format: ``"json"``, ``"ndjson"``, ``"csv"`` or ``"bson"``.
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name()
    }

    /// The number of converted rows so far. Their bytes may still be unread.
    #[getter]
    fn n_rows(&self) -> u64 {
        self.n_rows.load(Relaxed)
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

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.kept_alive.traverse(&visit)
    }

    fn __clear__(&self) {
        self.kept_alive.forget();
    }
}
