//! Connection strings and URLs to a [`Connection`] of either kind.
//!
//! Taken are `sqlite:` URLs, ODBC connection strings, `DSN=name`, and `postgresql://`, `mysql://`, `mssql://` URLs,
//! which are mapped to the driver found on this machine.

use onecopy_text::{Ledger, Policy};
use onecopy_wire::{CancelHandle, ChunkSource};

use crate::error::{Error, Message};
use crate::named::Dialect;
use crate::schema::Schema;
use crate::sink::BsonOptions;
use crate::source::{BlockPosition, Budget, LongPart, LongValues, PumpError, Pumped, RowSink};
use crate::value::Value;
use crate::{odbc, sqlite};

/// What a date of zeros is, in MariaDB and MySQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroDates {
    /// `0000-00-00` is NULL, as for its native clients; a date with a zero month or day is refused.
    #[default]
    Null,
    /// Both are refused.
    Error,
    /// Both are text.
    Text,
}

/// How to open a connection.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Open the database for reading alone: SQLite `mode=ro`; ODBC `SQL_ATTR_ACCESS_MODE` and a transaction that is
    /// always rolled back.
    pub read_only: bool,
    /// SQLite: create a file that is missing. `mode=` in the target goes before it.
    pub create: bool,
    /// Each statement is its own transaction. PEP 249 wants this off by default.
    pub autocommit: bool,
    /// How long to try to connect, in seconds.
    pub login_timeout_s: u32,
    /// What to do with malformed text from the database.
    pub text_policy: Policy,
    /// What MariaDB's and MySQL's dates of zeros are.
    pub zero_dates: ZeroDates,
    /// Whether a driver is to bring rows as they are read (`true`), or all of a result before its first row (`false`), where
    /// that can be chosen; `None`: as they are read, where the driver can. A keyword of the connection string goes before it.
    pub stream: Option<bool>,
    /// Where `stream` is `None`: whether a text with parameters whose last results were all short may be executed so that its next
    /// result comes whole, however long that is (psqlodbc; a third of the time for one row).
    pub guesses_short: bool,
    /// MariaDB, MySQL: whether `LOAD DATA LOCAL` may send files of this machine to the server.
    pub local_infile: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            read_only: false,
            create: true,
            autocommit: false,
            login_timeout_s: 15,
            text_policy: Policy::Strict,
            zero_dates: ZeroDates::Null,
            stream: None,
            guesses_short: true,
            local_infile: false,
        }
    }
}

/// Names and versions; empty where a driver tells nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// `PostgreSQL`, `MariaDB`, `Microsoft SQL Server`, `SQLite`.
    pub dbms: String,
    /// As the database has it.
    pub dbms_version: String,
    /// The driver's file; `onecopy` for SQLite, which is built in.
    pub driver: String,
    /// As the driver has it.
    pub driver_version: String,
}

/// A format that rows can be streamed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One array of objects.
    Json,
    /// One object a line.
    Ndjson,
    /// RFC 4180 with a header line.
    Csv,
    /// One document a row.
    Bson(BsonOptions),
}

impl Format {
    /// Its name, as users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
            Format::Bson(_) => "bson",
        }
    }
}

/// What a statement would take and give, learned without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Columns of the result, empty for a statement that gives no rows; `None` where the driver cannot tell them before the
    /// statement runs.
    pub schema: Option<Schema>,
    /// How many parameters are to be bound, where the database tells.
    pub n_parameters: Option<usize>,
    /// Whether the statement only reads, where the database tells (SQLite does).
    pub read_only: Option<bool>,
}

/// A connection to a database. It is `Send`; statements keep it alive; driver calls on one connection exclude each other
/// by a lock inside, which is never waited for by a caller that holds the GIL (the binding detaches first).
#[derive(Debug)]
#[non_exhaustive]
pub enum Connection {
    /// The embedded database.
    Sqlite(sqlite::Connection),
    /// Any ODBC driver.
    Odbc(odbc::Connection),
}

/// Calls `$body` for the connection or statement of either kind: the one place where the kinds are told apart.
macro_rules! either {
    ($enum:ident, $self:expr, $x:ident => $body:expr) => {
        match $self {
            $enum::Sqlite($x) => $body,
            $enum::Odbc($x) => $body,
        }
    };
}

impl Connection {
    /// Opens `target`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Connect`] with what was tried and what to install; never with a password.
    pub fn open(target: &str, options: &ConnectOptions) -> Result<Connection, Error> {
        if let Some(path) = target.strip_prefix("sqlite:") {
            return sqlite::Connection::open(path, options).map(Connection::Sqlite);
        }
        odbc::Connection::open(target, options).map(Connection::Odbc)
    }

    /// The foreign driver that `target` goes through, as far as it says, for people; `None` for SQLite, which is our own
    /// build. Such a driver runs in this process, and can crash it.
    #[must_use]
    pub fn foreign_driver(target: &str) -> Option<String> {
        (!target.starts_with("sqlite:")).then(|| odbc::driver_named_in(target))
    }

    /// Whether `sql` would write into a database that has nothing in it yet (`create table …`), where `target` is one that
    /// is made by being written to: a SQLite file. For any other target `false`.
    #[must_use]
    pub fn begins_database(target: &str, sql: &str) -> bool {
        // An empty database in memory is asked: no text is read, and nothing runs.
        let writes = || {
            let empty = sqlite::Connection::open(":memory:", &ConnectOptions::default())?;
            empty.prepare_check(sql)
        };
        target.starts_with("sqlite:")
            && writes().is_ok_and(|prepared| prepared.read_only == Some(false))
    }

    /// Opens an ODBC target with text in this form, whatever is right for its driver: for `doctor`, which shows why one is
    /// chosen.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_in(
        target: &str,
        options: &ConnectOptions,
        width: odbc::Width,
    ) -> Result<Connection, Error> {
        odbc::Connection::open_in(target, options, width).map(Connection::Odbc)
    }

    /// Runs one statement with its parameters bound, and leaves its rows (if any) to be fetched.
    ///
    /// # Errors
    /// As the database says; [`crate::ErrorKind::Programming`] for more than one statement or a wrong number of parameters.
    pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        Ok(match self {
            Connection::Sqlite(c) => Statement::Sqlite(c.execute(sql, parameters)?),
            Connection::Odbc(c) => Statement::Odbc(c.execute(sql, parameters)?),
        })
    }

    /// As [`Connection::execute`], for rows that are so large that the driver is to ask the server for one at a time.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn execute_row_by_row(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        match self {
            Connection::Sqlite(_) => self.execute(sql, parameters),
            Connection::Odbc(c) => Ok(Statement::Odbc(c.execute_row_by_row(sql, parameters)?)),
        }
    }

    /// Prepares one statement and runs nothing: for a check of a configuration.
    ///
    /// # Errors
    /// As [`Connection::execute`], as far as the database looks at a statement that it only prepares.
    pub fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        either!(Connection, self, c => c.prepare_check(sql))
    }

    /// A handle that stops, from any thread, whatever runs on this connection at that moment, an `execute` that has not
    /// returned yet included; it stops nothing that starts later, and outlives the connection without harm.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        either!(Connection, self, c => c.cancel_handle())
    }

    /// Runs one statement for each row of parameters; returns the sum of the rows changed, where the database tells.
    ///
    /// # Errors
    /// As [`Connection::execute`]; the error names the row of parameters (from 0).
    pub fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        either!(Connection, self, c => c.execute_many(sql, rows))
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// As the database says.
    pub fn commit(&self) -> Result<(), Error> {
        either!(Connection, self, c => c.commit())
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// As the database says.
    pub fn rollback(&self) -> Result<(), Error> {
        either!(Connection, self, c => c.rollback())
    }

    /// Turns autocommit on or off.
    ///
    /// # Errors
    /// As the database says.
    pub fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        either!(Connection, self, c => c.set_autocommit(on))
    }

    /// Whether each statement is its own transaction.
    #[must_use]
    pub fn autocommit(&self) -> bool {
        either!(Connection, self, c => c.autocommit())
    }

    /// Closes it: an open transaction is rolled back, statements under way fail with
    /// [`crate::ErrorKind::Interface`]. Closing twice is no error.
    ///
    /// # Errors
    /// As the database says.
    pub fn close(&self) -> Result<(), Error> {
        either!(Connection, self, c => c.close())
    }

    /// Whether it was closed by [`Connection::close`].
    #[must_use]
    pub fn is_closed(&self) -> bool {
        either!(Connection, self, c => c.is_closed())
    }

    /// The connection as one to the embedded database, for what no other database has.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotSupported`] for another database.
    pub fn sqlite(&self) -> Result<&sqlite::Connection, Error> {
        match self {
            Connection::Sqlite(c) => Ok(c),
            Connection::Odbc(_) => Err(Error::new(
                crate::error::ErrorKind::NotSupported,
                "only a connection to `sqlite:` has this",
            )),
        }
    }

    /// Whether it can be used: it was not closed, and no call has found it lost. Nothing is sent to ask: a server that went
    /// away since the last call is found by the next one.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        either!(Connection, self, c => c.is_usable())
    }

    /// Whose SQL it takes: where its strings, comments and quoted names end.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self {
            Connection::Sqlite(_) => Dialect::Sqlite,
            Connection::Odbc(c) => c.dialect(),
        }
    }

    /// What a user should know about this database and its driver (a driver that buffers the whole result, 15-digit
    /// doubles): one sentence each, for a warning or a log line at connect.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        either!(Connection, self, c => c.notices())
    }

    /// What it goes through, part by part: for `doctor`. `None` for SQLite, which goes through nothing.
    #[must_use]
    pub fn portrait(&self) -> Option<odbc::Portrait> {
        match self {
            Connection::Sqlite(_) => None,
            Connection::Odbc(c) => Some(c.portrait()),
        }
    }

    /// Names and versions of the database and of the driver, as the driver tells them.
    #[must_use]
    pub fn names(&self) -> Names {
        either!(Connection, self, c => c.names())
    }

    /// Name and version of the database and of the driver, for `doctor` and logs.
    #[must_use]
    pub fn describe(&self) -> String {
        either!(Connection, self, c => c.describe())
    }
}

/// A statement that was executed; its rows come by fetch and emit ([`crate::Source`]).
#[derive(Debug)]
#[non_exhaustive]
pub enum Statement {
    /// Of the embedded database.
    Sqlite(sqlite::Statement),
    /// Of an ODBC driver.
    Odbc(odbc::Statement),
}

impl Statement {
    /// Columns of the result; none for a statement that gives no rows.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        use crate::source::Source;
        either!(Statement, self, s => s.schema())
    }

    /// Rows inserted, changed or deleted, where the database tells.
    #[must_use]
    pub fn row_count(&self) -> Option<u64> {
        either!(Statement, self, s => s.row_count())
    }

    /// The row id of the last row inserted by this statement, where the database tells (SQLite: INSERT and REPLACE).
    #[must_use]
    pub fn last_row_id(&self) -> Option<i64> {
        match self {
            Statement::Sqlite(s) => s.last_row_id(),
            Statement::Odbc(_) => None,
        }
    }

    /// Goes to the next result with rows, where a text of several statements or a procedure gives more than one; `false` where
    /// there is none. Rows that are left of the current one are given up; results without rows are passed.
    ///
    /// # Errors
    /// Of the statements in between, which may run only now.
    pub fn next_set(&mut self) -> Result<bool, Error> {
        match self {
            Statement::Sqlite(_) => Ok(false),
            Statement::Odbc(s) => s.next_set(),
        }
    }

    /// Whether the fetch that found the end of this result has found a further one.
    #[must_use]
    pub fn has_further(&self) -> bool {
        match self {
            Statement::Sqlite(_) => false,
            Statement::Odbc(s) => s.has_further(),
        }
    }

    /// Says whether [`Statement::next_set`] will be asked: where not, a further result with rows is an error of the fetch that finds
    /// the end of the first, since nobody would read it.
    pub fn set_takes_more(&mut self, takes_more: bool) {
        if let Statement::Odbc(s) = self {
            s.set_takes_more(takes_more);
        }
    }

    /// What the database said beside the result (warnings, notices, what a procedure printed) since this was last asked; at most
    /// 1,000 for each call of the driver.
    #[must_use]
    pub fn take_messages(&mut self) -> Vec<Message> {
        match self {
            Statement::Sqlite(_) => Vec::new(),
            Statement::Odbc(s) => s.take_messages(),
        }
    }

    /// How values too long for a block are to come; to be said before the first fetch.
    pub fn set_long_values(&mut self, long_values: LongValues) {
        either!(Statement, self, s => s.set_long_values(long_values));
    }

    /// Leaves the values of `columns` (from 0) out of rows: NULL stands in their place, rows come one by one, and
    /// [`Statement::read_part`] gives the values. To be said before the first fetch; none takes it back.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] for a column that holds neither text nor bytes.
    pub fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        match self {
            Statement::Sqlite(s) => {
                s.defer(columns);
                Ok(())
            }
            Statement::Odbc(s) => s.defer(columns),
        }
    }

    /// The next part of the deferred value in `column` (from 0) of the row that was emitted last, into `buffer` (of some
    /// bytes at least, a terminator's included); `None` for NULL. `offset` is how many bytes of it were read before: 0 begins.
    /// May block.
    ///
    /// # Errors
    /// Of the source; [`crate::ErrorKind::NotSupported`] for an order of columns that the driver cannot give them in.
    pub fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        either!(Statement, self, s => s.read_part(column, offset, buffer))
    }

    /// Fetches and emits in one go, as [`crate::Source::pump`] does.
    ///
    /// # Errors
    /// As [`crate::Source::pump`].
    pub fn pump<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        use crate::source::Source;
        either!(Statement, self, s => s.pump(position, budget, sink))
    }

    /// What its connection wants done with malformed text.
    #[must_use]
    pub fn text_policy(&self) -> Policy {
        use crate::source::Source;
        either!(Statement, self, s => s.text_policy())
    }

    /// A handle that stops this statement from any thread.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        use crate::source::Source;
        either!(Statement, self, s => s.cancel_handle())
    }

    /// The rows as a stream of bytes: converted once, into the outgoing chunk. Long values come in parts.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] where the format needs distinct column names and these are not.
    pub fn into_chunks(
        mut self,
        format: Format,
        ledger: &Ledger,
    ) -> Result<Box<dyn ChunkSource>, Error> {
        self.set_long_values(LongValues::Parts {
            part_bytes: crate::row_stream::PART_BYTES,
        });
        self.defer(Vec::new())?;
        self.set_takes_more(false);
        either!(Statement, self, s => crate::row_stream::chunks(s, format, ledger))
    }
}
