//! What a connection and its statements share: the driver's handle, its lock, and what is known of the driver.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use onecopy_text::Policy;

use super::block::buffer::Buffer;
use super::diag;
use super::ffi::{self, Handle};
use super::handle::{RawHandle, StatementHandle, lock};
use super::manager::Manager;
use super::quirks::{Quirks, Width};
use super::secrets::Secrets;
use super::statement_cache::{CachePolicy, StatementCache};
use super::unblock::{Caller, GRACE};
use crate::database::ZeroDates;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::health::ConnectionHealth;

/// A block is about half of this; a larger one was made for very wide rows.
const LARGEST_SPARE: usize = 1 << 20;

/// What a connection and its statements share.
pub(crate) struct Shared {
    pub(crate) manager: &'static Manager,
    pub(crate) quirks: &'static Quirks,
    pub(crate) width: Width,
    pub(crate) secrets: Secrets,
    pub(crate) facts: DriverFacts,
    pub(super) read_only: bool,
    /// Statements may send files of this machine.
    pub(super) local_infile: bool,
    /// What a stream of its rows does with malformed text.
    pub(crate) text_policy: Policy,
    pub(crate) zero_dates: ZeroDates,
    /// Of the process that opened it: no other may use it.
    pub(super) fork_generation: u32,
    /// Whether it still works.
    pub(super) health: ConnectionHealth,
    pub(super) state: Mutex<State>,
    /// Rows that the driver asks the server for at once, where it is ours to say.
    pub(super) fetch_size: Option<AtomicUsize>,
    /// Connection attribute that is switched off while an array of parameters runs.
    pub(super) off_for_arrays: Option<i32>,
    pub(super) cache_policy: CachePolicy,
    /// Connection attribute that is switched off for all but plain queries: cursors of the driver.
    pub(super) cursor_switch: Option<i32>,
    /// Memory of the last statement's block, for the next one.
    pub(super) spare: Mutex<Option<Buffer>>,
    /// How often a transaction of this connection has ended in a way that ends cursors.
    pub(crate) ended: AtomicU64,
    /// True if a column was described of the type in [`Quirks::miscounts`](super::quirks::Quirks).
    pub(super) has_miscounted: AtomicBool,
    /// The thread inside a driver call now.
    pub(super) caller: Arc<Caller>,
    /// The statement inside a driver call now.
    pub(super) active: Arc<Mutex<Option<Arc<StatementHandle>>>>,
}

/// What the driver says of itself.
#[derive(Clone, Debug)]
pub(crate) struct DriverFacts {
    pub(crate) driver: String,
    pub(crate) driver_version: String,
    /// Both, for messages; the driver by the name of this crate's table where it gives none.
    pub(crate) driver_label: Arc<str>,
    pub(crate) dbms: String,
    pub(crate) dbms_version: String,
    /// `SQL_GETDATA_EXTENSIONS`.
    pub(crate) get_data: u32,
    /// A commit leaves cursors open.
    pub(crate) commit_keeps: bool,
    /// A rollback leaves cursors open.
    pub(crate) rollback_keeps: bool,
    /// The database knows transactions.
    pub(crate) transactions: bool,
    /// The connection string, redacted.
    pub(crate) target: String,
    pub(crate) notices: Vec<String>,
}

pub(super) struct State {
    pub(super) raw: RawHandle,
    pub(super) autocommit: bool,
    pub(super) statements: Vec<Weak<StatementHandle>>,
    /// Prepared statements that nobody uses now.
    pub(super) cache: StatementCache,
}

impl State {
    /// Frees the handles of all statements, also of those that have results or are kept.
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

impl Shared {
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.is_foreign() {
            return Err(Error::new(
                ErrorKind::Interface,
                "this connection was opened by another process (before a fork)\nOpen a new one in this process.",
            ));
        }
        Ok(())
    }

    /// Whether this is another process than the one that opened the connection.
    pub(crate) fn is_foreign(&self) -> bool {
        self.fork_generation != fork::generation()
    }

    /// Frees a statement's handle; in another process it is only forgotten.
    pub(crate) fn free_statement(&self, handle: &Arc<StatementHandle>) {
        if self.is_foreign() {
            handle.forget();
            return;
        }
        let mut state = lock(&self.state);
        handle.free();
        state.statements.retain(|w| w.strong_count() > 0);
    }

    /// Marks the end of a driver call. A connection that was shut down under it is lost.
    pub(super) fn leave(&self) {
        self.caller.leave();
        if self.caller.is_broken() {
            self.health.lose();
        }
    }

    /// What the lock holds.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Memory for a block, if a statement before has left any.
    pub(crate) fn take_spare(&self) -> Option<Buffer> {
        lock(&self.spare).take()
    }

    /// Keeps the memory of a block whose statement handle is freed, unless it is large.
    pub(crate) fn keep_spare(&self, buffer: Buffer) {
        if buffer.len() <= LARGEST_SPARE && !self.is_foreign() {
            lock(&self.spare).replace(buffer);
        }
    }

    /// Marks `handle` as the one inside a driver call, for as long as the guard lives.
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
        // The handles are the parent's: they are left alone, and leak here.
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
        // SAFETY: a live connection handle that this call has taken for itself; its statements are freed. An open
        // transaction is rolled back first: SQLDisconnect refuses with 25000 otherwise.
        let rc = unsafe {
            (self.manager.call.end_tran)(ffi::HANDLE_DBC, raw, ffi::ROLLBACK);
            (self.manager.call.disconnect)(raw)
        };
        let result = if rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO {
            Ok(())
        } else {
            Err(self.error(raw, "SQLDisconnect"))
        };
        // SAFETY: a handle that this call has taken for itself and uses no more; one that could not be disconnected is
        // refused by the manager, and leaks.
        unsafe { (self.manager.call.free_handle)(ffi::HANDLE_DBC, raw) };
        self.caller.leave();
        result
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.close();
    }
}

/// See [`Shared::busy`].
pub(crate) struct Busy<'a> {
    shared: &'a Shared,
    handle: &'a Arc<StatementHandle>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.handle.set_busy(false);
        *lock(&self.shared.active) = None;
    }
}
