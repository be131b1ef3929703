//! `Registers`: memory of a statement that the driver reads and writes in addition to the rows of a
//! block. It contains the number of fetched rows, the offset of the bound addresses, and the status
//! of each row.

use std::ffi::c_void;

use super::ffi;
use crate::error::Error;
use crate::odbc::block::buffer::Buffer;

/// The memory to which `SQL_ATTR_ROWS_FETCHED_PTR`, `SQL_ATTR_ROW_BIND_OFFSET_PTR` and
/// `SQL_ATTR_ROW_STATUS_PTR` point, in one allocation. No Rust reference to this memory exists
/// while the driver writes.
pub(super) struct Registers {
    memory: Buffer,
    n_rows: usize,
}

/// The byte with which the status of each row is filled before the driver writes the status.
const UNWRITTEN: u8 = 0xFF;

impl Registers {
    /// Allocates the memory in which the driver stores the number of fetched rows and the statuses
    /// of up to `n_rows` rows.
    ///
    /// # Errors
    /// The allocation failed.
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
        // SAFETY: the pointer is inside the buffer, which has at least 16 bytes.
        unsafe { self.memory.ptr().add(8).cast() }
    }

    pub(super) fn statuses_ptr(&self) -> *mut c_void {
        // SAFETY: the buffer has at least 16 bytes; the pointer is inside it, or directly after its
        // end if there are no rows.
        unsafe { self.memory.ptr().add(16).cast() }
    }

    /// Prepares a fetch: sets the offset of the bound addresses, and clears the number of fetched
    /// rows and the statuses.
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

    /// Returns the status that the driver has written for each of the first `n_rows` rows.
    pub(super) fn statuses(&self, n_rows: usize) -> impl Iterator<Item = u16> {
        self.memory.bytes()[16..]
            .chunks_exact(2)
            .take(n_rows.min(self.n_rows))
            .map(|s| u16::from_ne_bytes([s[0], s[1]]))
    }

    /// Returns the index (from 0) of the first of `n_rows` rows that the driver marked as erroneous
    /// or missing; `None` if there is none.
    pub(super) fn row_error(&self, n_rows: usize) -> Option<usize> {
        self.statuses(n_rows)
            .position(|s| matches!(s, ffi::ROW_ERROR | ffi::ROW_NOROW))
    }

    /// Returns the number of rows, from the first row on, that the driver marked as successful. At
    /// most `n_rows` rows are counted, and counting ends at the first row with another status.
    pub(super) fn good_rows(&self, n_rows: usize) -> usize {
        self.statuses(n_rows)
            .take_while(|s| matches!(*s, ffi::ROW_SUCCESS | ffi::ROW_SUCCESS_WITH_INFO))
            .count()
    }
}
