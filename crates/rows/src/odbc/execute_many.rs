//! Executes one statement for many rows of parameters: row by row, or as arrays of rows if an array
//! has the same effect.
//!
//! A driver that receives an array of rows may continue after a row that fails, or stop at any row.
//! An array is therefore executed after a savepoint, or in autocommit mode in its own transaction.
//! If a row fails, the array is rolled back and executed again row by row, so that the result and
//! the error are the same as without arrays.
//!
//! Rows arrive in batches. The connection is not locked while a batch is requested, because the
//! caller's iterator may use the connection (to read rows of the same database). From the second
//! batch on, a separate thread executes the batches, while the caller prepares the next batch.

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
use super::shared::SharedConnection;
use super::{parameter_binding, parameter_casts, statement};
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind};
use crate::odbc::block::buffer::Buffer;
use crate::sql::dialect::Dialect;
use crate::sql::statements;
use crate::value::{Batches, Value};

/// The smallest number of rows that are executed as an array: for fewer rows, the two additional
/// statements of a savepoint would cost too much.
const LEAST_ROWS: usize = 4;

/// The values of one row of parameters.
type Row = Vec<Value>;

/// Prepares `sql` once and executes it for each row of parameters. Returns the total number of
/// changed rows, if the database reports it.
pub(crate) fn execute_many(
    shared: &Arc<SharedConnection>,
    sql: &str,
    rows: &mut dyn Iterator<Item = Result<Row, Error>>,
) -> Result<Option<u64>, Error> {
    let mut batches = Batches::new(rows);
    let first = batches.next();
    let sql = match shared.quirks.dialect {
        Dialect::Postgres => parameter_casts::of_rows(sql, first.as_deref().unwrap_or_default()),
        _ => Cow::Borrowed(sql),
    };
    let mut many = Many::prepare(shared, &sql)?;
    let ran = first
        .map_or(Ok(()), |first| many.batch(&first))
        .and_then(|()| match batches.next() {
            Some(second) => many.run_on_thread(second, &mut batches),
            None => Ok(()),
        });
    many.release_savepoint();
    ran.and_then(|()| batches.end()).map(|()| many.changed)
}

/// Returns `true` if an array of rows has the same effect as single executions of `sql`.
fn may_take_arrays(shared: &SharedConnection, sql: &str) -> bool {
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

/// The statements that create a savepoint, roll back to it, and release it, in one SQL dialect.
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

/// A prepared statement that is executed for many rows, and the totals of its executions so far.
struct Many {
    shared: Arc<SharedConnection>,
    sql: String,
    handle: Arc<StatementHandle>,
    is_sliced: bool,
    /// A second statement handle of the connection, which executes the savepoint statements; `None`
    /// until a savepoint is needed.
    aside: Option<Arc<StatementHandle>>,
    /// `true` if the savepoint that was set before the last array of rows still exists. It is
    /// released before the next array, together with all later savepoints. (psqlodbc sets a
    /// savepoint before each single row, and does not release it if a SAVEPOINT follows.)
    has_savepoint: bool,
    /// The memory of the last array of parameters, which the next array reuses.
    memory: Option<Buffer>,
    n_done: u64,
    changed: Option<u64>,
    /// For each parameter, `true` if its type on the server is a text type. `None` until the types
    /// are needed, which is when the first binary value is sent.
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
    fn prepare(shared: &Arc<SharedConnection>, sql: &str) -> Result<Many, Error> {
        let mut call = shared.enter()?;
        let handle = call.statement()?;
        let prepared = {
            let _busy = shared.busy(&handle);
            let driver = Driver::new(shared, &handle);
            let may_take = may_take_arrays(shared, sql);
            // If the driver describes the parameters, the statement must be prepared with the same
            // setting with which it will be executed.
            call.set_for_arrays(may_take);
            let prepared = driver.prepare(sql);
            // A statement that returns rows (RETURNING) has a result for each row of parameters, so
            // arrays are not used.
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
                has_savepoint: false,
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

    /// Executes `batch` and all following batches on a separate thread, while this thread prepares
    /// the next batches.
    fn run_on_thread(
        &mut self,
        batch: Vec<Row>,
        rest: &mut dyn Iterator<Item = Vec<Row>>,
    ) -> Result<(), Error> {
        thread::scope(|scope| {
            // The channel stores one batch while another batch is executed.
            let (give, take) = sync_channel::<Vec<Row>>(1);
            let runner = thread::Builder::new().name("onecopy-insert".to_owned());
            let runner = runner.spawn_scoped(scope, || {
                // The loop ends after an error, or when the sender is dropped; the sending thread
                // detects an error by its failed send.
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

    /// Releases the savepoint of the last array, unless it was released, or its transaction ended.
    fn release_savepoint(&mut self) {
        let shared = Arc::clone(&self.shared);
        let handle = Arc::clone(&self.handle);
        if !self.has_savepoint || handle.get().is_null() {
            return;
        }
        if let Ok(call) = shared.enter() {
            let _busy = shared.busy(&handle);
            let driver = &Driver::new(&shared, &handle);
            let many = self;
            let _ = RowBatch { driver, call, many }.release_savepoint();
        }
    }

    /// Executes a batch of rows while the connection is locked.
    fn batch(&mut self, rows: &[Row]) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let dialect = shared.quirks.dialect;
        if dialect == Dialect::MySql
            && rows
                .iter()
                .any(|row| parameter_casts::are_needed(row, dialect))
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
        let mut run = RowBatch {
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

    /// Returns the index (from 0) of the first row with a binary value for a text parameter of
    /// PostgreSQL, if any. psqlodbc would store the hexadecimal digits of such a value.
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
            let is_text = |k| {
                driver
                    .parameter_type(k)
                    .is_some_and(parameter_binding::is_text)
            };
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
    /// Executes the statement separately for one row of parameters, with the casts that the row's
    /// values require.
    fn by_itself(&mut self, row: &[Value]) -> Result<(), Error> {
        let ran = statement::execute(&self.shared, &self.sql, row, 1);
        let changed = ran.map_err(|e| e.at_row(self.n_done))?.row_count();
        self.n_done += 1;
        self.changed = self.changed.zip(changed).map(|(total, n)| total + n);
        Ok(())
    }
}

/// Executes the rows of one batch. The connection is locked as long as this value exists.
struct RowBatch<'r, 'd, 'c> {
    driver: &'r Driver<'d>,
    call: Call<'c>,
    many: &'r mut Many,
}

impl RowBatch<'_, '_, '_> {
    /// Executes the statement for one row of parameters.
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
        // A statement that returns rows (INSERT … RETURNING) has an open cursor, with which the
        // next execution would fail.
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

    /// Executes the first rows of `rows`, as many as fit in one driver call. Returns the number of
    /// executed rows.
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
            // SQL Server cannot set a savepoint before the transaction has begun; this row begins
            // the transaction.
            None if self.many.n_done == 0 => return self.one(&rows[0]).map(|()| 1),
            None => rows[..n_rows].iter().try_for_each(|row| self.one(row))?,
        }
        Ok(n_rows)
    }

    /// Executes an array of rows after a savepoint. Returns `Some` if all rows were executed, with
    /// the number of changed rows (`None` if the number is unknown). Returns `None` if the array
    /// was not executed, or was rolled back after a failure.
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
        } else if self.release_savepoint().is_err() || self.run(savepoint.set).is_err() {
            return Ok(None); // The caller executes row by row, and reports the error.
        } else {
            self.many.has_savepoint = true;
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
            Ok(_) => Ok(()),
            Err(e) => {
                let back = match is_own {
                    _ if is_stopped(e) => Err(e.clone()),
                    true => self.call.end(ffi::ROLLBACK),
                    false => self.run(savepoint.back),
                };
                // If the server has ended the transaction itself (after a deadlock), the savepoint
                // no longer exists.
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

    /// Returns `true` if the end of the transaction in which an array of rows is executed would
    /// close the cursor of another statement. Executing the rows one by one does not close it.
    fn would_end_others(&self) -> bool {
        let facts = &self.driver.shared.facts;
        let own = 1 + usize::from(self.many.aside.is_some());
        !(facts.commit_keeps && facts.rollback_keeps) && self.call.n_statements() > own
    }

    /// Executes the statement once, with an array of all rows of the parameters. Returns the number
    /// of changed rows; `None` if the driver does not report it.
    fn array(&self, parameters: &mut Parameters) -> Result<Option<u64>, Error> {
        let driver = self.driver;
        let n_rows = parameters.n_rows();
        // The driver writes the number of processed rows and the status of each row into this
        // memory; no reference to the memory exists meanwhile.
        let statuses = Buffer::zeroed(8 + 2 * n_rows)?;
        // SAFETY: an integer that is passed as the pointer, and pointers into a buffer that
        // outlives the reset below.
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
            .any(|s| driver.is_refused(u16::from_ne_bytes([s[0], s[1]])));
        let ran = match ran {
            Ok(_) if failed => Err(driver.error("SQLExecute")),
            ran => ran,
        };
        driver.close_cursor();
        // SAFETY: the calls remove the addresses from the handle, and reset the number of rows to
        // one.
        unsafe {
            driver.set_attribute(ffi::ATTR_PARAMSET_SIZE, std::ptr::without_provenance_mut(1));
            driver.set_attribute(ffi::ATTR_PARAMS_PROCESSED_PTR, std::ptr::null_mut());
            driver.set_attribute(ffi::ATTR_PARAM_STATUS_PTR, std::ptr::null_mut());
        }
        ran
    }

    /// Releases the savepoint of the last array, if it exists.
    fn release_savepoint(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.many.has_savepoint) {
            return Ok(());
        }
        let savepoint = savepoint(self.driver.shared.quirks.dialect);
        match savepoint.and_then(|savepoint| savepoint.forget) {
            Some(forget) => self.run(forget),
            None => Ok(()),
        }
    }

    /// Executes a savepoint or transaction statement on a second statement handle, which the first
    /// call creates.
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
