//! The interface of a database: the traits [`DatabaseConnection`] and [`DatabaseStatement`]. Each
//! database implements these traits in a separate directory, and has one line in
//! [`crate::connect`].
//!
//! Calls are dispatched statically by the enums [`crate::connect::Connection`] and
//! [`crate::connect::Statement`]. Only the module `connect` matches on their variants.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use onecopy_wire::lock::lock;

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{LongPart, LongValues, Source};
use crate::sql::dialect::Dialect;
use crate::sql::insert::TableInsert;
use crate::value::Value;

/// How zero dates (`0000-00-00`) of MariaDB and MySQL are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroDates {
    /// `0000-00-00` is NULL, as in MariaDB's own clients; a date in which only the month or the day
    /// is zero is an error.
    #[default]
    Null,
    /// `0000-00-00`, and a date with a zero month or day, are errors.
    Error,
    /// `0000-00-00`, and a date with a zero month or day, are returned as text.
    Text,
}

/// Selects when a statement is prepared on the server under a name. A named statement is parsed
/// only once, so its later executions are cheaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrepareMode {
    /// A statement is prepared under a name from its second execution on, if no other client uses
    /// the server session. If a pooler gives one session to several clients, statements are not
    /// prepared under a name.
    #[default]
    Auto,
    /// A statement is prepared under a name from its first execution on, even if a pooler may give
    /// the server session to several clients.
    Always,
    /// A statement is never prepared under a name.
    Never,
}

/// The options of a connection.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// `true` to open the database only for reading. SQLite opens it with `mode=ro`, PostgreSQL
    /// with `default_transaction_read_only=on`, ODBC with `SQL_ATTR_ACCESS_MODE`. PostgreSQL and
    /// ODBC connections also roll back each transaction instead of committing it.
    pub read_only: bool,
    /// `true` to create a missing database file, for SQLite only. The parameter `mode=` of a
    /// `sqlite:` URL overrides this option.
    pub create: bool,
    /// `true` if each statement is a separate transaction (autocommit). `false` by default, as PEP
    /// 249 requires.
    pub autocommit: bool,
    /// The time limit for opening a connection, in seconds.
    pub login_timeout_s: u32,
    /// How malformed text from the database is treated: as an error, or with U+FFFD as a
    /// replacement.
    pub text_policy: Policy,
    /// How zero dates (`0000-00-00`) of MariaDB and MySQL are returned.
    pub zero_dates: ZeroDates,
    /// For `postgresql://` targets: if `true`, infinite dates and dates outside the years 1 to 9999
    /// are returned as text. If `false`, such dates are returned as dates, and a sink that cannot
    /// write such a date returns an error.
    pub far_dates_as_text: bool,
    /// For `postgresql://` targets: determines when a statement is prepared on the server under a
    /// name, to be executed again without being parsed.
    pub prepare: PrepareMode,
    /// For ODBC drivers that can either stream a result or load it completely: `true` to return
    /// rows while they arrive, `false` to load the complete result before its first row is
    /// returned. `None` streams rows if the driver can. A keyword of the connection string
    /// overrides this option.
    pub stream: Option<bool>,
    /// Used only for psqlodbc, and only if `stream` is `None`. If `true`, the length of a result is
    /// predicted from earlier results of the same SQL. If the most recent results of a statement
    /// with parameters were all short, its next result is read completely, without a server-side
    /// cursor, even if it is long. A statement that returns one row then takes a third of the time
    /// that it takes with a server-side cursor.
    pub guesses_short: bool,
    /// For MariaDB and MySQL: `true` if `LOAD DATA LOCAL` may send files of this machine to the
    /// server.
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
            far_dates_as_text: false,
            prepare: PrepareMode::Auto,
            stream: None,
            guesses_short: true,
            local_infile: false,
        }
    }
}

/// Lets another thread cancel the opening of a connection. The code that opens the connection
/// registers a [`CancelHandle`] in this object. To cancel, the other thread uses that handle.
#[derive(Clone, Default)]
pub struct ConnectCancel(Arc<Mutex<CancelState>>);

#[derive(Default)]
enum CancelState {
    #[default]
    Waiting,
    UnderWay(CancelHandle),
    Cancelled,
}

impl ConnectCancel {
    /// Returns a handle that cancels the attempt to open a connection for which this object is
    /// used. If the attempt has not begun yet, it is cancelled as soon as it begins.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        let state = Arc::clone(&self.0);
        CancelHandle::new(move || {
            let before = std::mem::replace(&mut *lock(&state), CancelState::Cancelled);
            if let CancelState::UnderWay(handle) = before {
                handle.cancel();
            }
        })
    }

    /// Registers `handle`, which can cancel a connection attempt that begins now. If this object
    /// was already cancelled, the attempt is cancelled immediately.
    pub fn begin(&self, handle: CancelHandle) {
        let mut state = lock(&self.0);
        match *state {
            CancelState::Cancelled => handle.cancel(),
            _ => *state = CancelState::UnderWay(handle),
        }
    }
}

impl Debug for ConnectCancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectCancel").finish_non_exhaustive()
    }
}

/// Names and versions of a database and its driver; empty if the driver does not report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The name of the database: `PostgreSQL`, `MariaDB`, `Microsoft SQL Server`, `SQLite`.
    pub dbms: String,
    /// The version of the database, as the database reports it.
    pub dbms_version: String,
    /// The file name of the driver; `onecopy` for SQLite, which is part of this library.
    pub driver: String,
    /// The version of the driver, as the driver reports it.
    pub driver_version: String,
}

/// The parameters and the result of a statement that was prepared but not executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The columns of the result. The schema is empty for a statement that returns no rows. `None`
    /// if the driver cannot describe the result before execution.
    pub schema: Option<Schema>,
    /// The number of parameters; `None` if the database does not report it.
    pub n_parameters: Option<usize>,
    /// `true` if the statement only reads; `None` if the database does not report it (only SQLite
    /// does).
    pub read_only: Option<bool>,
}

/// A connection to one kind of database.
///
/// A connection is `Send`. After the value was dropped, the connection to the database stays open
/// until the last statement of the connection is dropped. A lock inside the connection prevents
/// concurrent calls. A caller must release the GIL before a call, so that no thread waits for this
/// lock while it holds the GIL.
pub trait DatabaseConnection: Debug + Send + Sync + Sized {
    /// The type of the statements that the connection executes.
    type Statement: DatabaseStatement;

    /// `true` if the database itself supports named parameters; otherwise [`crate::named`] replaces
    /// them by `?`.
    const READS_PARAMETER_NAMES: bool = false;

    /// `true` if the calls of the connection and of its statements suspend instead of blocking when
    /// they run in a [`crate::task::Task`].
    const SUSPENDS: bool = false;

    /// Returns `true` if `target` (a URL or a connection string) is for this kind of database.
    fn accepts(target: &str) -> bool;

    /// Returns the SQL dialect that the connection string `target` implies, without connecting.
    /// Returns [`Dialect::Generic`] if the connection string implies none.
    fn dialect_of(target: &str) -> Dialect {
        let _ = target;
        Dialect::Generic
    }

    /// Returns the name of the third-party driver that is loaded into this process to connect to
    /// `target`; `None` if no driver is loaded.
    fn foreign_driver(target: &str) -> Option<String> {
        let _ = target;
        None
    }

    /// Returns `true` if the execution of `sql` may create the database that `target` names. A
    /// missing database is an error for other statements.
    fn creates_database(target: &str, sql: &str) -> bool {
        let _ = (target, sql);
        false
    }

    /// Opens a connection to `target`. The attempt ends early after the time limit in `options`, or
    /// when another thread uses `cancel`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Connect`]; its message lists the failed attempts and the software to
    /// install, and contains no password. [`crate::ErrorKind::Timeout`] after the time limit,
    /// [`crate::ErrorKind::Cancelled`] if the attempt was cancelled.
    fn open(target: &str, options: &ConnectOptions, cancel: &ConnectCancel) -> Result<Self, Error>;

    /// Executes one statement with bound parameters. Its rows, if any, are fetched from the
    /// returned statement.
    ///
    /// # Errors
    /// The error of the database; [`crate::ErrorKind::Programming`] for more than one statement or
    /// a wrong number of parameters.
    fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Self::Statement, Error>;

    /// Executes a statement as [`DatabaseConnection::execute`] does. The caller expects a result
    /// with large rows, which the driver should fetch one at a time.
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::execute`].
    fn execute_row_by_row(
        &self,
        sql: &str,
        parameters: &[Value],
    ) -> Result<Self::Statement, Error> {
        self.execute(sql, parameters)
    }

    /// Executes one statement for each row of parameters; returns the total number of changed rows,
    /// if the database reports it. If `rows` or an execution fails, the rows before the failure
    /// remain executed.
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::execute`]; such an error contains the index (from 0) of
    /// the row of parameters that failed. If the iterator `rows` returns an error, that error.
    fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        let mut changed = Some(0);
        for (at, row) in rows.enumerate() {
            let row = row?;
            let statement = self.execute(sql, &row).map_err(|e| e.at_row(at as u64))?;
            changed = changed.zip(statement.row_count()).map(|(sum, n)| sum + n);
        }
        Ok(changed)
    }

    /// Inserts rows of values into a table by the fastest method of the database; returns the
    /// number of inserted rows, if the database reports it.
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::execute_many`].
    fn insert_rows(
        &self,
        insert: &TableInsert,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        self.execute_many(&insert.sql(), rows)
    }

    /// Prepares one statement without executing it.
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::execute`] that the database detects when it prepares a
    /// statement, such as a syntax error.
    fn prepare_check(&self, sql: &str) -> Result<Prepared, Error>;

    /// Returns the parameter names of a statement, in the order in which their values must be
    /// passed. This function may be called only for a database with
    /// [`READS_PARAMETER_NAMES`](DatabaseConnection::READS_PARAMETER_NAMES).
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::prepare_check`]; [`crate::ErrorKind::Programming`] if
    /// only some of the parameters have names.
    fn parameter_names(&self, sql: &str) -> Result<Vec<String>, Error> {
        let _ = sql;
        Ok(Vec::new())
    }

    /// Returns a handle that cancels statements of this connection from any thread. Each use
    /// cancels the statement that is executed at that time, and does not affect later statements.
    /// The handle may outlive the connection.
    fn cancel_handle(&self) -> CancelHandle;

    /// Commits the transaction.
    ///
    /// # Errors
    /// The error of the database.
    fn commit(&self) -> Result<(), Error>;

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// The error of the database.
    fn rollback(&self) -> Result<(), Error>;

    /// Turns autocommit on or off. With autocommit on, each statement is a separate transaction.
    ///
    /// # Errors
    /// The error of the database.
    fn set_autocommit(&self, on: bool) -> Result<(), Error>;

    /// Returns `true` if autocommit is on: each statement is then a separate transaction.
    fn autocommit(&self) -> bool;

    /// Closes the connection: an open transaction is rolled back, and later calls to active
    /// statements fail with [`crate::ErrorKind::Interface`]. A second close is not an error.
    ///
    /// # Errors
    /// The error of the database.
    fn close(&self) -> Result<(), Error>;

    /// Returns `true` after `close` was called.
    fn is_closed(&self) -> bool;

    /// Returns `false` if the connection was closed, or if an earlier call found that it was lost;
    /// otherwise `true`. Sends nothing to the server.
    fn is_usable(&self) -> bool {
        !self.is_closed()
    }

    /// Returns the SQL dialect of the connected database.
    fn dialect(&self) -> Dialect {
        Dialect::Generic
    }

    /// Returns warnings about this database and its driver, to show to the user after connecting.
    /// Each item is one sentence.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names and versions of the database and of the driver, as the driver reports
    /// them.
    fn names(&self) -> Names {
        Names::default()
    }

    /// Returns the names and versions of the database and the driver as one text, for the command
    /// `doctor` and for logs.
    fn describe(&self) -> String {
        let names = self.names();
        format!("{} {}", names.dbms, names.dbms_version)
    }
}

/// An executed statement. Its rows, if any, are read through [`Source`].
pub trait DatabaseStatement: Source + Debug + 'static {
    /// Returns the number of rows inserted, changed or deleted; `None` if the database does not
    /// report it.
    fn row_count(&self) -> Option<u64> {
        None
    }

    /// Returns the row id of the last row that this statement inserted; `None` if the database does
    /// not report it (only SQLite does).
    fn last_row_id(&self) -> Option<i64> {
        None
    }

    /// Moves to the next result that has rows; returns `false` if no such result is left.
    ///
    /// # Errors
    /// The error of a statement without rows that precedes the next result. Some databases execute
    /// such a statement only during this call.
    fn next_set(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Waits until the next fetch can return rows without blocking ([`Source::is_ready`]). Only
    /// connections whose calls suspend ([`DatabaseConnection::SUSPENDS`]) implement it.
    ///
    /// # Errors
    /// The error that the next fetch would return.
    fn receive(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns `true` if [`DatabaseStatement::next_set`] may find another result. The returned
    /// value is reliable only after a fetch has reached the end of the current result.
    fn has_further(&self) -> bool {
        false
    }

    /// Sets whether the caller will call [`DatabaseStatement::next_set`]. If `takes_more` is
    /// `false`, and the statement returns a second result with rows, the fetch that reaches the end
    /// of the first result returns an error.
    fn set_takes_more(&mut self, takes_more: bool) {
        let _ = takes_more;
    }

    /// Returns the warnings and notices that the database has reported since the last call.
    fn take_messages(&mut self) -> Vec<Message> {
        Vec::new()
    }

    /// Sets how values that are too long for a block are returned. The caller must call this
    /// function before the first fetch. The setting has no effect for a database that never divides
    /// values into parts.
    fn set_long_values(&mut self, long_values: LongValues) {
        let _ = long_values;
    }

    /// Defers the values of `columns` (from 0): rows contain NULL instead, and `read_part` returns
    /// the values. The caller must call this function before the first fetch. An empty list defers
    /// no column.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] for a column of a type other than text or bytes.
    fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        match columns.is_empty() {
            true => Ok(()),
            false => Err(no_deferred_values()),
        }
    }

    /// Writes the next part of the deferred value in `column` (from 0) of the last emitted row into
    /// `buffer`; returns `None` if the value is NULL. `offset` is the number of bytes of the value
    /// that earlier calls returned, 0 at its beginning. `buffer` must have space for at least one
    /// code unit of text and a terminator. May block.
    ///
    /// # Errors
    /// The error of the source; [`crate::ErrorKind::NotSupported`] if a later column of the row was
    /// already read, and the driver can read columns only in order.
    fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        let _ = (column, offset, buffer);
        Err(no_deferred_values())
    }
}

fn no_deferred_values() -> Error {
    let message = "values of this database cannot be left out of rows and read in parts";
    Error::new(ErrorKind::NotSupported, message)
}
