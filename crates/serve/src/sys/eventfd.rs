//! [`EventFd`]: an event descriptor (eventfd(2)). A thread or a signal handler uses it to wake a
//! thread that waits in epoll.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// A counter in the kernel, accessed through a file descriptor. The descriptor is readable while
/// the counter is not zero. [`EventFd::drain`] sets the counter to zero.
#[derive(Debug)]
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<EventFd> {
        // SAFETY: no pointer is passed; the result is checked.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: `fd` was just created, and nothing else uses it.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds `n` to the counter. The method is async-signal-safe.
    pub(crate) fn add(&self, n: u64) {
        add_to(self.0.as_raw_fd(), n);
    }

    /// Returns the value of the counter and sets it to 0.
    pub(crate) fn drain(&self) -> u64 {
        let mut n: u64 = 0;
        // SAFETY: eventfd writes exactly eight bytes, the size of `n`, or fails and writes none.
        let got = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut n).cast(), 8) };
        if got == 8 { n } else { 0 }
    }
}

impl From<OwnedFd> for EventFd {
    /// Wraps the file descriptor of an eventfd counter that another process created.
    fn from(fd: OwnedFd) -> EventFd {
        EventFd(fd)
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Adds `n` to the counter of the event descriptor `fd`. The function only calls write(2), so it is
/// async-signal-safe.
pub(super) fn add_to(fd: RawFd, n: u64) {
    // SAFETY: eight bytes are read from `n`. Failures can be ignored: if the counter is full, the
    // reader is already woken; if the descriptor is closed, no reader exists.
    let _ = unsafe { libc::write(fd, (&raw const n).cast(), 8) };
}
