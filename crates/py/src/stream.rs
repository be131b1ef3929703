//! `RowStream`: rows as bytes, pulled chunk by chunk.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_text::{ByteSink, Chunk, planted};
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::connection::Connection;
use crate::errors;
use crate::fetch::Detached;
use crate::guard::{Guarded, Locked};
use crate::output::{self, Output};
use crate::raw::binary::BytesMemory;
use crate::raw::interrupt;
use crate::raw::output::Writer;

/// Bytes of a chunk: large enough that a system call or a yield per chunk is nothing, small enough to stay in L2 and below
/// the size that malloc asks the system for each time.
const CHUNK_BYTES: usize = 64 << 10;

/// Room that there must be for another fill of `read`: a fill takes what is there, were it one row.
const LEAST_ROOM_BYTES: usize = CHUNK_BYTES / 4;

/// A long write looks at signals this often.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

enum State {
    /// More may come.
    Open(Detached<Box<dyn ChunkSource>>),
    /// All bytes were given.
    Done,
    /// It failed; the error is raised again by each later call. Never raised itself: see [`errors::again`].
    Failed(PyErr),
    Closed,
}

/// The rows of a statement as bytes: to iterate over (also ``async for``), to write to a file or socket, or to hand to a
/// WSGI server.
///
/// It keeps a chunk in memory, never the result. A stream that fails raises where it is read and at every later call; it
/// never just ends.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct RowStream {
    connection: Py<Connection>,
    state: Guarded<State>,
    cancel: CancelHandle,
    n_rows: AtomicU64,
}

impl RowStream {
    pub(crate) fn new(
        py: Python<'_>,
        connection: Py<Connection>,
        source: Box<dyn ChunkSource>,
    ) -> PyResult<RowStream> {
        connection.get().db(py)?;
        Ok(RowStream {
            connection,
            cancel: source.cancel_handle(),
            n_rows: AtomicU64::new(0),
            state: Guarded::new("stream", State::Open(Detached::new(source))),
        })
    }

    fn lock(&self, py: Python<'_>) -> PyResult<Locked<'_, State>> {
        self.connection.get().db(py)?;
        let state = self.state.lock(py)?;
        match &*state {
            State::Failed(e) => Err(errors::again(py, e)),
            State::Closed => Err(errors::interface(py, "the stream is closed")),
            State::Open(_) | State::Done => Ok(state),
        }
    }

    /// Runs `work` on the source, detached, and remembers how it ended: `Ok(true)` when all bytes were given.
    fn pump(
        &self,
        py: Python<'_>,
        state: &mut State,
        work: impl FnOnce(&mut dyn ChunkSource) -> Result<Filled, Failure> + Send,
    ) -> PyResult<Filled> {
        let State::Open(source) = state else {
            return Ok(Filled::Done);
        };
        let source = source.inner();
        let done = interrupt::detached(
            py,
            || self.cancel.clone(),
            || {
                let done = work(&mut **source);
                self.n_rows.store(source.n_rows(), Relaxed);
                done
            },
        );
        let error = match done {
            Ok(Ok(Filled::More)) => return Ok(Filled::More),
            Ok(Ok(Filled::Done)) => {
                *state = State::Done;
                return Ok(Filled::Done);
            }
            Ok(Err(Failure::Source(e))) => errors::from_chunks(py, &e),
            Ok(Err(Failure::Output(e))) => e.into(),
            Err(raised) => {
                // By a signal handler (Ctrl-C): it is raised once, here.
                let ended = "the stream ended when it was interrupted\nexecute the statement again";
                *state = State::Failed(errors::interface(py, ended));
                return Err(raised);
            }
        };
        *state = State::Failed(errors::again(py, &error));
        Err(error)
    }

    /// The next bytes as a `bytes`, or `None` at the end.
    fn next_chunk<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        while matches!(state, State::Open(_)) {
            let mut chunk = BytesMemory::chunk(CHUNK_BYTES)?;
            let n_rows = self.n_rows();
            let pumped = self.pump(py, state, |source| {
                let filled = source.fill(&mut chunk).map_err(Failure::Source)?;
                planted::extra_work_on_chunk(&chunk);
                Ok(filled)
            });
            match pumped {
                Ok(_) => {}
                // The rows before a failure come first; it is raised by the next call. What a signal handler raised does not
                // wait.
                Err(e) if self.n_rows() > n_rows && errors::is_ours(py, &e) => {}
                Err(e) => return Err(e),
            }
            if !chunk.is_empty() {
                return BytesMemory::finish(py, chunk).map(Some);
            }
        }
        Ok(None)
    }

    /// A file that appears whole or not at all.
    fn write_to_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let failed = |e: onecopy_files::Error| PyErr::from(std::io::Error::from(e));
        // First: a stream that can give nothing makes no file either.
        let mut state = self.lock(py)?;
        let mut file = py
            .detach(|| AtomicFile::create(&path, OnFailure::Remove))
            .map_err(failed)?;
        let n_bytes = self.write_detached(py, &mut state, |bytes| file.write(bytes))?;
        py.detach(|| file.commit()).map_err(failed)?;
        Ok(n_bytes)
    }

    /// Writes all chunks by `write`, which takes at least one byte of what it is given, or waits. The rows before a failure
    /// are written too.
    fn write_detached(
        &self,
        py: Python<'_>,
        state: &mut State,
        mut write: impl FnMut(&[u8]) -> std::io::Result<usize> + Send,
    ) -> PyResult<u64> {
        let mut chunk = Chunk::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        let mut n_bytes = 0;
        let mut written = 0; // of `chunk`
        let mut filled = Filled::More;
        let mut failure = None;
        loop {
            // One release of the GIL for many chunks: taking it back beside a busy thread costs milliseconds.
            let done = self.pump(py, state, |source| {
                let until = Instant::now() + SIGNALS_EVERY;
                loop {
                    while written < chunk.len() {
                        match write(&chunk[written..]) {
                            Ok(n) => written += n,
                            // Its handler runs when we are attached again.
                            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {
                                return Ok(Filled::More);
                            }
                            Err(e) => return Err(Failure::Output(e)),
                        }
                    }
                    n_bytes += written as u64;
                    written = 0;
                    chunk.clear();
                    if let Some(failure) = failure.take() {
                        return Err(Failure::Source(failure));
                    }
                    if filled == Filled::Done || Instant::now() > until {
                        return Ok(filled);
                    }
                    let n_rows = source.n_rows();
                    match source.fill(&mut chunk) {
                        Ok(more) => filled = more,
                        Err(e) if source.n_rows() > n_rows => failure = Some(e),
                        Err(e) => return Err(Failure::Source(e)),
                    }
                    planted::extra_work_on_chunk(&chunk);
                }
            })?;
            if done == Filled::Done {
                return Ok(n_bytes);
            }
        }
    }

    fn write_to_object(&self, py: Python<'_>, write: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut n_bytes = 0;
        loop {
            // The lock is not held while Python code runs.
            let chunk = self.next_chunk(py, &mut *self.lock(py)?)?;
            let Some(chunk) = chunk else {
                return Ok(n_bytes);
            };
            n_bytes += chunk.len()? as u64;
            output::write_all(write, chunk.as_any())?;
        }
    }
}

/// A stream's source on its way through a server: what it was made of lives as long.
struct Pumped<K: Send> {
    // Before the connection: its statement ends first.
    source: Box<dyn ChunkSource>,
    stream: Py<RowStream>,
    _kept: K,
}

impl<K: Send> ChunkSource for Pumped<K> {
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError> {
        let filled = self.source.fill(chunk);
        self.stream
            .get()
            .n_rows
            .store(self.source.n_rows(), Relaxed);
        filled
    }

    fn n_rows(&self) -> u64 {
        self.source.n_rows()
    }

    fn cancel_handle(&self) -> CancelHandle {
        self.source.cancel_handle()
    }
}

impl RowStream {
    /// What a server pumps, detached, from the stream's place on; the stream is closed for all others. `kept` lives as long.
    pub(crate) fn chunks(
        slf: &Bound<'_, Self>,
        kept: impl Send + 'static,
    ) -> PyResult<onecopy_serve::Chunks> {
        let mut state = slf.get().lock(slf.py())?;
        match std::mem::replace(&mut *state, State::Closed) {
            State::Open(source) => Ok(onecopy_serve::Chunks::new(Pumped {
                source: source.into_inner(),
                stream: slf.clone().unbind(),
                _kept: kept,
            })),
            other => {
                *state = other;
                Err(errors::interface(slf.py(), "the stream was read before"))
            }
        }
    }
}

enum Failure {
    Source(ChunkError),
    Output(std::io::Error),
}

#[pymethods]
impl RowStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.next_chunk(py, &mut *self.lock(py)?)
    }

    fn __aiter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        slf.py()
            .import("onecopy.rows")?
            .getattr("chunks_in_thread")?
            .call1((slf,))
    }

    /// All bytes still to come, in one ``bytes``. Copies: the first 64 KiB where there are more, and the ledger counts it;
    /// past them the ``bytes`` grows by pages.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.lock(py)?;
        let mut chunk = BytesMemory::whole(CHUNK_BYTES)?;
        self.pump(py, &mut state, |source| {
            loop {
                if chunk.capacity() - chunk.len() < LEAST_ROOM_BYTES {
                    let full = |_| Failure::Output(std::io::ErrorKind::OutOfMemory.into());
                    chunk.spare(CHUNK_BYTES).map_err(full)?;
                }
                if source.fill(&mut chunk).map_err(Failure::Source)? == Filled::Done {
                    planted::extra_work_on_chunk(&chunk);
                    return Ok(Filled::Done);
                }
            }
        })?;
        BytesMemory::finish(py, chunk)
    }

    /// Writes all bytes still to come to ``target``, and returns their number.
    ///
    /// Args:
    ///     target: a path (the file appears whole or not at all), a binary file, a socket, or any object with ``write``.
    ///
    /// Raises:
    ///     Error: the statement failed. What a file or socket has by then is cut short; a path keeps what stood there.
    ///     OSError: the target failed; `TimeoutError` where a socket's timeout passed.
    ///     TypeError: the target takes no bytes.
    ///
    /// Copies: none after the conversion; plain files and sockets are written with the GIL released.
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
        // Before the target is looked at: a buffered file is flushed then.
        drop(slf.get().lock(py)?);
        match Output::of(target)? {
            Output::Descriptor(to) => {
                let mut state = slf.get().lock(py)?;
                let mut to = Writer::new(to);
                slf.get()
                    .write_detached(py, &mut state, |bytes| to.write_some(bytes))
            }
            Output::Object(write) => slf.get().write_to_object(py, &write),
        }
    }

    /// Stops the statement, from any thread: the call under way, and each later one, raises `OperationalError`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().db(py)?;
        py.detach(|| self.cancel.cancel());
        Ok(())
    }

    /// Closes the statement behind it. A stream that was not read to its end raises where it is read on.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.connection.get().db(py)?;
        let mut state = self.state.lock(py)?;
        if matches!(*state, State::Open(_)) {
            *state = State::Closed;
        }
        Ok(())
    }

    /// Rows written so far.
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
}
