//! `Ready`: a chunk of a row stream that was filled before a read needed it.

use onecopy_rows::task::TimeSlice;
use onecopy_text::{ByteSink, Chunk, Ledger, Stage, Tally, planted};
use onecopy_wire::{CancelHandle, ChunkSource, Filled};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{CHUNK_BYTES, Failure, LEAST_ROOM_BYTES, RowStream, StreamRest, StreamState};
use crate::errors;
use crate::raw::binary::BytesMemory;
use crate::raw::interrupt;

/// A chunk that was filled in advance, and the number of its returned bytes. At least one byte is
/// left.
pub(super) struct Ready {
    chunk: Py<PyBytes>,
    at: usize,
}

impl Ready {
    /// Creates a `Ready` from `chunk`; `None` if it is empty.
    pub(super) fn new(py: Python<'_>, chunk: Chunk) -> PyResult<Option<Ready>> {
        if chunk.is_empty() {
            return Ok(None);
        }
        let chunk = BytesMemory::finish(py, chunk)?.unbind();
        Ok(Some(Ready { chunk, at: 0 }))
    }

    /// Returns the number of bytes that are left.
    pub(super) fn len(&self, py: Python<'_>) -> usize {
        self.rest(py).len()
    }

    fn rest<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        &self.chunk.bind(py).as_bytes()[self.at..]
    }

    /// Returns the remaining bytes. This is the chunk itself, or a copy if a part was returned
    /// before.
    pub(super) fn into_bytes<'py>(
        self,
        py: Python<'py>,
        ledger: &Ledger,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if self.at == 0 {
            return Ok(self.chunk.into_bound(py));
        }
        Ok(copied(py, self.rest(py), ledger))
    }

    /// Passes the remaining bytes to `write`, without the GIL. `write` may be called several times.
    /// Returns the number of bytes written.
    pub(super) fn write(
        &self,
        py: Python<'_>,
        cancel: &CancelHandle,
        write: &mut (impl FnMut(&[u8]) -> std::io::Result<usize> + Send),
    ) -> PyResult<Result<u64, Failure>> {
        let bytes = self.rest(py);
        let mut written = 0;
        while written < bytes.len() {
            let wrote = interrupt::detached(py, || cancel.clone(), || write(&bytes[written..]))?;
            match wrote {
                Ok(n_bytes) => written += n_bytes,
                // The signal handler has run, so the write continues.
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Ok(Err(Failure::Output(e))),
            }
        }
        Ok(Ok(written as u64))
    }
}

/// Appends all remaining bytes of a source to `chunk`. In a task, it suspends itself every few
/// milliseconds.
pub(super) fn fill_all(source: &mut dyn ChunkSource, chunk: &mut Chunk) -> Result<Filled, Failure> {
    let mut slice = TimeSlice::begin();
    loop {
        if chunk.capacity() - chunk.len() < LEAST_ROOM_BYTES {
            let full = |_| Failure::Output(std::io::ErrorKind::OutOfMemory.into());
            chunk.spare(CHUNK_BYTES).map_err(full)?;
        }
        if source.fill(chunk).map_err(Failure::Source)? == Filled::Done {
            planted::extra_work_on_chunk(chunk);
            return Ok(Filled::Done);
        }
        slice.check().map_err(Failure::Output)?;
    }
}

fn copied<'py>(py: Python<'py>, bytes: &[u8], ledger: &Ledger) -> Bound<'py, PyBytes> {
    let mut tally = Tally::default();
    tally.copied_again(bytes.len());
    tally.enter(ledger, Stage::Encode);
    PyBytes::new(py, bytes)
}

impl RowStream {
    /// Returns up to `size` bytes of the stream. An empty result is the end of the stream, unless
    /// `size` is 0.
    pub(super) fn read_some<'py>(
        &self,
        py: Python<'py>,
        rest: &mut StreamRest,
        size: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if size == 0 {
            return Ok(PyBytes::new(py, b""));
        }
        let ready = match rest.ready.take() {
            Some(ready) => ready,
            None => match self.next_chunk(py, rest)? {
                Some(chunk) => Ready {
                    chunk: chunk.unbind(),
                    at: 0,
                },
                None => return Ok(PyBytes::new(py, b"")),
            },
        };
        rest.is_touched = true;
        if ready.len(py) <= size {
            return ready.into_bytes(py, &self.ledger);
        }
        let given = copied(py, &ready.rest(py)[..size], &self.ledger);
        rest.ready = Some(Ready {
            at: ready.at + size,
            ..ready
        });
        Ok(given)
    }

    /// Returns the rest of the stream as one `bytes` object.
    pub(super) fn read_all<'py>(
        &self,
        py: Python<'py>,
        rest: &mut StreamRest,
    ) -> PyResult<Bound<'py, PyBytes>> {
        match &rest.state {
            StreamState::Open(_) => {}
            StreamState::Failed(e) => return Err(errors::again(py, e)),
            _ => {
                rest.is_touched = true;
                return match rest.ready.take() {
                    Some(ready) => ready.into_bytes(py, &self.ledger),
                    None => Ok(PyBytes::new(py, b"")),
                };
            }
        }
        let mut chunk = self.chunk_of_all(py, rest)?;
        self.pump(py, &mut rest.state, |source| fill_all(source, &mut chunk))?;
        BytesMemory::finish(py, chunk)
    }

    /// Returns a chunk for the rest of the stream. It begins with bytes that were filled in
    /// advance; the caller appends the others.
    pub(super) fn chunk_of_all(&self, py: Python<'_>, rest: &mut StreamRest) -> PyResult<Chunk> {
        rest.is_touched = true;
        let Some(ready) = rest.ready.take() else {
            return BytesMemory::whole(CHUNK_BYTES);
        };
        let bytes = ready.rest(py);
        let mut chunk = BytesMemory::longer(CHUNK_BYTES + bytes.len())?;
        chunk
            .put(bytes)
            .map_err(|_| pyo3::exceptions::PyMemoryError::new_err(()))?;
        let mut tally = Tally::default();
        tally.copied_again(bytes.len());
        tally.enter(&self.ledger, Stage::Encode);
        Ok(chunk)
    }
}
