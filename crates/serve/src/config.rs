//! What a server can be told, with its defaults.

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

/// Limits on what a client may take, each with a default that is safe on a public address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Time from the first byte of a head (or from connecting) to its end, a handshake of TLS included. Past it: 408, closed. Default 10 s.
    pub head: Duration,
    /// Bytes of a head, request line included. Past it: 431 (414 for the target), closed. Default 64 KiB.
    pub head_bytes: usize,
    /// Header fields of a request. Past it: 431, closed. Default 100.
    pub n_fields: usize,
    /// Whether names of header fields may hold `_`; if not: 400, closed. Applications that see them in CGI's form (WSGI) cannot tell
    /// them from `-`. Default yes.
    pub underscores: bool,
    /// Time between requests on a connection that is kept alive. Past it: closed. Default 60 s.
    pub idle: Duration,
    /// Time in which the client takes no byte of an answer. Past it: cut, its stream cancelled. Default 30 s.
    pub write_stall: Duration,
    /// Time in which no byte of a request body comes. Past it: 408, closed. Default 30 s.
    pub body_stall: Duration,
    /// Bytes of a request body. Past it: 413, closed. Default 1 MiB.
    pub body_bytes: usize,
    /// Bytes of a request body that wait in memory; longer ones wait in a file without a name. Default 1 MiB.
    pub body_memory_bytes: usize,
    /// Connections at once. Past it: 503 and closed. Where the limit of open files permits fewer
    /// ([`crate::Server::max_connections`]), further ones wait in the queue of the kernel until one
    /// is closed. Default 50,000.
    pub n_connections: usize,
    /// Time that requests under way get when the server stops; what is left then is cut. Default 30 s.
    pub stop: Duration,
    /// Time that a connection to be closed waits for the peer to take the last answer and close. Default 2 s.
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

/// Starts a thread: a name and what it runs. The binding for Python starts its threads through Python's `threading`.
pub type Spawn =
    Arc<dyn Fn(String, Box<dyn FnOnce() + Send + 'static>) -> io::Result<()> + Send + Sync>;

/// Called once per request when its answer has ended; it must not block.
pub type OnAccess = Arc<dyn Fn(&Access<'_>) + Send + Sync>;

/// Called where the system lets the server take no connection (its descriptors or memory have run out), at most once a minute; it
/// must not block.
pub type OnTrouble = Arc<dyn Fn(&io::Error) + Send + Sync>;

/// How a server runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// Limits on clients.
    pub limits: Limits,
    /// How many handlers may run at once; one thread more is started, which keeps the poll. Default 8.
    pub handler_threads: usize,
    /// How many chunk sources may be filled at once; threads are started as they are needed. It should not be less
    /// than the number of streams that the handler allows at once. Default 16.
    pub workers: usize,
    /// The size of a chunk of a stream, in bytes; a connection has at most two. Default 64 KiB.
    pub chunk_bytes: usize,
    /// The access log, if any.
    pub on_access: Option<OnAccess>,
    /// What it is told beyond method and path. Default nothing.
    pub keep: Keep,
    /// Where requests, bytes and connections are counted. Default a place of its own.
    pub metrics: Metrics,
    /// Whom to tell that connections cannot be taken, if anybody.
    pub on_trouble: Option<OnTrouble>,
    /// The clock of the limits; tests give one they move by hand.
    pub clock: Arc<dyn Clock>,
    /// The certificate, where the server speaks TLS. Default: it does not.
    pub tls: Option<Tls>,
    /// Detects handlers that make no progress. Default: nothing does.
    pub watchdog: Option<Watchdog>,
    /// Where files of long request bodies are made. Default: the system's folder for temporary files.
    pub body_folder: PathBuf,
    /// Starts the threads. Default: `std::thread`.
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
