//! Safe wrappers of system calls. In this crate, only this module contains `unsafe` code.

mod coarse;
mod epoll;
mod eventfd;
mod folder;
mod inherit;
mod listener;
mod shared;
mod signal;
mod socket;

pub(crate) use coarse::{monotonic_ms, monotonic_us, unix_seconds, unix_time};
pub(crate) use epoll::{Epoll, Event, Interest};
pub(crate) use eventfd::EventFd;
pub(crate) use folder::{Folder, OpenPurpose, names_in};
pub(crate) use inherit::{lend, take_lent};
pub(crate) use listener::{Listener, ListenerName};
pub(crate) use shared::{SharedWords, is_locked, try_lock};
pub(crate) use signal::n_reopens_asked;
pub use signal::{SignalGuard, reopen_on_signal, stop_on_signals};
pub(crate) use socket::{Stream, max_open_files, raise_max_open_files, read_file};

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Returns `value`, the result of a system call. If it is -1, returns the error in `errno` instead.
fn check(value: libc::c_int) -> io::Result<libc::c_int> {
    if value == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

/// Waits until `fd` is writable, or until an error occurred on it, which the next write returns.
/// Returns `false` if neither happens within the time `most`.
pub(crate) fn wait_writable(fd: BorrowedFd<'_>, most: Duration) -> bool {
    let mut polled = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    let most_ms = libc::c_int::try_from(most.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: one whole pollfd, borrowed for the call.
    let n = unsafe { libc::poll(&raw mut polled, 1, most_ms) };
    // After an interruption by a signal the result is `true` too, and the caller tries to write
    // again.
    n > 0 || n == -1 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}
