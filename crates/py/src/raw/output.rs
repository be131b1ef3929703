//! File descriptors to write to, detached.

use std::io;
use std::os::fd::RawFd;
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

impl Descriptor {
    /// Writes as much of `bytes` as goes now, at least one byte. May block.
    ///
    /// # Errors
    /// That of the system call; `Interrupted` where a signal came before anything was written; `TimedOut`.
    pub(crate) fn write_some(self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            // SAFETY: a valid slice; the system checks the descriptor.
            let n = unsafe {
                if self.is_socket {
                    libc::send(
                        self.fd,
                        bytes.as_ptr().cast(),
                        bytes.len(),
                        libc::MSG_NOSIGNAL,
                    )
                } else {
                    libc::write(self.fd, bytes.as_ptr().cast(), bytes.len())
                }
            };
            match usize::try_from(n) {
                Ok(n) => return Ok(n),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::WouldBlock {
                        return Err(error);
                    }
                    self.wait_for_room()?;
                }
            }
        }
    }

    fn wait_for_room(self) -> io::Result<()> {
        let until = self.timeout.map(|t| Instant::now() + t);
        let left = until.map_or(-1, |u| {
            let left = u.saturating_duration_since(Instant::now()).as_millis();
            i32::try_from(left + 1).unwrap_or(i32::MAX)
        });
        let mut poll = libc::pollfd {
            fd: self.fd,
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one pollfd that lives through the call.
        match unsafe { libc::poll(&raw mut poll, 1, left) } {
            0 => Err(io::ErrorKind::TimedOut.into()),
            n if n < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()), // also POLLERR and POLLHUP: the next write tells
        }
    }
}
