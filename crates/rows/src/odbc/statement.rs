//! Statements: prepared, bound, executed, and read block by block.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::connection::Shared;
use super::driver::{Driver, Further};
use super::handle::StatementHandle;
use super::reader::Reader;
use crate::block::CurrentBlock;
use crate::column::Planned;
use crate::connect::Prepared;
use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{Budget, Fetched, LongPart, LongValues, Source};
use crate::value::Value;

/// A statement that was executed through an ODBC driver.
pub struct Statement {
    // Before `handle`: the bound buffers must outlive every driver call on it, and `drop` frees the handle first.
    reader: Reader,
    handle: Arc<StatementHandle>,
    shared: Arc<Shared>,
    schema: Schema,
    row_count: Option<u64>,
    /// `Shared::ended` when it was executed.
    ended: u64,
    done: bool,
    messages: Vec<Message>,
    /// The next result with rows, where the driver stands on it already.
    pending: Option<Box<Further>>,
    /// Whether anybody asks for further results.
    takes_more: bool,
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement")
            .field("schema", &self.schema)
            .field("row_count", &self.row_count)
            .finish_non_exhaustive()
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // The buffers go after this: a driver writes into them until its handle is freed.
        self.shared.free_statement(&self.handle);
        if let Some(rowset) = self.reader.block.rowset.take() {
            self.shared.keep_spare(rowset.into_buffer());
        }
    }
}

/// Runs `sql` and leaves its rows to be fetched, of which the driver asks for `first_rows` at first.
pub(crate) fn execute(
    shared: &Arc<Shared>,
    sql: &str,
    parameters: &[Value],
    first_rows: usize,
) -> Result<Statement, Error> {
    let mut call = shared.enter()?;
    let ended = shared.ended.load(Ordering::SeqCst);
    call.set_fetch_size(first_rows);
    let handle = call.statement()?;
    let result = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        run(&driver, sql, parameters).map(|ran| (ran, driver.messages.into_inner()))
    };
    match call.watch(result) {
        Ok(((columns, row_count), messages)) => Ok(Statement {
            schema: Schema::new(columns.iter().map(|p| p.column.clone()).collect()),
            done: columns.is_empty(),
            reader: Reader::new(columns),
            handle,
            shared: Arc::clone(shared),
            row_count,
            ended,
            messages,
            pending: None,
            takes_more: false,
        }),
        Err(error) => {
            handle.free();
            Err(error)
        }
    }
}

fn run(
    driver: &Driver<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<(Vec<Planned>, Option<u64>), Error> {
    // A marker may stand without a value for it: SQLite's driver and MariaDB's then take NULL, or what they please.
    if parameters.is_empty() && !sql.contains('?') {
        driver.exec_direct(sql)?;
    } else {
        driver.prepare(sql)?;
        driver.execute(sql, parameters)?;
    }
    let (row_count, n_columns) = driver.pass_counts()?;
    Ok((driver.columns(n_columns)?, row_count))
}

/// Prepares `sql` and runs nothing.
pub(crate) fn prepare_check(shared: &Arc<Shared>, sql: &str) -> Result<Prepared, Error> {
    let mut call = shared.enter()?;
    let handle = call.statement()?;
    let result = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        driver.prepare(sql).and_then(|()| {
            let columns = match driver.n_columns().and_then(|n| driver.columns(n)) {
                Ok(columns) => Some(columns),
                // Function sequence error: this driver asks the server when the statement runs.
                Err(error) if error.sqlstate == "HY010" => None,
                Err(error) => return Err(error),
            };
            let told = columns.filter(|c| !c.is_empty() || shared.quirks.describes_prepared);
            Ok(Prepared {
                schema: told.map(|c| Schema::new(c.into_iter().map(|p| p.column).collect())),
                n_parameters: driver.n_parameters(),
                read_only: None,
            })
        })
    };
    handle.free();
    call.watch(result)
}

#[allow(missing_docs)] // Documented where they are public: `connect::Statement`.
impl Statement {
    pub fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    pub fn set_long_values(&mut self, long_values: LongValues) {
        self.reader.long_values = long_values;
    }

    /// See [`crate::connect::Statement::defer`].
    pub fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        self.reader.defer(columns)
    }

    /// See [`crate::connect::Statement::read_part`].
    pub fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        self.in_call(|reader, driver| reader.read_part(driver, column, offset == 0, buffer))
    }

    /// What the database said beside the result since this was last asked.
    pub fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    /// Further results with rows are for [`Statement::next_set`]; where not, they are an error, since nobody would read them.
    pub fn set_takes_more(&mut self, takes_more: bool) {
        self.takes_more = takes_more;
    }

    /// Whether the driver stands on a further result.
    pub fn has_further(&self) -> bool {
        self.pending.is_some()
    }

    /// Goes to the next result with rows. Rows that are left of the current one are given up.
    pub fn next_set(&mut self) -> Result<bool, Error> {
        let pending = self.pending.take();
        if self.done && pending.is_none() {
            return Ok(false);
        }
        let found = self.in_call(|_, driver| {
            driver.unbind();
            match pending {
                Some(found) => Ok(Some(*found)),
                None => driver.further_rows(),
            }
        })?;
        // The driver knows the old buffers no more.
        let (long_values, fetch_size) = (self.reader.long_values, self.reader.fetch_size);
        let (row_count, columns) = found.unwrap_or_default();
        self.done = columns.is_empty();
        self.schema = Schema::new(columns.iter().map(|p| p.column.clone()).collect());
        self.row_count = row_count;
        let before = std::mem::replace(&mut self.reader, Reader::new(columns));
        if let Some(rowset) = before.block.rowset {
            self.shared.keep_spare(rowset.into_buffer());
        }
        self.reader.long_values = long_values;
        self.reader.fetch_size = fetch_size;
        Ok(!self.done)
    }

    /// Runs `work` with the driver, where the statement can go on.
    fn in_call<T>(
        &mut self,
        work: impl FnOnce(&mut Reader, &Driver<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.handle.is_cancelled() {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "the statement was cancelled",
            ));
        }
        let call = self.shared.enter()?;
        if self.handle.get().is_null() {
            return Err(Error::new(
                ErrorKind::Interface,
                "the statement was closed with its connection",
            ));
        }
        if self.shared.ended.load(Ordering::SeqCst) != self.ended {
            return Err(Error::new(
                ErrorKind::Interface,
                "the cursor was ended by a commit or rollback of its connection\n\
                 Read all rows before it, or use a second connection.",
            ));
        }
        let _busy = self.shared.busy(&self.handle);
        let driver = Driver::new(&self.shared, &self.handle);
        call.set_fetch_size(self.reader.fetch_size);
        let result = work(&mut self.reader, &driver);
        self.messages.append(&mut driver.messages.into_inner());
        call.watch(result)
    }

    fn next_block(&mut self, budget: Budget) -> Result<usize, Error> {
        let (n_rows, pending) = self.in_call(|reader, driver| {
            let n_rows = reader.advance(driver, budget)?;
            if n_rows > 0 {
                return Ok((n_rows, None));
            }
            Ok((0, driver.further_rows()?))
        })?;
        if pending.is_some() && !self.takes_more {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "a further statement of the same text gives rows too, and those of the first alone can be read here\n\
                 Run the statements one by one; of a procedure, select from its first result what you need.",
            ));
        }
        self.pending = pending.map(Box::new);
        Ok(n_rows)
    }
}

impl Source for Statement {
    type Block = CurrentBlock;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error> {
        if self.done {
            self.reader.clear();
            return Ok(Fetched::End);
        }
        match self.next_block(budget) {
            Ok(0) => {
                self.done = true;
                Ok(Fetched::End)
            }
            Ok(n_rows) => Ok(Fetched::Rows(n_rows)),
            Err(error) => {
                self.reader.clear();
                Err(error)
            }
        }
    }

    fn block(&self) -> &CurrentBlock {
        &self.reader.block
    }

    fn cancel_handle(&self) -> CancelHandle {
        let handle = Arc::clone(&self.handle);
        CancelHandle::new(move || handle.cancel())
    }

    fn take_moved_bytes(&mut self) -> usize {
        self.reader.block.arena.take_moved_bytes()
    }

    fn text_policy(&self) -> Policy {
        self.shared.text_policy
    }
}
