//! Named SQL queries of any database as a streaming HTTP API.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the TOML file: databases, queries, limits |
//! | [`parameters`] | typed parameters, from text to a bound value |
#![deny(unsafe_code)]

pub mod config;
pub mod parameters;

pub use config::{Config, ConfigError};
