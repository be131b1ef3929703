//! Chunks to use again.

use std::sync::Mutex;

use onecopy_text::Chunk;

use crate::lock;

/// A pool of empty chunks, so that streams allocate nothing per chunk.
pub(crate) struct Buffers {
    free: Mutex<Vec<Chunk>>,
    chunk_bytes: usize,
    n_max: usize,
}

impl Buffers {
    pub(crate) fn new(chunk_bytes: usize, n_max: usize) -> Buffers {
        Buffers {
            free: Mutex::new(Vec::new()),
            chunk_bytes,
            n_max,
        }
    }

    /// An empty chunk of about the configured size.
    pub(crate) fn take(&self) -> Chunk {
        let kept = lock(&self.free).pop();
        kept.unwrap_or_else(|| Chunk::with_capacity(self.chunk_bytes))
    }

    /// Keeps `chunk` for later, unless a long row has blown it up or enough are kept.
    pub(crate) fn give(&self, mut chunk: Chunk) {
        if chunk.capacity() > self.chunk_bytes.saturating_mul(2) {
            return;
        }
        chunk.clear();
        let mut free = lock(&self.free);
        if free.len() < self.n_max {
            free.push(chunk);
        }
    }

    #[cfg(test)]
    pub(crate) fn n_kept(&self) -> usize {
        lock(&self.free).len()
    }
}
