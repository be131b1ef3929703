//! The callbacks that SQLite calls while it executes a statement. They check if the statement was
//! cancelled, wait for locks of other connections, and call [`AttachedHost`] (Python).
//!
//! SQLite calls two handlers: the progress handler every [`N_OPS`] instructions of its virtual
//! machine, and the busy handler while another connection holds a lock. Both are called on the
//! thread that steps the statement and holds the call lock. A panic in a handler is caught before
//! it reaches C.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use crate::source::AttachedHost;

/// The number of SQLite's virtual-machine instructions between two calls to the progress handler.
/// These instructions take ten to a hundred microseconds; a call to the handler takes less than a
/// thousandth of that time.
pub(super) const N_OPS: c_int = 2000;

/// The interval between two calls to [`AttachedHost::turn`] while a thread that holds the Python
/// interpreter lock executes a SQLite statement. The call lets other Python threads run and handles
/// signals.
const TURN: Duration = Duration::from_millis(4);

/// A condition variable for threads that wait for another connection to release a lock. It wakes
/// these threads if they must check whether their statement was cancelled.
#[derive(Debug, Default)]
pub(super) struct Signal {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Wakes all threads that wait on this object, so that each of them checks again whether it
    /// must stop.
    pub(super) fn wake(&self) {
        drop(lock(&self.lock));
        self.changed.notify_all();
    }

    /// Waits for the duration `limit`, or until `stop` returns `true`.
    fn wait(&self, limit: Duration, stop: &dyn Fn() -> bool) {
        let goes_on = |(): &mut ()| !stop();
        let guard = lock(&self.lock);
        drop(unpoisoned(
            self.changed.wait_timeout_while(guard, limit, goes_on),
        ));
    }
}

/// The cancel flag of one statement. The flag is never cleared, so a statement that is cancelled
/// before its first step also ends.
#[derive(Debug)]
pub(super) struct Cancel {
    flag: AtomicBool,
    /// The number (from 1) that identifies the statement in its connection.
    id: u64,
}

impl Cancel {
    pub(super) fn new(id: u64) -> Cancel {
        Cancel {
            flag: AtomicBool::new(false),
            id,
        }
    }
}

/// The state that a connection's cancel handle and its callbacks share.
#[derive(Debug, Default)]
pub(super) struct CancelSignals {
    /// The number of the statement that is being stepped; 0 if there is none.
    running: AtomicU64,
    /// The number (not a count) that identifies the statement that the connection's cancel handle
    /// cancelled last.
    cancelled: AtomicU64,
    /// `true` while the connection is being closed: every statement that is being stepped must
    /// stop.
    closing: AtomicBool,
    signal: Signal,
}

impl CancelSignals {
    /// Cancels the statement that is being stepped, if there is one.
    pub(super) fn cancel_running(&self) {
        let id = self.running.load(Relaxed);
        if id != 0 {
            self.cancelled.store(id, Relaxed);
            self.signal.wake();
        }
    }

    /// Records that the connection is being closed (`true`), or that the close has failed
    /// (`false`). While it is being closed, the current statement and all later ones are cancelled.
    pub(super) fn set_closing(&self, is_closing: bool) {
        self.closing.store(is_closing, Relaxed);
        self.signal.wake();
    }

    /// Returns `true` if the connection is being closed.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Cancels the statement to which `cancel` belongs.
    pub(super) fn cancel(&self, cancel: &Cancel) {
        cancel.flag.store(true, Relaxed);
        self.signal.wake();
    }

    /// Returns `true` if the statement to which `cancel` belongs must stop, because it was
    /// cancelled or the connection is being closed.
    pub(super) fn stopped(&self, cancel: &Cancel) -> bool {
        cancel.flag.load(Relaxed)
            || self.cancelled.load(Relaxed) == cancel.id
            || self.closing.load(Relaxed)
    }
}

/// The state that the callbacks use. SQLite stores its address, so it is boxed and lives as long as
/// the connection.
pub(super) struct CallbackState {
    shared: Arc<CancelSignals>,
    busy_timeout: Duration,
    /// The current call into SQLite. Only the thread that makes this call, and therefore holds the
    /// call lock, accesses the field.
    current: UnsafeCell<Current>,
    /// The error of a collation that failed in the current step, until that step returns it.
    collation_error: Mutex<Option<String>>,
    /// `true` if `collation_error` is set. Each step checks this flag and does not take the lock.
    has_collation_error: AtomicBool,
}

#[derive(Default)]
struct Current {
    cancel: Option<Arc<Cancel>>,
    host: Option<*const dyn AttachedHost>,
    /// The time of the last call to [`AttachedHost::turn`]; `None` before the first call. The time
    /// remains stored between SQLite calls, so that a sequence of many short calls also calls
    /// `turn` regularly.
    last_turn: Option<Instant>,
}

// SAFETY: only the thread that holds the connection's call lock accesses `current` (in
// `CallbackState::run`, and in the callbacks that SQLite makes on that thread while it steps); all
// other fields are Sync.
unsafe impl Sync for CallbackState {}
// SAFETY: the host pointer is set and cleared within one call, under the call lock; nothing else is
// bound to a thread.
unsafe impl Send for CallbackState {}

impl CallbackState {
    pub(super) fn new(busy_timeout: Duration) -> CallbackState {
        CallbackState {
            shared: Arc::default(),
            busy_timeout,
            current: UnsafeCell::default(),
            collation_error: Mutex::default(),
            has_collation_error: AtomicBool::new(false),
        }
    }

    pub(super) fn shared(&self) -> &Arc<CancelSignals> {
        &self.shared
    }

    /// Records the error of a collation. SQLite has no way to report it, so the progress handler
    /// ends the current step, and the step returns the error by
    /// [`take_collation_error`](Self::take_collation_error).
    pub(super) fn set_collation_error(&self, message: String) {
        *lock(&self.collation_error) = Some(message);
        self.has_collation_error.store(true, Relaxed);
    }

    /// Returns `true` if a collation has failed in the current step.
    pub(super) fn has_collation_error(&self) -> bool {
        self.has_collation_error.load(Relaxed)
    }

    /// Returns the error of a collation that failed in the current step, and clears it.
    #[inline]
    pub(super) fn take_collation_error(&self) -> Option<String> {
        if !self.has_collation_error() {
            return None;
        }
        self.has_collation_error.store(false, Relaxed);
        lock(&self.collation_error).take()
    }

    /// Records that this thread calls SQLite. The record ends when the returned guard is dropped.
    /// `cancel` is the cancel flag of this call. If this thread holds the interpreter lock of the
    /// host program, `host` is that program; otherwise `host` is `None`.
    ///
    /// # Safety
    /// The caller must hold the call lock, and must drop the guard before it releases the lock and
    /// before `host` ends.
    pub(super) unsafe fn run<'a>(
        &'a self,
        cancel: &Arc<Cancel>,
        host: Option<&'a dyn AttachedHost>,
    ) -> Running<'a> {
        self.shared.running.store(cancel.id, Relaxed);
        // SAFETY: this thread holds the lock, by the contract of this function, and no callback is
        // active. The transmute changes only the lifetime: the guard clears the pointer before that
        // lifetime ends.
        unsafe {
            let current = &mut *self.current.get();
            current.cancel = Some(cancel.clone());
            current.host = host.map(|h| {
                std::mem::transmute::<*const (dyn AttachedHost + 'a), *const dyn AttachedHost>(h)
            });
        }
        Running(self)
    }

    /// Returns `true` if the current SQLite call must stop. Calls [`AttachedHost::turn`] if the
    /// time [`TURN`] has passed since its last call, so that the host can let other threads run.
    fn stop(&self) -> bool {
        // SAFETY: the progress handler calls this function, on the thread that holds the call lock.
        let current = unsafe { &mut *self.current.get() };
        if current
            .cancel
            .as_ref()
            .is_some_and(|c| self.shared.stopped(c))
            || self.has_collation_error()
        {
            return true;
        }
        let Some(host) = current.host else {
            return false;
        };
        let now = Instant::now();
        match current.last_turn {
            Some(last) if now - last >= TURN => {
                // SAFETY: the host outlives the guard that will clear this pointer
                // (`CallbackState::run`).
                if !unsafe { (*host).turn() } {
                    return true;
                }
                current.last_turn = Some(Instant::now());
            }
            Some(_) => {}
            None => current.last_turn = Some(now),
        }
        false
    }

    /// Waits a short time for another connection to release a lock. `n_tries` is the number of
    /// earlier waits for this lock. Returns `true` if SQLite must try again to get the lock.
    /// Returns `false` if the time limit has expired or the statement was cancelled.
    fn wait_busy(&self, n_tries: c_int) -> bool {
        // SAFETY: the busy handler calls this function, on the thread that holds the call lock.
        let current = unsafe { &*self.current.get() };
        let cancel = current.cancel.clone();
        let stop = || cancel.as_ref().is_some_and(|c| self.shared.stopped(c));
        let Some(delay) = busy_delay(n_tries, self.busy_timeout) else {
            return false;
        };
        let signal = &self.shared.signal;
        match current.host {
            // SAFETY: the host outlives the guard that will clear this pointer
            // (`CallbackState::run`).
            Some(host) => unsafe { (*host).released(&mut || signal.wait(delay, &stop)) },
            None => signal.wait(delay, &stop),
        }
        !stop()
    }
}

/// Returns the time to wait for a locked database after `n_tries` earlier waits: the same time as
/// SQLite's own handler (`sqliteDefaultBusyCallback`), but at most the rest of `limit`. Returns
/// `None` if the sum of the earlier waits has reached `limit`.
fn busy_delay(n_tries: c_int, limit: Duration) -> Option<Duration> {
    const STEPS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
    let n = usize::try_from(n_tries).unwrap_or(0);
    let waited_ms: u64 =
        STEPS_MS.iter().take(n).sum::<u64>() + 100 * n.saturating_sub(STEPS_MS.len()) as u64;
    let next = Duration::from_millis(STEPS_MS.get(n).copied().unwrap_or(100));
    let left = limit.checked_sub(Duration::from_millis(waited_ms))?;
    (!left.is_zero()).then(|| next.min(left))
}

/// The guard of a connection's current call into SQLite. When the guard is dropped, no call is
/// current.
pub(super) struct Running<'a>(&'a CallbackState);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared.running.store(0, Relaxed);
        // SAFETY: the caller of `CallbackState::run` still holds the call lock, and no callback is
        // active.
        unsafe {
            let current = &mut *self.0.current.get();
            current.cancel = None;
            current.host = None;
        }
    }
}

/// SQLite's progress handler; a result other than 0 interrupts the statement.
///
/// # Safety
/// `context` must be the connection's [`CallbackState`].
pub(super) unsafe extern "C" fn on_progress(context: *mut c_void) -> c_int {
    // SAFETY: the caller vouches for context; the callback state lives as long as the connection.
    let watch = unsafe { &*context.cast::<CallbackState>() };
    c_int::from(catch_unwind(AssertUnwindSafe(|| watch.stop())).unwrap_or(true))
}

/// SQLite's busy handler, called after `n_tries` earlier calls for the same lock. If it returns 0,
/// SQLite stops waiting and returns `SQLITE_BUSY`.
///
/// # Safety
/// `context` must be the connection's [`CallbackState`].
pub(super) unsafe extern "C" fn on_busy(context: *mut c_void, n_tries: c_int) -> c_int {
    // SAFETY: the caller vouches for context; the callback state lives as long as the connection.
    let watch = unsafe { &*context.cast::<CallbackState>() };
    c_int::from(catch_unwind(AssertUnwindSafe(|| watch.wait_busy(n_tries))).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An [`AttachedHost`] for tests, which counts the releases of the interpreter lock.
    #[derive(Default)]
    struct Host(AtomicU64);

    impl AttachedHost for Host {
        fn turn(&self) -> bool {
            true
        }

        fn released(&self, wait: &mut (dyn FnMut() + Send)) {
            self.0.fetch_add(1, Relaxed);
            wait();
        }
    }

    /// Calls the busy handler as SQLite calls it. `cancel` is the cancel flag of the current call,
    /// and `host` is the host program that makes this call.
    fn busy(watch: &CallbackState, cancel: &Arc<Cancel>, host: &Host) -> c_int {
        // SAFETY: the callback state has no other user, and the guard ends with this function.
        let _running = unsafe { watch.run(cancel, Some(host)) };
        // SAFETY: the context is a `CallbackState`.
        unsafe { on_busy(std::ptr::from_ref(watch).cast_mut().cast(), 0) }
    }

    #[test]
    fn an_attached_wait_for_a_lock_releases_the_hosts_and_ends_when_cancelled() {
        let watch = CallbackState::new(Duration::from_secs(600));
        let (host, cancel) = (Host::default(), Arc::new(Cancel::new(1)));
        assert_eq!(busy(&watch, &cancel, &host), 1);
        assert_eq!(host.0.load(Relaxed), 1);
        watch.shared().cancel(&cancel);
        assert_eq!(busy(&watch, &cancel, &host), 0);
        assert_eq!(busy(&watch, &Arc::new(Cancel::new(2)), &host), 1);
        let hasty = CallbackState::new(Duration::ZERO);
        assert_eq!(busy(&hasty, &Arc::new(Cancel::new(1)), &host), 0);
    }

    #[test]
    fn busy_delays_sum_up_to_the_limit() {
        for limit_ms in [0_u64, 1, 7, 100, 328, 5000] {
            let limit = Duration::from_millis(limit_ms);
            let sum: Duration = (0..).map_while(|n| busy_delay(n, limit)).sum();
            assert_eq!(sum, limit);
        }
    }
}
