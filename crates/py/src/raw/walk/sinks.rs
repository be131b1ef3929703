//! Where JSON goes besides a fresh `bytes`.

use std::mem::MaybeUninit;

use onecopy_text::{ByteSink, SinkFull};

use crate::raw::buffer::Place;

/// A chunk that is flushed where it is full: what is written is bounded by its size and the longest step.
pub(crate) struct Flushing<F: FnMut(&[u8]) -> bool> {
    chunk: Vec<u8>,
    full_bytes: usize,
    flush: F,
    written_bytes: u64,
}

impl<F: FnMut(&[u8]) -> bool> Flushing<F> {
    /// One that `flush` takes from, where it holds `full_bytes`; `false` where that failed.
    pub(crate) fn new(full_bytes: usize, flush: F) -> Flushing<F> {
        Flushing {
            chunk: Vec::new(),
            full_bytes,
            flush,
            written_bytes: 0,
        }
    }

    /// Flushes what is left; the bytes written in all, or `None` where it failed.
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

// SAFETY: as of the Vec, which is moved and cleared in `spare` alone: all that was committed is gone then.
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
                asked_bytes: n_bytes,
            });
        }
        self.chunk.spare(n_bytes)
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        // SAFETY: the duty of the caller.
        unsafe { self.chunk.commit(n_bytes) };
    }

    fn cut(&mut self, len_bytes: usize) {
        self.chunk.truncate(len_bytes);
    }
}

/// A place that does not grow. What is asked for may be more than what is put, so where there is less room left a step goes to a
/// place of its own first, and is copied behind.
pub(crate) struct Fixed<'a> {
    place: Place<'a>,
    len: usize,
    /// The step under way, where it did not surely fit.
    tail: Vec<u8>,
    in_tail: bool,
    copied_bytes: usize,
}

impl<'a> Fixed<'a> {
    pub(crate) fn new(place: Place<'a>) -> Fixed<'a> {
        Fixed {
            place,
            len: 0,
            tail: Vec::new(),
            in_tail: false,
            copied_bytes: 0,
        }
    }

    /// The bytes written, and how many of them were copied; `None` where they do not fit.
    pub(crate) fn finish(mut self) -> Option<(usize, usize)> {
        self.settle().then_some((self.len, self.copied_bytes))
    }

    /// Bytes that stand in the place, where those that are committed stand elsewhere; else 0.
    pub(super) fn settled(&self) -> usize {
        if self.in_tail { self.len } else { 0 }
    }

    /// Overwrites bytes that stand in the place.
    ///
    /// # Panics
    /// Where they do not.
    pub(super) fn patch_settled(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "not in the place");
        // SAFETY: inside of what was written of the place, looked at above.
        unsafe {
            let to = self.place.at.add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Copies the step under way behind the others.
    fn settle(&mut self) -> bool {
        if self.in_tail {
            if self.tail.len() > self.place.len - self.len {
                return false;
            }
            // SAFETY: they fit, looked at above; the tail is memory of its own.
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

// SAFETY: the spare area follows what is committed, in the fixed place or in the tail; `spare` goes from one to the other, and
// then nothing is committed that it would have to follow.
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
                asked_bytes: n_bytes,
            });
        }
        if self.place.len - self.len < n_bytes {
            self.in_tail = true;
            return self.tail.spare(n_bytes);
        }
        // SAFETY: as many bytes are left; MaybeUninit asks for no initialisation.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(
                self.place.at.add(self.len).cast(),
                self.place.len - self.len,
            )
        })
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        if self.in_tail {
            // SAFETY: the duty of the caller.
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
