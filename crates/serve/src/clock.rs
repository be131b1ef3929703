//! Time as the limits see it.

use crate::sys;

/// A clock that never goes back. Limits are kept in whole milliseconds.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed start. A clock that jumps must be followed by [`crate::Handle::wake`].
    fn now_ms(&self) -> u64;
}

/// The clock of the machine, as of its last tick: some milliseconds old at most.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        sys::monotonic_ms()
    }
}
