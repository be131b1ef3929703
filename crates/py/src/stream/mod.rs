//! `RowStream`: rows as bytes, pulled chunk by chunk.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_rows::Format;
use onecopy_text::{Chunk, Ledger, planted};
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use self::held::Held;
use self::ready::Ready;
use crate::connection::Connection;
use crate::errors;
use crate::fetch::Detached;
use crate::guard::{Guarded, Locked};
use crate::output::{self, Output};
use crate::raw::binary::BytesMemory;
use crate::raw::ending;
use crate::raw::interrupt;
use crate::raw::output::Writer;

mod held;
mod pumped;
mod ready;

pub(crate) use pumped::Left;

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

/// What is left of a stream.
struct Rest {
    state: State,
    /// Bytes that were filled and not given yet.
    ready: Option<Ready>,
    /// Whether any were given.
    is_touched: bool,
}

/// The rows of a statement as bytes: to iterate over (also ``async for``), to write to a file or socket, or to hand to a
/// WSGI server.
///
/// It keeps a chunk in memory, never the result. A stream that fails raises where it is read and at every later call; it
/// never just ends.
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct RowStream {
    rest: Guarded<Rest>,
    held: Held,
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
        let rest = Rest {
            state: State::Open(Detached::new(source)),
            ready: None,
            is_touched: false,
        };
        Ok(RowStream {
            rest: Guarded::new("stream", rest),
            held: Held::new(connection),
            cancel,
            n_rows: AtomicU64::new(0),
            format,
            ledger,
        })
    }

    fn lock(&self, py: Python<'_>) -> PyResult<Locked<'_, Rest>> {
        let rest = self.rest.lock(py)?;
        match &rest.state {
            State::Failed(e) => Err(errors::again(py, e)),
            State::Closed => Err(errors::interface(py, "the stream is closed")),
            State::Open(_) | State::Done => Ok(rest),
        }
    }

    /// Runs `work` on what is left; where the statement has ended by then, what the stream holds is let go.
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Rest) -> PyResult<T>) -> PyResult<T> {
        let mut rest = self.lock(py)?;
        let done = work(&mut rest);
        let has_ended = !matches!(rest.state, State::Open(_));
        drop(rest); // Not held while Python code runs.
        if has_ended {
            self.held.let_go(py);
        }
        done
    }

    /// Runs `work` on the source, detached, and remembers how it ended.
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
        let done = failed(py, state, done)?;
        if done == Filled::Done {
            *state = State::Done;
        }
        Ok(done)
    }

    /// The next bytes as a `bytes`, or `None` at the end.
    fn next_chunk<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        rest.is_touched = true;
        if let Some(ready) = rest.ready.take() {
            return ready.into_bytes(py, &self.ledger).map(Some);
        }
        while matches!(rest.state, State::Open(_)) {
            let mut chunk = BytesMemory::chunk(CHUNK_BYTES)?;
            let n_rows = self.n_rows();
            match self.fill(py, &mut rest.state, &mut chunk) {
                Ok(_) => {}
                // The rows before a failure come first; it is raised by the next call. What a signal handler raised does not
                // wait, nor what left no rows: a chunk that could not grow may have lost those it had.
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

    fn fill(&self, py: Python<'_>, state: &mut State, chunk: &mut Chunk) -> PyResult<Filled> {
        self.pump(py, state, |source| {
            let filled = source.fill(chunk).map_err(Failure::Source)?;
            planted::extra_work_on_chunk(chunk);
            Ok(filled)
        })
    }

    /// A file that appears whole or not at all.
    fn write_to_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let failed = |e: onecopy_files::Error| PyErr::from(std::io::Error::from(e));
        // Inside: a stream that can give nothing makes no file either.
        self.with(py, |rest| {
            let mut file = ending::detach(py, || AtomicFile::create(&path, OnFailure::Remove))
                .map_err(failed)?;
            let n_bytes = self.write_detached(py, rest, |bytes| file.write(bytes))?;
            ending::detach(py, || file.commit()).map_err(failed)?;
            Ok(n_bytes)
        })
    }

    /// Writes all chunks by `write`, which takes at least one byte of what it is given, or waits. The rows before a failure
    /// are written too.
    fn write_detached(
        &self,
        py: Python<'_>,
        rest: &mut Rest,
        mut write: impl FnMut(&[u8]) -> std::io::Result<usize> + Send,
    ) -> PyResult<u64> {
        rest.is_touched = true;
        let mut n_bytes = match rest.ready.take() {
            Some(ready) => {
                let done = ready.write(py, &self.cancel, &mut write);
                failed(py, &mut rest.state, done)?
            }
            None => 0,
        };
        let mut chunk = Chunk::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        let mut written = 0; // of `chunk`
        let mut filled = Filled::More;
        let mut failure = None;
        loop {
            // One release of the GIL for many chunks: taking it back beside a busy thread costs milliseconds.
            let done = self.pump(py, &mut rest.state, |source| {
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
            let chunk = self.with(py, |rest| self.next_chunk(py, rest))?;
            let Some(chunk) = chunk else {
                return Ok(n_bytes);
            };
            n_bytes += chunk.len()? as u64;
            output::write_all(write, chunk.as_any())?;
        }
    }
}

enum Failure {
    Source(ChunkError),
    Output(std::io::Error),
}

/// What a call that ran detached gave; where it failed, the stream has.
fn failed<T>(py: Python<'_>, state: &mut State, done: PyResult<Result<T, Failure>>) -> PyResult<T> {
    let error = match done {
        Ok(Ok(done)) => return Ok(done),
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

impl Drop for RowStream {
    fn drop(&mut self) {
        // Where the interpreter is ending, or in a forked child, nothing is called.
        ending::try_attach(|py| {
            // It may go away while an exception is on its way.
            let raised = PyErr::take(py);
            if let Ok(mut rest) = self.rest.lock(py) {
                rest.state = State::Closed;
                drop(rest);
                self.held.let_go(py);
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
            .getattr("chunks_ahead")?
            .call1((slf,))
    }

    /// Fetches the first rows and fills the first chunk with them, which the next call gives: a statement that fails there
    /// fails here, before anything was promised to a client.
    ///
    /// Returns:
    ///     The length in bytes of the whole answer, where the first chunk is all of it; the statement has ended then. ``None``
    ///     where more may come, and where bytes were given before.
    ///
    /// Raises:
    ///     Error: the statement failed, in the first rows or before.
    ///
    /// Copies: none; the chunk is given as it is.
    ///
    /// >>> rows = onecopy.connect("sqlite::memory:").execute("select 1 as id").json()
    /// >>> rows.begin(), rows.read()
    /// (10, b'[{"id":1}]')
    fn begin(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.with(py, |rest| {
            if rest.is_touched {
                return Ok(None);
            }
            if rest.ready.is_none() && matches!(rest.state, State::Open(_)) {
                let mut chunk = BytesMemory::chunk(CHUNK_BYTES)?;
                self.fill(py, &mut rest.state, &mut chunk)?;
                rest.ready = Ready::new(py, chunk)?;
            }
            let is_whole = matches!(rest.state, State::Done);
            Ok(is_whole.then(|| rest.ready.as_ref().map_or(0, |ready| ready.len(py))))
        })
    }

    /// All bytes still to come, in one ``bytes``; or with a ``size`` up to so many of them, none at the end: as files are read.
    ///
    /// Copies: the first 64 KiB where there are more, past which the ``bytes`` grows by pages; with a ``size`` one, of what is
    /// no whole chunk. The ledger counts it.
    #[pyo3(signature = (size=None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(py, |rest| match size.map(usize::try_from) {
            Some(Ok(size)) => self.read_some(py, rest, size),
            _ => self.read_all(py, rest),
        })
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
            Output::Descriptor(to) => slf.get().with(py, |rest| {
                let mut to = Writer::new(to);
                slf.get()
                    .write_detached(py, rest, |bytes| to.write_some(bytes))
            }),
            Output::Object(write) => slf.get().write_to_object(py, &write),
        }
    }

    /// Stops the statement, from any thread: the call under way, and each later one, raises `OperationalError`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.rest.check_process(py)?;
        ending::detach(py, || self.cancel.cancel());
        Ok(())
    }

    /// Closes the statement behind it. A stream that was not read to its end raises where it is read on.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut rest = self.rest.lock(py)?;
        if matches!(rest.state, State::Open(_)) || rest.ready.is_some() {
            rest.state = State::Closed;
            rest.ready = None;
        }
        drop(rest);
        self.held.let_go(py);
        Ok(())
    }

    /// Has ``function`` called, with nothing, once the statement has ended: behind the last row, when it has failed, when the
    /// stream is closed or goes away; now, where that was. What it raises is reported by `sys.unraisablehook`.
    ///
    /// It may not hold the stream itself: the two would keep each other alive.
    ///
    /// >>> rows = onecopy.connect("sqlite::memory:").execute("select 1 as id").json()
    /// >>> rows.on_close(lambda: print("closed"))
    /// >>> rows.read()
    /// closed
    /// b'[{"id":1}]'
    #[pyo3(signature = (function, /))]
    fn on_close(&self, py: Python<'_>, function: Bound<'_, PyAny>) -> PyResult<()> {
        self.rest.check_process(py)?;
        self.held.add(py, function)
    }

    /// The name of the format: ``"json"``, ``"ndjson"``, ``"csv"`` or ``"bson"``.
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name()
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

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.held.traverse(&visit)
    }

    fn __clear__(&self) {
        self.held.forget();
    }
}
