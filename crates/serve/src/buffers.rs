//! [`Buffers`]: a pool of reusable chunks for row streams.

use std::sync::Mutex;

use onecopy_wire::lock::lock;

use onecopy_text::Chunk;

/// A pool of empty chunks, which row streams reuse instead of allocating new ones.
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

    /// Returns an empty chunk from the pool. If the pool is empty, allocates a chunk of
    /// `chunk_bytes` bytes.
    pub(crate) fn take(&self) -> Chunk {
        let kept = lock(&self.free).pop();
        kept.unwrap_or_else(|| Chunk::with_capacity(self.chunk_bytes))
    }

    /// Puts `chunk` back into the pool. If a long row has enlarged the chunk, or if the pool is
    /// full, the chunk is freed instead.
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
