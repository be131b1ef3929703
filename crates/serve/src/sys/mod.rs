//! System calls under the names of what they do. The only place of this crate with `unsafe`.

mod coarse;
mod epoll;
mod eventfd;
mod inherit;
mod listener;
mod signal;
mod socket;

pub(crate) use coarse::{monotonic_ms, unix_seconds};
pub(crate) use epoll::{Epoll, Event, Interest};
pub(crate) use eventfd::EventFd;
pub(crate) use inherit::{lend, take_lent};
pub(crate) use listener::{Listener, Name};
pub use signal::{SignalGuard, stop_on_signals};
pub(crate) use socket::{Stream, max_open_files, read_file};

use std::io;

/// The value of a system call, or the error in `errno` where it is -1.
fn check(value: libc::c_int) -> io::Result<libc::c_int> {
    if value == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}
