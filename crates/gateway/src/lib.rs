//! Named SQL queries of any database as a streaming HTTP API.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the TOML file: databases, queries, limits |
//! | [`parameters`], [`query_string`] | typed parameters, from the text of a request to a bound value |
//! | [`endpoint`] | [`Gateway`]: paths, methods and guards; what the server is given as its handler |
//! | `run`, `pool`, `watch` | one run of a query, the connections it takes, its time limit |
//! | `calls` | which drivers are in use, for the supervisor of a process that crashes |
//! | [`check`] | a configuration against its databases, running nothing |
//! | `page`, `problem` | the page at `/`, and every answer that is no success |
//! | [`log`] | log lines |
//! | [`serve()`] | all of it behind a listening socket |
#![deny(unsafe_code)]

mod calls;
pub mod check;
pub mod config;
pub mod endpoint;
mod json;
pub mod log;
mod page;
pub mod parameters;
mod pool;
mod problem;
pub mod query_string;
mod run;
mod serve;
mod watch;

pub use calls::DriverCalls;
pub use check::{Checked, check};
pub use config::{Config, ConfigError};
pub use endpoint::Gateway;
pub use log::Log;
pub use page::curl;
pub use run::RunError;
pub use serve::{Options, ServeError, Serving, Supervision, listen, serve, serve_on};
