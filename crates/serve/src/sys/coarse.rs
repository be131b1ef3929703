//! Functions that read the system clocks. [`monotonic_ms`] returns the time of the kernel's last
//! timer tick, which is up to a few milliseconds old. [`monotonic_us`] returns the exact time, but
//! takes four times as long as [`monotonic_ms`].

use std::mem::MaybeUninit;
use std::time::Duration;

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel writes a `timespec` to `time`. The call does not fail, because every Linux
    // since 2.6.32 has both clocks. If it failed, `time` would be zero, which is valid too.
    unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    }
}

/// Returns the milliseconds since a fixed time before the start of the process, with the resolution
/// of the kernel's timer tick. The number never decreases.
pub(crate) fn monotonic_ms() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC_COARSE);
    time.tv_sec.unsigned_abs() * 1000 + time.tv_nsec.unsigned_abs() / 1_000_000
}

/// Returns the exact microseconds since a fixed time before the start of the process. The number
/// never decreases.
pub(crate) fn monotonic_us() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC);
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// Returns the time since the start of 1970 in UTC. Returns 0 if the system clock is set to a time
/// before 1970.
pub(crate) fn unix_time() -> Duration {
    let time = read(libc::CLOCK_REALTIME_COARSE);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Returns the seconds since the start of 1970 in UTC. Returns 0 if the system clock is set to a
/// time before 1970.
pub(crate) fn unix_seconds() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME_COARSE).tv_sec).unwrap_or(0)
}
