//! A value that is read and written in place (<https://sqlite.org/c3ref/blob_open.html>).

use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use libsqlite3_sys as ffi;

use super::call::CallGuard;
use super::connection::Connection;
use super::database::Database;
use crate::error::{Error, ErrorKind};

/// A BLOB or text of a row, open for reading or writing. It is closed with its connection.
#[derive(Debug)]
pub struct Blob {
    database: Arc<Database>,
    /// Its number among the open ones of the connection.
    id: u64,
    len_bytes: usize,
    /// The result code of the last read or write, which closing repeats.
    last_code: AtomicI32,
}

impl Connection {
    /// Opens the value of `column` in the row with this row id.
    ///
    /// # Errors
    /// As SQLite says: no such table, column or row; a value that is neither text nor binary.
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
                "a name holds a NUL character",
            ));
        };
        let mut guard = self.database().enter()?;
        guard.check_open()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is open and the lock held; the names are NUL-terminated; `handle` is
        // set, to null after a failure.
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
        // SAFETY: an open blob, and the lock is held.
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

impl Blob {
    /// Bytes of the value, which do not change while it is open.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Runs `call` with the handle.
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

    /// Reads as many bytes as `out` has, from `from` on. Copies: one.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if it is closed; [`ErrorKind::Operational`] if the row was changed.
    ///
    /// # Panics
    /// If there are not as many: a bug of the caller.
    pub fn read(&self, from: usize, out: &mut [u8]) -> Result<(), Error> {
        assert!(from <= self.len_bytes && out.len() <= self.len_bytes - from);
        self.call(|_, handle| {
            // SAFETY: an open blob, and the lock is held; `out` takes the bytes, of which there are
            // as many (at most 2^31 - 1).
            unsafe {
                let n_bytes = out.len() as c_int;
                ffi::sqlite3_blob_read(handle, out.as_mut_ptr().cast(), n_bytes, from as c_int)
            }
        })
    }

    /// Writes `bytes` from `to` on. Copies: one.
    ///
    /// # Errors
    /// As [`Blob::read`]; a value that was opened for reading.
    ///
    /// # Panics
    /// If the value ends before: a bug of the caller.
    pub fn write(&self, to: usize, bytes: &[u8]) -> Result<(), Error> {
        assert!(to <= self.len_bytes && bytes.len() <= self.len_bytes - to);
        self.call(|_, handle| {
            // SAFETY: as in `read`.
            unsafe {
                let n_bytes = bytes.len() as c_int;
                ffi::sqlite3_blob_write(handle, bytes.as_ptr().cast(), n_bytes, to as c_int)
            }
        })
    }

    /// Closes it; closing twice is no error.
    ///
    /// # Errors
    /// As SQLite says of what was written.
    pub fn close(&self) -> Result<(), Error> {
        let mut guard = self.database.enter()?;
        match guard.blobs().remove(&self.id) {
            Some(handle) => {
                // SAFETY: it was open until now, and the lock is held.
                let code = unsafe { ffi::sqlite3_blob_close(handle) };
                match code == self.last_code.load(Relaxed) {
                    true => Ok(()),
                    false => guard.check(code),
                }
            }
            None => Ok(()),
        }
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        // There is nobody to return an error to; in a forked child it stays open.
        _ = self.close();
    }
}
