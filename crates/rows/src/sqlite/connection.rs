//! Open, execute, transactions, close.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use libsqlite3_sys as ffi;
use onecopy_wire::CancelHandle;

use super::bind::Keep;
use super::database::{CallGuard, Database};
use super::error::During;
use super::statement::{Statement, read_schema, stop_error};
use super::target::Target;
use super::watch::Cancel;
use crate::connect::{ConnectOptions, Prepared};
use crate::error::{Error, ErrorKind};
use crate::value::Value;

/// Rows of parameters taken from the caller's iterator at a time, outside the lock.
const ROWS_AT_A_TIME: usize = 64;

/// A connection to the embedded database.
///
/// Driver calls on it exclude each other by one lock. With autocommit off (PEP 249), a transaction is begun before the
/// first INSERT, UPDATE, DELETE, REPLACE or writing WITH, as Python's `sqlite3` does, and lasts until commit or rollback;
/// reading and DDL begin none (docs/decisions/sqlite.md).
#[derive(Debug)]
pub struct Connection {
    database: Arc<Database>,
}

impl Connection {
    /// Opens what follows `sqlite:` in a connection string (the forms stand in `sqlite/target.rs`).
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] with the path: no such file, no database, no permission, an unknown option.
    pub fn open(target: &str, options: &ConnectOptions) -> Result<Connection, Error> {
        let target = Target::parse(target, options.read_only)?;
        let database = Database::open(&target, options.read_only)?;
        database.autocommit.store(options.autocommit, Relaxed);
        Ok(Connection {
            database: Arc::new(database),
        })
    }

    /// Runs one statement to its first row, or to its end where it gives none.
    ///
    /// # Errors
    /// As [`crate::connect::Connection::execute`].
    pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        let cancel = Arc::new(Cancel::new(self.database.next_id()));
        let guard = self.database.enter()?;
        // SAFETY: the guard is dropped after what this returns, being declared before it.
        let running = unsafe { self.database.watch.run(&cancel, None) };
        let prepared = guard.prepare(sql)?;
        // SAFETY: the values are copied.
        if let Err(error) = unsafe { guard.bind_all(&prepared, parameters, Keep::Copied) } {
            guard.rest(prepared);
            return Err(error);
        }
        let began = match self.begin(&guard, prepared.kind.is_dml()) {
            Ok(began) => began,
            Err(error) => {
                guard.rest(prepared);
                return Err(error);
            }
        };
        let was_in_transaction = !guard.in_autocommit();
        let kind = prepared.kind;
        let statement = Statement::start(self.database.clone(), &guard, cancel, prepared);
        if statement.is_err() && began && !guard.in_autocommit() {
            // The transaction was begun for this statement alone, which did nothing.
            guard.run("ROLLBACK")?;
        }
        if kind == super::sql::Kind::Rollback && was_in_transaction && guard.in_autocommit() {
            guard.end_cursors();
        }
        drop(running);
        statement
    }

    /// Begins a transaction where one is due; returns whether it did.
    fn begin(&self, guard: &CallGuard<'_>, is_dml: bool) -> Result<bool, Error> {
        let due = is_dml && !self.autocommit() && guard.in_autocommit();
        if due {
            guard.run("BEGIN")?;
        }
        Ok(due)
    }

    /// Runs one INSERT, UPDATE, DELETE or REPLACE for each row of parameters; returns how many rows were changed. With
    /// autocommit on, all of it is one transaction: nothing of it stays where a row fails.
    ///
    /// # Errors
    /// As [`crate::connect::Connection::execute_many`]; [`ErrorKind::Programming`] for another statement.
    pub fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        let cancel = Arc::new(Cancel::new(self.database.next_id()));
        let mut own_transaction = false;
        let mut changed = 0;
        let mut n_rows = 0;
        let mut result = Ok(());
        loop {
            // The iterator may run the caller's code, so it is asked outside the lock.
            let batch: Vec<Vec<Value>> = rows.take(ROWS_AT_A_TIME).collect();
            if batch.is_empty() && n_rows > 0 {
                break;
            }
            let guard = self.database.enter()?;
            // SAFETY: dropped before the guard, being declared after it.
            let _running = unsafe { self.database.watch.run(&cancel, None) };
            let prepared = guard.prepare(sql)?;
            if !prepared.kind.is_dml() {
                guard.rest(prepared);
                return Err(Error::new(
                    ErrorKind::Programming,
                    "only INSERT, UPDATE, DELETE and REPLACE can be executed many times\nexecute other statements one by one",
                ));
            }
            if guard.in_autocommit() {
                guard.run("BEGIN")?;
                own_transaction = self.autocommit();
            }
            result = self.execute_batch(&guard, &cancel, &prepared, &batch, &mut changed, n_rows);
            guard.rest(prepared);
            n_rows += batch.len() as u64;
            if result.is_err() || batch.len() < ROWS_AT_A_TIME {
                break;
            }
        }
        if own_transaction {
            let guard = self.database.enter()?;
            if !guard.db().is_null() && !guard.in_autocommit() {
                guard.run(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
            }
        }
        result.map(|()| Some(changed))
    }

    /// Runs the prepared statement for each row; the error names the row, counted from `first_row`.
    fn execute_batch(
        &self,
        guard: &CallGuard<'_>,
        cancel: &Cancel,
        prepared: &super::cache::Prepared,
        batch: &[Vec<Value>],
        changed: &mut u64,
        first_row: u64,
    ) -> Result<(), Error> {
        for (row, values) in (first_row..).zip(batch) {
            // SAFETY: the bindings are cleared by the caller (`CallGuard::rest`) before the batch goes, and those of one
            // row replaced by the next.
            let code = unsafe {
                guard
                    .bind_all(prepared, values, Keep::Borrowed)
                    .map_err(|e| e.at_row(row))?;
                let code = loop {
                    match ffi::sqlite3_step(prepared.stmt) {
                        ffi::SQLITE_ROW => {}
                        code => break code,
                    }
                };
                if code == ffi::SQLITE_DONE {
                    *changed += u64::try_from(ffi::sqlite3_changes64(guard.db())).unwrap_or(0);
                    ffi::sqlite3_reset(prepared.stmt);
                }
                code
            };
            if code != ffi::SQLITE_DONE {
                let error = guard.error(code, During::Step);
                return Err(stop_error(&self.database, cancel)
                    .unwrap_or(error)
                    .at_row(row));
            }
        }
        Ok(())
    }

    /// Prepares one statement and runs nothing.
    ///
    /// # Errors
    /// As [`crate::connect::Connection::prepare_check`].
    pub fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        let guard = self.database.enter()?;
        let prepared = guard.prepare(sql)?;
        // SAFETY: the statement is live and the lock held.
        let (schema, read_only) = unsafe {
            (
                read_schema(prepared.stmt),
                ffi::sqlite3_stmt_readonly(prepared.stmt) != 0,
            )
        };
        let n_parameters = Some(prepared.n_parameters);
        guard.rest(prepared);
        Ok(Prepared {
            schema,
            n_parameters,
            read_only: Some(read_only),
        })
    }

    /// A handle that stops whatever runs on this connection at that moment.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        let shared = self.database.watch.shared().clone();
        CancelHandle::new(move || shared.cancel_running())
    }

    /// Runs `f` with the way in, noted as what runs, so that it can be cancelled.
    fn call<T>(&self, f: impl FnOnce(&CallGuard<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let cancel = Arc::new(Cancel::new(self.database.next_id()));
        let guard = self.database.enter()?;
        guard.check_open()?;
        // SAFETY: dropped before the guard, being declared after it.
        let _running = unsafe { self.database.watch.run(&cancel, None) };
        f(&guard)
    }

    /// Commits the transaction; no effect where none is open. Cursors under way go on.
    ///
    /// # Errors
    /// As SQLite says; the transaction stays open where another connection's lock is in the way.
    pub fn commit(&self) -> Result<(), Error> {
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

    /// Rolls the transaction back; no effect where none is open. Cursors under way end: their next fetch is an error.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn rollback(&self) -> Result<(), Error> {
        self.call(|guard| {
            if guard.in_autocommit() {
                return Ok(());
            }
            guard.end_cursors();
            guard.run("ROLLBACK")
        })
    }

    /// Turns autocommit on or off; turning it on commits what is open.
    ///
    /// # Errors
    /// As [`Connection::commit`]; nothing was turned then.
    pub fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        if on {
            self.commit()?;
        }
        self.database.autocommit.store(on, Relaxed);
        Ok(())
    }

    /// Whether each statement is its own transaction.
    #[must_use]
    pub fn autocommit(&self) -> bool {
        self.database.autocommit.load(Relaxed)
    }

    /// Stops what runs, rolls an open transaction back, finalises every statement and closes the file.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in a forked child.
    pub fn close(&self) -> Result<(), Error> {
        self.database.watch.shared().close();
        self.database.enter()?.close();
        Ok(())
    }

    /// What a user should know: of SQLite nothing, it streams and is exact.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// `SQLite 3.x.y (bundled)`.
    #[must_use]
    pub fn describe(&self) -> String {
        // SAFETY: the version is a static NUL-terminated string.
        let version = unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) };
        format!("SQLite {} (bundled)", version.to_string_lossy())
    }
}
