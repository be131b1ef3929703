//! [`Clock`]: the source of time for the time limits and durations of a server.

use crate::sys;

/// A monotonic clock. Time limits are in whole milliseconds.
pub trait Clock: Send + Sync {
    /// Returns the milliseconds since a fixed time. If a test sets the clock forward, it must then
    /// call [`crate::Handle::wake`].
    fn now_ms(&self) -> u64;

    /// Returns the microseconds since a fixed time, for the measurement of durations. This fixed
    /// time may differ from that of [`Clock::now_ms`]. The call may be slower than a call to
    /// `now_ms`. The default implementation has a resolution of one millisecond.
    fn now_us(&self) -> u64 {
        self.now_ms().saturating_mul(1000)
    }
}

/// The monotonic clock of the system. [`Clock::now_ms`] returns the time of the kernel's last timer
/// tick, which is at most a few milliseconds old.
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
