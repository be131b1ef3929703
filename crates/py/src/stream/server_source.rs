//! Passes a row stream to onecopy's own server.

use std::sync::atomic::Ordering::Relaxed;

use onecopy_text::Chunk;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};
use pyo3::prelude::*;

use super::{RowStream, StreamState};
use crate::raw::pinned_bytes::PinnedBytes;

/// The chunk source of a row stream for a server, with the objects to keep alive.
struct Pumped<K: Send> {
    // Dropped before the connection, so that the statement ends first.
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
    /// Takes the source out of the stream, and closes the stream. The server fills chunks without
    /// the GIL. `kept` is dropped with the source.
    pub(crate) fn chunks(slf: &Bound<'_, Self>, kept: impl Send + 'static) -> PyResult<Left> {
        let mut rest = slf.get().lock(slf.py())?;
        let begun = rest.ready.take();
        let begun = begun
            .map(|ready| ready.into_bytes(slf.py(), &slf.get().ledger))
            .transpose()?
            .map(PinnedBytes::new);
        Ok(
            match std::mem::replace(&mut rest.state, StreamState::Closed) {
                StreamState::Open(source) => {
                    let chunks = onecopy_serve::Chunks::new(Pumped {
                        source: source.into_inner(),
                        stream: slf.clone().unbind(),
                        _kept: kept,
                    });
                    Left::Rows(match begun {
                        Some(begun) => chunks.begun(onecopy_serve::SharedBytes::new(begun)),
                        None => chunks,
                    })
                }
                _ => Left::Bytes(begun),
            },
        )
    }
}

/// The remaining part of a row stream, for a server.
pub(crate) enum Left {
    /// Bytes that were filled in advance, then the chunks of the source.
    Rows(onecopy_serve::Chunks),
    /// The source is closed. The value contains bytes that were filled in advance.
    Bytes(Option<PinnedBytes>),
}
