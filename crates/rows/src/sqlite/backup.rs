//! Copies a database while it is in use, a limited number of pages at a time, with SQLite's online
//! backup API (<https://sqlite.org/c3ref/backup_finish.html>).

use std::ffi::{CString, c_int};
use std::sync::Arc;

use libsqlite3_sys as ffi;

use super::call::CallGuard;
use super::call_lock::{CallLock, Refused};
use super::connection::Connection;
use super::database::{Database, Dropped, UnfinishedBackup};
use crate::error::{Error, ErrorKind};

/// The lock that allows only one backup in this process at a time. Two backups could otherwise wait
/// for each other, because each holds the lock of its target while it waits for the lock of its
/// source.
static ONE_AT_A_TIME: CallLock = CallLock::new();

/// The number of pages that one step of a backup copies if the caller sets no number (`n_pages` is
/// below 1). Between two steps the caller may end the backup.
const STEP_PAGES: i32 = 1024;

/// The guard of the lock [`ONE_AT_A_TIME`]. Each backup owns this guard while it runs, so only one
/// backup at a time runs in the process.
struct Turn;

impl Turn {
    /// Waits until no other backup is active.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if this thread is in a callback of another backup, or if another
    /// thread's backup waits for this thread.
    fn begin() -> Result<Turn, Error> {
        ONE_AT_A_TIME.lock().map_err(|refused| match refused {
            Refused::Reentered => Error::new(
                ErrorKind::Interface,
                "a backup of this thread is under way\nbegin the next one when it has ended",
            ),
            refused => refused.error(),
        })?;
        Ok(Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        ONE_AT_A_TIME.unlock();
    }
}

/// The progress of a backup after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// The result code of the last step: `SQLITE_OK`, `SQLITE_DONE`, `SQLITE_BUSY` or
    /// `SQLITE_LOCKED`.
    pub status: i32,
    /// The number of pages that are still to be copied.
    pub n_remaining: i32,
    /// The number of pages of the source database.
    pub n_pages: i32,
}

/// A backup in progress, which is finished when this value is dropped.
struct Backup<'a> {
    handle: *mut ffi::sqlite3_backup,
    source: &'a Database,
    target: Arc<Database>,
    /// The guard that holds the lock of the target connection during the backup, so that no other
    /// call can use the target. `None` only while the backup is being dropped.
    to: Option<CallGuard<'a>>,
}

impl Backup<'_> {
    /// Copies up to `n_pages` pages of the source database to the target. During the copy, this
    /// function holds the lock of the source connection.
    fn step(&self, n_pages: c_int) -> Result<BackupProgress, Error> {
        let from = self.source.enter()?;
        if from.closes() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        // SAFETY: the backup is not finished, and this thread holds the locks of both connections.
        let progress = unsafe {
            BackupProgress {
                status: ffi::sqlite3_backup_step(self.handle, n_pages),
                n_remaining: ffi::sqlite3_backup_remaining(self.handle),
                n_pages: ffi::sqlite3_backup_pagecount(self.handle),
            }
        };
        drop(from);
        match &self.to {
            Some(to) if !progress.is_blocked() && progress.status != ffi::SQLITE_DONE => {
                to.check(progress.status).map(|()| progress)
            }
            _ => Ok(progress),
        }
    }
}

impl Drop for Backup<'_> {
    fn drop(&mut self) {
        if let Ok(mut from) = self.source.enter() {
            // SAFETY: `sqlite3_backup_init` made the handle, only this drop finishes it, and this
            // thread holds both locks.
            unsafe { ffi::sqlite3_backup_finish(self.handle) };
            from.set_backed_up(false);
            return;
        }
        // The source is in use, for example by a thread that waits for this thread. The backup is
        // finished at the end of that use. In a forked child, only the parent finishes the backup.
        if let Some(mut to) = self.to.take() {
            to.set_awaits_finish(true);
        }
        self.source.put_away(Dropped::Backup(UnfinishedBackup {
            handle: self.handle,
            target: self.target.clone(),
        }));
    }
}

impl BackupProgress {
    /// Returns `true` if the last step of the backup has copied no pages, because another
    /// connection holds a lock.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        matches!(self.status & 0xff, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
    }
}

impl Connection {
    /// Copies the database `name` (usually `main`) of this connection to the main database of
    /// `target`. Between two steps, other threads and connections may use the source.
    ///
    /// One step copies `n_pages` pages, or 1024 if `n_pages` is below 1. After each step, the
    /// function calls `goes_on`, and aborts the backup if `goes_on` returns an error. After
    /// `SQLITE_BUSY` or `SQLITE_LOCKED`, `goes_on` should wait, because the next step follows
    /// immediately.
    ///
    /// # Errors
    /// The error of SQLite; [`ErrorKind::Programming`] if source and target are the same
    /// connection; the error that `goes_on` returns.
    pub fn backup(
        &self,
        target: &Connection,
        name: &str,
        n_pages: i32,
        goes_on: &mut dyn FnMut(BackupProgress) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_same = std::ptr::eq(self.database(), target.database());
        let name = CString::new(name)
            .ok()
            .filter(|_| !is_same)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Programming,
                    "a backup needs another connection as its target, and a database name without NUL",
                )
            })?;
        let _turn = Turn::begin()?;
        let to = target.database().enter()?;
        to.check_open()?;
        let backup = {
            let mut from = self.database().enter()?;
            from.check_open()?;
            // SAFETY: both handles are open, and this thread holds both locks; the names are
            // NUL-terminated.
            let made = unsafe {
                ffi::sqlite3_backup_init(to.db(), c"main".as_ptr(), from.db(), name.as_ptr())
            };
            if made.is_null() {
                // SAFETY: the handle is open, and this thread holds its lock.
                let code = unsafe { ffi::sqlite3_extended_errcode(to.db()) };
                to.check(code)?;
                return Err(Error::new(ErrorKind::Operational, "no backup was made"));
            }
            from.set_backed_up(true);
            Backup {
                handle: made,
                source: self.database(),
                target: target.shared_database(),
                to: Some(to),
            }
        };
        let step_pages = if n_pages < 1 { STEP_PAGES } else { n_pages };
        loop {
            let progress = backup.step(step_pages)?;
            goes_on(progress)?;
            if progress.status == ffi::SQLITE_DONE {
                return Ok(());
            }
        }
    }
}
