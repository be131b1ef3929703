//! The access log of the HTTP server. [`Access`] is the data about one request, [`Format`] formats
//! these data as a line, and [`AccessLog`] writes the lines to a file.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | [`Access`], [`Outcome`] |
//! | `format.rs` | [`Format`]: lines in the formats common, combined and JSON, escaped |
//! | `time.rs` | the times in log lines |
//! | `log.rs` | [`AccessLog`]: the file, to which a separate thread writes buffered lines |

mod format;
mod log;
mod time;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use format::Format;
pub use log::{AccessLog, LogTarget, ReportProblem};
pub use time::rfc3339;

/// The data about a request that are known when its response has ended. The query and the header
/// fields may contain secrets. They are recorded only if [`Keep`] selects them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Access<'a> {
    /// The method of the request; empty if the head could not be parsed.
    pub method: &'a str,
    /// The path of the request target; empty if the head could not be parsed. Method and path are
    /// also empty if the entry is about a TLS handshake that failed.
    pub path: &'a str,
    /// The query, which follows the first `?` of the request target. `None` if the target has no
    /// `?`, or if [`Keep::query`] is `false`.
    pub query: Option<&'a str>,
    /// `true` if the request was HTTP/1.0; all other requests are HTTP/1.1.
    pub is_http_1_0: bool,
    /// The value of the field `Referer` as sent; empty if the request does not have the field, or
    /// if [`Keep::agent`] is `false`.
    pub referer: &'a [u8],
    /// The value of the field `User-Agent` as sent; empty if the request does not have the field,
    /// or if [`Keep::agent`] is `false`.
    pub user_agent: &'a [u8],
    /// The status of the response; 0 if the connection ended before a status was sent.
    pub status: u16,
    /// The number of bytes of the response that were passed to the kernel. The number includes the
    /// head and the framing of chunks.
    pub n_bytes: u64,
    /// The part of `n_bytes` that was sent after the head of the response.
    pub n_body_bytes: u64,
    /// The number of rows that the row stream has produced, even if the stream failed. `None` if
    /// the response body is not a row stream.
    pub n_rows: Option<u64>,
    /// The time from the end of the request's head to the last byte of the response.
    pub duration: Duration,
    /// The way in which the response ended: completely, or early for a reason.
    pub outcome: Outcome,
    /// The address of the client; `None` for a unix socket.
    pub peer: Option<SocketAddr>,
}

impl Access<'_> {
    /// Returns the client's address without the port, in the form in which all logs of the server
    /// display a client.
    pub fn host(&self) -> impl fmt::Display {
        Host(self.peer.map(|peer| peer.ip()))
    }
}

/// Displays the IP address of a client. `None` is a client of a unix socket and is displayed as
/// `unix`.
struct Host(Option<IpAddr>);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ip) => ip.fmt(f),
            None => f.write_str("unix"),
        }
    }
}

/// The selection of the optional fields of [`Access`]. The server copies each selected field once
/// per request. The method and the path are always recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keep {
    /// `true` to record the query string, which may contain secrets.
    pub query: bool,
    /// `true` to record the values of the header fields `Referer` and `User-Agent`.
    pub agent: bool,
}

/// The way in which a response ended: completely, or early for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// All bytes of the response were sent.
    Done,
    /// The row stream of the response failed. If the head of the response was already sent, the
    /// server aborted the connection, so that the client detects that the response is incomplete.
    Failed,
    /// The request handler or the source of a row stream panicked.
    Panicked,
    /// The client closed the connection before the end of the response.
    ClientGone,
    /// The client read no bytes for the time [`crate::Limits::write_stall`].
    Stalled,
    /// The response was aborted because the server stopped.
    Stopped,
    /// The server rejected the request, because it was malformed, too large or too slow.
    Refused,
}

impl Outcome {
    /// All outcomes. The index of an outcome in this array is also its index among the counters of
    /// the metrics.
    pub(crate) const ALL: [Outcome; 7] = [
        Outcome::Done,
        Outcome::Failed,
        Outcome::Panicked,
        Outcome::ClientGone,
        Outcome::Stalled,
        Outcome::Stopped,
        Outcome::Refused,
    ];

    /// Returns the name of the outcome in logs.
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
