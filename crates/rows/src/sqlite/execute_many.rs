//! Executes one statement for many rows of parameters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use libsqlite3_sys as ffi;

use super::bind::Keep;
use super::callbacks::Cancel;
use super::error::During;
use super::statement::stop_error;
use super::statement_cache::Prepared;
use super::{call::CallGuard, database::Database};
use crate::error::{Error, ErrorKind};
use crate::value::{Batches, Value};

/// The number of rows of parameters in a batch. A batch is read from the caller's iterator before
/// the connection is locked, and is then executed under the lock.
const ROWS_AT_A_TIME: usize = 64;

/// Executes `sql` for each row of parameters; see [`super::Connection::execute_many`].
pub(super) fn execute_many(
    database: &Database,
    sql: &str,
    rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
) -> Result<Option<u64>, Error> {
    let mut many = Many {
        database,
        cancel: Arc::new(Cancel::new(database.next_id())),
        own_transaction: false,
        n_rows: 0,
        n_changed: 0,
    };
    let mut batches = Batches::of_rows(rows, ROWS_AT_A_TIME);
    loop {
        // The iterator may run the caller's code, so it is called while the lock is not held.
        let batch = batches.next().unwrap_or_default();
        if many.n_rows == 0 || !batch.is_empty() {
            many.call(|many, guard| many.run_batch(guard, sql, &batch))?;
        }
        if batch.is_empty() {
            break;
        }
    }
    batches.end()?;
    if many.own_transaction {
        many.call(|_, guard| guard.run("COMMIT"))?;
        many.own_transaction = false;
    }
    Ok(Some(many.n_changed))
}

struct Many<'a> {
    database: &'a Database,
    cancel: Arc<Cancel>,
    /// `true` if this call of `execute_many` has begun a transaction, because no transaction was
    /// open. If a row fails, this transaction is rolled back.
    own_transaction: bool,
    n_rows: u64,
    n_changed: u64,
}

impl Many<'_> {
    /// Calls `f` while this thread holds the connection's call lock. During the call, the cancel
    /// handle of the connection can end the statements that `f` executes.
    fn call(
        &mut self,
        f: impl FnOnce(&mut Self, &CallGuard<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let database = self.database;
        let cancel = self.cancel.clone();
        let guard = database.enter()?;
        guard.check_open()?;
        // SAFETY: declared after the guard of the lock, so dropped before it.
        let _running = unsafe { database.watch.run(&cancel, None) };
        f(self, &guard).map_err(|error| match stop_error(database, &cancel) {
            Some(stopped) => Error {
                row: error.row,
                ..stopped
            },
            None => error,
        })
    }

    fn run_batch(
        &mut self,
        guard: &CallGuard<'_>,
        sql: &str,
        batch: &[Vec<Value>],
    ) -> Result<(), Error> {
        let prepared = guard.prepare(sql)?;
        let result = self.run_rows(guard, &prepared, batch);
        guard.rest(prepared);
        result
    }

    fn run_rows(
        &mut self,
        guard: &CallGuard<'_>,
        prepared: &Prepared,
        batch: &[Vec<Value>],
    ) -> Result<(), Error> {
        if !prepared.kind.is_dml() {
            return Err(Error::new(
                ErrorKind::Programming,
                "only INSERT, UPDATE, DELETE and REPLACE can be executed many times\n\
                 execute other statements one by one",
            ));
        }
        if !batch.is_empty() && guard.in_autocommit() {
            guard.run("BEGIN")?;
            self.own_transaction = self.database.autocommit.load(Relaxed);
        }
        for values in batch {
            self.run_row(guard, prepared, values)
                .map_err(|e| e.at_row(self.n_rows))?;
            self.n_rows += 1;
        }
        Ok(())
    }

    fn run_row(
        &mut self,
        guard: &CallGuard<'_>,
        prepared: &Prepared,
        values: &[Value],
    ) -> Result<(), Error> {
        // SAFETY: the values outlive their bindings: the values of the next row replace those of a
        // row, and `run_batch` clears the last bindings when it resets the statement, while the
        // batch is alive. This thread holds the lock.
        unsafe {
            guard.bind_all(prepared, values, Keep::Borrowed)?;
            let code = loop {
                match guard.step(prepared.stmt)? {
                    ffi::SQLITE_ROW => {} // A row of a RETURNING is discarded.
                    code => break code,
                }
            };
            if code != ffi::SQLITE_DONE {
                return Err(guard.error(code, During::Step));
            }
            self.n_changed += u64::try_from(ffi::sqlite3_changes64(guard.db())).unwrap_or(0);
            ffi::sqlite3_reset(prepared.stmt);
        }
        Ok(())
    }
}

impl Drop for Many<'_> {
    fn drop(&mut self) {
        if self.own_transaction {
            // `own_transaction` is still `true` after an error, or a panic of the iterator. The
            // transaction may have ended already (ON CONFLICT ROLLBACK, close).
            if let Ok(guard) = self.database.enter()
                && !guard.db().is_null()
                && !guard.in_autocommit()
            {
                // An error of this rollback cannot be reported. The transaction is then rolled back
                // at the latest when the file is closed.
                let _ = guard.run("ROLLBACK");
            }
        }
    }
}
