//! `Connection`: opens a SQLite database, executes statements, ends transactions, closes the
//! database.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use libsqlite3_sys as ffi;
use onecopy_wire::CancelHandle;

use super::bind::Keep;
use super::callbacks::Cancel;
use super::execute_many::execute_many;
use super::functions::{Collation, Function};
use super::statement::{Statement, read_schema, stop_error};
use super::statement_kind::StatementKind;
use super::target::SqliteTarget;
use super::{call::CallGuard, database::Database};
use crate::database::{ConnectCancel, ConnectOptions, DatabaseConnection, Names, Prepared};
use crate::error::Error;
use crate::sql::dialect::Dialect;
use crate::value::Value;

/// A connection to a SQLite database.
///
/// A lock prevents concurrent calls. If autocommit is off, a transaction begins as in Python's
/// `sqlite3`: before the first INSERT, UPDATE, DELETE or REPLACE, or before the first statement
/// that begins with WITH and writes. The transaction lasts until commit or rollback. Queries and
/// DDL begin no transaction (docs/decisions/0012-sqlite.md).
#[derive(Debug)]
pub struct Connection {
    database: Arc<Database>,
}

impl Connection {
    /// Opens a database. `path` is the part of a connection string after `sqlite:`, in one of
    /// [these forms](crate::sqlite).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Connect`] if the file is missing, is not a database or is not permitted
    /// to be opened, or if an option is unknown. The message contains the path.
    pub fn open_path(path: &str, options: &ConnectOptions) -> Result<Connection, Error> {
        let target = SqliteTarget::parse(path, options.read_only, options.create)?;
        let database = Database::open(&target, options)?;
        Ok(Connection {
            database: Arc::new(database),
        })
    }

    fn execute_in(
        &self,
        guard: &CallGuard<'_>,
        cancel: &Arc<Cancel>,
        sql: &str,
        parameters: &[Value],
    ) -> Result<Statement, Error> {
        let prepared = guard.prepare(sql)?;
        let kind = prepared.kind;
        // SAFETY: SQLite copies the values.
        let ready = unsafe { guard.bind_all(&prepared, parameters, Keep::Copied) }
            .and_then(|()| self.begin(guard, kind.is_dml()));
        let began = match ready {
            Ok(began) => began,
            Err(error) => {
                guard.rest(prepared);
                return Err(error);
            }
        };
        let was_in_transaction = !guard.in_autocommit();
        let statement = Statement::start(self.database.clone(), guard, cancel.clone(), prepared);
        if statement.is_err() && began && !guard.in_autocommit() {
            // The transaction was begun only for this statement, which has failed without changing
            // rows.
            guard.run("ROLLBACK")?;
        }
        if kind == StatementKind::Rollback && was_in_transaction && guard.in_autocommit() {
            guard.end_cursors();
        }
        statement
    }

    /// Begins a transaction if the statement to execute changes rows (`is_dml`), autocommit is off,
    /// and no transaction is open. Returns `true` if a transaction was begun.
    fn begin(&self, guard: &CallGuard<'_>, is_dml: bool) -> Result<bool, Error> {
        let due = is_dml && !self.autocommit() && guard.in_autocommit();
        if due {
            guard.run("BEGIN")?;
        }
        Ok(due)
    }

    /// Locks the call lock of the connection, and calls `f` with the guard of the lock. The cancel
    /// handle of the connection can cancel this call.
    fn call<T>(&self, f: impl FnOnce(&CallGuard<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let cancel = Arc::new(Cancel::new(self.database.next_id()));
        let guard = self.database.enter()?;
        guard.check_open()?;
        // SAFETY: declared after the guard of the lock, so dropped before it.
        let _running = unsafe { self.database.watch.run(&cancel, None) };
        f(&guard).map_err(|e| stop_error(&self.database, &cancel).unwrap_or(e))
    }

    /// Creates, replaces or removes the SQL function `name` with `n_arguments` arguments (-1 for
    /// any number).
    ///
    /// # Errors
    /// The error of SQLite; a function that an active statement uses cannot be changed.
    pub fn create_function(
        &self,
        name: &str,
        n_arguments: i32,
        function: Function,
    ) -> Result<(), Error> {
        self.database
            .enter()?
            .create_function(name, n_arguments, function)
    }

    /// Creates, replaces or (with `None`) removes a collation.
    ///
    /// # Errors
    /// The errors of [`Connection::create_function`].
    pub fn create_collation(
        &self,
        name: &str,
        collation: Option<Box<Collation>>,
    ) -> Result<(), Error> {
        self.database.enter()?.create_collation(name, collation)
    }

    /// Returns the number of rows that this connection has inserted, changed and deleted since it
    /// was opened.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Interface`] if the connection is closed.
    pub fn total_changes(&self) -> Result<i64, Error> {
        let guard = self.database.enter()?;
        guard.check_open()?;
        // SAFETY: the handle is open, and this thread holds the lock.
        Ok(unsafe { ffi::sqlite3_total_changes64(guard.db()) })
    }

    /// Returns the path of the database's file; `None` for a database in memory.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Interface`] if the connection is closed.
    pub fn file(&self) -> Result<Option<PathBuf>, Error> {
        let guard = self.database.enter()?;
        guard.check_open()?;
        // SAFETY: this thread holds the lock of the open connection; SQLite returns NULL or a text
        // with NUL at its end, which it keeps while the connection is open.
        let name = unsafe {
            let name = ffi::sqlite3_db_filename(guard.db(), c"main".as_ptr());
            (!name.is_null()).then(|| CStr::from_ptr(name).to_bytes().to_vec())
        };
        let name = name.filter(|name| !name.is_empty());
        Ok(name.map(|name| PathBuf::from(OsString::from_vec(name))))
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn shared_database(&self) -> Arc<Database> {
        self.database.clone()
    }
}

impl DatabaseConnection for Connection {
    type Statement = Statement;

    const READS_PARAMETER_NAMES: bool = true;

    fn accepts(target: &str) -> bool {
        target.starts_with("sqlite:")
    }

    fn dialect_of(_target: &str) -> Dialect {
        Dialect::Sqlite
    }

    fn creates_database(_target: &str, sql: &str) -> bool {
        // The text is prepared on an empty database in memory, which executes nothing.
        let prepared = Connection::open_path(":memory:", &ConnectOptions::default())
            .and_then(|empty| empty.prepare_check(sql));
        prepared.is_ok_and(|prepared| prepared.read_only == Some(false))
    }

    fn open(
        target: &str,
        options: &ConnectOptions,
        _cancel: &ConnectCancel,
    ) -> Result<Connection, Error> {
        Connection::open_path(target.strip_prefix("sqlite:").unwrap_or(target), options)
    }

    /// Executes one statement up to its first row, or to its end if it returns no rows.
    ///
    /// # Errors
    /// The errors of [`crate::connect::Connection::execute`].
    fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        let cancel = Arc::new(Cancel::new(self.database.next_id()));
        let guard = self.database.enter()?;
        // SAFETY: declared after the guard of the lock, so dropped before it.
        let _running = unsafe { self.database.watch.run(&cancel, None) };
        self.execute_in(&guard, &cancel, sql, parameters)
            .map_err(|e| stop_error(&self.database, &cancel).unwrap_or(e))
    }

    fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        execute_many(&self.database, sql, rows)
    }

    fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        let guard = self.database.enter()?;
        let prepared = guard.prepare(sql)?;
        // SAFETY: the statement is live, and this thread holds the lock.
        let (schema, read_only) = unsafe {
            (
                read_schema(prepared.stmt),
                ffi::sqlite3_stmt_readonly(prepared.stmt) != 0,
            )
        };
        let n_parameters = Some(prepared.n_parameters);
        guard.rest(prepared);
        Ok(Prepared {
            schema: Some(schema),
            n_parameters,
            read_only: Some(read_only),
        })
    }

    /// Returns the names of a statement's parameters without their first character (`:`, `@` or
    /// `$`), in the order in which their values must be passed; empty if no parameter has a name.
    ///
    /// # Errors
    /// The errors of [`Connection::prepare_check`]; [`crate::ErrorKind::Programming`] if only some
    /// parameters have names.
    fn parameter_names(&self, sql: &str) -> Result<Vec<String>, Error> {
        let guard = self.database.enter()?;
        let prepared = guard.prepare(sql)?;
        let names = (1..).take(prepared.n_parameters).map(|index| {
            // SAFETY: the statement is live, and this thread holds the lock; a name is a
            // NUL-terminated text that lives as long as the statement.
            let name = unsafe {
                let name = ffi::sqlite3_bind_parameter_name(prepared.stmt, index);
                (!name.is_null()).then(|| CStr::from_ptr(name))
            };
            let name = name.map(CStr::to_string_lossy);
            name.filter(|name| !name.starts_with('?'))
                .map(|name| name[1..].to_owned())
        });
        let names: Vec<Option<String>> = names.collect();
        guard.rest(prepared);
        if names.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let names: Option<Vec<String>> = names.into_iter().collect();
        names.ok_or_else(|| Error::new(crate::ErrorKind::Programming, crate::sql::named::MIXED))
    }

    fn cancel_handle(&self) -> CancelHandle {
        let shared = self.database.watch.shared().clone();
        CancelHandle::new(move || shared.cancel_running())
    }

    /// Commits the transaction; has no effect if none is open. Active cursors continue.
    ///
    /// # Errors
    /// The error of SQLite; the transaction stays open if another connection holds a lock.
    fn commit(&self) -> Result<(), Error> {
        self.call(|guard| {
            if guard.in_autocommit() {
                return Ok(());
            }
            guard.run("COMMIT").map_err(|mut e| {
                if e.native & 0xff == ffi::SQLITE_BUSY && !guard.in_autocommit() {
                    e.message
                        .push_str("\na statement with RETURNING must be read to its end first");
                }
                e
            })
        })
    }

    /// Rolls the transaction back; has no effect if none is open. Active cursors end: their next
    /// fetch returns an error.
    ///
    /// # Errors
    /// The error of SQLite.
    fn rollback(&self) -> Result<(), Error> {
        self.call(|guard| {
            if guard.in_autocommit() {
                return Ok(());
            }
            guard.end_cursors();
            guard.run("ROLLBACK")
        })
    }

    /// Turns autocommit on or off; turning it on commits an open transaction.
    ///
    /// # Errors
    /// The errors of [`Connection::commit`]; autocommit is then unchanged.
    fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        if on {
            self.commit()?;
        }
        self.database.autocommit.store(on, Relaxed);
        Ok(())
    }

    fn autocommit(&self) -> bool {
        self.database.autocommit.load(Relaxed)
    }

    /// Closes the connection: cancels the active statement, rolls back an open transaction,
    /// finalises every statement, and closes the database file.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Interface`] in a forked child, in a callback of this connection, and if
    /// the thread that uses the connection waits for this thread.
    fn close(&self) -> Result<(), Error> {
        let shared = self.database.watch.shared();
        let mut guard = match self.database.try_enter()? {
            Some(guard) => guard,
            None => {
                shared.set_closing(true);
                let entered = self.database.enter();
                entered.inspect_err(|_| shared.set_closing(false))?
            }
        };
        shared.set_closing(true);
        guard.close();
        self.database.is_closed.store(true, Relaxed);
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.database.is_closed.load(Relaxed)
    }

    /// Returns `true` if the connection is open and this process opened it.
    fn is_usable(&self) -> bool {
        !self.is_closed() && self.database.is_ours()
    }

    fn names(&self) -> Names {
        // SAFETY: the version is a static NUL-terminated string.
        let version = unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) };
        Names {
            dbms: "SQLite".to_owned(),
            dbms_version: version.to_string_lossy().into_owned(),
            driver: "onecopy".to_owned(),
            driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn describe(&self) -> String {
        // SAFETY: the version is a static NUL-terminated string.
        let version = unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) };
        format!("SQLite {} (bundled)", version.to_string_lossy())
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }
}
