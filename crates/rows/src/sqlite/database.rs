//! The one handle, what is under its lock, and the way in.

use std::cell::UnsafeCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use libsqlite3_sys as ffi;
use onecopy_text::Policy;

use super::cache::{Cache, Prepared};
use super::call::CallGuard;
use super::call_lock::{CallLock, Refused};
use super::watch::Watch;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::source::AttachedHost;

/// A connection's handle and all that shares it: the connection and its statements hold it together.
pub(super) struct Database {
    pub(super) lock: CallLock,
    pub(super) guarded: UnsafeCell<Guarded>,
    pub(super) watch: Box<Watch>,
    /// Statements dropped while another thread was in a call: put away by the next one out.
    pub(super) dropped: Mutex<Vec<Prepared>>,
    pub(super) has_dropped: AtomicBool,
    pub(super) autocommit: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) next_id: AtomicU64,
    pub(super) fork_generation: u32,
    pub(super) path: String,
    pub(super) read_only: bool,
    pub(super) text_policy: Policy,
}

/// What is touched under the call lock alone.
pub(super) struct Guarded {
    /// Null once closed.
    pub(super) db: *mut ffi::sqlite3,
    pub(super) cache: Cache,
    /// All statements of ours that are not finalised. Virtual tables (FTS5, R-Tree) have others.
    pub(super) statements: HashSet<*mut ffi::sqlite3_stmt>,
    /// Values that are read and written in place.
    pub(super) blobs: HashMap<u64, *mut ffi::sqlite3_blob>,
    /// How many rollbacks have ended the cursors open at their time.
    pub(super) n_rollbacks: u64,
    /// A backup of the database is under way.
    pub(super) is_backed_up: bool,
    /// It is closed when that has ended.
    pub(super) closes: bool,
}

// SAFETY: `guarded` is reached only through `CallGuard`, which holds the call lock; everything else is Sync. SQLite is built
// thread-safe, and opened without its own mutexes because the call lock does their work.
unsafe impl Sync for Database {}
// SAFETY: what is not Sync is reached under the call lock alone, and no handle of SQLite's is bound to the thread that
// opened it.
unsafe impl Send for Database {}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// A number for the next statement, from 1.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Whether this process opened the connection.
    pub(super) fn is_ours(&self) -> bool {
        self.fork_generation == fork::generation()
    }

    fn check_process(&self) -> Result<(), Error> {
        if self.is_ours() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Interface,
            "the connection belongs to another process: it was opened before a fork\nconnect again in the child",
        ))
    }

    /// The way in, waiting for a call of another thread to end.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in a forked child, and where this thread is in a call already (a callback).
    pub(super) fn enter(&self) -> Result<CallGuard<'_>, Error> {
        self.check_process()?;
        if self.lock.lock() {
            Ok(CallGuard(self))
        } else {
            Err(reentered())
        }
    }

    /// As [`Database::enter`], for a caller that holds an interpreter lock: waits with it released.
    pub(super) fn enter_attached(&self, host: &dyn AttachedHost) -> Result<CallGuard<'_>, Error> {
        self.check_process()?;
        match self.lock.try_lock() {
            Ok(()) => {}
            Err(Refused::Reentered) => return Err(reentered()),
            Err(Refused::Contended) => {
                let mut locked = false;
                host.released(&mut || locked = locked || self.lock.lock());
                if !locked {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "the host did not wait for the connection's lock",
                    ));
                }
            }
        }
        Ok(CallGuard(self))
    }

    /// Takes back a statement whose owner is gone, without ever waiting for the lock; a forked child leaves it alone.
    pub(super) fn put_away(&self, prepared: Prepared) {
        if !self.is_ours() {
            return;
        }
        if self.lock.try_lock().is_ok() {
            CallGuard(self).rest(prepared);
            return;
        }
        self.dropped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(prepared);
        self.has_dropped.store(true, SeqCst);
        // Whoever held the lock may have left meanwhile, without a look at what was dropped after it.
        if self.lock.try_lock().is_ok() {
            drop(CallGuard(self));
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A forked child must not touch the handle: it leaks, and the parent's stays whole.
        if self.is_ours()
            && let Ok(mut guard) = self.enter()
        {
            guard.close();
        }
    }
}

fn reentered() -> Error {
    Error::new(
        ErrorKind::Interface,
        "the connection is in the middle of a call of this thread\nuse another connection in a callback or a signal handler",
    )
}
