//! File descriptors to write to, detached.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// A descriptor that belongs to a Python object, which is kept alive and open by whoever holds this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) fd: RawFd,
    /// A socket: written by `send`, so that a reader who left is an error and never a signal.
    pub(crate) is_socket: bool,
    /// How long one write may wait for room; `None` without end.
    pub(crate) timeout: Option<Duration>,
}

/// Another descriptor of what `fd` has open.
pub(crate) fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: not -1, and used within this call alone; the system checks that it is open.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Another descriptor of the open file `fd`, where it is a regular file: the object that `fd` belongs to may be closed then.
pub(crate) fn regular_file(fd: RawFd) -> io::Result<Option<File>> {
    let file = File::from(duplicate(fd)?);
    Ok(file.metadata()?.is_file().then_some(file))
}

/// How long a wait for room lasts before signals are looked at: one that came right before the wait interrupts nothing.
const WAIT: Duration = Duration::from_millis(50);

/// Writes to a descriptor, and knows since when it waits for room.
#[derive(Debug)]
pub(crate) struct Writer {
    to: Descriptor,
    waits_since: Option<Instant>,
}

impl Writer {
    pub(crate) fn new(to: Descriptor) -> Writer {
        Writer {
            to,
            waits_since: None,
        }
    }

    /// Writes as much of `bytes` as goes now, at least one byte. A socket is waited for in steps of [`WAIT`]; another file may
    /// block.
    ///
    /// # Errors
    /// That of the system call; `TimedOut`; `Interrupted` where nothing was written and signals are to be looked at: one
    /// came, or a step is over. The next call goes on with the same wait.
    pub(crate) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fd = self.to.fd;
        loop {
            // SAFETY: a valid slice; the system checks the descriptor.
            let n = unsafe {
                if self.to.is_socket {
                    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
                    libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags)
                } else {
                    libc::write(fd, bytes.as_ptr().cast(), bytes.len())
                }
            };
            if let Ok(n) = usize::try_from(n) {
                self.waits_since = None;
                return Ok(n);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            self.wait_for_room()?;
        }
    }

    fn wait_for_room(&mut self) -> io::Result<()> {
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let mut step = WAIT;
        if let Some(timeout) = self.to.timeout {
            let left = timeout.saturating_sub(since.elapsed());
            if left.is_zero() {
                self.waits_since = None;
                return Err(io::ErrorKind::TimedOut.into());
            }
            step = step.min(left);
        }
        let mut poll = libc::pollfd {
            fd: self.to.fd,
            events: libc::POLLOUT,
            revents: 0,
        };
        let step = i32::try_from(step.as_millis() + 1).unwrap_or(i32::MAX);
        // SAFETY: one pollfd that lives through the call.
        match unsafe { libc::poll(&raw mut poll, 1, step) } {
            0 => Err(io::ErrorKind::Interrupted.into()),
            n if n < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()), // also POLLERR and POLLHUP: the next write tells
        }
    }
}
