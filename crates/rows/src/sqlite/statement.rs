//! Step, fetch, pump, cancel.

use std::cell::Cell as MutCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use libsqlite3_sys as ffi;
use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::cache::Prepared;
use super::error::{During, cancelled, of};
use super::part::{emit_row_without, read_part};
use super::row::{At, LiveRow, RowEnd, emit_row, part_bytes};
use super::sql::Kind;
use super::watch::Cancel;
use super::{call::CallGuard, database::Database};
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind};
use crate::schema::{Column, ColumnType, Schema};
use crate::source::{
    AttachedHost, BlockPosition, Budget, Fetched, LongPart, LongValues, PumpError, Pumped, RowSink,
    Source,
};

/// A statement of the embedded database under execution.
#[derive(Debug)]
pub struct Statement {
    /// The handle while it is under way; at rest in the connection's cache afterwards.
    prepared: Option<Prepared>,
    schema: Schema,
    state: State,
    cancel: Arc<Cancel>,
    row_count: Option<u64>,
    last_row_id: Option<i64>,
    row: LiveRow,
    /// Whether each column is left out of rows; empty where none is.
    deferred: Vec<bool>,
}

#[derive(Debug)]
enum State {
    /// The handle stands on a row that was not emitted, or not to its end.
    Row,
    /// The next row is to be stepped to.
    Between,
    /// There are no more rows.
    Done,
    /// It failed, and says so again.
    Failed(Error),
}

/// What a step came to.
enum Stepped {
    Row,
    Done,
}

impl Statement {
    /// Steps a bound statement for the first time. `cancel` is noted as running.
    pub(super) fn start(
        database: Arc<Database>,
        guard: &CallGuard<'_>,
        cancel: Arc<Cancel>,
        mut prepared: Prepared,
    ) -> Result<Statement, Error> {
        // SAFETY: the statement is bound and ours, and the lock is held.
        let code = unsafe { ffi::sqlite3_step(prepared.stmt) };
        if code != ffi::SQLITE_ROW && code != ffi::SQLITE_DONE {
            let error = step_error(&database, guard, &cancel, code);
            guard.rest(prepared);
            return Err(error);
        }
        // Read after the step, which prepares anew where the database's schema has changed.
        // SAFETY: the statement is live and ours, and the lock is still held.
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
            state: State::Row,
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
        // SAFETY: the guard holds the lock, and outlives this.
        let _running = unsafe { database.watch.run(&self.cancel, host) };
        // A row that `fetch` has shown is over.
        if std::mem::take(&mut self.row.n_rows) != 0 {
            self.state = State::Between;
        }
        let (stmt, n_columns, part_bytes) =
            (self.row.stmt, self.row.n_columns, self.row.part_bytes);
        let mut n_left = budget.block_rows.max(1);
        loop {
            match &self.state {
                State::Row => {}
                State::Between => match self.step(guard).map_err(PumpError::Source)? {
                    Stepped::Row => self.state = State::Row,
                    Stepped::Done => return Ok(Pumped::End),
                },
                State::Done => return Ok(Pumped::End),
                State::Failed(error) => return Err(PumpError::Source(error.clone())),
            }
            // SAFETY: the state says that the statement stands on a row, `check` that the connection is open and was not
            // rolled back, and its lock is held since.
            let end = unsafe {
                if self.deferred.is_empty() {
                    emit_row(stmt, n_columns, &mut self.row.start, part_bytes, sink)
                } else {
                    emit_row_without(stmt, &self.deferred, sink)
                }
            };
            match end {
                Ok(RowEnd::Complete { more }) => {
                    self.state = State::Between;
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

    /// Whether rows can still come.
    fn check(&mut self, guard: &CallGuard<'_>) -> Result<(), Error> {
        if let State::Failed(error) = &self.state {
            return Err(error.clone());
        }
        if matches!(self.state, State::Done) {
            return Ok(());
        }
        if let Err(error) = guard.check_open() {
            self.prepared = None; // Closing has finalised it.
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
        // SAFETY: the state says that the statement is under way, and the lock is held.
        match unsafe { ffi::sqlite3_step(self.row.stmt) } {
            ffi::SQLITE_ROW => Ok(Stepped::Row),
            ffi::SQLITE_DONE => {
                self.finish(guard);
                Ok(Stepped::Done)
            }
            code => {
                let error = step_error(&self.row.database, guard, &self.cancel, code);
                Err(self.fail(guard, error))
            }
        }
    }

    /// All rows were read: notes the counts and puts the handle to rest, which frees its locks on the file.
    fn finish(&mut self, guard: &CallGuard<'_>) {
        self.state = State::Done;
        self.row.n_rows = 0;
        if self.prepared.as_ref().is_some_and(|p| p.kind.is_dml()) {
            // SAFETY: the handle is open and the lock held.
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
            .is_some_and(|p| p.kind == Kind::Insert)
        {
            // SAFETY: the handle is open and the lock held.
            self.last_row_id = Some(unsafe { ffi::sqlite3_last_insert_rowid(guard.db()) });
        }
    }

    /// Ends it with `error`, which it will give from now on.
    fn fail(&mut self, guard: &CallGuard<'_>, error: Error) -> Error {
        self.state = State::Failed(error.clone());
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
            self.row.database.put_away(prepared);
        }
    }
}

impl DatabaseStatement for Statement {
    /// Of a statement with RETURNING once its rows are read.
    fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    fn last_row_id(&self) -> Option<i64> {
        self.last_row_id
    }

    /// Nothing is truncated either way: SQLite holds each value whole.
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

    /// SQLite holds the value whole; a part is copied out of it.
    fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        let database = self.row.database.clone();
        let guard = database.enter()?;
        self.check(&guard)?;
        // A row that was emitted and not stepped from: the state is that of `pump_in` behind it.
        let stands = matches!(self.state, State::Between) && self.row.n_rows == 0;
        let column_number = c_int::try_from(column).ok();
        let Some(number) = column_number.filter(|n| stands && *n < self.row.n_columns) else {
            return Err(Error::new(
                ErrorKind::Programming,
                "there is no row to read it from",
            ));
        };
        // SAFETY: the statement stands on a row, its connection is open and was not rolled back, and the lock is held.
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

    /// One step: the block is one row, or what is left of one.
    fn fetch(&mut self, _budget: Budget) -> Result<Fetched, Error> {
        let database = self.row.database.clone();
        let guard = database.enter()?;
        self.check(&guard)?;
        if matches!(self.state, State::Done) {
            return Ok(Fetched::End);
        }
        let shown = self.row.n_rows == 1;
        match (&self.state, self.row.next.take()) {
            (State::Row, Some(at)) if shown => self.row.start = at,
            (State::Row, _) if !shown => {}
            _ => {
                // SAFETY: the guard holds the lock, and outlives this.
                let _running = unsafe { database.watch.run(&self.cancel, None) };
                self.row.start = At::default();
                match self.step(&guard)? {
                    Stepped::Row => self.state = State::Row,
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

    /// Up to `budget.block_rows` rows in one tight loop under one lock; `budget.block_bytes` does not matter, there is no
    /// buffer. Rows come in row order, whatever [`RowSink::COLUMNS`] says.
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

    /// As `pump`, by row: there are no blocks.
    fn pump_columns<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        self.pump(position, budget, sink)
    }

    /// Nothing is copied on the way.
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

/// The error of a step; what stopped it on purpose comes first.
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

/// Why the statement is to stop, where it is.
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

/// The statement's columns, from what was read at its last execution where SQLite has not prepared it anew since.
///
/// # Safety
/// The statement is live and its connection's lock held.
unsafe fn current_schema(prepared: &mut Prepared) -> Schema {
    // SAFETY: as the caller vouches.
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

/// The statement's columns.
///
/// # Safety
/// As [`current_schema`].
pub(super) unsafe fn read_schema(stmt: *mut ffi::sqlite3_stmt) -> Schema {
    let text = |s: *const c_char| {
        if s.is_null() {
            String::new()
        } else {
            // SAFETY: names and types are NUL-terminated strings that live until the next call on the statement.
            unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
        }
    };
    // SAFETY: as the caller vouches; every column asked for is there.
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
