//! [`Watchdog`]: the settings with which a server detects handlers that make no progress.
//! [`Liveness`]: the reports of the watchdog.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A heartbeat counter. A thread of the application increments it as long as handlers can run: for
/// Python handlers, as long as the interpreter runs Python code. Clones share the counter.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Increments the counter. Call this method at least eight times per [`Watchdog::timeout`]. The
    /// calling thread must need the same resource as the handlers (such as the Python interpreter),
    /// so that the calls stop when handlers cannot run.
    pub fn beat(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Returns the number of heartbeats so far.
    pub(crate) fn n_beats(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A report of the watchdog, which is passed to [`Watchdog::on_liveness`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// No heartbeat occurred for a second, or for half the timeout if that is shorter.
    Late,
    /// A heartbeat occurred again after [`Liveness::Late`].
    Beating,
    /// No heartbeat occurred for the whole timeout. No further report follows.
    NoBeat,
    /// During the whole timeout, the permitted number of handlers was running, and none of them
    /// made progress. Progress means that a handler returns, sends a part of its response body, or
    /// waits for its client. No further report follows.
    AllBusy,
}

/// The function that is called with each report, on a thread of the server. It may block.
pub type OnLiveness = Arc<dyn Fn(Liveness) + Send + Sync>;

/// The settings of the watchdog.
#[derive(Clone)]
pub struct Watchdog {
    /// The time without progress after which the handlers are reported as stuck.
    pub timeout: Duration,
    /// The heartbeat counter that the watchdog observes.
    pub pulse: Pulse,
    /// The function that is called with each report of the watchdog.
    pub on_liveness: OnLiveness,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchdog({:?})", self.timeout)
    }
}
