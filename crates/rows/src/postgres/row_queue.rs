//! [`RowQueue`]: rows that were received before their statement requested them. The first rows are
//! stored in memory, up to a limit, and all further rows in a temporary file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::buffer::Buffer;
use crate::error::{Error, ErrorKind};

/// The largest number of bytes of a result's rows that are stored in memory.
const MEMORY_BYTES: usize = 4 << 20;

/// The rows of a result that were received before their statement requested them, in the order of
/// arrival. They are received early if another statement is executed on the same connection.
#[derive(Debug, Default)]
pub(super) struct RowQueue {
    /// The buffers of rows that are stored in memory. They precede the buffers in `file`.
    buffers: VecDeque<Buffer>,
    n_bytes: usize,
    /// The buffers of rows that are stored in a temporary file; `None` if all buffers are in
    /// memory.
    file: Option<BufferFile>,
    /// The error that occurred when rows were written to the temporary file. The rows after this
    /// error were discarded.
    failure: Option<Error>,
}

/// Buffers of rows in an unnamed temporary file. The system deletes the file when this value is
/// dropped.
#[derive(Debug)]
struct BufferFile {
    file: File,
    /// The lengths in bytes of the buffers in the file that were not read back yet.
    lengths: VecDeque<usize>,
    /// The offset in `file` of the first buffer that was not read back yet.
    start: u64,
    end: u64,
}

impl RowQueue {
    /// Adds a buffer of rows. If the buffer cannot be stored, this buffer and all later buffers are
    /// discarded. [`RowQueue::pop`] then returns the error after the buffers that were stored.
    pub(super) fn push(&mut self, rows: Buffer) {
        if self.failure.is_some() {
            return;
        }
        let len = rows.bytes().len();
        if self.file.is_none() && self.n_bytes + len <= MEMORY_BYTES {
            self.n_bytes += len;
            self.buffers.push_back(rows);
            return;
        }
        if let Err(source) = self.write(rows.bytes()) {
            self.failure = Some(not_stored(&source));
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(BufferFile {
                file: tempfile::tempfile()?,
                lengths: VecDeque::new(),
                start: 0,
                end: 0,
            });
        }
        if let Some(stored) = &mut self.file {
            stored.file.write_all_at(bytes, stored.end)?;
            stored.end += bytes.len() as u64;
            stored.lengths.push_back(bytes.len());
        }
        Ok(())
    }

    /// Removes the next buffer of rows and returns it; `None` if no buffer is left.
    ///
    /// # Errors
    /// Rows could not be written to the temporary file or read from it.
    pub(super) fn pop(&mut self) -> Result<Option<Buffer>, Error> {
        if let Some(rows) = self.buffers.pop_front() {
            self.n_bytes -= rows.bytes().len();
            return Ok(Some(rows));
        }
        let next = self.file.as_mut().and_then(|stored| {
            let len = stored.lengths.pop_front()?;
            Some((stored, len))
        });
        if let Some((stored, len)) = next {
            let rows = Buffer::filled(len, |bytes| stored.file.read_exact_at(bytes, stored.start));
            stored.start += len as u64;
            return rows?.map_err(|source| not_stored(&source)).map(Some);
        }
        // All rows were read, so the file is closed, which frees its space.
        self.file = None;
        self.failure.clone().map_or(Ok(None), Err)
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) {
        *self = RowQueue::default();
    }
}

fn not_stored(source: &io::Error) -> Error {
    let message = format!(
        "rows of an open result cannot be stored in a temporary file: {source}\n\
         They had to be stored because another statement was executed on the connection: read all \
         rows before it, use a second connection, or set TMPDIR to a directory with more space."
    );
    Error::new(ErrorKind::Operational, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a buffer with `len` bytes, all of which have the value `value`.
    fn rows(value: u8, len: usize) -> Buffer {
        let filled = Buffer::filled(len, |bytes| {
            bytes.fill(value);
            Ok(())
        });
        filled.expect("memory").expect("filled")
    }

    fn popped(queue: &mut RowQueue) -> Option<(u8, usize)> {
        let rows = queue.pop().expect("rows")?;
        let first = *rows.bytes().first()?;
        assert!(rows.bytes().iter().all(|byte| *byte == first));
        Some((first, rows.bytes().len()))
    }

    #[test]
    fn rows_are_returned_in_order_from_memory_and_file() {
        let mut queue = RowQueue::default();
        let lengths = [1 << 20, 3 << 20, 1, 1 << 20, 77];
        for (value, len) in (0_u8..).zip(lengths) {
            queue.push(rows(value, len));
        }
        assert_eq!((queue.buffers.len(), queue.n_bytes), (2, MEMORY_BYTES));
        for (value, len) in (0_u8..).zip(lengths) {
            assert_eq!(popped(&mut queue), Some((value, len)));
            // Rows that arrive later come last, whether there is space in memory or not.
            if value == 1 {
                queue.push(rows(9, 5));
                assert_eq!(queue.n_bytes, 0);
            }
        }
        assert_eq!(popped(&mut queue), Some((9, 5)));
        assert_eq!(popped(&mut queue), None);
        assert!(queue.file.is_none());
        queue.push(rows(7, 6));
        assert_eq!((popped(&mut queue), queue.n_bytes), (Some((7, 6)), 0));
    }

    #[test]
    fn an_error_takes_the_place_of_the_rows_that_are_missing() {
        let mut queue = RowQueue::default();
        queue.push(rows(1, MEMORY_BYTES));
        // A file that cannot be written.
        queue.file = Some(BufferFile {
            file: File::open("/dev/null").expect("a device"),
            lengths: VecDeque::new(),
            start: 0,
            end: 0,
        });
        queue.push(rows(2, 10));
        queue.push(rows(3, 10));
        assert_eq!(popped(&mut queue), Some((1, MEMORY_BYTES)));
        for _ in 0..2 {
            let error = queue.pop().expect_err("an error");
            assert!(
                error.message.starts_with("rows of an open result"),
                "{error}"
            );
        }
        queue.clear();
        assert_eq!(popped(&mut queue), None);
    }
}
