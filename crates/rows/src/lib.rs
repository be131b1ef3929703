//! Rows of any ODBC database and of SQLite: source, cell, row sink.
//!
//! ```text
//!  Source ── fetch(budget) ──► Block ── emit(rows, sink) ──► RowSink
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`cell`] | [`Cell`]: a borrowed view of one value in the driver's own buffer and encoding |
//! | [`schema`] | names and types of a result's columns |
//! | [`source`] | the traits [`Source`], [`Block`] and [`RowSink`], and the fetch [`Budget`] |
//! | [`value`] | parameter values, bound and never pasted |
//! | [`error`] | the one error type of this room |
//! | [`database`] | the traits [`DatabaseConnection`] and [`DatabaseStatement`] that each database implements |
//! | [`connect`] | the list of databases: targets to a [`connect::Connection`] |
//! | [`sql`] | the text of statements: one lexer; named parameters; what kind of statement it is |
//! | [`odbc`] | any ODBC driver, through a driver manager loaded at run time |
//! | [`stored`] | results kept in memory: of one statement for many rows of parameters |
//! | [`sqlite`] | the embedded database |
//! | [`sink`] | row sinks that write JSON, NDJSON and CSV |
//! | [`arrow`] | rows as Arrow's columns, and Arrow's columns as parameters |
//! | [`arrow_c`] | Arrow's C data interface |
//! | [`row_stream`] | a source and a sink as a [`onecopy_wire::ChunkSource`] |
#![deny(unsafe_code)]

pub mod arrow;
#[allow(unsafe_code)] // Fence: structs of C that go to other libraries and come from them.
pub mod arrow_c;
pub mod cell;
mod codes;
pub mod connect;
pub mod database;
pub mod error;
#[allow(unsafe_code)]
mod fork;
mod health;
mod interval;
#[cfg(feature = "memory-database")]
pub mod memory;
#[allow(unsafe_code)] // Fence: the driver manager's C functions and bound buffers.
pub mod odbc;
#[allow(unsafe_code)] // Fence: memory that grows in place.
mod pages;
pub mod postgres;
pub mod row_stream;
pub mod schema;
pub mod sink;
pub mod source;
pub mod sql;
#[allow(unsafe_code)] // Fence: SQLite's C functions.
pub mod sqlite;
pub mod stored;
pub mod value;

pub use cell::{Cell, Date, LongKind, Time, Timestamp};
pub use database::{
    ConnectCancel, ConnectOptions, DatabaseConnection, DatabaseStatement, Names, Prepared,
    ZeroDates,
};
pub use error::{Error, ErrorKind, Message};
pub use row_stream::Format;
pub use schema::{Column, ColumnType, Schema};
pub use source::{
    AttachedHost, Block, BlockPosition, Budget, Emitted, Fetched, LongForm, LongPart, LongValues,
    PumpError, Pumped, RowSink, Source,
};
pub use sql::dialect::Dialect;
pub use sql::named;
pub use value::{Declared, DeclaredKind, Value};
