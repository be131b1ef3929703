//! One statement for many rows of parameters: row by row, or many rows in one call where that means the same.
//!
//! A driver that is given an array of rows may go on behind a row that fails, or stop somewhere. So a slice of rows is run behind
//! a savepoint (in autocommit mode: in a transaction of its own), and where any of it fails it is taken back and run once more, row
//! by row: what stands in the database then, and the error, is what rows alone would have come to.
//!
//! Rows come in batches. The connection is not held while one is asked for, since whoever gives them may use it meanwhile (rows that
//! are read from the same database). From the second batch on a thread of its own runs them: the next is made while the server works.

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::call::Call;
use super::driver::Driver;
use super::ffi;
use super::handle::StatementHandle;
use super::parameters::Parameters;
use super::shared::Shared;
use super::{binding, casts, statement};
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind};
use crate::odbc::block::buffer::Buffer;
use crate::sql::dialect::Dialect;
use crate::sql::statements;
use crate::value::{self, Value};

/// Fewer rows are run one by one: a savepoint costs two statements.
const LEAST_ROWS: usize = 4;

/// A row of parameters.
type Row = Vec<Value>;

/// Runs `sql` once for each row of parameters, prepared once. The sum of the rows changed, where the database tells.
pub(crate) fn execute_many(
    shared: &Arc<Shared>,
    sql: &str,
    rows: &mut dyn Iterator<Item = Row>,
) -> Result<Option<u64>, Error> {
    let mut batches = std::iter::from_fn(|| {
        let batch = value::batch(rows);
        (!batch.is_empty()).then_some(batch)
    });
    let first = batches.next();
    let sql = match shared.quirks.dialect {
        Dialect::Postgres => casts::of_rows(sql, first.as_deref().unwrap_or_default()),
        _ => Cow::Borrowed(sql),
    };
    let mut many = Many::prepare(shared, &sql)?;
    if let Some(first) = first {
        many.batch(&first)?;
        if let Some(second) = batches.next() {
            many.beside(second, &mut batches)?;
        }
    }
    Ok(many.changed)
}

/// Whether many rows in one call may mean the same as one call each, by the statement's text.
fn may_take_arrays(shared: &Shared, sql: &str) -> bool {
    let dialect = shared.quirks.dialect;
    let word = statements::first_word(sql, dialect);
    shared.quirks.arrays
        && shared.facts.transactions
        && matches!(
            word.as_str(),
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE"
        )
        && !statements::has_second(sql, dialect)
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
        Dialect::Generic => None,
    }
}

/// A statement that is prepared, and what its rows came to so far.
struct Many {
    shared: Arc<Shared>,
    sql: String,
    handle: Arc<StatementHandle>,
    is_sliced: bool,
    /// Another statement of the connection, for savepoints.
    aside: Option<Arc<StatementHandle>>,
    /// Memory of the last slice.
    memory: Option<Buffer>,
    n_done: u64,
    changed: Option<u64>,
    /// For each parameter: its type on the server is text. Known after the first bytes.
    takes_text: Option<Vec<bool>>,
}

impl Drop for Many {
    fn drop(&mut self) {
        for handle in self.aside.iter().chain([&self.handle]) {
            self.shared.free_statement(handle);
        }
    }
}

impl Many {
    fn prepare(shared: &Arc<Shared>, sql: &str) -> Result<Many, Error> {
        let mut call = shared.enter()?;
        let handle = call.statement()?;
        let prepared = {
            let _busy = shared.busy(&handle);
            let driver = Driver::new(shared, &handle);
            let may_take = may_take_arrays(shared, sql);
            // A statement that is described is prepared, the way it will run.
            call.set_for_arrays(may_take);
            let prepared = driver.prepare(sql);
            // What gives rows (RETURNING) gives a result for each row of parameters.
            let takes = prepared.map(|()| may_take && matches!(driver.n_columns(), Ok(0)));
            call.set_for_arrays(false);
            takes
        };
        match call.watch(prepared) {
            Ok(is_sliced) => Ok(Many {
                shared: Arc::clone(shared),
                sql: sql.to_owned(),
                handle,
                is_sliced,
                aside: None,
                memory: None,
                n_done: 0,
                changed: Some(0),
                takes_text: None,
            }),
            Err(error) => {
                handle.free();
                Err(error)
            }
        }
    }

    /// Runs `batch` and all that follow on a thread of its own, while the next are made here.
    fn beside(
        &mut self,
        batch: Vec<Row>,
        rest: &mut dyn Iterator<Item = Vec<Row>>,
    ) -> Result<(), Error> {
        thread::scope(|scope| {
            // One waits while one runs.
            let (give, take) = sync_channel::<Vec<Row>>(1);
            let runner = thread::Builder::new().name("onecopy-insert".to_owned());
            let runner = runner.spawn_scoped(scope, || {
                // Ends here with the error, or where no more are given: the giver sees either.
                take.into_iter().try_for_each(|batch| self.batch(&batch))
            });
            let runner = runner.map_err(|e| {
                Error::new(
                    ErrorKind::Internal,
                    format!("no thread could be started: {e}"),
                )
            })?;
            for batch in std::iter::once(batch).chain(rest) {
                if give.send(batch).is_err() {
                    break;
                }
            }
            drop(give);
            runner
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs rows with the connection held.
    fn batch(&mut self, rows: &[Row]) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let dialect = shared.quirks.dialect;
        if dialect == Dialect::MySql
            && rows.iter().any(|row| casts::are_needed(row, dialect))
            && !statements::stores_only(&self.sql, dialect)
        {
            return rows.iter().try_for_each(|row| self.by_itself(row));
        }
        let handle = Arc::clone(&self.handle);
        let mut call = shared.enter()?;
        if handle.get().is_null() {
            return Err(Error::new(
                ErrorKind::Interface,
                "the statement was closed with its connection",
            ));
        }
        let refused = self.bytes_for_text(&mut call, rows)?;
        let rows = &rows[..refused.unwrap_or(rows.len())];
        let _busy = shared.busy(&handle);
        let mut run = Run {
            driver: &Driver::new(&shared, &handle),
            call,
            many: self,
        };
        run.call.set_cursor(false);
        let mut at = 0;
        let mut ran = Ok(0);
        while at < rows.len() && ran.is_ok() {
            let some = run.some(&rows[at..]);
            ran = run.call.watch(some);
            at += ran.as_ref().map_or(0, |n| *n);
        }
        run.call.set_cursor(true);
        let n_done = self.n_done;
        match ran {
            Ok(_) if refused.is_some() => Err(Error::new(
                ErrorKind::Data,
                "bytes are no value for a parameter that the server takes for text\n\
                 Pass them as str.",
            )
            .at_row(n_done)),
            ran => ran.map(drop),
        }
    }

    /// Returns the first row that has bytes for a parameter which PostgreSQL takes for text: psqlodbc
    /// would store their hexadecimal digits.
    fn bytes_for_text(
        &mut self,
        call: &mut Call<'_>,
        rows: &[Row],
    ) -> Result<Option<usize>, Error> {
        let is_bytes = |value: &Value| matches!(value, Value::Bytes(_));
        if self.shared.quirks.dialect != Dialect::Postgres || !rows.iter().flatten().any(is_bytes) {
            return Ok(None);
        }
        if self.takes_text.is_none() {
            let handle = call.statement()?;
            let driver = Driver::new(&self.shared, &handle);
            let is_text = |k| driver.parameter_type(k).is_some_and(binding::is_text);
            let n = driver
                .prepare(&self.sql)
                .ok()
                .and_then(|()| driver.n_parameters());
            self.takes_text = Some((0..n.unwrap_or(0)).map(is_text).collect());
            handle.free();
        }
        let takes_text = self.takes_text.as_deref().unwrap_or_default();
        let is_refused = |row: &Row| {
            row.iter()
                .zip(takes_text)
                .any(|(v, text)| *text && is_bytes(v))
        };
        Ok(rows.iter().position(is_refused))
    }
}

impl Many {
    /// Runs one row as a statement of its own, with the casts that its values need.
    fn by_itself(&mut self, row: &[Value]) -> Result<(), Error> {
        let ran = statement::execute(&self.shared, &self.sql, row, 1);
        let changed = ran.map_err(|e| e.at_row(self.n_done))?.row_count();
        self.n_done += 1;
        self.changed = self.changed.zip(changed).map(|(total, n)| total + n);
        Ok(())
    }
}

/// Some rows of it, with the connection held.
struct Run<'r, 'd, 'c> {
    driver: &'r Driver<'d>,
    call: Call<'c>,
    many: &'r mut Many,
}

impl Run<'_, '_, '_> {
    /// Runs one row.
    fn one(&mut self, row: &[Value]) -> Result<(), Error> {
        let at = self.many.n_done;
        let driver = self.driver;
        let changed = driver.execute(&self.many.sql, row).and_then(|no_data| {
            if no_data {
                Ok(Some(0))
            } else {
                driver.changed()
            }
        });
        self.add(changed.map_err(|e| e.at_row(at))?, 1);
        // A statement that gives rows (INSERT … RETURNING) has a cursor open, which the next execution would trip over.
        driver.close_cursor();
        Ok(())
    }

    fn add(&mut self, changed: Option<u64>, n_rows: usize) {
        self.many.n_done += n_rows as u64;
        self.many.changed = match (self.many.changed, changed) {
            (Some(total), Some(n)) => Some(total + n),
            _ => None,
        };
    }

    /// Runs as many of the rows as go in one call; how many.
    fn some(&mut self, rows: &[Row]) -> Result<usize, Error> {
        let n_values = self.driver.n_parameters();
        let is_fit = n_values.is_none_or(|n| n == rows[0].len());
        if !self.many.is_sliced || rows.len() < LEAST_ROWS || !is_fit {
            return self.one(&rows[0]).map(|()| 1);
        }
        let memory = self.many.memory.take();
        let mut parameters = Parameters::of_rows(rows, self.driver.shared, memory)?;
        let n_rows = parameters.n_rows();
        let is_whole = |row: &Row| self.driver.carries(row);
        let ran = if n_rows < LEAST_ROWS || !rows[..n_rows].iter().all(is_whole) {
            None
        } else {
            self.in_one_call(&mut parameters)?
        };
        self.many.memory = Some(parameters.into_memory());
        match ran {
            Some(changed) => self.add(changed, n_rows),
            // SQL Server sets no savepoint before the transaction has begun, which this row does.
            None if self.many.n_done == 0 => return self.one(&rows[0]).map(|()| 1),
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
        self.call.set_for_arrays(true);
        let ran = self.array(parameters);
        self.call.set_for_arrays(false);
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
                back.map_err(|_| e.clone().at_row(self.many.n_done))
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
        let own = 1 + usize::from(self.many.aside.is_some());
        !(facts.commit_keeps && facts.rollback_keeps) && self.call.n_statements() > own
    }

    /// Executes the statement with all rows of the parameters at once.
    fn array(&self, parameters: &mut Parameters) -> Result<Option<u64>, Error> {
        let driver = self.driver;
        let n_rows = parameters.n_rows();
        // The count of those processed, then their statuses, in memory that no reference claims while the driver writes.
        let statuses = Buffer::zeroed(8 + 2 * n_rows)?;
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
        let ran = ran.and_then(|_| driver.changed());
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
        let aside = match &self.many.aside {
            Some(aside) => Arc::clone(aside),
            None => {
                let made = self.call.statement()?;
                self.many.aside = Some(Arc::clone(&made));
                made
            }
        };
        let driver = Driver::new(self.driver.shared, &aside);
        let ran = driver.exec_direct(sql);
        driver.close_cursor();
        ran.map(drop)
    }
}
