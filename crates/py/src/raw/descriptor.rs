//! Writes bytes to the file descriptor of a Python object, without the GIL.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The file descriptor of a Python object. The object must stay alive and open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) fd: RawFd,
    /// `true` for a socket. `send` with `MSG_NOSIGNAL` then prevents SIGPIPE.
    pub(crate) is_socket: bool,
    /// The time limit for space in the socket or pipe. `None` for no limit.
    pub(crate) timeout: Option<Duration>,
}

/// Duplicates a file descriptor. Dropping the result closes it.
pub(crate) fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: not -1, and used only within this call; the system checks that it is open.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Duplicates the descriptor of a regular file. Returns `None` for any other file, such as a pipe.
pub(crate) fn regular_file(fd: RawFd) -> io::Result<Option<File>> {
    let file = File::from(duplicate(fd)?);
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Returns the length of a regular file in bytes. Returns `None` if the reported length 0 may be
/// wrong, as in `/proc`.
pub(crate) fn known_len(file: &File) -> io::Result<Option<u64>> {
    match file.metadata()?.len() {
        // A failed read is reported when the file is read to its end.
        0 if !matches!(file.read_at(&mut [0], 0), Ok(0)) => Ok(None),
        len_bytes => Ok(Some(len_bytes)),
    }
}

/// The longest single wait for space. Between two waits, the caller checks for signals.
const WAIT: Duration = Duration::from_millis(50);

/// Writes bytes to a descriptor. The time limit applies to a wait for space, even over several
/// calls.
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

    /// Writes at least one of `bytes`, and returns the number of bytes written. Waits up to
    /// [`WAIT`] at a time for space in a socket.
    ///
    /// # Errors
    /// The error of the system call; `TimedOut` after the time limit; `Interrupted` if the caller
    /// must run signal handlers. After `Interrupted`, nothing was written.
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
            self.wait_writable()?;
        }
    }

    fn wait_writable(&mut self) -> io::Result<()> {
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
            _ => Ok(()), // also POLLERR and POLLHUP: the next write reports it
        }
    }
}
