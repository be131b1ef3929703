//! Ctrl-C, SIGTERM and `--timeout` to a cancel of what runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onecopy_wire::CancelHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::exit;

/// How soon a cancel is repeated until the query ends: one that comes between two steps of a driver stops nothing.
const AGAIN: Duration = Duration::from_millis(100);

/// Why a query was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A signal.
    Signal,
    /// `--timeout` ran out.
    Timeout,
}

/// Listens for signals while it lives.
pub(crate) struct Interrupt {
    shared: Arc<Shared>,
    signals: Handle,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: Option<Stop>,
    cancel: Option<CancelHandle>,
    deadline: Option<Instant>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels when the time is up or a signal came, again and again until the end.
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
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Interrupt {
    /// Starts to listen; what is given to [`Interrupt::cancels`] is cancelled by a signal or after `timeout`.
    ///
    /// # Errors
    /// The system's, where handlers or threads cannot be made.
    pub(crate) fn start(timeout: Option<Duration>) -> std::io::Result<Interrupt> {
        let shared = Arc::new(Shared::default());
        shared.lock().deadline = timeout.map(|t| Instant::now() + t);
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let handle = signals.handle();
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for (i, _) in signals.forever().enumerate() {
                    if i > 0 {
                        // The driver does not give in. Files under a temporary name stay behind.
                        signal_hook::low_level::exit(exit::STOPPED);
                    }
                    let mut state = theirs.lock();
                    if state.cancel.is_none() && !state.ended {
                        // Nothing runs that could be cancelled: it connects, or waits for stdin.
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

    /// Says what a stop cancels from now on; one that came before does so soon.
    pub(crate) fn cancels(&self, cancel: CancelHandle) {
        self.shared.lock().cancel = Some(cancel);
    }

    /// Lets so much time pass, less where it is stopped.
    pub(crate) fn pause(&self, most: Duration) {
        let until = Instant::now() + most;
        let mut state = self.shared.lock();
        while state.stop.is_none() && !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Why it was stopped, if it was.
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
