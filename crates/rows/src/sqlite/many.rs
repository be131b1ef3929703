//! One statement for many rows of parameters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use libsqlite3_sys as ffi;

use super::bind::Keep;
use super::cache::Prepared;
use super::error::During;
use super::statement::stop_error;
use super::watch::Cancel;
use super::{call::CallGuard, database::Database};
use crate::error::{Error, ErrorKind};
use crate::value::Value;

/// Rows of parameters taken from the caller's iterator at a time.
const ROWS_AT_A_TIME: usize = 64;

/// Runs `sql` for each of `rows`; see [`super::Connection::execute_many`].
pub(super) fn execute_many(
    database: &Database,
    sql: &str,
    rows: &mut dyn Iterator<Item = Vec<Value>>,
) -> Result<Option<u64>, Error> {
    let mut many = Many {
        database,
        cancel: Arc::new(Cancel::new(database.next_id())),
        own_transaction: false,
        n_rows: 0,
        n_changed: 0,
    };
    loop {
        // The iterator may run the caller's code, so it is asked outside the lock.
        let batch: Vec<Vec<Value>> = rows.take(ROWS_AT_A_TIME).collect();
        if many.n_rows == 0 || !batch.is_empty() {
            many.call(|many, guard| many.run_batch(guard, sql, &batch))?;
        }
        if batch.len() < ROWS_AT_A_TIME {
            break;
        }
    }
    if many.own_transaction {
        many.call(|_, guard| guard.run("COMMIT"))?;
        many.own_transaction = false;
    }
    Ok(Some(many.n_changed))
}

struct Many<'a> {
    database: &'a Database,
    cancel: Arc<Cancel>,
    /// A transaction was begun for these rows alone; rolled back where they do not all get through.
    own_transaction: bool,
    n_rows: u64,
    n_changed: u64,
}

impl Many<'_> {
    /// Runs `f` with the way in, noted as what runs.
    fn call(
        &mut self,
        f: impl FnOnce(&mut Self, &CallGuard<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let database = self.database;
        let cancel = self.cancel.clone();
        let guard = database.enter()?;
        guard.check_open()?;
        // SAFETY: dropped before the guard, being declared after it.
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
                "only INSERT, UPDATE, DELETE and REPLACE can be executed many times\nexecute other statements one by one",
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
        // SAFETY: the values outlive their bindings: those of one row are replaced by the next row's, the last ones
        // cleared when the statement is put to rest (`run_batch`), while the batch is alive. The lock is held.
        unsafe {
            guard.bind_all(prepared, values, Keep::Borrowed)?;
            let code = loop {
                match ffi::sqlite3_step(prepared.stmt) {
                    ffi::SQLITE_ROW => {} // Of a RETURNING: nobody can read it here.
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
            // An error, or a panic of the iterator. The transaction may be gone already (ON CONFLICT ROLLBACK, close).
            if let Ok(guard) = self.database.enter()
                && !guard.db().is_null()
                && !guard.in_autocommit()
            {
                // Nothing can be told from here; a rollback that fails leaves it to the close of the file.
                let _ = guard.run("ROLLBACK");
            }
        }
    }
}
