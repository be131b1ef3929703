//! One line of an access log, as data.

use std::net::SocketAddr;
use std::time::Duration;

/// What is known about a request when its answer has ended. It holds no query and no header: they may hold secrets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Access<'a> {
    /// The method; empty if the head could not be read.
    pub method: &'a str,
    /// The target up to its `?`; empty if the head could not be read. Both are empty for a handshake of TLS that came to nothing.
    pub path: &'a str,
    /// The status sent; 0 if the connection ended before one was.
    pub status: u16,
    /// Bytes of the answer handed to the kernel, head and chunk framing included.
    pub n_bytes: u64,
    /// Rows of a stream, as its source counted them when it ended, well or badly; `None` for bodies that are no stream.
    pub n_rows: Option<u64>,
    /// From the whole head to the last byte.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// The client; `None` where it came through a unix socket.
    pub peer: Option<SocketAddr>,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Sent to its end.
    Done,
    /// A stream failed; if its head had been sent, the connection was broken so that it cannot look complete.
    Failed,
    /// The handler or the source panicked.
    Panicked,
    /// The client closed before the end.
    ClientGone,
    /// The client took nothing for the limit of a write.
    Stalled,
    /// Cut when the server stopped.
    Stopped,
    /// The server refused the request: malformed, too large, too slow.
    Refused,
}

impl Outcome {
    /// The word for logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Panicked => "panicked",
            Outcome::ClientGone => "client_gone",
            Outcome::Stalled => "stalled",
            Outcome::Stopped => "stopped",
            Outcome::Refused => "refused",
        }
    }
}
