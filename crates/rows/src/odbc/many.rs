//! One statement for many rows of parameters: row by row, or many rows in one call where that means the same.
//!
//! A driver that is given an array of rows may go on behind a row that fails, or stop somewhere. So a slice of rows is run behind
//! a savepoint (in autocommit mode: in a transaction of its own), and where any of it fails it is taken back and run once more, row
//! by row: what stands in the database then, and the error, is what rows alone would have come to.

use std::ffi::c_void;
use std::sync::Arc;

use super::connection::{Call, Shared};
use super::driver::Driver;
use super::ffi;
use super::handle::StatementHandle;
use super::parameters::Parameters;
use super::quirks::Dialect;
use super::sql_text;
use crate::block::buffer::Buffer;
use crate::error::{Error, ErrorKind};
use crate::value::Value;

/// Rows that are looked at for one slice.
const AHEAD_ROWS: usize = 1024;

/// Fewer rows are run one by one: a savepoint costs two statements.
const LEAST_ROWS: usize = 4;

/// Runs `sql` once for each row of parameters, prepared once. The sum of the rows changed, where the database tells.
pub(crate) fn execute_many(
    shared: &Arc<Shared>,
    sql: &str,
    rows: &mut dyn Iterator<Item = Vec<Value>>,
) -> Result<Option<u64>, Error> {
    let mut call = shared.enter()?;
    let handle = call.statement()?;
    let result = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        driver.prepare(sql).and_then(|()| {
            let mut many = Many {
                is_sliced: takes_arrays(&driver, sql),
                driver: &driver,
                call: &mut call,
                aside: None,
                memory: None,
                n_done: 0,
                changed: Some(0),
            };
            let done = many.all(rows);
            let (aside, changed) = (many.aside.take(), many.changed);
            if let Some(aside) = aside {
                aside.free();
            }
            done.map(|()| changed)
        })
    };
    handle.free();
    result
}

/// Whether many rows in one call mean the same as one call each.
fn takes_arrays(driver: &Driver<'_>, sql: &str) -> bool {
    let shared = driver.shared;
    let dialect = shared.quirks.dialect;
    let word = sql_text::first_word(sql, dialect);
    shared.quirks.arrays
        && shared.facts.transactions
        && matches!(word.as_str(), "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE")
        && !sql_text::has_second(sql, dialect)
        // What gives rows (RETURNING) gives a result for each row of parameters.
        && matches!(driver.n_columns(), Ok(0))
}

/// The statements that set a savepoint, go back to it, and forget it.
struct Savepoint {
    set: &'static str,
    back: &'static str,
    forget: Option<&'static str>,
}

fn savepoint(dialect: Dialect) -> Option<Savepoint> {
    match dialect {
        Dialect::Postgres | Dialect::MySql | Dialect::Sqlite => Some(Savepoint {
            set: "SAVEPOINT onecopy_rows",
            back: "ROLLBACK TO SAVEPOINT onecopy_rows",
            forget: Some("RELEASE SAVEPOINT onecopy_rows"),
        }),
        Dialect::SqlServer => Some(Savepoint {
            set: "SAVE TRANSACTION onecopy_rows",
            back: "ROLLBACK TRANSACTION onecopy_rows",
            forget: None,
        }),
        Dialect::Other => None,
    }
}

struct Many<'m, 'd, 'c> {
    driver: &'m Driver<'d>,
    call: &'m mut Call<'c>,
    is_sliced: bool,
    /// Another statement of the connection, for savepoints.
    aside: Option<Arc<StatementHandle>>,
    /// Memory of the last slice.
    memory: Option<Buffer>,
    n_done: u64,
    changed: Option<u64>,
}

impl Many<'_, '_, '_> {
    fn all(&mut self, rows: &mut dyn Iterator<Item = Vec<Value>>) -> Result<(), Error> {
        if !self.is_sliced {
            for row in rows {
                self.one(&row)?;
            }
            return Ok(());
        }
        let mut ahead: Vec<Vec<Value>> = Vec::new();
        loop {
            ahead.clear();
            ahead.extend((&mut *rows).take(AHEAD_ROWS));
            if ahead.is_empty() {
                return Ok(());
            }
            let mut at = 0;
            while at < ahead.len() {
                at += self.some(&ahead[at..])?;
            }
        }
    }

    /// Runs one row.
    fn one(&mut self, row: &[Value]) -> Result<(), Error> {
        let at = self.n_done;
        let driver = self.driver;
        let changed = driver.execute(row).and_then(|()| driver.changed());
        self.add(changed.map_err(|e| e.at_row(at))?, 1);
        // A statement that gives rows (INSERT … RETURNING) has a cursor open, which the next execution would trip over.
        driver.close_cursor();
        Ok(())
    }

    fn add(&mut self, changed: Option<u64>, n_rows: usize) {
        self.n_done += n_rows as u64;
        self.changed = match (self.changed, changed) {
            (Some(total), Some(n)) => Some(total + n),
            _ => None,
        };
    }

    /// Runs as many of the rows as go in one call; how many.
    fn some(&mut self, rows: &[Vec<Value>]) -> Result<usize, Error> {
        let n_values = self.driver.n_parameters();
        let is_fit = n_values.is_none_or(|n| n == rows[0].len());
        if rows.len() < LEAST_ROWS || !is_fit {
            return self.one(&rows[0]).map(|()| 1);
        }
        let mut parameters = Parameters::of_rows(rows, self.driver.shared, self.memory.take());
        let n_rows = parameters.n_rows();
        let ran = if n_rows < LEAST_ROWS {
            None
        } else {
            self.in_one_call(&mut parameters)?
        };
        self.memory = Some(parameters.into_memory());
        match ran {
            Some(changed) => self.add(changed, n_rows),
            None => rows[..n_rows].iter().try_for_each(|row| self.one(row))?,
        }
        Ok(n_rows)
    }

    /// Runs a slice behind a savepoint: the rows changed; `None` where it failed and was taken back.
    fn in_one_call(&mut self, parameters: &mut Parameters) -> Result<Option<Option<u64>>, Error> {
        let Some(savepoint) = savepoint(self.driver.shared.quirks.dialect) else {
            return Ok(None);
        };
        let is_own = self.call.autocommit();
        if is_own {
            if self.would_end_others() {
                return Ok(None);
            }
            self.call.set_autocommit(false)?;
        } else if self.run(savepoint.set).is_err() {
            return Ok(None); // Row by row it says why.
        }
        let ran = self.array(parameters);
        let is_stopped = |e: &Error| {
            matches!(e.kind, ErrorKind::Cancelled | ErrorKind::Timeout)
                || e.sqlstate.starts_with("08")
        };
        let done = match &ran {
            Ok(_) if is_own => self.call.end(ffi::COMMIT),
            Ok(_) => savepoint.forget.map_or(Ok(()), |forget| self.run(forget)),
            Err(e) => {
                let back = match is_own {
                    _ if is_stopped(e) => Err(e.clone()),
                    true => self.call.end(ffi::ROLLBACK),
                    false => self.run(savepoint.back),
                };
                // Where the server has ended the transaction itself (a deadlock) there is nothing to go back to.
                back.map_err(|_| e.clone().at_row(self.n_done))
            }
        };
        if !is_own {
            return done.map(|()| ran.ok());
        }
        if done.is_err() {
            let _ = self.call.end(ffi::ROLLBACK);
        }
        let restored = self.call.set_autocommit(true);
        done.and(restored).map(|()| ran.ok())
    }

    /// Whether the end of a transaction would end the cursor of another statement, as rows alone would not.
    fn would_end_others(&self) -> bool {
        let facts = &self.driver.shared.facts;
        let own = 1 + usize::from(self.aside.is_some());
        !(facts.commit_keeps && facts.rollback_keeps) && self.call.n_statements() > own
    }

    /// Executes the statement with all rows of the parameters at once.
    fn array(&self, parameters: &mut Parameters) -> Result<Option<u64>, Error> {
        let driver = self.driver;
        let n_rows = parameters.n_rows();
        // The count of those processed, then their statuses, in memory that no reference claims while the driver writes.
        let statuses = Buffer::zeroed(8 + 2 * n_rows);
        // SAFETY: an integer in the pointer's place, and pointers into a buffer that outlives the reset below.
        let is_set = unsafe {
            driver.set_attribute(ffi::ATTR_PARAMSET_SIZE, n_rows as *mut c_void)
                && driver.set_attribute(ffi::ATTR_PARAMS_PROCESSED_PTR, statuses.ptr().cast())
                && driver.set_attribute(ffi::ATTR_PARAM_STATUS_PTR, statuses.ptr().add(8).cast())
        };
        let ran = if is_set {
            driver.execute_with(parameters)
        } else {
            Err(driver.error("SQLSetStmtAttr"))
        };
        let ran = ran.and_then(|()| driver.changed());
        let failed = statuses.bytes()[8..]
            .chunks_exact(2)
            .any(|s| u16::from_ne_bytes([s[0], s[1]]) == ffi::PARAM_ERROR);
        let ran = match ran {
            Ok(_) if failed => Err(driver.error("SQLExecute")),
            ran => ran,
        };
        driver.close_cursor();
        // SAFETY: the driver forgets the addresses, and takes one row again.
        unsafe {
            driver.set_attribute(ffi::ATTR_PARAMSET_SIZE, std::ptr::without_provenance_mut(1));
            driver.set_attribute(ffi::ATTR_PARAMS_PROCESSED_PTR, std::ptr::null_mut());
            driver.set_attribute(ffi::ATTR_PARAM_STATUS_PTR, std::ptr::null_mut());
        }
        ran
    }

    /// Runs a statement of our own beside it.
    fn run(&mut self, sql: &str) -> Result<(), Error> {
        let aside = match &self.aside {
            Some(aside) => Arc::clone(aside),
            None => {
                let made = self.call.statement()?;
                self.aside = Some(Arc::clone(&made));
                made
            }
        };
        let driver = Driver::new(self.driver.shared, &aside);
        let ran = driver.exec_direct(sql);
        driver.close_cursor();
        ran
    }
}
