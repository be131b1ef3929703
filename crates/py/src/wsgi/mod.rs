//! WSGI (PEP 3333): runs Python applications on onecopy's server.
//!
//! | module | contents |
//! |---|---|
//! | `server` | `onecopy._core.Server`: binds, starts and stops a server |
//! | `observe` | the access log and the metrics of a server |
//! | `handler` | calls the application for a request, and converts its result to a response |
//! | `start` | `start_response` and `write` |
//! | `lines` | a cache of header fields that are constants of the application |
//! | `input` | `wsgi.input` |
//! | `liveness` | reports of a worker process that makes no progress |
//! | `body` | converts iterables, files and row streams to bodies |
//! | `files` | a folder as a WSGI application |
//!
//! # Process contract
//!
//! The threads of the server are started with Python's `threading`. A thread handles one request at
//! a time, and holds the GIL while the application runs. Data is sent with the GIL released, except
//! for full batches of a generator's items. A thread that holds the GIL never waits for a lock or a
//! client. The first read of an incomplete body waits with the GIL released, and ends when the
//! server is stopped. The thread of the access log never calls Python.

mod body;
mod files;
mod handler;
mod input;
mod lines;
mod liveness;
mod observe;
mod server;
mod start;

pub(crate) use body::FileWrapper;
pub(crate) use files::{FileAnswer, Files};
pub(crate) use input::Input;
pub(crate) use observe::Metrics;
pub(crate) use server::{Server, raise_open_files};
pub(crate) use start::StartResponse;
