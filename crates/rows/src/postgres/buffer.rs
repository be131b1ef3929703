//! `Buffer`: memory for received bytes. A buffer is first the inbox (receive buffer) of the
//! connection. It then becomes the block of the statement to which the received rows belong, while
//! the connection receives into a second buffer. Rows are therefore never copied; only an
//! incomplete message at the end of a buffer is moved to the next buffer.

use std::io;

use super::message::{Frame, Framed, frame};
use crate::error::Error;
use crate::pages::Pages;

/// The size of a new buffer in bytes.
const NEW_BYTES: usize = 256 << 10;

/// The largest size in bytes of a buffer that is reused for another result; a larger buffer is
/// freed.
const LARGEST_KEPT: usize = 1 << 20;

/// A buffer of received bytes; the bytes before `start` were consumed.
#[derive(Debug)]
pub(super) struct Buffer {
    pages: Pages,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(super) fn new() -> Result<Buffer, Error> {
        Ok(Buffer {
            pages: Pages::new(NEW_BYTES).ok_or_else(|| Error::no_memory(NEW_BYTES))?,
            start: 0,
            end: 0,
        })
    }

    /// Creates a buffer of `len` unconsumed bytes; `fill` writes these bytes.
    ///
    /// # Errors
    /// The outer result is an error if memory is exhausted, the inner one if `fill` fails.
    pub(super) fn filled(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> Result<io::Result<Buffer>, Error> {
        let capacity = len.max(NEW_BYTES);
        let mut buffer = Buffer {
            pages: Pages::new(capacity).ok_or_else(|| Error::no_memory(capacity))?,
            start: 0,
            end: len,
        };
        let filled = fill(&mut buffer.pages.bytes_mut()[..len]);
        Ok(filled.map(|()| buffer))
    }

    /// Returns the received bytes that were not consumed yet.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.pages.bytes()[self.start..self.end]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages.bytes_mut()[self.start..self.end]
    }

    /// Marks the first `n` unconsumed bytes as consumed.
    #[inline]
    pub(super) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Returns `true` if the buffer is small enough to be used again for another result.
    pub(super) fn is_kept(&self) -> bool {
        self.pages.bytes().len() <= LARGEST_KEPT
    }

    /// Returns the tag and the length of the message at the start of the unconsumed bytes; `None`
    /// if the message is incomplete.
    ///
    /// # Errors
    /// The message has an invalid length.
    #[inline]
    pub(super) fn frame(&self) -> Result<Option<Frame>, Error> {
        match frame(self.bytes())? {
            Framed::Complete(frame) => Ok(Some(frame)),
            Framed::Partial(_) => Ok(None),
        }
    }

    /// Returns the unused memory after the received bytes. If less than a quarter of the buffer is
    /// unused, its size is doubled first. The growth depends only on received bytes, so a false
    /// length in a message cannot cause a large allocation.
    pub(super) fn free(&mut self) -> Result<&mut [u8], Error> {
        let capacity = self.pages.bytes().len();
        let len = self.end - self.start;
        if self.start > 0 && (capacity - self.end) * 2 < capacity {
            self.pages.bytes_mut().copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, len);
        }
        if (capacity - self.end) * 4 < capacity && !self.pages.resize(capacity * 2) {
            return Err(Error::no_memory(capacity * 2));
        }
        Ok(&mut self.pages.bytes_mut()[self.end..])
    }

    /// Adds the first `n` bytes of the unused memory to the received bytes.
    pub(super) fn received(&mut self, n: usize) {
        self.end = (self.end + n).min(self.pages.bytes().len());
    }

    /// Moves all unconsumed bytes after the first `n` to the buffer `next`, whose contents are
    /// replaced. Returns the number of moved bytes if they begin with a DataRow message, otherwise
    /// 0.
    pub(super) fn split_into(&mut self, n: usize, next: &mut Buffer) -> Result<usize, Error> {
        let at = (self.start + n).min(self.end);
        let rest = &self.pages.bytes()[at..self.end];
        next.clear();
        if rest.len() > next.pages.bytes().len() && !next.pages.resize(rest.len()) {
            return Err(Error::no_memory(rest.len()));
        }
        next.pages.bytes_mut()[..rest.len()].copy_from_slice(rest);
        next.end = rest.len();
        self.end = at;
        Ok(match next.bytes().first() {
            Some(b'D') => next.end,
            _ => 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(buffer: &mut Buffer, bytes: &[u8]) {
        let free = buffer.free().unwrap();
        free[..bytes.len()].copy_from_slice(bytes);
        buffer.received(bytes.len());
    }

    #[test]
    fn what_follows_the_rows_moves_to_the_next_buffer() {
        let mut buffer = Buffer::new().unwrap();
        fill(&mut buffer, b"read;rows;rest");
        buffer.consume(5);
        let mut next = Buffer::new().unwrap();
        assert_eq!(buffer.split_into(5, &mut next).unwrap(), 0, "not a row");
        assert_eq!(
            (buffer.bytes(), next.bytes()),
            (&b"rows;"[..], &b"rest"[..])
        );
        buffer.consume(5);
        assert_eq!(buffer.free().unwrap().len(), NEW_BYTES);
    }

    #[test]
    fn it_grows_only_with_what_was_received() {
        let mut buffer = Buffer::new().unwrap();
        // The header announces a row of a gigabyte.
        fill(&mut buffer, &[b'D', 0x40, 0, 0, 0]);
        assert_eq!(buffer.frame().unwrap(), None);
        assert_eq!(buffer.free().unwrap().len(), NEW_BYTES - 5);
        for _ in 0..8 {
            let n = buffer.free().unwrap().len();
            buffer.received(n);
        }
        let len = buffer.pages.bytes().len();
        assert!(len <= 4 * buffer.bytes().len() && !buffer.is_kept());
    }
}
