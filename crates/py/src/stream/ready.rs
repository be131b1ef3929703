//! Bytes of a row stream that were filled before somebody asked for them, and what reads them in other pieces.

use onecopy_text::{ByteSink, Chunk, Ledger, Stage, Tally, planted};
use onecopy_wire::{CancelHandle, Filled};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{CHUNK_BYTES, Failure, LEAST_ROOM_BYTES, Rest, RowStream};
use crate::raw::binary::BytesMemory;
use crate::raw::interrupt;

/// A chunk, and how much of it was given. There is always something left.
pub(super) struct Ready {
    chunk: Py<PyBytes>,
    at: usize,
}

impl Ready {
    /// What `chunk` holds; nothing where it is empty.
    pub(super) fn new(py: Python<'_>, chunk: Chunk) -> PyResult<Option<Ready>> {
        if chunk.is_empty() {
            return Ok(None);
        }
        let chunk = BytesMemory::finish(py, chunk)?.unbind();
        Ok(Some(Ready { chunk, at: 0 }))
    }

    /// Bytes that are left.
    pub(super) fn len(&self, py: Python<'_>) -> usize {
        self.rest(py).len()
    }

    fn rest<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        &self.chunk.bind(py).as_bytes()[self.at..]
    }

    /// What is left, in a `bytes`. Copies: none where that is the whole chunk.
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

    /// Writes what is left, as `RowStream::write_detached` does; how many bytes.
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
                // Its handler has run.
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Ok(Err(Failure::Output(e))),
            }
        }
        Ok(Ok(written as u64))
    }
}

fn copied<'py>(py: Python<'py>, bytes: &[u8], ledger: &Ledger) -> Bound<'py, PyBytes> {
    let mut tally = Tally::default();
    tally.copied_again(bytes.len());
    tally.enter(ledger, Stage::Encode);
    PyBytes::new(py, bytes)
}

impl RowStream {
    /// Up to `size` bytes; none at the end alone.
    pub(super) fn read_some<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest,
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

    /// All that is left.
    pub(super) fn read_all<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest,
    ) -> PyResult<Bound<'py, PyBytes>> {
        rest.is_touched = true;
        let ready = rest.ready.take();
        let is_open = matches!(rest.state, super::State::Open(_));
        let mut chunk = match ready {
            Some(ready) if !is_open => return ready.into_bytes(py, &self.ledger),
            None if !is_open => return Ok(PyBytes::new(py, b"")),
            Some(ready) => {
                let bytes = ready.rest(py);
                let mut chunk = BytesMemory::longer(CHUNK_BYTES + bytes.len())?;
                chunk
                    .put(bytes)
                    .map_err(|_| pyo3::exceptions::PyMemoryError::new_err(()))?;
                let mut tally = Tally::default();
                tally.copied_again(bytes.len());
                tally.enter(&self.ledger, Stage::Encode);
                chunk
            }
            None => BytesMemory::whole(CHUNK_BYTES)?,
        };
        self.pump(py, &mut rest.state, |source| {
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
}
