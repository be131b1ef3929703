//! [`Config`] and [`Limits`]: the settings of a server, with their defaults.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::access::{Access, Keep};
use crate::clock::{Clock, SystemClock};
use crate::liveness::Watchdog;
use crate::metrics::Metrics;
use crate::tls::Tls;

/// The limits on the resources that clients use. The defaults are safe on a public address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The time limit for receiving a request head, from its first byte to its end. For the first
    /// head of a connection, the time starts when the client connects, and includes the TLS
    /// handshake. After this time, the client gets a 408, and the connection is closed. Default 10
    /// s.
    pub head: Duration,
    /// The largest size of a request head in bytes, including the request line. A request with a
    /// larger head gets a 431 (a 414 if its target is too long), and the connection is closed.
    /// Default 64 KiB.
    pub head_bytes: usize,
    /// The largest number of header fields of a request. A request with more fields gets the status
    /// 431, and the connection is closed. Default 100.
    pub n_fields: usize,
    /// `true` if names of header fields may contain `_`. If `false`, a request with such a field
    /// gets the status 400, and the connection is closed. CGI and WSGI convert `-` in names to `_`,
    /// so their applications cannot distinguish the two. Default `true`.
    pub underscores: bool,
    /// The longest time that a connection may be open without a request, after its last response.
    /// After this time, the connection is closed. Default 60 s.
    pub idle: Duration,
    /// The longest time for which a client may leave queued bytes of a response unread. If the
    /// client reads no byte in this time, the connection is aborted, and the source of a row stream
    /// is cancelled. Default 30 s.
    pub write_stall: Duration,
    /// The longest time between two bytes of a request body. If no byte arrives for this time, the
    /// client gets a 408, and the connection is closed. Default 30 s.
    pub body_stall: Duration,
    /// The largest size of a request body in bytes. A request with a larger body gets a 413, and
    /// the connection is closed. Default 1 MiB.
    pub body_bytes: usize,
    /// The largest size in bytes of a request body that is kept in memory. A longer body is written
    /// to an unnamed temporary file. Default 1 MiB.
    pub body_memory_bytes: usize,
    /// The largest number of open connections. A connection above this number gets a 503 and is
    /// closed. If the limit of open files permits fewer connections
    /// ([`crate::Server::max_connections`]), the connections above this lower limit wait in the
    /// kernel's queue until an open connection is closed. Default 50,000.
    pub n_connections: usize,
    /// The time limit for requests in progress when the server stops. After this time they are
    /// aborted. Default 30 s.
    pub stop: Duration,
    /// The time for which the server keeps a connection half open before it closes it. In this
    /// time, the client can read the last response and close its side. Default 2 s.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Duration::from_secs(10),
            head_bytes: 64 * 1024,
            n_fields: 100,
            underscores: true,
            idle: Duration::from_secs(60),
            write_stall: Duration::from_secs(30),
            body_stall: Duration::from_secs(30),
            body_bytes: 1024 * 1024,
            body_memory_bytes: 1024 * 1024,
            n_connections: 50_000,
            stop: Duration::from_secs(30),
            linger: Duration::from_secs(2),
        }
    }
}

/// A function that starts a thread. Its arguments are the thread's name and the function that the
/// thread runs. The Python module starts threads through Python's `threading` module.
pub type Spawn =
    Arc<dyn Fn(String, Box<dyn FnOnce() + Send + 'static>) -> io::Result<()> + Send + Sync>;

/// The function that is called for each request, after its response has ended. It must not block.
pub type OnAccess = Arc<dyn Fn(&Access<'_>) + Send + Sync>;

/// A function that is called when a connection cannot be accepted, because no file descriptor or no
/// memory is available. It is called at most once per minute, and must not block.
pub type OnTrouble = Arc<dyn Fn(&io::Error) + Send + Sync>;

/// The settings of a server.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// The limits on the resources that clients use.
    pub limits: Limits,
    /// The number of handlers that may run at the same time. The server starts one thread for each
    /// of them, and one additional thread that waits in epoll. Default 8.
    pub handler_threads: usize,
    /// The number of chunk sources that may be filled at the same time. The thread for a source is
    /// started when it is needed. This number should be at least the number of row streams that the
    /// handler permits at the same time. Default 16.
    pub workers: usize,
    /// The size in bytes of a chunk of a row stream. A connection has at most two chunks. Default
    /// 64 KiB.
    pub chunk_bytes: usize,
    /// The function that is called when the response to a request has ended. For example, it can
    /// write an access log. Default: no function.
    pub on_access: Option<OnAccess>,
    /// The optional fields that [`Config::on_access`] receives in addition to method and path.
    /// Default: none.
    pub keep: Keep,
    /// The counters of requests, bytes and connections. Default: new counters in private memory.
    pub metrics: Metrics,
    /// The function that is called when connections cannot be accepted. Default: no function.
    pub on_trouble: Option<OnTrouble>,
    /// The clock for time limits and durations. Tests replace it with a clock that they set.
    /// Default: [`SystemClock`].
    pub clock: Arc<dyn Clock>,
    /// The certificate and key for TLS. Default: no TLS.
    pub tls: Option<Tls>,
    /// The watchdog, which detects that handlers make no progress. Default: no watchdog.
    pub watchdog: Option<Watchdog>,
    /// The folder for the temporary files of long request bodies. Default: the system's folder for
    /// temporary files.
    pub body_folder: PathBuf,
    /// The function that starts the threads of the server. Default: that of `std::thread`.
    pub spawn: Spawn,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limits: Limits::default(),
            handler_threads: 8,
            workers: 16,
            chunk_bytes: 64 * 1024,
            on_access: None,
            keep: Keep::default(),
            metrics: Metrics::default(),
            on_trouble: None,
            clock: Arc::new(SystemClock),
            tls: None,
            watchdog: None,
            body_folder: std::env::temp_dir(),
            spawn: Arc::new(|name, run| {
                std::thread::Builder::new()
                    .name(name)
                    .spawn(run)
                    .map(|_| ())
            }),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("limits", &self.limits)
            .field("handler_threads", &self.handler_threads)
            .field("workers", &self.workers)
            .field("chunk_bytes", &self.chunk_bytes)
            .finish_non_exhaustive()
    }
}
