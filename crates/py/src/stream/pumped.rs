//! A row stream on its way through a server of our own: pumped by its workers, detached.

use std::sync::atomic::Ordering::Relaxed;

use onecopy_text::Chunk;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};
use pyo3::prelude::*;

use super::{RowStream, State};
use crate::raw::held::HeldBytes;

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
    pub(crate) fn chunks(slf: &Bound<'_, Self>, kept: impl Send + 'static) -> PyResult<Left> {
        let mut rest = slf.get().lock(slf.py())?;
        let begun = rest.ready.take();
        let begun = begun
            .map(|ready| ready.into_bytes(slf.py(), &slf.get().ledger))
            .transpose()?
            .map(HeldBytes::new);
        Ok(match std::mem::replace(&mut rest.state, State::Closed) {
            State::Open(source) => {
                let chunks = onecopy_serve::Chunks::new(Pumped {
                    source: source.into_inner(),
                    stream: slf.clone().unbind(),
                    _kept: kept,
                });
                Left::Rows(match begun {
                    Some(begun) => chunks.begun(onecopy_serve::Held::new(begun)),
                    None => chunks,
                })
            }
            _ => Left::Bytes(begun),
        })
    }
}

/// What a server has to send of a row stream.
pub(crate) enum Left {
    /// What was filled before, and what comes.
    Rows(onecopy_serve::Chunks),
    /// All that is left was filled before.
    Bytes(Option<HeldBytes>),
}
