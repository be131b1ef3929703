//! Databases that are accessed by an ODBC driver, through a driver manager loaded at run time.
//!
//! | module | contents |
//! |---|---|
//! | `ffi` | types, constants and the table of functions |
//! | `manager` | the driver manager, loaded on first use |
//! | `drivers` | finds the drivers on this machine |
//! | `installation`, `packages`, `faults` | for `doctor`: packages, load errors, known faults |
//! | `url`, `connection_string`, `secrets` | parsing of targets; values that are never shown |
//! | `quirks` | differences between drivers: one table |
//! | `open`, `first_connect` | opening a connection; the round trip that determines the text width |
//! | `connection`, `shared`, `call`, `handle`, `context` | a connection with its lock and transactions; statement handles and cancels |
//! | `health` | detection of lost connections |
//! | `unblock` | shuts down the socket of a driver call that does not return after a cancel |
//! | `open_within` | a connect on a separate thread, with a time limit |
//! | `execute`, `statement`, `driver`, `parameters`, `parameter_binding`, `describe`, `reader`, `registers` | executing statements: driver calls, parameters, columns, rows |
//! | `statement_cache` | prepared statements by SQL text, and the lengths of their last results |
//! | `prefetch` | a thread that fetches the next block while the current block is emitted |
//! | `block`, `column` | the buffers of rows; by column type, the conversion of values to cells |
//! | `execute_many` | one statement for many rows of parameters |
//! | `unit` | the units of text in ODBC calls: bytes, or 16-bit units |
//! | `diag` | the driver's diagnostics as errors |
//!
//! # Several statements of one text
//!
//! If the driver supports SQL texts with several statements, all statements of the text are
//! executed. `execute` skips results without rows up to the first result with rows. The fetch that
//! reaches the end of a result executes the statements after it, up to the next result with rows.
//! `next_set` returns the rows of that result. If the caller has not announced that it will call
//! `next_set`, a second result with rows is an error ([`crate::ErrorKind::NotSupported`]).
//!
//! # Read-only connections
//!
//! A read-only connection sets `SQL_ATTR_ACCESS_MODE`, executes one statement per `execute`, never
//! commits, and rolls back at its end. In addition, PostgreSQL (`SET SESSION CHARACTERISTICS AS
//! TRANSACTION READ ONLY`), MariaDB and MySQL (`SET SESSION TRANSACTION READ ONLY`) and SQLite
//! (`PRAGMA query_only`) refuse writes. SQL Server has no such setting: it executes a write, which
//! is later rolled back. A read-only login should therefore have no permission to write.

pub(crate) mod block;
mod call;
pub(crate) mod column;
mod connection;
mod connection_string;
mod context;
mod database;
mod describe;
mod diag;
mod driver;
mod drivers;
mod execute;
mod execute_many;
mod faults;
pub(crate) mod ffi;
mod first_connect;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handle;
mod health;
mod installation;
mod manager;
mod open;
mod open_within;
mod packages;
mod parameter_binding;
mod parameter_casts;
mod parameters;
mod prefetch;
pub(crate) mod quirks;
mod reader;
mod registers;
mod secrets;
mod shared;
mod statement;
mod statement_cache;
mod unblock;
mod unit;
mod url;

pub use crate::odbc::block::CurrentBlock;
pub use connection::Connection;
pub use drivers::add_driver_folder;
pub use faults::Fault;
pub use installation::{
    InstalledDriver, InstalledManager, Portrait, Survey, UrlScheme, manager_is_chosen, survey,
    url_schemes,
};
pub use packages::Package;
pub use quirks::Width;
pub use statement::Statement;
