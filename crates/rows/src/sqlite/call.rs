//! What is done under the call lock: prepare, bind, put to rest, close.

use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

use libsqlite3_sys as ffi;

use super::bind::{Keep, bind};
use super::cache::Prepared;
use super::database::{Database, Guarded};
use super::error::{During, from_code, of};
use super::sql::Kind;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;
use crate::sql::statements::skip_blank;
use crate::value::{Value, sqlite_number};

/// The way in: holds the call lock, in the process that opened the database.
pub(super) struct CallGuard<'a>(pub(super) &'a Database);

impl CallGuard<'_> {
    #[expect(
        clippy::mut_from_ref,
        reason = "private; each use ends before the next begins"
    )]
    fn guarded(&self) -> &mut Guarded {
        // SAFETY: the call lock is held by this thread, and no reference from here outlives the statement it is used in:
        // the methods below are not entered by the callbacks, which see the watch alone.
        unsafe { &mut *self.0.guarded.get() }
    }

    /// Notes that a backup of this database begins, or (`false`) has ended; closes what was to be
    /// closed meanwhile.
    pub(super) fn set_backed_up(&mut self, is_backed_up: bool) {
        self.guarded().is_backed_up = is_backed_up;
        if !is_backed_up && self.guarded().closes {
            self.close();
        }
    }

    /// Whether the connection is to be closed when its backup has ended.
    pub(super) fn closes(&self) -> bool {
        self.guarded().closes
    }

    /// The values that are open, by number.
    pub(super) fn blobs(&mut self) -> &mut HashMap<u64, *mut ffi::sqlite3_blob> {
        &mut self.guarded().blobs
    }

    /// The handle, null once closed.
    pub(super) fn db(&self) -> *mut ffi::sqlite3 {
        self.guarded().db
    }

    /// How many rollbacks have ended cursors so far.
    pub(super) fn n_rollbacks(&self) -> u64 {
        self.guarded().n_rollbacks
    }

    /// # Errors
    /// [`ErrorKind::Interface`] where the connection is closed.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.db().is_null() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        Ok(())
    }

    /// Whether no transaction is open.
    pub(super) fn in_autocommit(&self) -> bool {
        // SAFETY: callers checked that the handle is open; the lock is held.
        unsafe { ffi::sqlite3_get_autocommit(self.db()) != 0 }
    }

    /// The error for `code`.
    pub(super) fn error(&self, code: c_int, during: During) -> Error {
        // SAFETY: the handle is open or null, and the lock is held.
        unsafe { from_code(self.db(), code, during) }
    }

    /// Prepares `sql`, or takes it from the cache.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] where it is no statement, or more than one; as SQLite says.
    pub(super) fn prepare(&self, sql: &str) -> Result<Prepared, Error> {
        self.check_open()?;
        if let Some(prepared) = self.guarded().cache.take(sql) {
            return Ok(prepared);
        }
        let programming = |message: String| Error::new(ErrorKind::Programming, message);
        if self.0.read_only && Kind::of(sql, true) == Kind::Vacuum {
            let message = "a read-only connection cannot VACUUM, not even INTO another file";
            return Err(of(ffi::SQLITE_READONLY, message.to_owned(), During::Step));
        }
        if sql.contains('\0') {
            return Err(programming(
                "the statement holds a NUL character".to_owned(),
            ));
        }
        let len = c_int::try_from(sql.len())
            .map_err(|_| programming("the statement is longer than 2 GiB".to_owned()))?;
        let (mut stmt, mut tail) = (ptr::null_mut(), ptr::null());
        // SAFETY: the handle is open and the lock held; sql has len bytes; stmt and tail receive pointers, tail into sql.
        let (code, used) = unsafe {
            let code = ffi::sqlite3_prepare_v3(
                self.db(),
                sql.as_ptr().cast(),
                len,
                ffi::SQLITE_PREPARE_PERSISTENT as _,
                &mut stmt,
                &mut tail,
            );
            let used = if tail.is_null() {
                sql.len()
            } else {
                tail.addr() - sql.as_ptr().addr()
            };
            (code, used)
        };
        if code != ffi::SQLITE_OK {
            return Err(self.error(code, During::Prepare));
        }
        if stmt.is_null() {
            return Err(programming("there is no statement in the text".to_owned()));
        }
        let rest = skip_blank(sql.get(used..).unwrap_or(""), Dialect::Sqlite);
        if !rest.is_empty() {
            // SAFETY: stmt was just prepared and is used by nobody.
            unsafe { ffi::sqlite3_finalize(stmt) };
            let second: String = rest.chars().take(40).collect();
            return Err(programming(format!(
                "one statement at a time: a second one begins at `{second}`\nexecute each by its own call"
            )));
        }
        // SAFETY: stmt is a live statement of ours.
        let (read_only, n_parameters) = unsafe {
            (
                ffi::sqlite3_stmt_readonly(stmt) != 0,
                ffi::sqlite3_bind_parameter_count(stmt),
            )
        };
        self.guarded().statements.insert(stmt);
        Ok(Prepared {
            stmt,
            sql: sql.into(),
            kind: Kind::of(sql, read_only),
            n_parameters: usize::try_from(n_parameters).unwrap_or(0),
            schema: None,
        })
    }

    /// Binds `values`, all of them.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] with both numbers where they are not as many as the statement takes; as SQLite says.
    ///
    /// # Safety
    /// With [`Keep::Borrowed`] the values live until the bindings are cleared.
    pub(super) unsafe fn bind_all(
        &self,
        prepared: &Prepared,
        values: &[Value],
        keep: Keep,
    ) -> Result<(), Error> {
        let n = prepared.n_parameters;
        if values.len() != n {
            return Err(Error::wrong_count(n, values.len()));
        }
        for (index, value) in (1..).zip(values) {
            let number;
            let value = match value {
                Value::Decimal(digits) => {
                    number = sqlite_number(digits, index as usize - 1)?;
                    &number
                }
                value => value,
            };
            // SAFETY: the statement is at rest and the lock held; the caller vouches for the values' lives.
            let code = unsafe { bind(prepared.stmt, index, value, keep) };
            if code != ffi::SQLITE_OK {
                return Err(self.error(code, During::Step));
            }
        }
        Ok(())
    }

    /// Puts a statement back: reset, its bindings cleared, into the cache.
    pub(super) fn rest(&self, prepared: Prepared) {
        if self.db().is_null() {
            return; // Closing has finalised it.
        }
        // SAFETY: the statement belongs to the open handle, its owner has given it up, and the lock is held. The result
        // of a reset repeats the error of the last step, which was told already.
        unsafe {
            ffi::sqlite3_reset(prepared.stmt);
            ffi::sqlite3_clear_bindings(prepared.stmt);
        }
        if let Some(surplus) = self.guarded().cache.put(prepared) {
            self.guarded().statements.remove(&surplus.stmt);
            // SAFETY: it is out of the cache and nobody else knows it.
            unsafe { ffi::sqlite3_finalize(surplus.stmt) };
        }
    }

    /// Runs `sql`, which takes no parameters; rows are passed over.
    pub(super) fn run(&self, sql: &str) -> Result<(), Error> {
        let prepared = self.prepare(sql)?;
        // SAFETY: the statement is ours alone until it is put back, and the lock is held.
        let code = unsafe {
            loop {
                match ffi::sqlite3_step(prepared.stmt) {
                    ffi::SQLITE_ROW => {}
                    code => break code,
                }
            }
        };
        let result = match code {
            ffi::SQLITE_DONE => Ok(()),
            code => Err(self.error(code, During::Step)),
        };
        self.rest(prepared);
        result
    }

    /// Ends every cursor under way, so that none gives rows of a transaction that was rolled back.
    pub(super) fn end_cursors(&self) {
        self.guarded().n_rollbacks += 1;
        for &stmt in &self.guarded().statements {
            // SAFETY: a live statement of ours, and the lock is held.
            unsafe {
                if ffi::sqlite3_stmt_busy(stmt) != 0 {
                    ffi::sqlite3_reset(stmt);
                }
            }
        }
    }

    /// Rolls an open transaction back, finalises every statement and closes the handle.
    pub(super) fn close(&mut self) {
        if self.db().is_null() {
            return;
        }
        if self.guarded().is_backed_up {
            // The backup ends at its next step, and closes then.
            self.guarded().closes = true;
            return;
        }
        self.guarded().cache.forget();
        // SAFETY: the lock is held, so no statement is being stepped. Their owners look whether the handle is null before
        // they touch them again. Closing rolls an open transaction back, and finalises the statements of virtual tables.
        unsafe {
            for stmt in std::mem::take(&mut self.guarded().statements) {
                ffi::sqlite3_finalize(stmt);
            }
            for (_, blob) in std::mem::take(&mut self.guarded().blobs) {
                ffi::sqlite3_blob_close(blob);
            }
            let code = ffi::sqlite3_close(self.db());
            debug_assert_eq!(code, ffi::SQLITE_OK);
        }
        self.guarded().db = ptr::null_mut();
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        loop {
            if self.0.has_dropped.swap(false, SeqCst) {
                let mut dropped = self
                    .0
                    .dropped
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                for prepared in std::mem::take(&mut *dropped) {
                    self.rest(prepared);
                }
            }
            self.0.lock.unlock();
            // One may have been dropped between the look above and the unlock.
            if !self.0.has_dropped.load(SeqCst) || self.0.lock.try_lock().is_err() {
                return;
            }
        }
    }
}
