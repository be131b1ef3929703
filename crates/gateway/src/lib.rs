//! Serves named SQL queries as a streaming HTTP API. [`Config`] defines the queries, and
//! [`serve()`] serves them.
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | the TOML file: databases, queries, limits |
//! | [`parameters`], [`query_string`] | converts the text of a request to typed values |
//! | [`endpoint`] | [`Gateway`]: the request handler of the server, which selects the response by path and method |
//! | `query_source`, `run_error` | executes a query for a request; the errors |
//! | `driver_calls`, `supervision` | the state that is shared with a supervisor |
//! | `check` | checks a configuration against its databases without running a query |
//! | `pool`, `deadlines` | pooled connections, and time limits of queries |
//! | `formats` | the formats of responses |
//! | `page`, `problem` | the page at `/`, and every response that is not a success |
//! | [`log`] | log lines |
//! | [`serve()`] | serves a configuration on a listening socket |
#![deny(unsafe_code)]

pub mod config;
pub mod config_check;
mod deadlines;
mod driver_calls;
pub mod endpoint;
mod formats;
mod json;
pub mod log;
mod page;
pub mod parameters;
mod pool;
mod problem;
mod query_source;
pub mod query_string;
mod run_error;
mod serve;
mod supervision;

pub use config::{Config, ConfigError};
pub use config_check::{Checked, check};
pub use driver_calls::DriverCalls;
pub use endpoint::Gateway;
pub use log::Log;
pub use page::curl;
pub use run_error::RunError;
pub use serve::{Options, ServeError, Serving, listen, serve, serve_on};
pub use supervision::Supervision;
