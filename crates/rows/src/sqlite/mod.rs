//! The SQLite database: the bundled library, called through its C functions.
//!
//! SQLite's pointers to the values of a row are valid only until the next step. The block of a
//! statement is therefore a view of its current row ([`LiveRow`]), not a copy.
//! [`crate::Source::pump`] is the fastest way to read a statement: it steps and emits many rows in
//! one loop, and acquires the connection's lock once. A caller that holds an interpreter lock uses
//! [`crate::Source::pump_attached`].
//!
//! The forms of the text after `sqlite:` in a connection string:
//!
//! | form | meaning |
//! |---|---|
//! | `cities.db`, `data/cities.db`, `//data/cities.db` | a path from the working directory |
//! | `/var/lib/cities.db`, `////var/lib/cities.db` | an absolute path |
//! | `///cities.db` | `/cities.db` (RFC 8089) or `cities.db` (SQLAlchemy), whichever exists; an error if both or neither exist |
//! | `:memory:`, `//`, `//:memory:`, `///:memory:` | a database in memory, which ends with the connection |
//!
//! The path is percent-decoded, so a `?` in a file name is written `%3F`. Options follow a `?` and
//! are separated by `&`:
//!
//! | option | meaning |
//! |---|---|
//! | `mode=` | `ro` (read-only), `rw`, `rwc` (creates a missing file) or `memory` |
//! | `immutable=1` | the file never changes: it is read without locks, and its write-ahead log is ignored |
//! | `busy_timeout_ms=` | the time to wait for a lock of another connection; 5000 by default |
//!
//! | module | contents |
//! |---|---|
//! | `target` | parses the text after `sqlite:` in a connection string |
//! | `connection` | [`Connection`]: open, execute, transactions, close |
//! | `statement` | [`Statement`]: step, fetch, pump, cancel |
//! | `row` | [`LiveRow`]: emits a row's cells from SQLite's memory to the sink |
//! | `bind` | binds parameter values |
//! | `execute_many` | one statement for many rows of parameters |
//! | `open` | opens the file, and explains why this failed |
//! | `database` | the handle of a connection, and the state that its call lock guards |
//! | `call` | calls to SQLite under the call lock: prepare, bind, reset, close |
//! | `call_lock` | the lock that prevents concurrent calls on a connection |
//! | `callbacks` | SQLite's progress and busy handlers: cancellation, waits for locks, calls to Python |
//! | `functions` | SQL functions, aggregates and collations that the host implements |
//! | `regexp` | the operator `REGEXP` |
//! | `backup` | copies a database that is in use |
//! | `blob` | reads and writes a value in parts |
//! | `statement_cache` | prepared statements that are reused, by SQL text |
//! | `statement_kind` | classifies a statement by its first keyword |
//! | `error` | maps result codes to [`crate::ErrorKind`] |
//!
//! Decisions: `docs/decisions/0012-sqlite.md`.

mod backup;
mod bind;
mod blob;
mod call;
mod call_lock;
mod callbacks;
mod connection;
mod database;
mod deferred;
mod error;
mod execute_many;
mod functions;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod open;
mod regexp;
mod row;
mod statement;
mod statement_cache;
mod statement_kind;
mod target;

pub use backup::BackupProgress;
pub use blob::Blob;
pub use connection::Connection;
pub(crate) use error::meaning_of_code;
pub use functions::{Aggregate, Collation, Function, NewAggregate, Scalar};
pub use row::LiveRow;
pub use statement::Statement;
