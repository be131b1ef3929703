//! Time as the limits see it.

use std::time::Instant;

/// A clock that never goes back. Limits are kept in whole milliseconds.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed start. A clock that jumps must be followed by [`crate::Handle::wake`].
    fn now_ms(&self) -> u64;
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
