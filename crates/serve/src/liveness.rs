//! [`Watchdog`]: the settings with which a server detects that its handlers make no progress.
//! [`Liveness`]: the reports of the watchdog.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A counter of heartbeats. A thread of the application increments it regularly. The thread must be
/// blocked whenever the handlers are blocked; for Python handlers, it therefore needs the
/// interpreter lock. Clones share the counter.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Records a heartbeat. A thread must call this method at least eight times per
    /// [`Watchdog::timeout`]. The thread must depend on the same resource as the handlers (such as
    /// the lock of the Python interpreter), so that the heartbeats stop if handlers cannot run.
    pub fn beat(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Returns the number of heartbeats so far.
    pub(crate) fn n_beats(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A report of the watchdog. It is passed to [`Watchdog::on_liveness`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// No heartbeat occurred for a second, or for half the timeout if that is shorter.
    Late,
    /// A heartbeat occurred again after [`Liveness::Late`].
    Beating,
    /// No heartbeat occurred during the complete timeout of the watchdog. The watchdog makes no
    /// report after this one.
    NoBeat,
    /// During the complete timeout, as many handlers were running as are permitted, and none of
    /// them made progress. A handler makes progress when it returns, sends a part of its response
    /// body, or waits for its client. The watchdog makes no report after this one.
    AllBusy,
}

/// The function that is called with each report of the watchdog. It runs on a thread of the server,
/// and may block.
pub type OnLiveness = Arc<dyn Fn(Liveness) + Send + Sync>;

/// The settings of the watchdog.
#[derive(Clone)]
pub struct Watchdog {
    /// The time without progress after which the watchdog reports that the handlers are stuck.
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
