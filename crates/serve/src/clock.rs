//! Time as the limits see it.

use std::time::Instant;

/// A clock that never goes back. Limits are kept in whole milliseconds.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed start. A clock that jumps must be followed by [`crate::Handle::wake`].
    fn now_ms(&self) -> u64;

    /// The same in microseconds, as durations are told; a clock that knows none says its milliseconds.
    fn now_us(&self) -> u64 {
        self.now_ms().saturating_mul(1000)
    }
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
        self.now_us() / 1000
    }

    fn now_us(&self) -> u64 {
        let elapsed = self.0.elapsed();
        elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros())
    }
}
