//! `StatementHandle`: an ODBC statement handle that one thread uses and other threads may cancel.
//!
//! A driver call on a statement is made while the connection's lock is held. A cancellation must
//! not wait for that lock. The raw handle therefore has a second lock, which is held only while the
//! handle is read, cancelled or freed. Another thread that cancels finds either a live handle or
//! null.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use onecopy_wire::lock::{lock, unpoisoned};

use super::ffi::{self, Handle};
use super::manager::Manager;
use super::unblock::Caller;

/// A raw handle that can be sent to other threads.
pub(crate) struct RawHandle(pub(crate) Handle);

// SAFETY: ODBC handles may be used from any thread, by one thread at a time (ODBC reference,
// "Multithreading"); the locks of the connection and of `StatementHandle` ensure that, and
// `SQLCancel` is the exception that the reference allows.
unsafe impl Send for RawHandle {}

/// A statement handle, which its owner shares with the cancel handles of the statement.
pub(crate) struct StatementHandle {
    manager: &'static Manager,
    raw: Mutex<RawHandle>,
    /// `true` while a driver call uses the handle.
    busy: AtomicBool,
    cancelled: AtomicBool,
    /// `true` while a thread calls `SQLCancel`. At most one thread makes this call at a time,
    /// because the call may block.
    cancelling: AtomicBool,
    /// The duration that a driver call must have lasted before `SQLCancel` is called; see
    /// `Quirks::cancel_after`.
    cancel_after: Duration,
    /// The number of driver calls on this handle that have begun.
    n_calls: AtomicU64,
    idle_lock: Mutex<()>,
    idle: Condvar,
    /// The thread that is in a driver call of this handle's connection, if any.
    caller: Arc<Caller>,
}

impl StatementHandle {
    pub(crate) fn new(
        manager: &'static Manager,
        raw: Handle,
        cancel_after: Duration,
        caller: &Arc<Caller>,
    ) -> Arc<StatementHandle> {
        Arc::new(StatementHandle {
            manager,
            raw: Mutex::new(RawHandle(raw)),
            busy: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            cancelling: AtomicBool::new(false),
            cancel_after,
            n_calls: AtomicU64::new(0),
            idle_lock: Mutex::new(()),
            idle: Condvar::new(),
            caller: Arc::clone(caller),
        })
    }

    /// Returns the raw handle; null after it was freed. The handle is valid while the caller holds
    /// the connection's lock.
    pub(crate) fn get(&self) -> Handle {
        lock(&self.raw).0
    }

    /// Records that a driver call on the handle begins (`true`), or that it has ended (`false`).
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::SeqCst);
        if !busy && !self.cancel_after.is_zero() {
            drop(lock(&self.idle_lock));
            self.idle.notify_all();
        }
    }

    /// Records that one driver call has ended and another begins, for a function that makes several
    /// calls while the handle is busy.
    pub(crate) fn next_call(&self) {
        self.n_calls.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns `true` if the statement was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Cancels the current driver call and all later calls on this handle. Never panics.
    /// `SQLCancel` may block, because drivers open a second connection to the server for it. It is
    /// therefore called on a separate thread, or on this thread if no thread can be started.
    pub(crate) fn cancel(self: &Arc<Self>) {
        self.cancelled.store(true, Ordering::SeqCst);
        if !self.busy.load(Ordering::SeqCst) {
            return;
        }
        self.caller.insist();
        if self.cancelling.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name("onecopy-cancel".to_owned())
            .spawn(move || this.cancel_now());
        if spawned.is_err() {
            // No thread could be started: to block here is better than not to cancel.
            self.cancel_now();
        }
    }

    /// Waits until no driver call is active, or until the active call has lasted for `cancel_after`
    /// and can therefore be cancelled. Between two driver calls, the thread that executes the
    /// statement checks whether it was cancelled.
    fn wait_for_a_long_call(&self) {
        let mut n_calls = None;
        let mut guard = lock(&self.idle_lock);
        while self.busy.load(Ordering::SeqCst) {
            let now = Some(self.n_calls.load(Ordering::SeqCst));
            if n_calls == now {
                return;
            }
            n_calls = now;
            let waited = self.idle.wait_timeout(guard, self.cancel_after);
            guard = unpoisoned(waited).0;
        }
    }

    fn cancel_now(&self) {
        if !self.cancel_after.is_zero() {
            self.wait_for_a_long_call();
        }
        let raw = lock(&self.raw);
        // A call that has ended needs no cancel; the driver would cancel the next operation of its
        // connection instead.
        if !raw.0.is_null() && self.busy.load(Ordering::SeqCst) {
            self.caller.set_cancelling(true);
            // SAFETY: the handle is alive, since it is freed with this lock held; SQLCancel may be
            // called from another thread while a function runs on the same handle.
            unsafe { (self.manager.call.cancel)(raw.0) };
            self.caller.set_cancelling(false);
        }
        self.cancelling.store(false, Ordering::SeqCst);
    }

    /// Moves the raw handle to a new `StatementHandle`, and leaves null in this one, so that cancel
    /// handles of the ended statement have no effect on the next statement. The caller must hold
    /// the connection's lock.
    pub(crate) fn renewed(&self) -> Arc<StatementHandle> {
        let raw = std::mem::replace(&mut lock(&self.raw).0, ptr::null_mut());
        StatementHandle::new(self.manager, raw, self.cancel_after, &self.caller)
    }

    /// Frees the handle; a second call has no effect. The caller must hold the connection's lock.
    pub(crate) fn free(&self) {
        let mut raw = lock(&self.raw);
        let handle = std::mem::replace(&mut raw.0, ptr::null_mut());
        if !handle.is_null() {
            // SAFETY: a live statement handle, which no other code can reach any more.
            unsafe { (self.manager.call.free_handle)(ffi::HANDLE_STMT, handle) };
        }
    }

    /// Drops the handle without a driver call, in a process other than the one that created it.
    pub(crate) fn forget(&self) {
        lock(&self.raw).0 = ptr::null_mut();
    }
}
