//! [`Interrupt`]: Ctrl-C, SIGTERM and `--time-limit`, each of which cancels the running operation.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_wire::CancelHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::exit;

/// The time between two requests to cancel the same query. The requests are repeated until the
/// query ends, because a request that arrives between two calls to the driver has no effect.
const AGAIN: Duration = Duration::from_millis(100);

/// The reason why an operation was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// SIGINT or SIGTERM arrived.
    Signal,
    /// The time limit was exceeded.
    Timeout,
}

/// Handles SIGINT, SIGTERM and the time limit until the value is dropped.
pub(crate) struct Interrupt {
    shared: Arc<InterruptMonitor>,
    signals: Handle,
}

#[derive(Default)]
struct InterruptMonitor {
    state: Mutex<InterruptState>,
    changed: Condvar,
}

#[derive(Default)]
struct InterruptState {
    stop: Option<Stop>,
    cancel: Option<CancelHandle>,
    deadline: Option<Instant>,
    ended: bool,
}

impl InterruptMonitor {
    fn lock(&self) -> MutexGuard<'_, InterruptState> {
        lock(&self.state)
    }

    /// Runs in the thread that waits for a signal or for the end of the time limit. After one of
    /// these events, requests the cancellation of the operation again and again, at intervals of
    /// [`AGAIN`], until the [`Interrupt`] is dropped.
    fn watch(&self) {
        let mut state = self.lock();
        while !state.ended {
            let now = Instant::now();
            if state.deadline.is_some_and(|d| d <= now) {
                state.stop.get_or_insert(Stop::Timeout);
            }
            let wait = match (state.stop, state.deadline) {
                (Some(_), _) => {
                    if let Some(cancel) = &state.cancel {
                        cancel.cancel();
                    }
                    AGAIN
                }
                (None, Some(deadline)) => deadline - now,
                (None, None) => Duration::from_secs(3600),
            };
            let waited = self.changed.wait_timeout(state, wait);
            state = unpoisoned(waited).0;
        }
    }
}

impl Interrupt {
    /// Installs the signal handlers. A signal, or the end of `time_limit`, cancels the operation
    /// that was last passed to [`Interrupt::cancels`].
    ///
    /// # Errors
    /// The error of the system if handlers or threads cannot be created.
    pub(crate) fn start(time_limit: Option<Duration>) -> std::io::Result<Interrupt> {
        let shared = Arc::new(InterruptMonitor::default());
        shared.lock().deadline = time_limit.map(|t| Instant::now() + t);
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let handle = signals.handle();
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for (i, _) in signals.forever().enumerate() {
                    if i > 0 {
                        // The driver ignores the cancel, so the process ends. Temporary files may
                        // remain.
                        signal_hook::low_level::exit(exit::STOPPED);
                    }
                    let mut state = theirs.lock();
                    if state.cancel.is_none() && !state.ended {
                        // No operation can be cancelled now, because the command connects or waits
                        // for stdin. So the process ends.
                        signal_hook::low_level::exit(exit::STOPPED);
                    }
                    state.stop = Some(Stop::Signal);
                    theirs.changed.notify_all();
                }
            })?;
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("cancel".to_owned())
            .spawn(move || theirs.watch())?;
        Ok(Interrupt {
            shared,
            signals: handle,
        })
    }

    /// Sets the operation that a signal or the end of the time limit cancels. If one of these has
    /// already occurred, the operation is cancelled within [`AGAIN`].
    pub(crate) fn cancels(&self, cancel: CancelHandle) {
        self.shared.lock().cancel = Some(cancel);
    }

    /// Waits for the time `most`. Returns earlier if a signal arrives or the command's time limit
    /// ends.
    pub(crate) fn pause(&self, most: Duration) {
        let until = Instant::now() + most;
        let mut state = self.shared.lock();
        while state.stop.is_none() && !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = unpoisoned(waited).0;
        }
    }

    /// Returns the reason why the operation was stopped; `None` if it was not stopped.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.shared.lock().stop
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        state.cancel = None;
        drop(state);
        self.shared.changed.notify_one();
        self.signals.close();
    }
}
