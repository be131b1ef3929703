//! Any ODBC driver, through a driver manager loaded at run time.
//!
//! | module | what it holds |
//! |---|---|
//! | `ffi` | types, constants and the table of functions |
//! | `manager` | the driver manager, loaded on first use |
//! | `drivers` | which drivers are on this machine |
//! | `survey`, `packages`, `faults` | what `doctor` tells of them: where they came from, whether they load, what they get wrong |
//! | `url`, `connection_string`, `secrets` | what a user writes, taken apart; what of it is never shown |
//! | `quirks` | what drivers do differently: one table |
//! | `open`, `probe` | opening a connection, and the round trip that decides the width of text |
//! | `connection`, `shared`, `call`, `handle`, `context` | its lock, its transactions, and who may cancel |
//! | `health` | whether it still works |
//! | `unblock` | a call that does not return after its cancel: its socket is shut down |
//! | `opening` | a connect on a thread of its own, left at its time limit |
//! | `run`, `statement`, `driver`, `parameters`, `binding`, `describe`, `reader`, `registers` | executing, calling, binding, describing, reading |
//! | `statement_cache` | prepared statements by their texts, and how long the results of others were |
//! | `prefetch` | the next block read while the current one is emitted |
//! | `block`, `column` | the buffers that a driver writes rows into; which buffer a column needs, and how a cell is read from it |
//! | `many` | one statement for many rows of parameters |
//! | `unit` | text as calls pass it, of either width |
//! | `diag` | diagnostics |
//!
//! # Several statements of one text
//!
//! All run, or the driver refuses the text: `execute` passes results without rows, and so does the fetch that finds the end
//! of a result with rows. A further result with rows is for `next_set`, where the reader has said that it will ask for it; to
//! one that has not, it is an error ([`crate::ErrorKind::NotSupported`]).
//!
//! # Read-only connections
//!
//! Every one sets `SQL_ATTR_ACCESS_MODE`, runs one statement per `execute`, never commits and rolls back at its end.
//! PostgreSQL (`SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`), MariaDB and MySQL (`SET SESSION TRANSACTION READ
//! ONLY`) and SQLite (`PRAGMA query_only`) then refuse writes themselves. SQL Server has no such switch: a write runs and
//! is rolled back; give the login no rights to write.

mod binding;
pub(crate) mod block;
mod call;
mod casts;
pub(crate) mod column;
mod connection;
mod connection_string;
mod context;
mod database;
mod describe;
mod diag;
mod driver;
mod drivers;
mod faults;
pub(crate) mod ffi;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handle;
mod health;
mod manager;
mod many;
mod open;
mod opening;
mod packages;
mod parameters;
mod prefetch;
mod probe;
pub(crate) mod quirks;
mod reader;
mod registers;
mod run;
mod secrets;
mod shared;
mod statement;
mod statement_cache;
mod survey;
mod unblock;
mod unit;
mod url;

pub use crate::odbc::block::CurrentBlock;
pub use connection::Connection;
pub use drivers::add_driver_folder;
pub use faults::Fault;
pub use packages::Package;
pub use quirks::Width;
pub use statement::Statement;
pub use survey::{
    InstalledDriver, InstalledManager, Portrait, Survey, UrlScheme, manager_is_chosen, survey,
    url_schemes,
};
