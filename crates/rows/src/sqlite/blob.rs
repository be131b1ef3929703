//! `Blob`: incremental reads and writes of a value (<https://sqlite.org/c3ref/blob_open.html>).

use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use libsqlite3_sys as ffi;

use super::call::CallGuard;
use super::connection::Connection;
use super::database::{Database, Dropped};
use crate::error::{Error, ErrorKind};

/// A binary or text value of a row, opened for incremental reads or writes. It is closed at the
/// latest when its connection is closed.
#[derive(Debug)]
pub struct Blob {
    database: Arc<Database>,
    /// The number that identifies this blob among the open blobs of the connection.
    id: u64,
    len_bytes: usize,
    /// The result code of the last read or write. `sqlite3_blob_close` returns this code again;
    /// [`Blob::close`] then ignores the code, because the read or write has already reported it.
    last_code: AtomicI32,
}

impl Connection {
    /// Opens the value of `column` in the row with the given row id.
    ///
    /// # Errors
    /// The error of SQLite: the table, column or row does not exist, or the value is neither text
    /// nor binary.
    pub fn open_blob(
        &self,
        schema: &str,
        table: &str,
        column: &str,
        row: i64,
        writes: bool,
    ) -> Result<Blob, Error> {
        let names = [schema, table, column].map(CString::new);
        let [Ok(schema), Ok(table), Ok(column)] = names else {
            return Err(Error::new(
                ErrorKind::Programming,
                "a name contains a NUL character",
            ));
        };
        let mut guard = self.database().enter()?;
        guard.check_open()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is open, and this thread holds the lock; the names are NUL-terminated;
        // the call sets `handle`, to null after a failure.
        let code = unsafe {
            ffi::sqlite3_blob_open(
                guard.db(),
                schema.as_ptr(),
                table.as_ptr(),
                column.as_ptr(),
                row,
                c_int::from(writes),
                &mut handle,
            )
        };
        guard.check(code)?;
        let id = self.database().next_id();
        guard.blobs().insert(id, handle);
        // SAFETY: the blob is open, and this thread holds the lock.
        let len = unsafe { ffi::sqlite3_blob_bytes(handle) };
        drop(guard);
        Ok(Blob {
            database: self.shared_database(),
            id,
            len_bytes: usize::try_from(len).unwrap_or(0),
            last_code: AtomicI32::new(ffi::SQLITE_OK),
        })
    }
}

impl CallGuard<'_> {
    /// Closes the blob with the number `id`; returns the result code, or `None` if the blob was
    /// closed before.
    pub(super) fn close_blob(&mut self, id: u64) -> Option<c_int> {
        let handle = self.blobs().remove(&id)?;
        // SAFETY: the blob was open until now, and this thread holds the lock.
        Some(unsafe { ffi::sqlite3_blob_close(handle) })
    }
}

impl Blob {
    /// Returns the size of the value in bytes, which cannot change while the blob is open.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Calls `call` with the blob's handle, while the connection's lock is held.
    fn call(
        &self,
        call: impl FnOnce(&mut CallGuard<'_>, *mut ffi::sqlite3_blob) -> c_int,
    ) -> Result<(), Error> {
        let mut guard = self.database.enter()?;
        let handle = guard.blobs().get(&self.id).copied().ok_or_else(|| {
            Error::new(
                ErrorKind::Interface,
                "the value or its connection is closed",
            )
        })?;
        let code = call(&mut guard, handle);
        self.last_code.store(code, Relaxed);
        match code {
            ffi::SQLITE_ABORT => Err(Error::new(
                ErrorKind::Operational,
                "the row was changed since the value was opened",
            )),
            ffi::SQLITE_READONLY => Err(Error::new(
                ErrorKind::Operational,
                "the value was opened with `readonly`",
            )),
            code => guard.check(code),
        }
    }

    /// Fills `out` with the bytes of the value from offset `from` on. SQLite copies the bytes
    /// directly into `out`.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if the blob is closed; [`ErrorKind::Operational`] if the row was
    /// changed.
    ///
    /// # Panics
    /// If the value ends before `out` is full; the caller must check [`Blob::len_bytes`].
    pub fn read(&self, from: usize, out: &mut [u8]) -> Result<(), Error> {
        assert!(from <= self.len_bytes && out.len() <= self.len_bytes - from);
        self.call(|_, handle| {
            // SAFETY: the blob is open, and this thread holds the lock; `out` has space for
            // `n_bytes` bytes (at most 2^31 - 1).
            unsafe {
                let n_bytes = out.len() as c_int;
                ffi::sqlite3_blob_read(handle, out.as_mut_ptr().cast(), n_bytes, from as c_int)
            }
        })
    }

    /// Overwrites the bytes of the value with `bytes`, from offset `to` on.
    ///
    /// # Errors
    /// The errors of [`Blob::read`]; an error if the blob was opened for reading.
    ///
    /// # Panics
    /// If the value ends before all bytes are written; the caller must check [`Blob::len_bytes`].
    pub fn write(&self, to: usize, bytes: &[u8]) -> Result<(), Error> {
        assert!(to <= self.len_bytes && bytes.len() <= self.len_bytes - to);
        self.call(|_, handle| {
            // SAFETY: as in `read`; `bytes` has `n_bytes` bytes.
            unsafe {
                let n_bytes = bytes.len() as c_int;
                ffi::sqlite3_blob_write(handle, bytes.as_ptr().cast(), n_bytes, to as c_int)
            }
        })
    }

    /// Closes the blob; a second close is not an error.
    ///
    /// # Errors
    /// An error of SQLite that no read or write has returned before, for example of the commit
    /// after the last write in autocommit mode. The blob is closed nevertheless.
    pub fn close(&self) -> Result<(), Error> {
        let mut guard = self.database.enter()?;
        match guard.close_blob(self.id) {
            Some(code) if code != self.last_code.load(Relaxed) => guard.check(code),
            _ => Ok(()),
        }
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        self.database.put_away(Dropped::Blob(self.id));
    }
}
