//! [`FileSender`], [`FileReceiver`] and [`copy_file`]: the kernel moves bytes between files and
//! sockets, without a copy in the memory of this process.
//!
//! | module | contents |
//! |---|---|
//! | [`send`] | [`FileSender`]: sends a file to a socket |
//! | [`receive`] | [`FileReceiver`]: receives a file from a socket |
//! | [`copy`] | [`copy_contents`], [`copy_file`]: copy a file to another file |
//!
//! One call to [`FileSender::step`] or [`FileReceiver::step`] moves as many bytes as possible, and
//! waits for the socket at most once. Between two calls, the caller can handle signals and report
//! progress. The socket may be blocking or non-blocking. If a non-blocking socket is not ready, the
//! call returns `WouldBlock`, and the caller waits with [`wait_for`].
//!
//! If the kernel cannot move the bytes, they pass through a buffer, and [`Moved::n_copied`] counts
//! them. Examples are a file system without splice, and a file that was opened for appending. The
//! choice of system calls is explained in `docs/decisions/0095-moving-files.md`.

pub mod copy;
pub mod receive;
pub mod send;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_timeout};

pub use copy::{copy_contents, copy_file};
pub use receive::FileReceiver;
pub use send::{FileSender, is_loopback};

/// The size in bytes of the buffer through which bytes are copied if the kernel cannot move them.
/// It is small enough that the bytes stay in the L2 cache between the read and the write.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

/// The result of a transfer between files or sockets: the number of bytes, and how many of them
/// were copied through this process instead of being moved by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The number of bytes that were moved in total.
    pub n_bytes: u64,
    /// The number of bytes, of those in `n_bytes`, that were copied through a buffer of this
    /// process, because the kernel could not move them.
    pub n_copied: u64,
}

impl Moved {
    pub(crate) fn by_kernel(n_bytes: usize) -> Moved {
        Moved {
            n_bytes: n_bytes as u64,
            n_copied: 0,
        }
    }

    pub(crate) fn by_buffer(n_bytes: usize) -> Moved {
        Moved {
            n_bytes: n_bytes as u64,
            n_copied: n_bytes as u64,
        }
    }

    /// Adds the counts of `more` to these counts.
    pub fn add(&mut self, more: Moved) {
        self.n_bytes += more.n_bytes;
        self.n_copied += more.n_copied;
    }
}

/// The event to wait for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The socket has received bytes, or the peer has closed its side.
    Readable,
    /// The socket accepts bytes.
    Writable,
}

/// Waits for the event `what` on `socket`. Returns `true` if the event occurred or the socket has
/// failed; the next system call on a failed socket returns the error. Returns `false` if the event
/// does not occur within the time `most`.
///
/// # Errors
/// The error of the system; `Interrupted` after a signal.
pub fn wait_for(socket: BorrowedFd<'_>, what: Readiness, most: Duration) -> io::Result<bool> {
    let flags = match what {
        Readiness::Readable => PollFlags::IN,
        Readiness::Writable => PollFlags::OUT,
    };
    let most = Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    let mut polled = [PollFd::from_borrowed_fd(socket, flags)];
    Ok(poll(&mut polled, Some(&most))? > 0)
}

/// A time limit (`SO_SNDTIMEO`) for each system call that sends to a blocking socket. It is needed
/// because a signal that arrives just before such a call does not interrupt the call. When this
/// value is dropped, the previous limit of the socket is restored.
#[derive(Debug)]
pub struct SendLimit<'a> {
    socket: BorrowedFd<'a>,
    before: Option<Duration>,
}

impl<'a> SendLimit<'a> {
    /// Sets `most` as the time limit of each call that sends to `socket`. Returns `None` if the
    /// socket does not support a limit.
    #[must_use]
    pub fn set(socket: BorrowedFd<'a>, most: Duration) -> Option<SendLimit<'a>> {
        let before = socket_timeout(socket, Timeout::Send).ok()?;
        set_socket_timeout(socket, Timeout::Send, Some(most)).ok()?;
        Some(SendLimit { socket, before })
    }
}

impl Drop for SendLimit<'_> {
    fn drop(&mut self) {
        // A socket that accepted one limit also accepts its previous limit.
        _ = set_socket_timeout(self.socket, Timeout::Send, self.before);
    }
}

/// Returns `true` if `error` means that the kernel cannot move bytes between the two descriptors of
/// the system call that returned it.
fn is_unsupported(error: Errno) -> bool {
    matches!(
        error,
        Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV
    )
}
