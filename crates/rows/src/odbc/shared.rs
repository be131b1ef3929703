//! `SharedConnection`: the state that a connection and its statements share: the driver's handle,
//! its lock, and facts about the driver.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use onecopy_wire::lock::lock;

use onecopy_text::Policy;

use super::block::buffer::Buffer;
use super::diag;
use super::ffi::{self, Handle};
use super::handle::{RawHandle, StatementHandle};
use super::manager::Manager;
use super::quirks::{Quirks, Width};
use super::secrets::Secrets;
use super::statement_cache::{CachePolicy, StatementCache};
use super::unblock::{Caller, GRACE};
use crate::database::ZeroDates;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::health::ConnectionHealth;

/// The largest row buffer, in bytes, that is kept so that the next statement can reuse it. A
/// typical row buffer has half of this size; only very wide rows need more.
const LARGEST_SPARE: usize = 1 << 20;

/// The state that a connection and its statements share.
pub(crate) struct SharedConnection {
    pub(crate) manager: &'static Manager,
    pub(crate) quirks: &'static Quirks,
    pub(crate) width: Width,
    pub(crate) secrets: Secrets,
    pub(crate) facts: DriverFacts,
    pub(super) read_only: bool,
    /// `true` if a statement may send files of this machine to the server.
    pub(super) local_infile: bool,
    /// The policy for malformed text in the results of this connection.
    pub(crate) text_policy: Policy,
    pub(crate) zero_dates: ZeroDates,
    /// The value of [`fork::generation`](crate::fork::generation) in the process that opened the
    /// connection. No other process may use the connection.
    pub(super) fork_generation: u32,
    /// The health of the connection: whether it is open, closed, or lost (as a driver error has
    /// reported).
    pub(super) health: ConnectionHealth,
    pub(super) state: Mutex<SessionState>,
    /// The number of rows that the driver requests from the server at a time; `None` if this crate
    /// does not control it.
    pub(super) fetch_size: Option<AtomicUsize>,
    /// The number of a connection attribute that must be off while an array of parameters is
    /// executed; `None` if the driver has no such attribute.
    pub(super) off_for_arrays: Option<i32>,
    pub(super) cache_policy: CachePolicy,
    /// The ODBC connection attribute that switches server-side cursors on and off. This crate
    /// switches cursors on only for plain queries. `None` if this connection never switches them.
    pub(super) cursor_switch: Option<i32>,
    /// The row buffer of the last statement, kept so that the next statement can reuse its memory;
    /// `None` while a statement uses it.
    pub(super) spare: Mutex<Option<Buffer>>,
    /// The number of commits and rollbacks of this connection that closed all open cursors. A
    /// statement returns an error if this number has changed since it was executed.
    pub(crate) ended: AtomicU64,
    /// `true` if a statement of this connection has had a column of the type for which the driver
    /// has the fault [`Quirks::miscounts`](super::quirks::Quirks).
    pub(super) has_miscounted: AtomicBool,
    /// The thread that is in a driver call of this connection, if any.
    pub(super) caller: Arc<Caller>,
    /// The statement that is in a driver call, if any.
    pub(super) active: Arc<Mutex<Option<Arc<StatementHandle>>>>,
}

/// Facts that the driver reports about itself.
#[derive(Clone, Debug)]
pub(crate) struct DriverFacts {
    pub(crate) driver: String,
    pub(crate) driver_version: String,
    /// The driver's name and version, for messages. If the driver reports no name, it is the name
    /// in [`Quirks`].
    pub(crate) driver_label: Arc<str>,
    pub(crate) dbms: String,
    pub(crate) dbms_version: String,
    /// The value of `SQL_GETDATA_EXTENSIONS`: in which cases `SQLGetData` works.
    pub(crate) get_data: u32,
    /// `true` if cursors stay open after a commit.
    pub(crate) commit_keeps: bool,
    /// `true` if cursors stay open after a rollback.
    pub(crate) rollback_keeps: bool,
    /// `true` if the database supports transactions.
    pub(crate) transactions: bool,
    /// The connection string without its secrets.
    pub(crate) target: String,
    pub(crate) notices: Vec<String>,
}

pub(super) struct SessionState {
    pub(super) raw: RawHandle,
    pub(super) autocommit: bool,
    pub(super) statements: Vec<Weak<StatementHandle>>,
    /// The prepared statements that this connection can execute again.
    pub(super) cache: StatementCache,
}

impl SessionState {
    /// Frees the driver's handles of all statements of the connection: statements whose rows are
    /// being read, and prepared statements in the cache.
    pub(super) fn free_statements(&mut self) {
        for statement in self.cache.take_all() {
            statement.free();
        }
        for statement in self.statements.drain(..) {
            if let Some(statement) = statement.upgrade() {
                statement.free();
            }
        }
    }
}

impl SharedConnection {
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.is_foreign() {
            return Err(Error::new(
                ErrorKind::Interface,
                "this connection was opened by another process (before a fork)\n\
                 Open a new one in this process.",
            ));
        }
        Ok(())
    }

    /// Returns `true` if this process did not open the connection, but inherited it by a fork.
    pub(crate) fn is_foreign(&self) -> bool {
        self.fork_generation != fork::generation()
    }

    /// Frees the driver's handle of a statement. In a child process that inherited the connection
    /// by fork(2), only forgets the handle, because the child must not call the driver.
    pub(crate) fn free_statement(&self, handle: &Arc<StatementHandle>) {
        if self.is_foreign() {
            handle.forget();
            return;
        }
        let mut state = lock(&self.state);
        handle.free();
        state.statements.retain(|w| w.strong_count() > 0);
    }

    /// Records that the driver call of this thread has ended. If another thread has shut down the
    /// connection's socket to end the call, marks the connection as lost.
    pub(super) fn leave(&self) {
        self.caller.leave();
        if self.caller.is_broken() {
            self.health.lose();
        }
    }

    /// Locks the session state, and returns the guard of the lock.
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    /// Returns the row buffer of an earlier statement, for reuse; `None` if no buffer was kept.
    pub(crate) fn take_spare(&self) -> Option<Buffer> {
        lock(&self.spare).take()
    }

    /// Keeps the row buffer of a statement, so that the next statement can reuse its memory. Drops
    /// a buffer that is larger than [`LARGEST_SPARE`]. Before the call, the statement handle must
    /// have been unbound from the buffer.
    pub(crate) fn keep_spare(&self, buffer: Buffer) {
        if buffer.len() <= LARGEST_SPARE && !self.is_foreign() {
            lock(&self.spare).replace(buffer);
        }
    }

    /// Records that a driver call uses the statement `handle`, until the returned guard is dropped.
    pub(crate) fn busy<'a>(&'a self, handle: &'a Arc<StatementHandle>) -> Busy<'a> {
        *lock(&self.active) = Some(Arc::clone(handle));
        handle.set_busy(true);
        Busy {
            shared: self,
            handle,
        }
    }

    pub(super) fn error(&self, raw: Handle, call: &str) -> Error {
        diag::error(
            self.manager,
            ffi::HANDLE_DBC,
            raw,
            self.width,
            self.quirks.dialect,
            &self.secrets,
            call,
        )
    }

    pub(super) fn close(&self) -> Result<(), Error> {
        // In a forked process the handles belong to the parent: they are not used here, and leak.
        self.check_process()?;
        let mut state = lock(&self.state);
        self.health.close();
        let raw = std::mem::replace(&mut state.raw.0, std::ptr::null_mut());
        if raw.is_null() {
            return Ok(());
        }
        self.caller.enter();
        let _limit = self.caller.limit(GRACE);
        state.free_statements();
        // SAFETY: a live connection handle, which this call has removed from the state; its
        // statements are freed. An open transaction is rolled back first: otherwise SQLDisconnect
        // refuses with 25000.
        let rc = unsafe {
            (self.manager.call.end_tran)(ffi::HANDLE_DBC, raw, ffi::ROLLBACK);
            (self.manager.call.disconnect)(raw)
        };
        let result = if rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO {
            Ok(())
        } else {
            Err(self.error(raw, "SQLDisconnect"))
        };
        // SAFETY: this call has removed the handle from the state and does not use it afterwards.
        // The driver manager refuses to free a handle that could not be disconnected, which then
        // leaks.
        unsafe { (self.manager.call.free_handle)(ffi::HANDLE_DBC, raw) };
        self.caller.leave();
        result
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        // A drop cannot return the error of `close`.
        let _ = self.close();
    }
}

/// The guard that [`SharedConnection::busy`] returns. When it is dropped, the connection records
/// that the driver call of this statement has ended.
pub(crate) struct Busy<'a> {
    shared: &'a SharedConnection,
    handle: &'a Arc<StatementHandle>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.handle.set_busy(false);
        *lock(&self.shared.active) = None;
    }
}
