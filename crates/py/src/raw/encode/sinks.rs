//! `Flushing` and `Fixed`: sinks for the encoder's output if the result is not a new `bytes`
//! object. `Flushing` passes chunks to a function, and `Fixed` writes to an existing buffer.

use std::mem::MaybeUninit;

use onecopy_text::{ByteSink, SinkFull};

use crate::raw::buffer::WritableBuffer;

/// A sink that passes its chunk of output to a function when the chunk is full. The sink checks the
/// size of the chunk only when the encoder requests more space. A chunk may therefore exceed its
/// size by the bytes that the encoder writes between two requests.
pub(crate) struct Flushing<F: FnMut(&[u8]) -> bool> {
    chunk: Vec<u8>,
    full_bytes: usize,
    flush: F,
    written_bytes: u64,
}

impl<F: FnMut(&[u8]) -> bool> Flushing<F> {
    /// Creates a sink that collects bytes in a chunk. When the chunk contains at least `full_bytes`
    /// bytes, the sink passes it to the function `flush`, which returns `false` if it failed.
    pub(crate) fn new(full_bytes: usize, flush: F) -> Flushing<F> {
        Flushing {
            chunk: Vec::new(),
            full_bytes,
            flush,
            written_bytes: 0,
        }
    }

    /// Flushes the remaining bytes. Returns the total number of flushed bytes, or `None` if this
    /// flush failed.
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

// SAFETY: as of the Vec, which only `spare` moves and clears: all committed bytes were passed on
// then.
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
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.chunk.commit(n_bytes) };
    }

    fn cut(&mut self, len_bytes: usize) {
        self.chunk.truncate(len_bytes);
    }
}

/// A sink that writes to a buffer of fixed size. The encoder requests space before it writes, often
/// more than it then uses. If the fixed buffer has less space than requested, the encoder writes to
/// the buffer `tail`. The sink copies `tail` to the fixed buffer at the next request or at the end.
pub(crate) struct Fixed<'a> {
    place: WritableBuffer<'a>,
    len: usize,
    /// The buffer that receives the next bytes if the fixed buffer has less space than requested.
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

    /// Returns the number of bytes written, and the number of those bytes that were first written
    /// to the separate buffer `tail` and then copied. Returns `None` if the output does not fit
    /// into the buffer.
    pub(crate) fn finish(mut self) -> Option<(usize, usize)> {
        self.settle().then_some((self.len, self.copied_bytes))
    }

    /// Returns 0 while the encoder writes to the fixed buffer. While the encoder writes to the
    /// separate buffer `tail`, returns the number of bytes that were written to the fixed buffer.
    pub(super) fn settled(&self) -> usize {
        if self.in_tail { self.len } else { 0 }
    }

    /// Overwrites bytes of the fixed buffer, from position `at` on, with `bytes`.
    ///
    /// # Panics
    /// If one of these bytes has not been written to the fixed buffer yet.
    pub(super) fn patch_settled(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "not in the place");
        // SAFETY: inside of the written part of the buffer, checked above.
        unsafe {
            let to = self.place.at.add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Copies the bytes of the separate buffer `tail`, if it is in use, to the end of the fixed
    /// buffer. Returns `false` if the fixed buffer has too little space.
    fn settle(&mut self) -> bool {
        if self.in_tail {
            if self.tail.len() > self.place.len - self.len {
                return false;
            }
            // SAFETY: they fit, as checked above; the tail is separate memory.
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

// SAFETY: the spare area follows what is committed, in the fixed place or in the tail; `spare` goes
// from one to the other, and then nothing is committed that it would have to follow.
unsafe impl ByteSink for Fixed<'_> {
    fn committed(&self) -> &[u8] {
        if self.in_tail {
            return &self.tail;
        }
        // SAFETY: as many bytes were committed.
        unsafe { std::slice::from_raw_parts(self.place.at, self.len) }
    }

    fn committed_mut(&mut self) -> &mut [u8] {
        if self.in_tail {
            return &mut self.tail;
        }
        // SAFETY: as many bytes were committed.
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
        // SAFETY: as many bytes are left; MaybeUninit requires no initialisation.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(
                self.place.at.add(self.len).cast(),
                self.place.len - self.len,
            )
        })
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        if self.in_tail {
            // SAFETY: the caller guarantees the requirements.
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
