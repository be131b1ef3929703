//! Cancel, busy waits and the host's turn, while SQLite steps.
//!
//! SQLite calls back: the progress handler every [`N_OPS`] instructions of its machine, the busy handler where another
//! connection holds a lock. Both run on the thread that steps, which holds the connection's call lock, and neither lets
//! a panic cross into C.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::source::AttachedHost;

/// Instructions between two looks: some ten to a hundred microseconds of stepping, at a cost below 0.1 %.
pub(super) const N_OPS: c_int = 2000;

/// How long the host waits for its turn while a statement is stepped attached.
const TURN: Duration = Duration::from_millis(4);

/// Wakes those of a connection that wait for another connection's lock.
#[derive(Debug, Default)]
pub(super) struct Signal {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Wakes them all, to look at their flags.
    pub(super) fn wake(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for `limit` or until `stop` holds.
    fn wait(&self, limit: Duration, stop: &dyn Fn() -> bool) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.changed
                .wait_timeout_while(guard, limit, |()| !stop())
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

/// Whether one statement is to stop. It stays set: a cancel before the statement runs holds too.
#[derive(Debug)]
pub(super) struct Cancel {
    flag: AtomicBool,
    /// Which statement of its connection it is, from 1.
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

/// What a connection's cancel handle and its callbacks share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Id of the statement that runs now, 0 for none.
    running: AtomicU64,
    /// Id of the statement that was last cancelled through the connection.
    cancelled: AtomicU64,
    /// The connection is being closed: whatever runs is to stop.
    closing: AtomicBool,
    signal: Signal,
}

impl Shared {
    /// Stops what runs now.
    pub(super) fn cancel_running(&self) {
        let id = self.running.load(Relaxed);
        if id != 0 {
            self.cancelled.store(id, Relaxed);
            self.signal.wake();
        }
    }

    /// Stops what runs now and all that comes.
    pub(super) fn close(&self) {
        self.closing.store(true, Relaxed);
        self.signal.wake();
    }

    /// Whether [`Shared::close`] was called.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Stops this statement.
    pub(super) fn cancel(&self, cancel: &Cancel) {
        cancel.flag.store(true, Relaxed);
        self.signal.wake();
    }

    /// Whether this statement is to stop.
    pub(super) fn stopped(&self, cancel: &Cancel) -> bool {
        cancel.flag.load(Relaxed)
            || self.cancelled.load(Relaxed) == cancel.id
            || self.closing.load(Relaxed)
    }
}

/// What the callbacks look at. Its address is given to SQLite, so it is boxed and lives as long as the connection.
pub(super) struct Watch {
    shared: Arc<Shared>,
    busy_timeout: Duration,
    /// The call under way; touched by its thread alone, which holds the call lock.
    current: UnsafeCell<Current>,
}

#[derive(Default)]
struct Current {
    cancel: Option<Arc<Cancel>>,
    host: Option<*const dyn AttachedHost>,
    /// When a host had its last turn. It outlives the call: many short calls in a row must give turns too.
    last_turn: Option<Instant>,
}

// SAFETY: `current` is reached only by the thread that holds the connection's call lock (`Watch::run`, and the callbacks
// SQLite makes on that thread while it steps); the rest is Sync of itself.
unsafe impl Sync for Watch {}
// SAFETY: the host pointer is set and cleared within one call, under the call lock; nothing else is bound to a thread.
unsafe impl Send for Watch {}

impl Watch {
    pub(super) fn new(busy_timeout: Duration) -> Watch {
        Watch {
            shared: Arc::default(),
            busy_timeout,
            current: UnsafeCell::default(),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Notes `cancel`, and `host` for an attached call, as what runs until the returned guard is dropped.
    ///
    /// # Safety
    /// The caller holds the call lock, and drops the guard before it frees the lock and before `host` ends.
    pub(super) unsafe fn run<'a>(
        &'a self,
        cancel: &Arc<Cancel>,
        host: Option<&'a dyn AttachedHost>,
    ) -> Running<'a> {
        self.shared.running.store(cancel.id, Relaxed);
        // SAFETY: the lock is held, as the caller vouches, and no callback is under way. The transmute drops the
        // lifetime alone: the guard clears the pointer before it ends.
        unsafe {
            let current = &mut *self.current.get();
            current.cancel = Some(cancel.clone());
            current.host = host.map(|h| {
                std::mem::transmute::<*const (dyn AttachedHost + 'a), *const dyn AttachedHost>(h)
            });
        }
        Running(self)
    }

    /// Whether the call under way is to stop; gives the host its turn where one is due.
    fn stop(&self) -> bool {
        // SAFETY: called from the progress handler, on the thread that holds the call lock.
        let current = unsafe { &mut *self.current.get() };
        if current
            .cancel
            .as_ref()
            .is_some_and(|c| self.shared.stopped(c))
        {
            return true;
        }
        let Some(host) = current.host else {
            return false;
        };
        let now = Instant::now();
        match current.last_turn {
            Some(last) if now - last >= TURN => {
                // SAFETY: the host outlives the guard that will clear this pointer (`Watch::run`).
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

    /// Waits a little for another connection's lock; returns whether to try again.
    fn wait_busy(&self, n_tries: c_int) -> bool {
        // SAFETY: called from the busy handler, on the thread that holds the call lock.
        let current = unsafe { &*self.current.get() };
        let cancel = current.cancel.clone();
        let stop = || cancel.as_ref().is_some_and(|c| self.shared.stopped(c));
        let Some(delay) = busy_delay(n_tries, self.busy_timeout) else {
            return false;
        };
        let signal = &self.shared.signal;
        match current.host {
            // SAFETY: the host outlives the guard that will clear this pointer (`Watch::run`).
            Some(host) => unsafe { (*host).released(&mut || signal.wait(delay, &stop)) },
            None => signal.wait(delay, &stop),
        }
        !stop()
    }
}

/// How long to wait before try `n_tries` + 1 within `limit`: SQLite's own steps (`sqliteDefaultBusyCallback`); `None`
/// when the limit is used up.
fn busy_delay(n_tries: c_int, limit: Duration) -> Option<Duration> {
    const STEPS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
    let n = usize::try_from(n_tries).unwrap_or(0);
    let waited_ms: u64 =
        STEPS_MS.iter().take(n).sum::<u64>() + 100 * n.saturating_sub(STEPS_MS.len()) as u64;
    let next = Duration::from_millis(STEPS_MS.get(n).copied().unwrap_or(100));
    let left = limit.checked_sub(Duration::from_millis(waited_ms))?;
    (!left.is_zero()).then(|| next.min(left))
}

/// What runs on a connection, until it is dropped.
pub(super) struct Running<'a>(&'a Watch);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared.running.store(0, Relaxed);
        // SAFETY: the caller of `Watch::run` still holds the call lock, and no callback is under way.
        unsafe {
            let current = &mut *self.0.current.get();
            current.cancel = None;
            current.host = None;
        }
    }
}

/// SQLite's progress handler: non-zero interrupts the statement.
///
/// # Safety
/// `context` is the connection's [`Watch`].
pub(super) unsafe extern "C" fn on_progress(context: *mut c_void) -> c_int {
    // SAFETY: the caller vouches for context; the watch lives as long as the connection.
    let watch = unsafe { &*context.cast::<Watch>() };
    c_int::from(catch_unwind(AssertUnwindSafe(|| watch.stop())).unwrap_or(true))
}

/// SQLite's busy handler: zero gives up with SQLITE_BUSY.
///
/// # Safety
/// `context` is the connection's [`Watch`].
pub(super) unsafe extern "C" fn on_busy(context: *mut c_void, n_tries: c_int) -> c_int {
    // SAFETY: the caller vouches for context; the watch lives as long as the connection.
    let watch = unsafe { &*context.cast::<Watch>() };
    c_int::from(catch_unwind(AssertUnwindSafe(|| watch.wait_busy(n_tries))).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how often it is released.
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

    /// What SQLite does when a lock is busy, with `cancel` running attached to `host`.
    fn busy(watch: &Watch, cancel: &Arc<Cancel>, host: &Host) -> c_int {
        // SAFETY: nobody else uses the watch, and the guard ends with this function.
        let _running = unsafe { watch.run(cancel, Some(host)) };
        // SAFETY: the context is a watch.
        unsafe { on_busy(std::ptr::from_ref(watch).cast_mut().cast(), 0) }
    }

    #[test]
    fn an_attached_wait_for_a_lock_releases_the_hosts_and_ends_when_cancelled() {
        let watch = Watch::new(Duration::from_secs(600));
        let (host, cancel) = (Host::default(), Arc::new(Cancel::new(1)));
        assert_eq!(busy(&watch, &cancel, &host), 1);
        assert_eq!(host.0.load(Relaxed), 1);
        watch.shared().cancel(&cancel);
        assert_eq!(busy(&watch, &cancel, &host), 0);
        assert_eq!(busy(&watch, &Arc::new(Cancel::new(2)), &host), 1);
        let hasty = Watch::new(Duration::ZERO);
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
