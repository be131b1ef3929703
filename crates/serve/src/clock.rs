//! Time as the limits see it.

use crate::sys;

/// A clock that never goes back. Limits are kept in whole milliseconds.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed start. A clock that jumps must be followed by [`crate::Handle::wake`].
    fn now_ms(&self) -> u64;

    /// Microseconds since some fixed start, not that of the milliseconds: durations are told by it, and it may cost more. A clock
    /// that has none says its milliseconds.
    fn now_us(&self) -> u64 {
        self.now_ms().saturating_mul(1000)
    }
}

/// The clock of the machine; its milliseconds are those of the last tick, some old at most.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        sys::monotonic_ms()
    }

    fn now_us(&self) -> u64 {
        sys::monotonic_us()
    }
}
