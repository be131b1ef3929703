//! Named SQL queries of any database as a streaming HTTP API.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the TOML file: databases, queries, limits |
//! | [`parameters`], [`query_string`] | typed parameters, from the text of a request to a bound value |
//! | [`endpoint`] | [`Gateway`]: paths, methods and guards; what the server is given as its handler |
//! | `run`, `run_error`, `pool`, `watch` | one run of a query, the connections it takes, its time limit |
//! | `calls`, `supervision` | which drivers are in use, and what the supervisor of a process that crashes has set aside |
//! | [`check`] | a configuration against its databases, running nothing |
//! | `formats` | the formats of answers |
//! | `page`, `problem` | the page at `/`, and every answer that is no success |
//! | [`log`] | log lines |
//! | [`serve()`] | all of it behind a listening socket |
#![deny(unsafe_code)]

mod calls;
pub mod check;
pub mod config;
pub mod endpoint;
mod formats;
mod json;
pub mod log;
mod page;
pub mod parameters;
mod pool;
mod problem;
pub mod query_string;
mod run;
mod run_error;
mod serve;
mod supervision;
mod watch;

pub use calls::DriverCalls;
pub use check::{Checked, check};
pub use config::{Config, ConfigError};
pub use endpoint::Gateway;
pub use log::Log;
pub use page::curl;
pub use run_error::RunError;
pub use serve::{Options, ServeError, Serving, listen, serve, serve_on};
pub use supervision::Supervision;
