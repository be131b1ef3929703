//! Bytes that the kernel moves between files and sockets: none of them is seen by this process.
//!
//! | module | what it holds |
//! |---|---|
//! | [`send`] | [`FileSender`]: a file to a socket |
//! | [`receive`] | [`FileReceiver`]: a socket to a file |
//! | [`copy`] | [`copy_contents`], [`copy_file`]: a file to a file |
//!
//! A step moves what goes at once. So a caller can look at signals between two, tell how far it is, and use a socket of either
//! kind: one that does not block gives `WouldBlock`, and [`wait_for`] waits.
//!
//! Where the kernel cannot move them (a file system that cannot splice, a file that is appended to) bytes go through a buffer, and
//! [`Moved::n_copied`] says so. Why these calls: `docs/decisions/0095-moving-files.md`.

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

/// Bytes of a buffer, where one is needed: larger ones leave the second cache between the read and the write.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

/// How many bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// All of them.
    pub n_bytes: u64,
    /// Those that went through a buffer of this process.
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

    /// These and `more`.
    pub fn add(&mut self, more: Moved) {
        self.n_bytes += more.n_bytes;
        self.n_copied += more.n_copied;
    }
}

/// What a socket is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Bytes that have come, or the peer's end.
    Readable,
    /// Room for bytes that go.
    Writable,
}

/// Waits until `socket` is ready or has failed, which the next call tells; `false` if neither happened for `most`.
///
/// # Errors
/// The system's; `Interrupted` where a signal came.
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

/// A limit on how long one call that sends to a blocking socket takes. A signal that comes right before
/// such a call does not interrupt it. The socket has its own limit (`SO_SNDTIMEO`) back when this
/// is dropped.
#[derive(Debug)]
pub struct SendLimit<'a> {
    socket: BorrowedFd<'a>,
    before: Option<Duration>,
}

impl<'a> SendLimit<'a> {
    /// Sets the limit, if the socket takes one.
    #[must_use]
    pub fn set(socket: BorrowedFd<'a>, most: Duration) -> Option<SendLimit<'a>> {
        let before = socket_timeout(socket, Timeout::Send).ok()?;
        set_socket_timeout(socket, Timeout::Send, Some(most)).ok()?;
        Some(SendLimit { socket, before })
    }
}

impl Drop for SendLimit<'_> {
    fn drop(&mut self) {
        // A socket that took a limit takes the one that it had.
        _ = set_socket_timeout(self.socket, Timeout::Send, self.before);
    }
}

/// Whether an error says that the kernel cannot move bytes between these two, and not that something is wrong.
fn is_unsupported(error: Errno) -> bool {
    matches!(
        error,
        Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV
    )
}
