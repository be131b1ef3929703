//! Sinks that pass the encoder's output to a function, or write it to an existing buffer.

use std::mem::MaybeUninit;

use onecopy_text::{ByteSink, SinkFull};

use crate::raw::buffer::WritableBuffer;

/// A sink that passes full chunks of output to a function. A chunk may exceed its size, because the
/// sink checks it only at a request for space.
pub(crate) struct Flushing<F: FnMut(&[u8]) -> bool> {
    chunk: Vec<u8>,
    full_bytes: usize,
    flush: F,
    written_bytes: u64,
}

impl<F: FnMut(&[u8]) -> bool> Flushing<F> {
    /// Creates a sink. It calls `flush` when a chunk has `full_bytes` bytes. `flush` returns
    /// `false` after an error.
    pub(crate) fn new(full_bytes: usize, flush: F) -> Flushing<F> {
        Flushing {
            chunk: Vec::new(),
            full_bytes,
            flush,
            written_bytes: 0,
        }
    }

    /// Flushes the remaining bytes. Returns the total number of bytes, or `None` if the flush
    /// failed.
    pub(crate) fn finish(mut self) -> Option<u64> {
        self.flush().then_some(self.written_bytes)
    }

    fn flush(&mut self) -> bool {
        if !self.chunk.is_empty() {
            onecopy_text::planted::extra_work_on_chunk(&self.chunk);
            if !(self.flush)(&self.chunk) {
                return false;
            }
            self.written_bytes += self.chunk.len() as u64;
            self.chunk.clear();
        }
        true
    }
}

// SAFETY: as for the Vec. Only `spare` moves and clears it, after all committed bytes were flushed.
unsafe impl<F: FnMut(&[u8]) -> bool> ByteSink for Flushing<F> {
    fn committed(&self) -> &[u8] {
        &self.chunk
    }

    fn committed_mut(&mut self) -> &mut [u8] {
        &mut self.chunk
    }

    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if self.chunk.is_empty() && self.chunk.capacity() == 0 {
            self.chunk.reserve(self.full_bytes + self.full_bytes / 8);
        }
        if self.chunk.len() >= self.full_bytes && !self.flush() {
            return Err(SinkFull {
                requested_bytes: n_bytes,
            });
        }
        self.chunk.spare(n_bytes)
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        // SAFETY: as the caller guarantees.
        unsafe { self.chunk.commit(n_bytes) };
    }

    fn cut(&mut self, len_bytes: usize) {
        self.chunk.truncate(len_bytes);
    }
}

/// A sink that writes to a fixed buffer. If the encoder requests more space than the buffer has, it
/// writes to `tail` first. The sink then copies `tail`.
pub(crate) struct Fixed<'a> {
    place: WritableBuffer<'a>,
    len: usize,
    /// The buffer for the next bytes if the fixed buffer is too small for a request.
    tail: Vec<u8>,
    in_tail: bool,
    copied_bytes: usize,
}

impl<'a> Fixed<'a> {
    pub(crate) fn new(place: WritableBuffer<'a>) -> Fixed<'a> {
        Fixed {
            place,
            len: 0,
            tail: Vec::new(),
            in_tail: false,
            copied_bytes: 0,
        }
    }

    /// Returns the number of written bytes, and how many of them were copied from `tail`. `None` if
    /// the output does not fit.
    pub(crate) fn finish(mut self) -> Option<(usize, usize)> {
        self.settle().then_some((self.len, self.copied_bytes))
    }

    /// Returns the number of bytes in the fixed buffer while the encoder writes to `tail`,
    /// otherwise 0.
    pub(super) fn settled(&self) -> usize {
        if self.in_tail { self.len } else { 0 }
    }

    /// Overwrites bytes of the fixed buffer from position `at` on.
    ///
    /// # Panics
    /// If one of these bytes has not been written yet.
    pub(super) fn patch_settled(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "not in the place");
        // SAFETY: in the written part of the buffer, as checked above.
        unsafe {
            let to = self.place.at.add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Copies `tail`, if it is in use, to the fixed buffer. Returns `false` if the buffer is too
    /// small.
    fn settle(&mut self) -> bool {
        if self.in_tail {
            if self.tail.len() > self.place.len - self.len {
                return false;
            }
            // SAFETY: they fit, as checked above. The tail is separate memory.
            unsafe {
                let to = self.place.at.add(self.len);
                to.copy_from_nonoverlapping(self.tail.as_ptr(), self.tail.len());
            }
            self.len += self.tail.len();
            self.copied_bytes += self.tail.len();
            self.tail.clear();
            self.in_tail = false;
        }
        true
    }
}

// SAFETY: the spare area follows the committed bytes, in the fixed buffer or in the tail. When
// `spare` changes to the other one, no committed bytes precede the area.
unsafe impl ByteSink for Fixed<'_> {
    fn committed(&self) -> &[u8] {
        if self.in_tail {
            return &self.tail;
        }
        // SAFETY: this number of bytes was committed.
        unsafe { std::slice::from_raw_parts(self.place.at, self.len) }
    }

    fn committed_mut(&mut self) -> &mut [u8] {
        if self.in_tail {
            return &mut self.tail;
        }
        // SAFETY: this number of bytes was committed.
        unsafe { std::slice::from_raw_parts_mut(self.place.at, self.len) }
    }

    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if !self.settle() {
            return Err(SinkFull {
                requested_bytes: n_bytes,
            });
        }
        if self.place.len - self.len < n_bytes {
            self.in_tail = true;
            return self.tail.spare(n_bytes);
        }
        // SAFETY: this number of bytes is left. MaybeUninit requires no initialisation.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(
                self.place.at.add(self.len).cast(),
                self.place.len - self.len,
            )
        })
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        if self.in_tail {
            // SAFETY: as the caller guarantees.
            unsafe { self.tail.commit(n_bytes) };
        } else {
            self.len += n_bytes;
        }
    }

    fn cut(&mut self, len_bytes: usize) {
        if self.in_tail {
            self.tail.truncate(len_bytes);
        } else {
            self.len = self.len.min(len_bytes);
        }
    }
}
