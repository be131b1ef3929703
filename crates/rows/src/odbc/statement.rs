//! `Statement`: a statement that was executed by an ODBC driver, and whose rows are read block by
//! block.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::context::{self, FetchOutcome, FetchedRows, StatementContext, gone};
use super::driver::{Driver, Further};
use super::execute::{self, ExecuteResult, Execution};
use super::prefetch::{self, PrefetchedBlock, Prefetcher};
use super::reader::BlockReader;
use super::shared::SharedConnection;
use super::statement_cache::{self, Columns, Key, RowsRead, SizeObservation};
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind, Message};
use crate::odbc::block::CurrentBlock;
use crate::schema::Schema;
use crate::source::{Budget, Fetched, LongPart, LongValues, Source};
use crate::value::Value;

/// A statement that was executed through an ODBC driver.
pub struct Statement {
    // The driver may write to the bound buffers of the reader in each call on the handle. `drop`
    // therefore frees or resets the handle before this field is dropped.
    /// The reader of the statement's rows; `None` while a prefetch thread owns it.
    reader: Option<Box<BlockReader>>,
    /// The block whose rows are emitted.
    current: CurrentBlock,
    prefetcher: Option<Box<Prefetcher>>,
    /// The number of blocks that the caller's thread fetches before a prefetch thread is started.
    /// The field `n_asked` counts the blocks that the caller's thread has fetched so far.
    n_wanted: u64,
    n_asked: u64,
    context: StatementContext,
    schema: Schema,
    row_count: Option<u64>,
    done: bool,
    messages: Vec<Message>,
    /// The next result that has rows. `None` if the driver was not moved to the next result yet, or
    /// if no further result has rows.
    pending: Option<Box<Further>>,
    /// `true` if the caller has announced that it will read further results.
    takes_more: bool,
    /// The key under which the statement cache will store the statement's handle when the result
    /// has ended; `None` if the statement must not be cached.
    key: Option<Key>,
    lesson: Option<SizeObservation>,
    extent: RowsRead,
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
        let shared = &self.context.shared;
        let left = match self.prefetcher.take() {
            None => (None, Vec::new()),
            Some(ahead) if shared.is_foreign() => {
                // The prefetch thread exists only in the parent process.
                ahead.forget();
                (None, Vec::new())
            }
            Some(ahead) => ahead.end(),
        };
        // The buffers are dropped at the end of this function, because a driver may write into them
        // until its handle is freed or they are unbound.
        let is_kept = self.pending.is_none() && !self.context.handle.is_cancelled();
        let key = self.key.take().filter(|_| is_kept);
        let columns = self.reader.as_mut().map(|reader| Columns {
            planned: reader.take_columns(),
            schema: std::mem::take(&mut self.schema),
        });
        shared.end_statement(
            &self.context.handle,
            columns,
            key,
            self.lesson.take(),
            self.extent,
        );
        if let Some(rowset) = self.current.rowset.take() {
            shared.keep_spare(rowset.into_buffer());
        }
        drop(left);
    }
}

/// Executes `sql` and fetches no rows. `first_rows` is the number of rows that the driver requests
/// from the server first.
pub(crate) fn execute(
    shared: &Arc<SharedConnection>,
    sql: &str,
    parameters: &[Value],
    first_rows: usize,
) -> Result<Statement, Error> {
    let mut call = shared.enter()?;
    let ended = shared.ended.load(Ordering::SeqCst);
    call.set_fetch_size(first_rows);
    let Execution {
        handle,
        result,
        key,
        lesson,
    } = execute::run(shared, &mut call, sql, parameters)?;
    match call.watch(result) {
        Ok(ExecuteResult {
            columns: Columns { planned, schema },
            row_count,
            is_empty,
            messages,
        }) => {
            let mut statement = Statement {
                schema,
                done: is_empty || planned.is_empty(),
                key,
                lesson,
                extent: RowsRead::default(),
                reader: None,
                current: CurrentBlock::default(),
                prefetcher: None,
                n_wanted: prefetch::FIRST_BLOCKS,
                n_asked: 0,
                context: StatementContext {
                    handle,
                    shared: Arc::clone(shared),
                    ended,
                },
                row_count,
                messages,
                pending: None,
                takes_more: false,
            };
            let mut reader = BlockReader::new(planned)?;
            if statement.is_short() {
                // The block has space for one row more than a short result, so that a short result
                // ends with its first block.
                reader.expect(statement_cache::MOST_SHORT_ROWS as usize + 1);
            }
            statement.reader = Some(Box::new(reader));
            Ok(statement)
        }
        Err(error) => {
            handle.free();
            Err(error)
        }
    }
}

impl Statement {
    /// Returns `true` if the driver has the whole result in memory, and the result has few rows.
    fn is_short(&self) -> bool {
        let is_short = self
            .row_count
            .is_some_and(|n| n <= statement_cache::MOST_SHORT_ROWS);
        is_short
            && self
                .context
                .shared
                .cache_policy
                .holds_whole(self.lesson.as_ref())
    }

    /// Returns the reader of the rows. Returns an error while a prefetch thread owns the reader.
    fn reader(&mut self) -> Result<&mut BlockReader, Error> {
        self.reader.as_deref_mut().ok_or_else(gone)
    }

    /// Calls `work` with the reader and the driver, as [`StatementContext::in_call`] does.
    fn in_call<T>(
        &mut self,
        work: impl FnOnce(&mut BlockReader, &Driver<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut messages = Vec::new();
        let context = self.context.clone();
        let result = context.in_call(self.reader()?, &mut messages, work);
        self.messages.append(&mut messages);
        result
    }

    /// Stops the prefetch thread, if there is one; returns the blocks that the thread has fetched
    /// and that the caller has not yet requested.
    fn stop_reading_ahead(&mut self) -> Result<Vec<PrefetchedBlock>, Error> {
        // A forked process does not have the thread.
        self.context.shared.check_process()?;
        let Some(ahead) = self.prefetcher.take() else {
            return Ok(Vec::new());
        };
        let (reader, left) = ahead.end();
        self.reader = reader;
        self.n_asked = 0;
        Ok(left)
    }

    /// Takes the next block from the prefetch thread, and returns the outcome of its fetch. Returns
    /// `None` if there is no prefetch thread.
    fn next_ahead(&mut self) -> Result<Option<FetchOutcome>, Error> {
        self.context.shared.check_process()?;
        let Some(ahead) = &mut self.prefetcher else {
            return Ok(None);
        };
        let next = ahead.next(&mut self.current);
        if next.is_none() {
            self.stop_reading_ahead()?;
            self.n_wanted = self.n_wanted.saturating_mul(prefetch::RESTART_BACKOFF);
        } else {
            // The connection may have been closed or lost since the block was prefetched.
            self.context.check_open()?;
        }
        Ok(next)
    }

    /// Fetches the next block on the calling thread. After `n_wanted` blocks were fetched in this
    /// way, starts a prefetch thread.
    fn next_asked(&mut self, budget: Budget) -> Result<FetchOutcome, Error> {
        let context = self.context.clone();
        let Some(mut reader) = self.reader.take() else {
            return Err(gone());
        };
        let ended = context::read(&context, &mut reader, &mut self.current, budget);
        self.n_asked += 1;
        let is_time = self.n_asked >= self.n_wanted && ended.can_prefetch(&reader);
        if is_time && prefetch::is_worth_while() {
            match Prefetcher::start(context, reader, &self.current, budget) {
                Ok(ahead) => self.prefetcher = Some(Box::new(ahead)),
                Err(reader) => self.reader = Some(reader),
            }
        } else {
            self.reader = Some(reader);
        }
        Ok(ended)
    }

    fn next_block(&mut self, budget: Budget) -> Result<usize, Error> {
        let ended = match self.next_ahead()? {
            Some(ended) => ended,
            None => self.next_asked(budget)?,
        };
        self.messages.extend(ended.messages);
        let FetchedRows { n_rows, further } = ended.read?;
        if further.is_some() && !self.takes_more {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "a further statement of the same text returns rows too, and only those of the first can be read here\n\
                 Run the statements one by one; of a procedure, select from its first result what you need.",
            ));
        }
        self.pending = further.map(Box::new);
        Ok(n_rows)
    }
}

impl DatabaseStatement for Statement {
    fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    fn set_long_values(&mut self, long_values: LongValues) {
        if let Ok(reader) = self.reader() {
            reader.long_values = long_values;
        }
    }

    fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        self.reader()?.defer(columns)
    }

    fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        self.in_call(|reader, driver| reader.read_part(driver, column, offset == 0, buffer))
    }

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    fn set_takes_more(&mut self, takes_more: bool) {
        self.takes_more = takes_more;
    }

    fn has_further(&self) -> bool {
        self.pending.is_some()
    }

    fn next_set(&mut self) -> Result<bool, Error> {
        let mut pending = self.pending.take();
        for PrefetchedBlock { ended, .. } in self.stop_reading_ahead()? {
            // Prefetched rows that the caller did not request are skipped. After the last row, the
            // driver may have moved to the next result.
            self.messages.extend(ended.messages);
            let brought = ended.read?;
            self.done |= brought.n_rows == 0;
            pending = brought.further.map(Box::new);
        }
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
        // The driver does not use the old reader's buffers any more.
        let before = self.reader()?;
        let (long_values, fetch_size) = (before.long_values, before.fetch_size);
        let (row_count, columns) = found.unwrap_or_default();
        self.done = columns.is_empty();
        let described = columns.iter().map(|p| p.column.clone()).collect();
        self.schema = Schema::of_driver(described, &self.context.shared.facts.driver_label);
        self.row_count = row_count;
        let reader = self.reader()?;
        *reader = BlockReader::new(columns)?;
        reader.long_values = long_values;
        reader.fetch_size = fetch_size;
        (self.n_asked, self.n_wanted) = (0, prefetch::FIRST_BLOCKS);
        if let Some(rowset) = std::mem::take(&mut self.current).rowset {
            self.context.shared.keep_spare(rowset.into_buffer());
        }
        Ok(!self.done)
    }
}

impl Source for Statement {
    type Block = CurrentBlock;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error> {
        if self.done {
            self.current.clear();
            return Ok(Fetched::End);
        }
        match self.next_block(budget) {
            Ok(0) => {
                self.done = true;
                self.extent.is_all = true;
                Ok(Fetched::End)
            }
            Ok(n_rows) => {
                self.extent.n_rows += n_rows as u64;
                self.extent.is_all = self.reader.as_ref().is_some_and(|r| r.was_last(n_rows));
                Ok(Fetched::Rows(n_rows))
            }
            Err(error) => {
                self.current.clear();
                (self.key, self.lesson) = (None, None);
                Err(error)
            }
        }
    }

    fn is_ready(&mut self) -> bool {
        !self.context.shared.is_foreign()
            && self
                .prefetcher
                .as_mut()
                .is_some_and(|ahead| ahead.is_ready())
    }

    fn is_at_hand(&self) -> bool {
        // The text of a cached statement is a single statement, so no other result follows its last
        // row.
        self.is_short() && self.key.is_some()
    }

    fn block(&self) -> &CurrentBlock {
        &self.current
    }

    fn cancel_handle(&self) -> CancelHandle {
        let handle = Arc::clone(&self.context.handle);
        CancelHandle::new(move || handle.cancel())
    }

    fn take_moved_bytes(&mut self) -> usize {
        self.current.arena.take_moved_bytes()
    }

    fn text_policy(&self) -> Policy {
        self.context.shared.text_policy
    }
}
