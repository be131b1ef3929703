//! What a database is: a [`DatabaseConnection`] and a [`DatabaseStatement`] of one directory, registered by one line in
//! [`crate::connect`].
//!
//! Both are called by static dispatch: [`crate::connect::Connection`] and [`crate::connect::Statement`] are enums of all
//! databases, and the only code that matches on them.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{LongPart, LongValues, Source};
use crate::sql::dialect::Dialect;
use crate::value::Value;

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
    /// Open the database only for reading: SQLite `mode=ro`; ODBC `SQL_ATTR_ACCESS_MODE` and a transaction that is always
    /// rolled back.
    pub read_only: bool,
    /// SQLite: create a file that is missing. `mode=` in the target overrides it.
    pub create: bool,
    /// Each statement is its own transaction. Off by default (PEP 249).
    pub autocommit: bool,
    /// How long to try to connect, in seconds.
    pub login_timeout_s: u32,
    /// What to do with malformed text from the database.
    pub text_policy: Policy,
    /// What MariaDB's and MySQL's dates of zeros are.
    pub zero_dates: ZeroDates,
    /// Whether a driver returns rows as they are read (`true`), or all of a result before its first row (`false`), where
    /// that can be chosen; `None`: as they are read, where the driver can. A keyword of the connection string overrides it.
    pub stream: Option<bool>,
    /// Where `stream` is `None`: whether a text with parameters whose last results were all short may be executed so that
    /// its next result arrives whole, however long that is (psqlodbc; a third of the time for one row).
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

/// Cancels a connect from another thread: the connect registers how it is done.
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
    /// Cancels the connect that uses this, if it has begun, or as soon as it begins.
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

    /// Registers how the connect that begins now is cancelled.
    pub fn begin(&self, handle: CancelHandle) {
        let mut state = lock(&self.0);
        match *state {
            CancelState::Cancelled => handle.cancel(),
            _ => *state = CancelState::UnderWay(handle),
        }
    }
}

fn lock(state: &Mutex<CancelState>) -> MutexGuard<'_, CancelState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Debug for ConnectCancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectCancel").finish_non_exhaustive()
    }
}

/// Names and versions; empty where a driver reports none.
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

/// The parameters and the result of a statement, found without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Columns of the result, empty for a statement without a result; `None` if the driver cannot describe them before
    /// the statement runs.
    pub schema: Option<Schema>,
    /// How many parameters are to be bound, if the database reports it.
    pub n_parameters: Option<usize>,
    /// Whether the statement only reads, if the database reports it (SQLite does).
    pub read_only: Option<bool>,
}

/// A connection to one kind of database.
///
/// It is `Send`; statements keep it alive; calls on one connection exclude each other by a lock inside, which a caller that
/// holds the GIL never waits for (the binding detaches first).
pub trait DatabaseConnection: Debug + Send + Sync + Sized {
    /// A statement that it executed.
    type Statement: DatabaseStatement;

    /// Whether the database reads named parameters itself. If not, [`crate::named`] replaces them by `?`.
    const READS_PARAMETER_NAMES: bool = false;

    /// Whether `target` (a URL or a connection string) is for this kind of database.
    fn accepts(target: &str) -> bool;

    /// The dialect of a target that it accepts, as far as the text shows it. Nothing is opened.
    fn dialect_of(target: &str) -> Dialect {
        let _ = target;
        Dialect::Generic
    }

    /// The foreign driver that `target` loads into this process, for people; `None` if all code is ours.
    fn foreign_driver(target: &str) -> Option<String> {
        let _ = target;
        None
    }

    /// Whether `sql` would create the database of `target`, if that does not exist.
    fn creates_database(target: &str, sql: &str) -> bool {
        let _ = (target, sql);
        false
    }

    /// Opens `target` within its time limit, or until `cancel` is used.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Connect`] with what was tried and what to install, never with a password;
    /// [`crate::ErrorKind::Timeout`] after the limit, [`crate::ErrorKind::Cancelled`] after a cancel.
    fn open(target: &str, options: &ConnectOptions, cancel: &ConnectCancel) -> Result<Self, Error>;

    /// Runs one statement with its parameters bound; its rows (if any) are then fetched from the result.
    ///
    /// # Errors
    /// As the database reports; [`crate::ErrorKind::Programming`] for more than one statement or a wrong number of
    /// parameters.
    fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Self::Statement, Error>;

    /// As `execute`, for rows so large that the driver should request one at a time.
    ///
    /// # Errors
    /// As `execute`.
    fn execute_row_by_row(
        &self,
        sql: &str,
        parameters: &[Value],
    ) -> Result<Self::Statement, Error> {
        self.execute(sql, parameters)
    }

    /// Runs one statement for each row of parameters; returns the sum of the rows changed, if the database reports it.
    ///
    /// # Errors
    /// As `execute`; the error has the row of parameters (from 0).
    fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        let mut changed = Some(0);
        for (at, row) in rows.enumerate() {
            let statement = self.execute(sql, &row).map_err(|e| e.at_row(at as u64))?;
            changed = changed.zip(statement.row_count()).map(|(sum, n)| sum + n);
        }
        Ok(changed)
    }

    /// Prepares one statement and runs nothing.
    ///
    /// # Errors
    /// As `execute`, as far as the database checks a statement that it only prepares.
    fn prepare_check(&self, sql: &str) -> Result<Prepared, Error>;

    /// The names of a statement's parameters, in the order of their values; only of a database that
    /// [reads them](DatabaseConnection::READS_PARAMETER_NAMES).
    ///
    /// # Errors
    /// As `prepare_check`; [`crate::ErrorKind::Programming`] if only some have names.
    fn parameter_names(&self, sql: &str) -> Result<Vec<String>, Error> {
        let _ = sql;
        Ok(Vec::new())
    }

    /// A handle that stops, from any thread, whatever runs on this connection at that moment; it stops nothing that starts
    /// later, and may outlive the connection.
    fn cancel_handle(&self) -> CancelHandle;

    /// Commits the transaction.
    ///
    /// # Errors
    /// As the database reports.
    fn commit(&self) -> Result<(), Error>;

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// As the database reports.
    fn rollback(&self) -> Result<(), Error>;

    /// Turns autocommit on or off.
    ///
    /// # Errors
    /// As the database reports.
    fn set_autocommit(&self, on: bool) -> Result<(), Error>;

    /// Whether each statement is its own transaction.
    fn autocommit(&self) -> bool;

    /// Closes it: an open transaction is rolled back, statements under way fail with [`crate::ErrorKind::Interface`].
    /// Closing twice is not an error.
    ///
    /// # Errors
    /// As the database reports.
    fn close(&self) -> Result<(), Error>;

    /// Whether it was closed.
    fn is_closed(&self) -> bool;

    /// Whether it can be used: it was not closed, and no call has found it lost. Nothing is sent.
    fn is_usable(&self) -> bool {
        !self.is_closed()
    }

    /// The dialect of its SQL.
    fn dialect(&self) -> Dialect {
        Dialect::Generic
    }

    /// What a user should know about this database and its driver: one sentence each, for a warning at connect.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names and versions of the database and of the driver, as the driver reports them.
    fn names(&self) -> Names {
        Names::default()
    }

    /// Name and version of the database and of the driver, for `doctor` and logs.
    fn describe(&self) -> String {
        let names = self.names();
        format!("{} {}", names.dbms, names.dbms_version)
    }
}

/// A statement that was executed; its rows are read through [`Source`].
pub trait DatabaseStatement: Source + Debug + 'static {
    /// Rows inserted, changed or deleted, if the database reports it.
    fn row_count(&self) -> Option<u64> {
        None
    }

    /// The row id of the last row inserted by this statement, if the database reports it (SQLite).
    fn last_row_id(&self) -> Option<i64> {
        None
    }

    /// Goes to the next result with rows; `false` if there is none.
    ///
    /// # Errors
    /// Of the statements in between, which may run only now.
    fn next_set(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Whether the fetch that found the end of this result has found a further one.
    fn has_further(&self) -> bool {
        false
    }

    /// Sets whether [`DatabaseStatement::next_set`] will be called: if not, a further result with rows is an error of the
    /// fetch that finds the end of the first.
    fn set_takes_more(&mut self, takes_more: bool) {
        let _ = takes_more;
    }

    /// What the database reported beside the result (warnings, notices) since the last call.
    fn take_messages(&mut self) -> Vec<Message> {
        Vec::new()
    }

    /// How values too long for a block are returned; to be set before the first fetch. Without effect in a database whose
    /// blocks hold every value whole.
    fn set_long_values(&mut self, long_values: LongValues) {
        let _ = long_values;
    }

    /// Leaves the values of `columns` (from 0) out of rows, which then have NULL there: `read_part` returns them.
    /// To be called before the first fetch; none undoes it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] for a column that holds neither text nor bytes.
    fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        match columns.is_empty() {
            true => Ok(()),
            false => Err(no_deferred_values()),
        }
    }

    /// Writes the next part of the deferred value in `column` (from 0) of the row emitted last into `buffer` (of some bytes
    /// at least, a terminator's included); `None` for NULL. `offset` is how many bytes of it were read before: 0 begins.
    /// May block.
    ///
    /// # Errors
    /// Of the source; [`crate::ErrorKind::NotSupported`] for an order of columns that the driver does not allow.
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
