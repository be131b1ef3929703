//! A copy of a database that is in use, page by page
//! (<https://sqlite.org/c3ref/backup_finish.html>).

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::sync::{Mutex, PoisonError};

use libsqlite3_sys as ffi;

use super::connection::Connection;
use super::database::Database;
use super::functions;
use crate::error::{Error, ErrorKind};

/// One backup runs at a time: each holds the lock of its target while it waits for that of its source.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Pages of a step if all are to be copied: the caller may end the backup between two steps.
const STEP_PAGES: i32 = 1024;

thread_local! { static IS_RUNNING: Cell<bool> = const { Cell::new(false) } }

/// A backup on this thread.
struct Running;

impl Running {
    /// # Errors
    /// [`ErrorKind::Interface`] in a callback of another backup, which would wait for itself, and in a function that a
    /// statement calls: a backup of another thread may wait for that statement.
    fn begin() -> Result<Running, Error> {
        if functions::is_in_callback() {
            return Err(Error::new(
                ErrorKind::Interface,
                "a backup cannot begin in a function that a statement calls\nbegin it when the statement has ended",
            ));
        }
        if IS_RUNNING.replace(true) {
            return Err(Error::new(
                ErrorKind::Interface,
                "a backup of this thread is under way\nbegin the next one when it has ended",
            ));
        }
        Ok(Running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        IS_RUNNING.set(false);
    }
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The result code of the last step: `SQLITE_OK`, `SQLITE_DONE`, `SQLITE_BUSY` or `SQLITE_LOCKED`.
    pub status: i32,
    /// Pages that are not copied yet.
    pub n_remaining: i32,
    /// Pages of the source.
    pub n_pages: i32,
}

/// A backup under way, whose target's lock is held.
struct Backup<'a> {
    handle: *mut ffi::sqlite3_backup,
    source: &'a Database,
}

impl Drop for Backup<'_> {
    fn drop(&mut self) {
        // In a forked child it is left to the parent.
        if let Ok(mut from) = self.source.enter() {
            // SAFETY: made by `sqlite3_backup_init`, finished only here, and both locks are held.
            unsafe { ffi::sqlite3_backup_finish(self.handle) };
            from.set_backed_up(false);
        }
    }
}

impl Progress {
    /// Whether another connection has a lock, so that nothing was copied.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        matches!(self.status & 0xff, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
    }
}

impl Connection {
    /// Copies the database `name` (`main`) of this connection to that of `target`, `n_pages` at a
    /// time (below 1: all). Other connections, and other threads on this one, may use the source
    /// meanwhile. `goes_on` is called after each step; if that was `SQLITE_BUSY` or
    /// `SQLITE_LOCKED`, it waits.
    ///
    /// # Errors
    /// As SQLite says; [`ErrorKind::Programming`] if both are one connection; what `goes_on`
    /// returns.
    pub fn backup(
        &self,
        target: &Connection,
        name: &str,
        n_pages: i32,
        goes_on: &mut dyn FnMut(Progress) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_same = std::ptr::eq(self.database(), target.database());
        let name = CString::new(name)
            .ok()
            .filter(|_| !is_same)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Programming,
                    "a backup goes to another connection, from a database whose name has no NUL",
                )
            })?;
        let _this = Running::begin()?;
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let to = target.database().enter()?;
        to.check_open()?;
        let backup = {
            let mut from = self.database().enter()?;
            from.check_open()?;
            // SAFETY: both handles are open and both locks held; the names are NUL-terminated.
            let made = unsafe {
                ffi::sqlite3_backup_init(to.db(), c"main".as_ptr(), from.db(), name.as_ptr())
            };
            if made.is_null() {
                // SAFETY: the handle is open and its lock held.
                let code = unsafe { ffi::sqlite3_extended_errcode(to.db()) };
                to.check(code)?;
                return Err(Error::new(ErrorKind::Operational, "no backup was made"));
            }
            from.set_backed_up(true);
            Backup {
                handle: made,
                source: self.database(),
            }
        };
        let step_pages = if n_pages < 1 { STEP_PAGES } else { n_pages };
        loop {
            let from = self.database().enter()?;
            if from.closes() {
                return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
            }
            // SAFETY: the backup is not finished, and the locks of both connections are held.
            let progress = unsafe {
                Progress {
                    status: ffi::sqlite3_backup_step(backup.handle, step_pages as c_int),
                    n_remaining: ffi::sqlite3_backup_remaining(backup.handle),
                    n_pages: ffi::sqlite3_backup_pagecount(backup.handle),
                }
            };
            let code = progress.status;
            drop(from);
            if !progress.is_blocked() && code != ffi::SQLITE_DONE {
                to.check(code)?;
            }
            goes_on(progress)?;
            if code == ffi::SQLITE_DONE {
                return Ok(());
            }
        }
    }
}
