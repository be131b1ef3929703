//! [`Clock`]: the source of time for time limits and durations.

use crate::sys;

/// A monotonic clock. Time limits are in whole milliseconds.
pub trait Clock: Send + Sync {
    /// Returns the milliseconds since a fixed time. If the clock jumps forward, the caller must
    /// call [`crate::Handle::wake`].
    fn now_ms(&self) -> u64;

    /// Returns the microseconds since a fixed time, which may differ from the fixed time of
    /// [`Clock::now_ms`]. Durations are measured with this method. A call may be slower than one of
    /// `now_ms`. The default implementation returns whole milliseconds.
    fn now_us(&self) -> u64 {
        self.now_ms().saturating_mul(1000)
    }
}

/// The monotonic clock of the system. [`Clock::now_ms`] returns the time of the kernel's last timer
/// tick, which is at most a few milliseconds ago.
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
