//! The time as of the kernel's last tick: some milliseconds old at most, and a quarter of the price. And the exact one.

use std::mem::MaybeUninit;
use std::time::Duration;

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel writes a timespec there. Both clocks are in every Linux since 2.6.32, so the call does not fail; if it
    // did, all zeroes is a valid timespec.
    unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    }
}

/// Milliseconds since some moment before the start of the process; never goes back.
pub(crate) fn monotonic_ms() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC_COARSE);
    time.tv_sec.unsigned_abs() * 1000 + time.tv_nsec.unsigned_abs() / 1_000_000
}

/// Microseconds since some moment before the start of the process, exact; never goes back.
pub(crate) fn monotonic_us() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC);
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// Since the start of 1970, UTC; 0 before that.
pub(crate) fn unix_time() -> Duration {
    let time = read(libc::CLOCK_REALTIME_COARSE);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Seconds since the start of 1970, UTC; 0 before that.
pub(crate) fn unix_seconds() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME_COARSE).tv_sec).unwrap_or(0)
}
