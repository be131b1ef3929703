//! The settings and the reports of the watchdog, which detects handlers that make no progress.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts the beats of the interpreter, or of whatever handlers do not run without. Clones count
/// the same beats.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Counts a beat: to be called by a thread that cannot run while handlers cannot, eight times
    /// per timeout or more often.
    pub fn beat(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Beats so far.
    pub(crate) fn n_beats(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A report of a [`Watchdog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// There was no beat for a second, or half the timeout where that is shorter.
    Late,
    /// There is a beat again after [`Liveness::Late`].
    Beating,
    /// There was no beat for the timeout. Nothing is reported after this.
    NoBeat,
    /// For the timeout all handlers that may run at once have run, none has returned or sent a part
    /// of its body, and none has waited for its client. Nothing is reported after this.
    AllBusy,
}

/// Called by a thread of the server, which may block.
pub type OnLiveness = Arc<dyn Fn(Liveness) + Send + Sync>;

/// How handlers are watched.
#[derive(Clone)]
pub struct Watchdog {
    /// Time without progress after which the server counts as stuck.
    pub timeout: Duration,
    /// The beats.
    pub pulse: Pulse,
    /// Called with each report.
    pub on_liveness: OnLiveness,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchdog({:?})", self.timeout)
    }
}
