//! The methods of a row stream that an event loop runs. They suspend instead of waiting.

use std::sync::atomic::Ordering::Relaxed;

use onecopy_text::{Chunk, planted};
use onecopy_wire::{ChunkSource, Filled};
use pyo3::prelude::*;

use super::ready_bytes::{Ready, fill_all};
use super::{CHUNK_BYTES, Failure, RowStream, StreamRest, StreamState, failed};
use crate::active_statement::Detached;
use crate::errors;
use crate::pending::PendingCall;
use crate::raw::binary::BytesMemory;

/// A source, the chunk that it filled, and its return value.
type FilledChunk = (Box<dyn ChunkSource>, Chunk, Result<Filled, Failure>);

impl RowStream {
    /// Takes the source out of the stream, for a call without the stream's lock. Returns `None` if
    /// the stream has no source.
    fn take_source(rest: &mut StreamRest) -> Option<Box<dyn ChunkSource>> {
        match std::mem::replace(&mut rest.state, StreamState::Away) {
            StreamState::Open(source) => Some(source.into_inner()),
            other => {
                rest.state = other;
                None
            }
        }
    }

    /// Ends a call that has used the source. Returns the source to an open stream, and records the
    /// outcome `done`. Then calls `keep` with the stream's state and the outcome.
    fn return_source<T>(
        &self,
        py: Python<'_>,
        source: Box<dyn ChunkSource>,
        done: Result<Filled, Failure>,
        keep: impl FnOnce(&mut StreamRest, PyResult<Filled>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.n_rows.store(source.n_rows(), Relaxed);
        let mut rest = self.rest.lock(py)?;
        let source = Detached::new(source);
        let done = match rest.state {
            StreamState::Away => {
                rest.state = StreamState::Open(source);
                failed(py, &mut rest.state, Ok(done))
            }
            _ => Err(errors::interface(py, "the stream is closed")),
        };
        if matches!(done, Ok(Filled::Done)) {
            rest.state = StreamState::Done;
        }
        let kept = keep(&mut rest, done);
        let has_ended = !matches!(rest.state, StreamState::Open(_));
        drop(rest); // The lock is released before Python code runs
        if has_ended {
            self.kept_alive.let_go(py);
        }
        kept
    }

    /// Creates a `PendingCall` that fills the next chunk for a later read. Returns `None` if a read
    /// does not have to wait.
    pub(super) fn begin_fill(slf: &Bound<'_, Self>) -> PyResult<Option<PendingCall>> {
        let (py, stream) = (slf.py(), slf.get());
        let mut rest = stream.lock(py)?;
        if rest.ready.is_some() {
            return Ok(None);
        }
        let mut chunk = BytesMemory::chunk(CHUNK_BYTES)?;
        let Some(mut source) = Self::take_source(&mut rest) else {
            return Ok(None);
        };
        drop(rest);
        let call = move || {
            let filled = source.fill(&mut chunk).map_err(Failure::Source);
            planted::extra_work_on_chunk(&chunk);
            (Ok(()), Some((source, chunk, filled)))
        };
        let slf = slf.clone().unbind();
        let keep_chunk = move |py: Python<'_>, (source, chunk, filled): FilledChunk, _| {
            let stream = slf.get();
            // The next read returns the rows before a failure. The read after it raises the error.
            let has_rows = source.n_rows() > stream.n_rows() && !chunk.is_empty();
            stream.return_source(py, source, filled, |rest, filled| match filled {
                Err(e) if !has_rows || matches!(rest.state, StreamState::Closed) => Err(e),
                _ => {
                    rest.ready = Ready::new(py, chunk)?;
                    Ok(py.None())
                }
            })
        };
        PendingCall::new(None, stream.cancel.clone(), call, keep_chunk).map(Some)
    }

    /// Creates a `PendingCall` that reads all remaining bytes. Returns `None` if the read does not
    /// wait.
    pub(super) fn begin_read(slf: &Bound<'_, Self>) -> PyResult<Option<PendingCall>> {
        let (py, stream) = (slf.py(), slf.get());
        let mut rest = stream.lock(py)?;
        if !matches!(rest.state, StreamState::Open(_)) {
            return Ok(None);
        }
        let mut chunk = stream.chunk_of_all(py, &mut rest)?;
        let Some(mut source) = Self::take_source(&mut rest) else {
            return Ok(None);
        };
        drop(rest);
        let call = move || {
            let filled = fill_all(&mut *source, &mut chunk);
            (Ok(()), Some((source, chunk, filled)))
        };
        let slf = slf.clone().unbind();
        let all = move |py: Python<'_>, (source, chunk, filled): FilledChunk, _| {
            let filled = slf
                .get()
                .return_source(py, source, filled, |_, filled| filled);
            filled?;
            Ok(BytesMemory::finish(py, chunk)?.into_any().unbind())
        };
        PendingCall::new(None, stream.cancel.clone(), call, all).map(Some)
    }
}
