//! An HTTP/1.1 server on epoll, without an async runtime. It sends row streams
//! ([`onecopy_wire::ChunkSource`]) to sockets without copying the payload.
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
//! | module | contents |
//! |---|---|
//! | [`server`] | [`Server`], [`Handle`]: bind, run, stop |
//! | [`address`] | [`Address`]: IP address and port, or the path of a unix socket |
//! | [`socket`] | [`Socket`]: a listening socket, which can outlive the process that serves |
//! | [`counters`] | [`SharedCounters`]: counters that the parent process can read after a crash |
//! | [`tls`], `tls_problem` | [`Tls`]: certificates and their key; problems with their files |
//! | [`handler`], [`request`], [`response`], [`headers`] | the interface for applications |
//! | [`awaited`] | request bodies: received before the handler runs, or when it requests them |
//! | [`static_files`] | a folder as a handler: serves the files below it and nothing outside |
//! | `ranges` | responses with only the requested ranges of a file |
//! | [`config`], [`clock`] | settings and limits; the clock for time limits |
//! | [`access`] | the access log: its fields, its line formats, its file |
//! | [`metrics`] | counters, and their text for Prometheus |
//! | [`host_check`] | checks the `Host` field of requests to a loopback address |
//! | `body`, `items` | response bodies in memory or in a file, and produced item by item |
//! | `response_writer` | responses that a handler begins while it runs |
//! | `stream_end` | the ways in which a row stream can end |
//! | `accept`, `accept_gate` | accepting connections, and pausing that |
//! | `liveness`, `watchdog` | [`Watchdog`], which detects handlers that make no progress |
//! | `signals` | event descriptors with which threads stop or wake the server; [`Stopped`] |
//! | `scheduler`, `workers` | the leader/follower scheduler, and the threads that fill chunks |
//! | `slab` | the table of connections by token |
//! | `connection`, `output_queue` | one connection: reads requests, sends responses |
//! | `shared`, `thread_kit` | the state shared by all threads of a server, and the state of each |
//! | `event_loop`, `poll`, `poll_tokens` | the threads; events and due timers; shutdown |
//! | `transport` | the transport of a connection: the socket, or TLS over it |
//! | `timers`, `buffers`, `date` | deadlines, reusable chunks, the `Date` field |
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
pub mod host_check;
mod items;
mod liveness;
pub mod metrics;
mod output_queue;
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
#[allow(unsafe_code)] // Unsafe boundary: system calls.
mod sys;
mod thread_kit;
mod timers;
pub mod tls;
mod tls_problem;
mod transport;
mod watchdog;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use access::{Access, AccessLog, Keep, Outcome};
pub use address::Address;
pub use awaited::{AwaitedBody, BodyError};
pub use clock::{Clock, SystemClock};
pub use config::{Config, Limits};
pub use counters::SharedCounters;
pub use error::Error;
pub use handler::{FnHandler, Handler};
pub use headers::{FieldLine, HeaderError, Headers};
pub use host_check::host_is_loopback;
pub use items::ItemSink;
pub use liveness::{Liveness, OnLiveness, Pulse, Watchdog};
pub use metrics::{Metrics, MetricsArea};
pub use request::{BodyPolicy, Request, RequestBody};
pub use response::{
    Body, BodyPart, Breaker, Chunks, FileBody, Items, NoItems, Pulled, Pushed, Response,
    SharedBytes, StreamEnd,
};
pub use response_writer::{ResponseWriter, WriteError};
pub use server::{Handle, Server, Stopped, raise_open_files};
pub use socket::Socket;
pub use static_files::Files;
pub use sys::{SignalGuard, reopen_on_signal, stop_on_signals};
pub use tls::{Tls, TlsProblem};

/// Calls `run`, which contains code of the application. Returns `None` if the code panics. After a
/// panic, the caller must not use values that the code had borrowed, because they may be
/// inconsistent.
fn guard<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
