//! Statement handles: who may use one, who may free one, who may cancel it.
//!
//! A driver call on a statement is made with the connection's lock held. Cancelling must not wait for that lock, so the
//! raw handle has a small lock of its own, held only while the handle is read, cancelled or freed: a cancel from another
//! thread either finds a live handle or none.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ffi::{self, Handle};
use super::manager::Manager;
use super::unblock::Caller;

/// Takes a lock; a panic of another holder leaves nothing half-done here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A raw handle that may cross threads.
pub(crate) struct RawHandle(pub(crate) Handle);

// SAFETY: ODBC handles may be used from any thread, by one at a time (ODBC reference, "Multithreading"); the locks of
// the connection and of `StatementHandle` see to that, and `SQLCancel` is the exception that the reference allows.
unsafe impl Send for RawHandle {}

/// A statement handle, shared with those who may cancel it.
pub(crate) struct StatementHandle {
    manager: &'static Manager,
    raw: Mutex<RawHandle>,
    /// A driver call is under way.
    busy: AtomicBool,
    cancelled: AtomicBool,
    /// A thread is at calling SQLCancel. One is enough, and it may not come back soon.
    cancelling: AtomicBool,
    /// How long one driver call must have lasted before it is cancelled; see `Quirks::cancel_after`.
    cancel_after: Duration,
    /// Driver calls begun.
    n_calls: AtomicU64,
    idle_lock: Mutex<()>,
    idle: Condvar,
    /// The thread inside a call of its connection.
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

    /// The handle; null after it was freed. Valid for as long as the caller holds the connection's lock.
    pub(crate) fn get(&self) -> Handle {
        lock(&self.raw).0
    }

    /// Marks the time of a driver call.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::SeqCst);
        if !busy && !self.cancel_after.is_zero() {
            drop(lock(&self.idle_lock));
            self.idle.notify_all();
        }
    }

    /// Marks the beginning of one driver call among several.
    pub(crate) fn next_call(&self) {
        self.n_calls.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether it was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Cancels what runs on this handle and all that would run on it later. Neither blocks nor panics: drivers open a
    /// second connection to the server for it, so the driver is called on a thread of its own.
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
            // No thread to be had: better to wait here than not to cancel.
            self.cancel_now();
        }
    }

    /// Waits until one driver call has lasted as long as it must, or none is under way any more. A statement between two
    /// calls sees by itself that it was cancelled.
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
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn cancel_now(&self) {
        if !self.cancel_after.is_zero() {
            self.wait_for_a_long_call();
        }
        let raw = lock(&self.raw);
        // A call that has ended meanwhile needs none; a driver would cancel whatever its connection does next.
        if !raw.0.is_null() && self.busy.load(Ordering::SeqCst) {
            self.caller.set_cancelling(true);
            // SAFETY: the handle is alive, since it is freed with this lock held; SQLCancel may be called from another
            // thread while a function runs on the same handle.
            unsafe { (self.manager.call.cancel)(raw.0) };
            self.caller.set_cancelling(false);
        }
        self.cancelling.store(false, Ordering::SeqCst);
    }

    /// The same handle for somebody else: this one has none any more. The caller holds the connection's lock.
    pub(crate) fn renewed(&self) -> Arc<StatementHandle> {
        let raw = std::mem::replace(&mut lock(&self.raw).0, ptr::null_mut());
        StatementHandle::new(self.manager, raw, self.cancel_after, &self.caller)
    }

    /// Frees the handle, once. The caller holds the connection's lock.
    pub(crate) fn free(&self) {
        let mut raw = lock(&self.raw);
        let handle = std::mem::replace(&mut raw.0, ptr::null_mut());
        if !handle.is_null() {
            // SAFETY: a live statement handle, no longer reachable by anyone.
            unsafe { (self.manager.call.free_handle)(ffi::HANDLE_STMT, handle) };
        }
    }

    /// Forgets the handle without a driver call: in another process than the one that made it.
    pub(crate) fn forget(&self) {
        lock(&self.raw).0 = ptr::null_mut();
    }
}
