//! Rows of databases: a source (SQLite, PostgreSQL, any ODBC driver) emits cells to a row sink,
//! which writes JSON, CSV, BSON, Arrow columns or Python objects.
//!
//! ```text
//!  Source ── fetch(budget) ──► Block ── emit(rows, sink) ──► RowSink
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cell`] | [`Cell`]: a borrowed view of one value in the driver's own buffer and encoding |
//! | [`mod@array`] | arrays in PostgreSQL's text form |
//! | [`schema`] | names and types of a result's columns |
//! | [`source`] | the traits [`Source`], [`Block`] and [`RowSink`], and the fetch [`Budget`] |
//! | [`value`] | parameter values, which are always bound, never inserted into SQL text |
//! | [`error`] | the one error type of this crate |
//! | [`database`] | the traits [`DatabaseConnection`] and [`DatabaseStatement`] that each database implements |
//! | [`connect`] | the list of databases; opens a [`connect::Connection`] to a target |
//! | [`sql`] | SQL text: its lexer, named parameters, the kinds of statements |
//! | [`odbc`] | any ODBC driver, through a driver manager loaded at run time |
//! | [`stored_results`] | in memory: the results of a statement that was executed for many rows of parameters |
//! | [`sqlite`] | the embedded database |
//! | [`sink`] | row sinks that write JSON, NDJSON, CSV and BSON |
//! | [`arrow`] | rows as Arrow's columns, and Arrow's columns as parameters |
//! | [`arrow_c`] | Arrow's C data interface |
//! | [`table_copy`] | inserts the rows of Arrow batches into a table, with every value unchanged |
//! | [`task`] | calls that suspend instead of blocking, for event loops |
//! | [`deadlock`] | detection of deadlocks between threads |
//! | [`row_stream`] | the rows of a source in an output format, as a [`onecopy_wire::ChunkSource`] |
#![deny(unsafe_code)]

pub mod array;
pub mod arrow;
#[allow(unsafe_code)] // Boundary: C structs shared with other libraries.
pub mod arrow_c;
pub mod cell;
mod codes;
pub mod connect;
pub mod database;
mod date_text;
#[allow(unsafe_code)] // Boundary: pointers to locks for which threads wait.
pub mod deadlock;
pub mod error;
#[allow(unsafe_code)]
mod fork;
mod health;
mod interval;
#[cfg(feature = "memory-database")]
pub mod memory;
mod money_text;
#[allow(unsafe_code)] // Boundary: the driver manager's C functions and bound buffers.
pub mod odbc;
#[allow(unsafe_code)] // Boundary: memory mappings that grow.
mod pages;
mod plain_text;
pub mod postgres;
mod range;
pub mod row_stream;
pub mod schema;
pub mod sink;
pub mod source;
pub mod sql;
#[allow(unsafe_code)] // Boundary: SQLite's C functions.
pub mod sqlite;
pub mod stored_results;
pub mod table_copy;
#[allow(unsafe_code)] // Boundary: the pointer to a thread's current task.
pub mod task;
pub mod value;

pub use array::{ArrayError, ArrayVisitor};
pub use cell::{
    ArrayText, BoundType, Cell, Date, ElementType, LongKind, RangeText, Time, Timestamp,
};
pub use database::{
    ConnectCancel, ConnectOptions, DatabaseConnection, DatabaseStatement, Names, PrepareMode,
    Prepared, ZeroDates,
};
pub use error::{Error, ErrorKind, Message};
pub use plain_text::plain_text;
pub use postgres::{CopyOut, Notification, text_of_value};
pub use range::RangeCells;
pub use row_stream::Format;
pub use schema::{Column, ColumnType, Schema};
pub use source::{
    AttachedHost, Block, BlockPosition, Budget, Emitted, Fetched, LongForm, LongPart, LongValues,
    PumpError, Pumped, RowSink, Source,
};
pub use sql::dialect::Dialect;
pub use sql::insert::TableInsert;
pub use sql::named;
pub use value::{Declared, DeclaredKind, Value};
