//! `Statement`: an executed SQLite statement. Its rows are read one by one, or many of them in one
//! loop.

use std::cell::Cell as MutCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use libsqlite3_sys as ffi;
use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::call::CallGuard;
use super::callbacks::Cancel;
use super::database::{Database, Dropped};
use super::deferred::{emit_row_without, read_part};
use super::error::{During, cancelled, of};
use super::row::{At, LiveRow, RowEnd, emit_row, part_bytes};
use super::statement_cache::Prepared;
use super::statement_kind::StatementKind;
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind};
use crate::schema::{Column, ColumnType, Schema};
use crate::source::{
    AttachedHost, BlockPosition, Budget, Fetched, LongPart, LongValues, PumpError, Pumped, RowSink,
    Source,
};

/// A SQLite statement that was executed.
#[derive(Debug)]
pub struct Statement {
    /// `None` after all rows were read.
    prepared: Option<Prepared>,
    schema: Schema,
    state: StatementState,
    cancel: Arc<Cancel>,
    row_count: Option<u64>,
    last_row_id: Option<i64>,
    row: LiveRow,
    /// For each column, `true` if it is deferred: the caller reads its values with `read_part`.
    /// Empty if no column is deferred.
    deferred: Vec<bool>,
}

#[derive(Debug)]
enum StatementState {
    /// The statement has a current row, and this row was not emitted, or only in part.
    Row,
    /// The statement must be stepped to its next row.
    Between,
    /// All rows were read.
    Done,
    /// The statement has failed; each later fetch returns this error.
    Failed(Error),
}

/// The result of a step: a row, or the end of the result.
enum Stepped {
    Row,
    Done,
}

impl Statement {
    /// Executes the bound statement `prepared` up to its first row or its end.
    pub(super) fn start(
        database: Arc<Database>,
        guard: &CallGuard<'_>,
        cancel: Arc<Cancel>,
        mut prepared: Prepared,
    ) -> Result<Statement, Error> {
        // SAFETY: the statement is bound and has no other user, and this thread holds the lock.
        let code = match unsafe { guard.step(prepared.stmt) } {
            Ok(code @ (ffi::SQLITE_ROW | ffi::SQLITE_DONE)) => code,
            failed => {
                let error = failed.map_or_else(
                    |error| error,
                    |code| step_error(&database, guard, &cancel, code),
                );
                guard.rest(prepared);
                return Err(error);
            }
        };
        // The schema is read after the step, which prepares the statement again if the schema of
        // the database has changed.
        // SAFETY: the statement is live and has no other user, and this thread still holds the
        // lock.
        let schema = unsafe { current_schema(&mut prepared) };
        let mut statement = Statement {
            row: LiveRow {
                database,
                stmt: prepared.stmt,
                n_columns: c_int::try_from(schema.n_columns()).unwrap_or(0),
                part_bytes: part_bytes(LongValues::Whole),
                n_rows: 0,
                start: At::default(),
                next: MutCell::new(None),
                no_memory: MutCell::new(false),
                n_rollbacks: guard.n_rollbacks(),
            },
            prepared: Some(prepared),
            schema,
            state: StatementState::Row,
            cancel,
            row_count: None,
            last_row_id: None,
            deferred: Vec::new(),
        };
        if code == ffi::SQLITE_DONE {
            statement.finish(guard);
        } else {
            statement.note_row_id(guard);
        }
        Ok(statement)
    }

    fn pump_in<S: RowSink>(
        &mut self,
        database: &Database,
        guard: &CallGuard<'_>,
        host: Option<&dyn AttachedHost>,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        self.check(guard).map_err(PumpError::Source)?;
        // SAFETY: the guard holds the lock, and outlives this value.
        let _running = unsafe { database.watch.run(&self.cancel, host) };
        // A row that `fetch` has returned is not emitted again.
        if std::mem::take(&mut self.row.n_rows) != 0 {
            self.state = StatementState::Between;
        }
        let (stmt, n_columns, part_bytes) =
            (self.row.stmt, self.row.n_columns, self.row.part_bytes);
        let mut n_left = budget.block_rows.max(1);
        loop {
            match &self.state {
                StatementState::Row => {}
                StatementState::Between => match self.step(guard).map_err(PumpError::Source)? {
                    Stepped::Row => self.state = StatementState::Row,
                    Stepped::Done => return Ok(Pumped::End),
                },
                StatementState::Done => return Ok(Pumped::End),
                StatementState::Failed(error) => return Err(PumpError::Source(error.clone())),
            }
            // SAFETY: by `state` the statement is on a row; by `check` the connection is open and
            // was not rolled back, and this thread has held its lock since.
            let end = unsafe {
                if self.deferred.is_empty() {
                    emit_row(stmt, n_columns, &mut self.row.start, part_bytes, sink)
                } else {
                    emit_row_without(stmt, &self.deferred, sink)
                }
            };
            match end {
                Ok(RowEnd::Complete { more }) => {
                    self.state = StatementState::Between;
                    n_left -= 1;
                    if !more || n_left == 0 {
                        return Ok(Pumped::More);
                    }
                }
                Ok(RowEnd::Part) => return Ok(Pumped::More),
                Ok(RowEnd::NoMemory) => {
                    return Err(PumpError::Source(self.fail(guard, no_memory())));
                }
                Err(error) => {
                    let failed = Error::new(
                        ErrorKind::Interface,
                        "the statement ended when its rows could not be written",
                    );
                    self.fail(guard, failed);
                    return Err(PumpError::Sink(error));
                }
            }
        }
    }

    /// Returns an error if the statement cannot return further rows, because it has failed, its
    /// transaction was rolled back, or its connection was closed.
    fn check(&mut self, guard: &CallGuard<'_>) -> Result<(), Error> {
        if let StatementState::Failed(error) = &self.state {
            return Err(error.clone());
        }
        if matches!(self.state, StatementState::Done) {
            return Ok(());
        }
        if let Err(error) = guard.check_open() {
            self.prepared = None; // `close` has finalised the statement.
            return Err(self.fail(guard, error));
        }
        if guard.n_rollbacks() != self.row.n_rollbacks {
            return Err(self.fail(guard, rolled_back()));
        }
        if let Some(error) = stop_error(&self.row.database, &self.cancel) {
            return Err(self.fail(guard, error));
        }
        if self.row.no_memory.take() {
            return Err(self.fail(guard, no_memory()));
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, guard: &CallGuard<'_>) -> Result<Stepped, Error> {
        // SAFETY: by the state the statement is not finished, and this thread holds the lock.
        match unsafe { guard.step(self.row.stmt) } {
            Ok(ffi::SQLITE_ROW) => Ok(Stepped::Row),
            Ok(ffi::SQLITE_DONE) => {
                self.finish(guard);
                Ok(Stepped::Done)
            }
            Err(error) => Err(self.fail(guard, error)),
            Ok(code) => {
                let error = step_error(&self.row.database, guard, &self.cancel, code);
                Err(self.fail(guard, error))
            }
        }
    }

    /// Ends a statement after its last row. The statement then holds no lock on the database file.
    fn finish(&mut self, guard: &CallGuard<'_>) {
        self.state = StatementState::Done;
        self.row.n_rows = 0;
        if self.prepared.as_ref().is_some_and(|p| p.kind.is_dml()) {
            // SAFETY: the handle is open, and this thread holds the lock.
            let changes = unsafe { ffi::sqlite3_changes64(guard.db()) };
            self.row_count = u64::try_from(changes).ok();
            self.note_row_id(guard);
        }
        self.put_back(guard);
    }

    fn note_row_id(&mut self, guard: &CallGuard<'_>) {
        if self
            .prepared
            .as_ref()
            .is_some_and(|p| p.kind == StatementKind::Insert)
        {
            // SAFETY: the handle is open, and this thread holds the lock.
            self.last_row_id = Some(unsafe { ffi::sqlite3_last_insert_rowid(guard.db()) });
        }
    }

    /// Ends the statement with `error`, which each later fetch returns.
    fn fail(&mut self, guard: &CallGuard<'_>, error: Error) -> Error {
        self.state = StatementState::Failed(error.clone());
        self.row.n_rows = 0;
        self.put_back(guard);
        error
    }

    fn put_back(&mut self, guard: &CallGuard<'_>) {
        self.row.stmt = std::ptr::null_mut();
        if let Some(prepared) = self.prepared.take() {
            guard.rest(prepared);
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            self.row.database.put_away(Dropped::Statement(prepared));
        }
    }
}

impl DatabaseStatement for Statement {
    /// Returns the number of rows that the statement inserted, changed or deleted; `None` for any
    /// other statement, such as a query. For a statement with RETURNING, the result is `None` until
    /// all its rows were read.
    fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    fn last_row_id(&self) -> Option<i64> {
        self.last_row_id
    }

    /// Sets whether long values are emitted in parts. SQLite has each value completely in memory,
    /// so no value is truncated.
    fn set_long_values(&mut self, long_values: LongValues) {
        self.row.part_bytes = part_bytes(long_values);
    }

    fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        let n = if columns.is_empty() {
            0
        } else {
            self.schema.n_columns()
        };
        self.deferred = (0..n).map(|i| columns.contains(&i)).collect();
        Ok(())
    }

    /// Copies a part of a deferred value of the current row into `buffer`, from SQLite's memory,
    /// which contains the complete value.
    fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        let database = self.row.database.clone();
        let guard = database.enter()?;
        self.check(&guard)?;
        // `true` if the last row was emitted and the statement was not stepped since, as after
        // `pump_in`.
        let is_on_row = matches!(self.state, StatementState::Between) && self.row.n_rows == 0;
        let column_number = c_int::try_from(column).ok();
        let Some(number) = column_number.filter(|n| is_on_row && *n < self.row.n_columns) else {
            return Err(Error::new(
                ErrorKind::Programming,
                "there is no row to read it from",
            ));
        };
        // SAFETY: the statement is on a row, its connection is open and was not rolled back, and
        // this thread holds the lock.
        let read = unsafe { read_part(self.row.stmt, number, offset, buffer) };
        read.map_err(|error| error.at_column(column, &self.schema.columns[column].name))
    }
}

impl Source for Statement {
    type Block = LiveRow;

    const HAS_BLOCKS: bool = false;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Makes the next row of the statement the current block. If only a part of the current row was
    /// emitted, the rest of this row becomes the block, and SQLite is not called.
    fn fetch(&mut self, _budget: Budget) -> Result<Fetched, Error> {
        let database = self.row.database.clone();
        let guard = database.enter()?;
        self.check(&guard)?;
        if matches!(self.state, StatementState::Done) {
            return Ok(Fetched::End);
        }
        let shown = self.row.n_rows == 1;
        match (&self.state, self.row.next.take()) {
            (StatementState::Row, Some(at)) if shown => self.row.start = at,
            (StatementState::Row, _) if !shown => {}
            _ => {
                // SAFETY: the guard holds the lock, and outlives this value.
                let _running = unsafe { database.watch.run(&self.cancel, None) };
                self.row.start = At::default();
                match self.step(&guard)? {
                    Stepped::Row => self.state = StatementState::Row,
                    Stepped::Done => return Ok(Fetched::End),
                }
            }
        }
        self.row.n_rows = 1;
        Ok(Fetched::Rows(1))
    }

    fn block(&self) -> &LiveRow {
        &self.row
    }

    /// Emits up to `budget.block_rows` rows in one loop, with the call lock held. The rows are not
    /// buffered, so `budget.block_bytes` has no effect. Cells are emitted row by row, even for a
    /// sink with [`RowSink::COLUMNS`].
    fn pump<S: RowSink>(
        &mut self,
        _position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        let database = self.row.database.clone();
        let guard = database.enter().map_err(PumpError::Source)?;
        self.pump_in(&database, &guard, None, budget, sink)
    }

    /// Does the same as `pump`: rows are emitted one by one until the sink is full. SQLite has no
    /// blocks of columns.
    fn pump_columns<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        _most_rows: usize,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        self.pump(position, budget, sink)
    }

    /// Emits rows as `pump` does, for a caller that holds the interpreter lock. The sink reads the
    /// values in SQLite's memory; they are not copied first.
    fn pump_attached<S: RowSink>(
        &mut self,
        _position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
        host: &dyn AttachedHost,
    ) -> Result<Pumped, PumpError<S::Error>> {
        let database = self.row.database.clone();
        let guard = database.enter_attached(host).map_err(PumpError::Source)?;
        self.pump_in(&database, &guard, Some(host), budget, sink)
    }

    fn cancel_handle(&self) -> CancelHandle {
        let shared = self.row.database.watch.shared().clone();
        let cancel = self.cancel.clone();
        CancelHandle::new(move || shared.cancel(&cancel))
    }

    fn text_policy(&self) -> Policy {
        self.row.database.text_policy
    }
}

/// Creates the error for a failed step. If the statement was cancelled or its connection closed,
/// the error reports that; otherwise it is SQLite's error.
fn step_error(database: &Database, guard: &CallGuard<'_>, cancel: &Cancel, code: c_int) -> Error {
    if let Some(error) = stop_error(database, cancel) {
        return error;
    }
    let error = guard.error(code, During::Step);
    if error.native == ffi::SQLITE_ABORT_ROLLBACK {
        return rolled_back();
    }
    error
}

/// Returns an error if the statement must stop, because it was cancelled or its connection is being
/// closed. Returns `None` if the statement may continue.
pub(super) fn stop_error(database: &Database, cancel: &Cancel) -> Option<Error> {
    let shared = database.watch.shared();
    if shared.is_closing() {
        return Some(Error::new(
            ErrorKind::Interface,
            "the connection was closed while the statement ran",
        ));
    }
    shared.stopped(cancel).then(cancelled)
}

fn rolled_back() -> Error {
    of(
        ffi::SQLITE_ABORT_ROLLBACK,
        "the cursor ended when its transaction was rolled back\nexecute the statement again"
            .to_owned(),
        During::Step,
    )
}

fn no_memory() -> Error {
    of(ffi::SQLITE_NOMEM, "out of memory".to_owned(), During::Step)
}

/// Returns the columns of the statement's result as they were read at its last execution. If SQLite
/// has prepared the statement again since then, reads the columns again.
///
/// # Safety
/// The statement must be live, and the caller must hold its connection's lock.
unsafe fn current_schema(prepared: &mut Prepared) -> Schema {
    // SAFETY: the caller vouches for the statement and the lock.
    unsafe {
        let n_prepared =
            ffi::sqlite3_stmt_status(prepared.stmt, ffi::SQLITE_STMTSTATUS_REPREPARE, 0);
        match &prepared.schema {
            Some((n, schema)) if *n == n_prepared => schema.clone(),
            _ => {
                let schema = read_schema(prepared.stmt);
                prepared.schema = Some((n_prepared, schema.clone()));
                schema
            }
        }
    }
}

/// Reads the columns of the statement from SQLite.
///
/// # Safety
/// The requirements of [`current_schema`] apply.
pub(super) unsafe fn read_schema(stmt: *mut ffi::sqlite3_stmt) -> Schema {
    let text = |s: *const c_char| {
        if s.is_null() {
            String::new()
        } else {
            // SAFETY: names and types are NUL-terminated strings that live until the next call on
            // the statement.
            unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
        }
    };
    // SAFETY: the caller vouches for the statement and the lock; every requested column exists.
    let columns = unsafe {
        (0..ffi::sqlite3_column_count(stmt))
            .map(|i| Column {
                name: text(ffi::sqlite3_column_name(stmt, i)),
                column_type: ColumnType::Any,
                size: 0,
                nullable: None,
                type_name: text(ffi::sqlite3_column_decltype(stmt, i)),
            })
            .collect()
    };
    Schema::new(columns)
}
