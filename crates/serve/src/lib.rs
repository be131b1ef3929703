//! An HTTP/1.1 server over epoll that pumps [`onecopy_wire::ChunkSource`]s to sockets. No async runtime.
//!
//! ```no_run
//! use onecopy_serve::{Config, FnHandler, Response, Server};
//!
//! let server = Server::bind("127.0.0.1:8000".parse()?, Config::default())?;
//! let handle = server.handle(); // stops the server from another thread, or from a signal
//! server.run(FnHandler(|_request: onecopy_serve::Request<'_>| {
//!     Response::new(200).content_type("text/plain").body("hello\n")
//! }))?;
//! # drop(handle);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`server`] | [`Server`], [`Handle`]: bind, run, stop |
//! | [`address`] | [`Address`]: IP address and port, or the path of a unix socket |
//! | [`socket`] | [`Socket`]: what listens, which can outlive the process that serves |
//! | [`counters`] | [`SharedCounters`]: read by the parent process, after a crash too |
//! | [`tls`], `tls_problem` | [`Tls`]: certificates and their key, and what is wrong with them |
//! | [`handler`], [`request`], [`response`], [`headers`] | what an application sees |
//! | [`awaited`] | request bodies: whole, or received when the handler asks for them |
//! | [`static_files`] | a folder as a handler: what is asked for is found in it, and nothing beyond |
//! | `ranges` | the parts of a file that a request asks for |
//! | [`config`], [`clock`] | limits and their time |
//! | [`access`] | the access log: what is told, its lines, its file |
//! | [`metrics`] | what is counted, and its text for Prometheus |
//! | [`host`] | the `Host` guard of loopback servers |
//! | `body`, `items`, `response_writer`, `stream_end` | bodies held, made item by item, begun early; the end of a stream |
//! | `accept`, `accept_gate` | accepting connections, and when not |
//! | `liveness`, `watchdog` | [`Watchdog`]: its settings and reports; detects handlers that make no progress |
//! | `signals` | stops and wakes from other threads; [`Stopped`] |
//! | `scheduler`, `workers`, `slab` | who polls, who runs handlers, who fills chunks; connections by token: generic |
//! | `connection`, `out` | one connection: requests in, answers out |
//! | `shared`, `thread_kit` | the state that all threads of a server share, and that of each |
//! | `event_loop`, `poll`, `poll_tokens` | the threads; events and due timers; how it ends |
//! | `transport` | what it speaks through: the socket, or TLS over it |
//! | `timers`, `buffers`, `date` | deadlines, chunks to use again, the `Date` field |
//! | `sys` | system calls: the only `unsafe` |
#![deny(unsafe_code)]

mod accept;
mod accept_gate;
pub mod access;
pub mod address;
pub mod awaited;
mod body;
mod buffers;
pub mod clock;
pub mod config;
mod connection;
pub mod counters;
mod date;
pub mod error;
mod event_loop;
pub mod handler;
pub mod headers;
pub mod host;
mod items;
mod liveness;
pub mod metrics;
mod out;
mod poll;
mod poll_tokens;
mod ranges;
pub mod request;
pub mod response;
mod response_writer;
mod scheduler;
pub mod server;
mod shared;
mod signals;
mod slab;
pub mod socket;
pub mod static_files;
mod stream_end;
#[allow(unsafe_code)] // Fence: system calls.
mod sys;
mod thread_kit;
mod timers;
pub mod tls;
mod tls_problem;
mod transport;
mod watchdog;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use access::{Access, AccessLog, Keep, Outcome};
pub use address::Address;
pub use awaited::{AwaitedBody, BodyError};
pub use clock::{Clock, SystemClock};
pub use config::{Config, Limits};
pub use counters::SharedCounters;
pub use error::Error;
pub use handler::{FnHandler, Handler};
pub use headers::{FieldLine, HeaderError, Headers};
pub use host::host_is_loopback;
pub use items::ItemSink;
pub use liveness::{Liveness, OnLiveness, Pulse, Watchdog};
pub use metrics::{Metrics, MetricsArea};
pub use request::{BodyPolicy, Request, RequestBody};
pub use response::{
    Body, Breaker, Chunks, FileBody, Held, Items, NoItems, Piece, Pulled, Pushed, Response,
    StreamEnd,
};
pub use response_writer::{ResponseWriter, WriteError};
pub use server::{Handle, Server, Stopped, raise_open_files};
pub use socket::Socket;
pub use static_files::Files;
pub use sys::{SignalGuard, reopen_on_signal, stop_on_signals};
pub use tls::{Tls, TlsProblem};

/// Locks a mutex whose data is whole even after a panic: no code that can panic runs while one is held, but handlers,
/// which are caught.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs foreign code; `None` if it panicked. What it borrowed is not looked at after that.
fn guard<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
