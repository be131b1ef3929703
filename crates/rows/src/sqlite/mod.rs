//! The embedded database: SQLite, bundled, by its C functions.
//!
//! SQLite's text dies at the next step, so the current row is a live view ([`LiveRow`]) and a statement is best read by
//! [`crate::Source::pump`], which steps and emits in one tight loop under one acquisition of the connection's lock. A
//! caller that holds an interpreter lock reads by [`Statement::pump_attached`].
//!
//! What follows `sqlite:` in a connection string:
//!
//! | form | means |
//! |---|---|
//! | `cities.db`, `data/cities.db`, `//data/cities.db` | a path from the working directory |
//! | `/var/lib/cities.db`, `////var/lib/cities.db` | an absolute path |
//! | `///cities.db` | of `/cities.db` (RFC 8089) and `cities.db` (SQLAlchemy) the one that exists; an error where none or both do |
//! | `:memory:`, `//`, `//:memory:`, `///:memory:` | a database in memory, gone with the connection |
//!
//! The path is percent-decoded: a `?` in a name is written `%3F`. Options behind `?`, joined by `&`: `mode=ro`, `rw`, `rwc`
//! (the default: a missing file is created) or `memory`; `immutable=1` for a file that nobody changes (read-only, no locks, and
//! a write-ahead log beside it is not looked at); `busy_timeout_ms=5000`, how long to wait for another connection's lock.
//!
//! | module | what it holds |
//! |---|---|
//! | `target` | what follows `sqlite:` in a connection string |
//! | `connection` | [`Connection`]: open, execute, transactions, close |
//! | `statement` | [`Statement`]: step, fetch, pump, cancel |
//! | `row` | [`LiveRow`]: a row's cells, straight from SQLite's memory into the sink |
//! | `bind` | parameters |
//! | `many` | one statement for many rows of parameters |
//! | `open` | opening the file, and what can go wrong with it |
//! | `database` | the one handle, what is under its lock, and the way in |
//! | `call` | what is done under the lock: prepare, bind, put to rest, close |
//! | `call_lock` | the lock that driver calls exclude each other by |
//! | `watch` | cancel, busy waits and the host's turn, while SQLite steps |
//! | `functions` | functions, aggregates and collations of the host |
//! | `regexp` | the operator `REGEXP` |
//! | `backup` | a copy of a database in use |
//! | `blob` | a value that is read and written in place |
//! | `cache` | prepared statements kept for reuse |
//! | `sql` | what little is read of a statement's text |
//! | `error` | result codes to [`crate::ErrorKind`] |
//!
//! Decisions: `docs/decisions/0012-sqlite.md`.

mod backup;
mod bind;
mod blob;
mod cache;
mod call;
mod call_lock;
mod connection;
mod database;
mod error;
mod functions;
#[cfg(fuzzing)]
pub mod fuzzing;
mod many;
mod open;
mod part;
mod regexp;
mod row;
mod sql;
mod statement;
mod target;
mod watch;

pub use backup::Progress;
pub use blob::Blob;
pub use connection::Connection;
pub(crate) use error::meaning_of_code;
pub use functions::{Aggregate, Collation, Function, NewAggregate, Scalar};
pub use row::LiveRow;
pub use statement::Statement;
