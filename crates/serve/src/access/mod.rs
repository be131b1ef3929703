//! The access log: what is told of a request, its line, and the file that lines go to.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | [`Access`], [`Outcome`] |
//! | `format.rs` | [`Format`]: common, combined, JSON; what a hostile request cannot forge |
//! | `time.rs` | calendar times |
//! | `log.rs` | [`AccessLog`]: lines gathered by those who answer, written by a thread |

mod format;
mod log;
mod time;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use format::Format;
pub use log::{AccessLog, Tell, To};
pub use time::rfc3339;

/// What is known about a request when its answer has ended. It holds no header, and no query, but where [`Keep`] says so: they may
/// hold secrets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Access<'a> {
    /// The method; empty if the head could not be read.
    pub method: &'a str,
    /// The path of the target; empty if the head could not be read. Both are empty for a handshake
    /// of TLS that came to nothing.
    pub path: &'a str,
    /// What follows the first `?` of the target; `None` also where [`Keep::query`] is off.
    pub query: Option<&'a str>,
    /// Whether the request was HTTP/1.0; all others are 1.1.
    pub is_http_1_0: bool,
    /// The field `Referer` as sent; empty where there is none, or [`Keep::agent`] is off.
    pub referer: &'a [u8],
    /// The field `User-Agent` as sent; empty where there is none, or [`Keep::agent`] is off.
    pub user_agent: &'a [u8],
    /// The status sent; 0 if the connection ended before one was.
    pub status: u16,
    /// Bytes of the answer handed to the kernel, head and chunk framing included.
    pub n_bytes: u64,
    /// Those of them behind the head.
    pub n_body_bytes: u64,
    /// Rows of a stream, as its source counted them when it ended, well or badly; `None` for bodies that are no stream.
    pub n_rows: Option<u64>,
    /// From the whole head to the last byte.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// The client; `None` where it came through a unix socket.
    pub peer: Option<SocketAddr>,
}

impl Access<'_> {
    /// The client as logs name it: its address without the port. The one place where that is decided.
    pub fn host(&self) -> impl fmt::Display {
        Host(self.peer.map(|peer| peer.ip()))
    }
}

/// An address, or the word for a client of a unix socket.
struct Host(Option<IpAddr>);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ip) => ip.fmt(f),
            None => f.write_str("unix"),
        }
    }
}

/// What an access log is told beyond method and path. Each costs a copy a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keep {
    /// The query string. It may hold secrets.
    pub query: bool,
    /// `Referer` and `User-Agent`.
    pub agent: bool,
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
    /// All of them, each at the place of its number.
    pub(crate) const ALL: [Outcome; 7] = [
        Outcome::Done,
        Outcome::Failed,
        Outcome::Panicked,
        Outcome::ClientGone,
        Outcome::Stalled,
        Outcome::Stopped,
        Outcome::Refused,
    ];

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
