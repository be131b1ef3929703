//! `CallGuard`: the guard of the call lock, with the SQLite functions that require this lock:
//! prepare, bind, reset, close.

use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;

use onecopy_wire::lock::unpoisoned;

use libsqlite3_sys as ffi;

use super::bind::{Keep, bind};
use super::database::{Database, Dropped, LockedDatabase, UnfinishedBackup};
use super::error::{During, from_code, of};
use super::statement_cache::Prepared;
use super::statement_kind::StatementKind;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;
use crate::sql::statements::skip_blank;
use crate::value::{Value, sqlite_number};

/// The guard of a connection's [`CallLock`](super::call_lock::CallLock). The methods of the guard
/// call SQLite. A guard can only be created in the process that opened the database.
pub(super) struct CallGuard<'a>(pub(super) &'a Database);

impl CallGuard<'_> {
    #[expect(
        clippy::mut_from_ref,
        reason = "private; each use ends before the next begins"
    )]
    fn guarded(&self) -> &mut LockedDatabase {
        // SAFETY: this thread holds the call lock, and no reference from here outlives the
        // statement in which it is used: callbacks do not call the methods below, they use only the
        // `CallbackState`.
        unsafe { &mut *self.0.guarded.get() }
    }

    /// Records the beginning (`true`) or the end (`false`) of a backup of this database. At the
    /// end, closes the connection if `close` was called during the backup.
    pub(super) fn set_backed_up(&mut self, is_backed_up: bool) {
        self.guarded().is_backed_up = is_backed_up;
        if !is_backed_up && self.guarded().closes {
            self.close();
        }
    }

    /// Returns `true` if `close` was called during a backup of this database. Such a call does not
    /// close the connection at once: the connection is closed when the backup ends.
    pub(super) fn closes(&self) -> bool {
        self.guarded().closes
    }

    /// Returns this guard, unless a failed backup to this database is not finished yet.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if a backup to this database has failed and is not finished yet.
    pub(super) fn check_finished(self) -> Result<Self, Error> {
        if self.guarded().awaits_finish {
            return Err(Error::new(
                ErrorKind::Interface,
                "a backup to this connection has failed, and ends when the source's call has ended",
            ));
        }
        Ok(self)
    }

    /// Records that a failed backup to this database must still be finished (`true`), or that it
    /// was finished (`false`).
    pub(super) fn set_awaits_finish(&mut self, awaits_finish: bool) {
        self.guarded().awaits_finish = awaits_finish;
    }

    /// Returns the open blobs of the connection, by their numbers.
    pub(super) fn blobs(&mut self) -> &mut HashMap<u64, *mut ffi::sqlite3_blob> {
        &mut self.guarded().blobs
    }

    /// Returns the connection's handle; null after the connection was closed.
    pub(super) fn db(&self) -> *mut ffi::sqlite3 {
        self.guarded().db
    }

    /// Returns the number of rollbacks on this connection. A cursor that was opened before the last
    /// rollback returns no more rows.
    pub(super) fn n_rollbacks(&self) -> u64 {
        self.guarded().n_rollbacks
    }

    /// Returns an error if the connection is closed.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if the connection is closed.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.db().is_null() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        Ok(())
    }

    /// Returns `true` if no transaction is open.
    pub(super) fn in_autocommit(&self) -> bool {
        // SAFETY: callers checked that the handle is open; this thread holds the lock.
        unsafe { ffi::sqlite3_get_autocommit(self.db()) != 0 }
    }

    /// Creates the error for the result code `code` of the operation `during`.
    pub(super) fn error(&self, code: c_int, during: During) -> Error {
        // SAFETY: the handle is open or null, and this thread holds the lock.
        unsafe { from_code(self.db(), code, during) }
    }

    /// Returns a prepared statement for `sql`. The statement is taken from the cache if possible.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if `sql` contains no statement, or more than one. The error of
    /// SQLite if it cannot prepare the statement.
    pub(super) fn prepare(&self, sql: &str) -> Result<Prepared, Error> {
        self.check_open()?;
        if let Some(prepared) = self.guarded().cache.take(sql) {
            return Ok(prepared);
        }
        let programming = |message: String| Error::new(ErrorKind::Programming, message);
        if self.0.read_only && StatementKind::of(sql, true) == StatementKind::Vacuum {
            let message = "a read-only connection cannot VACUUM, not even INTO another file";
            return Err(of(ffi::SQLITE_READONLY, message.to_owned(), During::Step));
        }
        if sql.contains('\0') {
            return Err(programming(
                "the statement contains a NUL character".to_owned(),
            ));
        }
        let len = c_int::try_from(sql.len())
            .map_err(|_| programming("the statement is longer than 2 GiB".to_owned()))?;
        let (mut stmt, mut tail) = (ptr::null_mut(), ptr::null());
        // SAFETY: the handle is open, and this thread holds the lock; sql has len bytes; stmt and
        // tail receive pointers, and tail points into sql.
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
        // SQLite compares values of its statistics while it prepares a statement.
        if let Some(message) = self.0.watch.take_collation_error() {
            // SAFETY: null, or prepared above; it has no other user.
            unsafe { ffi::sqlite3_finalize(stmt) };
            return Err(of(ffi::SQLITE_ERROR, message, During::Step));
        }
        if code != ffi::SQLITE_OK {
            return Err(self.error(code, During::Prepare));
        }
        if stmt.is_null() {
            return Err(programming("there is no statement in the text".to_owned()));
        }
        let rest = skip_blank(sql.get(used..).unwrap_or(""), Dialect::Sqlite);
        if !rest.is_empty() {
            // SAFETY: stmt was prepared above, and has no other user.
            unsafe { ffi::sqlite3_finalize(stmt) };
            let second: String = rest.chars().take(40).collect();
            return Err(programming(format!(
                "one statement at a time: a second one begins at `{second}`\n\
                 execute each by its own call"
            )));
        }
        // SAFETY: stmt is a live statement that this connection prepared.
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
            kind: StatementKind::of(sql, read_only),
            n_parameters: usize::try_from(n_parameters).unwrap_or(0),
            schema: None,
        })
    }

    /// Binds `values` to the parameters of a statement.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if the number of values differs from the number of parameters.
    /// The message contains both numbers. The error of SQLite if a value cannot be bound.
    ///
    /// # Safety
    /// With [`Keep::Borrowed`] the caller must keep the values alive until the bindings are
    /// cleared.
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
            // SAFETY: the statement was reset, and this thread holds the lock; the caller vouches
            // that the values live long enough.
            let code = unsafe { bind(prepared.stmt, index, value, keep) };
            if code != ffi::SQLITE_OK {
                return Err(self.error(code, During::Step));
            }
        }
        Ok(())
    }

    /// Releases the SQLite resources of an object of this connection whose Rust value was dropped:
    /// a statement, a blob or a failed backup.
    pub(super) fn put_away(&mut self, dropped: Dropped) {
        match dropped {
            Dropped::Statement(prepared) => self.rest(prepared),
            Dropped::Blob(id) => _ = self.close_blob(id),
            Dropped::Backup(backup) => self.finish_backup(&backup),
        }
    }

    /// Finishes a failed backup whose source is this database.
    fn finish_backup(&mut self, backup: &UnfinishedBackup) {
        // The target refuses all other calls until its failed backup is finished, so no thread
        // holds the target's lock for long.
        if backup.target.lock.lock().is_ok() {
            let mut target = CallGuard(&backup.target);
            // SAFETY: `sqlite3_backup_init` made the handle, it was not finished before, and this
            // thread holds both locks.
            unsafe { ffi::sqlite3_backup_finish(backup.handle) };
            target.set_awaits_finish(false);
            self.set_backed_up(false);
        }
    }

    /// Resets a prepared statement, clears its bindings, and puts it back into the cache.
    pub(super) fn rest(&self, prepared: Prepared) {
        if self.db().is_null() {
            return; // `close` has finalised the statement.
        }
        // SAFETY: the statement belongs to the open handle, its owner has given it up, and this
        // thread holds the lock. The result of the reset is ignored: it repeats the error of the
        // last step, which was reported already.
        unsafe {
            ffi::sqlite3_reset(prepared.stmt);
            ffi::sqlite3_clear_bindings(prepared.stmt);
        }
        if let Some(surplus) = self.guarded().cache.put(prepared) {
            self.guarded().statements.remove(&surplus.stmt);
            // SAFETY: the statement was removed from the cache, and there is no other reference to
            // it.
            unsafe { ffi::sqlite3_finalize(surplus.stmt) };
        }
    }

    /// Steps a statement, and returns SQLite's result code.
    ///
    /// # Errors
    /// A collation has failed in the step. The statement must be reset.
    ///
    /// # Safety
    /// The caller must pass a live statement of this connection that no other code uses.
    #[inline]
    pub(super) unsafe fn step(&self, stmt: *mut ffi::sqlite3_stmt) -> Result<c_int, Error> {
        // SAFETY: the caller vouches for the statement; this thread holds the lock.
        let code = unsafe { ffi::sqlite3_step(stmt) };
        match self.0.watch.take_collation_error() {
            None => Ok(code),
            Some(message) => Err(of(ffi::SQLITE_ERROR, message, During::Step)),
        }
    }

    /// Executes a SQL string without parameters. Rows that it returns are discarded.
    pub(super) fn run(&self, sql: &str) -> Result<(), Error> {
        let prepared = self.prepare(sql)?;
        // SAFETY: only this function uses the statement until it is returned, and this thread holds
        // the lock.
        let code = unsafe {
            loop {
                match self.step(prepared.stmt) {
                    Ok(ffi::SQLITE_ROW) => {}
                    code => break code,
                }
            }
        };
        let result = match code {
            Ok(ffi::SQLITE_DONE) => Ok(()),
            Ok(code) => Err(self.error(code, During::Step)),
            Err(error) => Err(error),
        };
        self.rest(prepared);
        result
    }

    /// Ends every active cursor of the connection after a rollback. A cursor could otherwise return
    /// rows of the transaction that was rolled back.
    pub(super) fn end_cursors(&self) {
        self.guarded().n_rollbacks += 1;
        for &stmt in &self.guarded().statements {
            // SAFETY: a live statement of this connection, and this thread holds the lock.
            unsafe {
                if ffi::sqlite3_stmt_busy(stmt) != 0 {
                    ffi::sqlite3_reset(stmt);
                }
            }
        }
    }

    /// Rolls back an open transaction, finalises every statement and closes the handle.
    pub(super) fn close(&mut self) {
        if self.db().is_null() {
            return;
        }
        if self.guarded().is_backed_up {
            // The backup ends at its next step, and then closes the connection.
            self.guarded().closes = true;
            return;
        }
        self.guarded().cache.forget();
        // SAFETY: this thread holds the lock, so no statement is being stepped. The owners of
        // statements check that the handle is not null before they use a statement again.
        // `sqlite3_close` rolls an open transaction back, and finalises the statements of virtual
        // tables.
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
                let dropped = self.0.dropped.lock();
                let dropped = std::mem::take(&mut *unpoisoned(dropped));
                for dropped in dropped {
                    self.put_away(dropped);
                }
            }
            self.0.lock.unlock();
            // An object may have been dropped by another thread after the check above and before
            // the unlock.
            if !self.0.has_dropped.load(SeqCst) || self.0.lock.try_lock().is_err() {
                return;
            }
        }
    }
}
