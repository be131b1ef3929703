//! `Database`: the handle of a connection, and the state that its call lock guards.

use std::cell::UnsafeCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use onecopy_wire::lock::lock;

use libsqlite3_sys as ffi;
use onecopy_text::Policy;

use super::call::CallGuard;
use super::call_lock::{CallLock, Refused};
use super::callbacks::CallbackState;
use super::statement_cache::{Cache, Prepared};
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::source::AttachedHost;

/// The handle of a connection, and the state that the connection and its statements share.
pub(super) struct Database {
    pub(super) lock: CallLock,
    pub(super) guarded: UnsafeCell<LockedDatabase>,
    pub(super) watch: Box<CallbackState>,
    /// Objects that were dropped while a call held the lock; they are released at the end of the
    /// call.
    pub(super) dropped: Mutex<Vec<Dropped>>,
    pub(super) has_dropped: AtomicBool,
    pub(super) autocommit: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) next_id: AtomicU64,
    pub(super) fork_generation: u32,
    pub(super) path: String,
    pub(super) read_only: bool,
    pub(super) text_policy: Policy,
}

/// A statement, blob or failed backup that its owner has dropped. Only a thread that holds the call
/// lock may release it.
pub(super) enum Dropped {
    Statement(Prepared),
    /// The number that the connection has given to an open blob.
    Blob(u64),
    /// A failed backup whose source is this database.
    Backup(UnfinishedBackup),
}

/// A failed backup that could not be finished immediately, because another thread used its source.
pub(super) struct UnfinishedBackup {
    pub(super) handle: *mut ffi::sqlite3_backup,
    pub(super) target: Arc<Database>,
}

/// The state of a connection that only the holder of its call lock accesses.
pub(super) struct LockedDatabase {
    /// The handle of SQLite's connection; null after it was closed.
    pub(super) db: *mut ffi::sqlite3,
    pub(super) cache: Cache,
    /// All statements that this crate has prepared and not finalised. Virtual tables (FTS5, R-Tree)
    /// have statements of their own, which are not in the set.
    pub(super) statements: HashSet<*mut ffi::sqlite3_stmt>,
    /// The open blobs of the connection, by their numbers.
    pub(super) blobs: HashMap<u64, *mut ffi::sqlite3_blob>,
    /// A counter that each rollback increments. A cursor that was opened at a lower count returns
    /// no more rows.
    pub(super) n_rollbacks: u64,
    /// `true` while the database is the source of a backup.
    pub(super) is_backed_up: bool,
    /// `true` if `close` was called during a backup. The connection is then closed when the backup
    /// ends.
    pub(super) closes: bool,
    /// `true` if a backup to this database has failed and is not finished yet. The thread that uses
    /// the source of the backup will finish it.
    pub(super) awaits_finish: bool,
}

// SAFETY: `guarded` is accessed only through `CallGuard`, which holds the call lock; all other
// fields are Sync. SQLite is built thread-safe, and the connection is opened without SQLite's own
// mutexes, because the call lock replaces them.
unsafe impl Sync for Database {}
// SAFETY: fields that are not Sync are accessed only under the call lock, and no handle of SQLite
// is bound to the thread that opened it.
unsafe impl Send for Database {}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Returns the number (from 1) of the next statement of this connection.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Returns `true` if this process opened the connection, `false` in a forked child.
    pub(super) fn is_ours(&self) -> bool {
        self.fork_generation == fork::generation()
    }

    fn check_process(&self) -> Result<(), Error> {
        if self.is_ours() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Interface,
            "the connection belongs to another process: it was opened before a fork\n\
             connect again in the child",
        ))
    }

    /// Acquires the call lock; waits until an active call of another thread has ended.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in each of these cases:
    /// - this process is a forked child of the process that opened the connection;
    /// - this thread already holds the lock, because it is in a callback of SQLite;
    /// - the thread that holds the lock waits for this thread;
    /// - a failed backup to this database is not finished yet.
    pub(super) fn enter(&self) -> Result<CallGuard<'_>, Error> {
        self.check_process()?;
        self.lock.lock().map_err(Refused::error)?;
        CallGuard(self).check_finished()
    }

    /// Acquires the call lock as [`Database::enter`] does, but returns `None` instead of waiting.
    pub(super) fn try_enter(&self) -> Result<Option<CallGuard<'_>>, Error> {
        self.check_process()?;
        match self.lock.try_lock() {
            Ok(()) => CallGuard(self).check_finished().map(Some),
            Err(Refused::Contended) => Ok(None),
            Err(refused) => Err(refused.error()),
        }
    }

    /// Acquires the call lock as [`Database::enter`] does, for a caller that holds an interpreter
    /// lock; the interpreter lock is released during a wait.
    pub(super) fn enter_attached(&self, host: &dyn AttachedHost) -> Result<CallGuard<'_>, Error> {
        if let Some(guard) = self.try_enter()? {
            return Ok(guard);
        }
        let mut entered = None;
        host.released(&mut || {
            entered.get_or_insert_with(|| self.enter());
        });
        entered.unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::Internal,
                "the host did not wait for the connection's lock",
            ))
        })
    }

    /// Releases an object that its owner has dropped. If another call holds the call lock, the
    /// object is released at the end of that call; this function never waits. In a forked child the
    /// object leaks.
    pub(super) fn put_away(&self, dropped: Dropped) {
        if !self.is_ours() {
            return;
        }
        if self.lock.try_lock().is_ok() {
            CallGuard(self).put_away(dropped);
            return;
        }
        lock(&self.dropped).push(dropped);
        self.has_dropped.store(true, SeqCst);
        // The holder of the lock may have released it in the meantime, without seeing the object
        // that was pushed above.
        if self.lock.try_lock().is_ok() {
            drop(CallGuard(self));
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A forked child must not use the handle. The handle leaks there, and stays valid in the
        // parent.
        if self.is_ours()
            && let Ok(mut guard) = self.enter()
        {
            guard.close();
        }
    }
}
