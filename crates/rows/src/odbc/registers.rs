//! What a driver writes to, and reads from, besides the rows of a block.

use std::ffi::c_void;

use super::ffi;
use crate::error::Error;
use crate::odbc::block::buffer::Buffer;

/// `SQL_ATTR_ROWS_FETCHED_PTR`, `SQL_ATTR_ROW_BIND_OFFSET_PTR` and the array of `SQL_ATTR_ROW_STATUS_PTR`, one behind the
/// other in memory that no Rust reference claims while the driver writes.
pub(super) struct Registers {
    memory: Buffer,
    n_rows: usize,
}

/// Each byte of a status that the driver has not written.
const UNWRITTEN: u8 = 0xFF;

impl Registers {
    /// # Errors
    /// Without memory.
    pub(super) fn new(n_rows: usize) -> Result<Registers, Error> {
        Ok(Registers {
            memory: Buffer::zeroed(16 + 2 * n_rows)?,
            n_rows,
        })
    }

    pub(super) fn rows_fetched_ptr(&self) -> *mut c_void {
        self.memory.ptr().cast()
    }

    pub(super) fn bind_offset_ptr(&self) -> *mut c_void {
        // SAFETY: inside the buffer, which has 16 bytes at least.
        unsafe { self.memory.ptr().add(8).cast() }
    }

    pub(super) fn statuses_ptr(&self) -> *mut c_void {
        // SAFETY: the buffer has 16 bytes at least: inside it, or one behind its end where there are no rows.
        unsafe { self.memory.ptr().add(16).cast() }
    }

    /// Before a fetch: where the next row goes, and no rows yet.
    pub(super) fn arm(&mut self, bind_offset: usize) {
        let bytes = self.memory.bytes_mut();
        bytes[16..].fill(UNWRITTEN);
        bytes[..8].fill(0);
        bytes[8..16].copy_from_slice(&bind_offset.to_ne_bytes());
    }

    pub(super) fn rows_fetched(&self) -> usize {
        let bytes = self.memory.bytes()[..8].try_into();
        usize::from_ne_bytes(bytes.expect("eight bytes were taken"))
    }

    /// Statuses of the first `n_rows` rows.
    pub(super) fn statuses(&self, n_rows: usize) -> impl Iterator<Item = u16> {
        self.memory.bytes()[16..]
            .chunks_exact(2)
            .take(n_rows.min(self.n_rows))
            .map(|s| u16::from_ne_bytes([s[0], s[1]]))
    }

    /// The first among `n_rows` rows that the driver marked as in error, or as none.
    pub(super) fn row_error(&self, n_rows: usize) -> Option<usize> {
        self.statuses(n_rows)
            .position(|s| matches!(s, ffi::ROW_ERROR | ffi::ROW_NOROW))
    }

    /// Rows that the driver marked as good before it failed.
    pub(super) fn good_rows(&self, n_rows: usize) -> usize {
        self.statuses(n_rows)
            .take_while(|s| matches!(*s, ffi::ROW_SUCCESS | ffi::ROW_SUCCESS_WITH_INFO))
            .count()
    }
}
