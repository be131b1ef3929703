//! WSGI (PEP 3333): applications of Python's behind the server.
//!
//! | module | what it holds |
//! |---|---|
//! | `server` | `onecopy._core.Server`: bind, start, stop; its threads are Python's |
//! | `observe` | its access log and its metrics |
//! | `handler` | a request to the application's call, its answer to a response |
//! | `start` | `start_response`, and what was said by it |
//! | `lines` | header fields that are constants of the application |
//! | `input` | `wsgi.input` |
//! | `liveness` | reports of a worker that makes no progress |
//! | `body` | iterables, files and row streams as bodies |
//! | `files` | a folder as an application |
//!
//! # Process contract
//!
//! Threads are started by Python's `threading`; one runs one request at a time, attached while the application runs. What is sent is
//! sent detached, but for full batches of a generator's items. No lock is waited for while attached, and no client: the first read of a
//! body that is awaited waits detached, and ends with the server. The thread of the access log never touches Python.

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
