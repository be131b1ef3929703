//! `Statement`: an executed statement. Its rows are received from the socket only when the caller
//! requests them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::buffer::Buffer;
use super::cancel::cancelled;
use super::delivery::{Completion, Delivery, ResultEnd};
use super::later_statements::Further;
use super::message::violation;
use super::rows::{DeferredValue, Rows};
use super::shared::Shared;
use super::split_row::LongRows;
use super::types::Kind;
use super::wire::Wire;
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{Budget, Fetched, LongForm, LongPart, LongValues, Source};

#[derive(Debug)]
enum State {
    /// More rows may arrive from the server.
    Reading,
    /// The end of the result was received: all its rows are in `rows` or were read.
    Ended,
    /// The statement has failed; each later fetch returns this error.
    Failed(Error),
}

/// A statement of PostgreSQL that was executed, and whose result is being read.
#[derive(Debug)]
pub struct Statement {
    shared: Arc<Shared>,
    /// The number of the current execution, which `Activity::begin` returned. A cancel handle uses
    /// it to cancel only this execution.
    id: Arc<AtomicU64>,
    schema: Schema,
    rows: Rows,
    delivery: Option<Arc<Delivery>>,
    state: State,
    row_count: Option<u64>,
    messages: Vec<Message>,
    is_cancelled: Arc<AtomicBool>,
    /// The statements of the SQL string that follow this one; `None` if no statement follows.
    further: Option<Arc<Further>>,
    takes_more: bool,
    /// The index (from 0) of the deferred column that was read last in the current row; `None` if
    /// no deferred column was read.
    last_read: Option<usize>,
    /// The number of bytes that were copied from one receive buffer to the next since the last call
    /// of `take_moved_bytes`.
    moved_bytes: usize,
}

impl Statement {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns `true` if the whole result was received, or the statement has failed.
    pub(super) fn is_at_end(&self) -> bool {
        !matches!(self.state, State::Reading)
    }

    pub(super) fn set_further(&mut self, further: Arc<Further>) {
        self.further = Some(further);
    }

    pub(super) fn append_messages(&mut self, from: &mut Statement) {
        self.messages.append(&mut from.messages);
    }

    /// Replaces this statement's result by the result of `next`, a later statement of the same SQL
    /// string.
    pub(super) fn replace_result(&mut self, mut next: Statement) {
        self.id.store(next.id.load(SeqCst), SeqCst);
        std::mem::swap(&mut self.schema, &mut next.schema);
        std::mem::swap(&mut self.rows, &mut next.rows);
        std::mem::swap(&mut self.delivery, &mut next.delivery);
        std::mem::swap(&mut self.state, &mut next.state);
        self.moved_bytes += next.moved_bytes;
        self.row_count = next.row_count;
    }

    /// Executes the remaining statements of the SQL string, for a caller that does not use
    /// `next_set`. Returns an error if one of these statements returns rows.
    fn run_rest(&mut self) -> Result<(), Error> {
        let Some(further) = self.further.take() else {
            return Ok(());
        };
        let shared = Arc::clone(&self.shared);
        shared.with(|wire| {
            wire.settle()?;
            while let Some(next) = further.run_next(&shared, wire) {
                if next?.schema.has_rows() {
                    further.waiting().clear();
                    let message = "a further statement of the same text returns rows too, \
                                   and only those of the first can be read here\n\
                                   Go to it with `nextset`, or execute it by itself.";
                    return Err(Error::new(ErrorKind::NotSupported, message));
                }
            }
            Ok(())
        })
    }

    pub(super) fn reading(
        shared: Arc<Shared>,
        id: u64,
        schema: Schema,
        kinds: Arc<[Kind]>,
        delivery: Arc<Delivery>,
    ) -> Statement {
        Statement {
            rows: Rows::new(kinds, shared.far_dates_as_text),
            shared,
            id: Arc::new(AtomicU64::new(id)),
            schema,
            delivery: Some(delivery),
            state: State::Reading,
            row_count: None,
            messages: Vec::new(),
            is_cancelled: Arc::default(),
            further: None,
            takes_more: true,
            last_read: None,
            moved_bytes: 0,
        }
    }

    pub(super) fn ended(
        shared: Arc<Shared>,
        id: u64,
        schema: Schema,
        kinds: Arc<[Kind]>,
        completion: Completion,
    ) -> Statement {
        let delivery = Arc::new(Delivery::default());
        let mut statement = Statement::reading(shared, id, schema, kinds, delivery);
        statement.end(Ok(completion));
        statement
    }

    pub(super) fn with_messages(mut self, wire: &mut Wire) -> Statement {
        self.messages.append(&mut wire.server.take_notices());
        self
    }

    fn end(&mut self, end: Result<Completion, Error>) {
        self.delivery = None;
        self.state = match end {
            Ok(completion) => {
                self.row_count = completion.n_changed;
                State::Ended
            }
            Err(error) => State::Failed(self.shared.error_of(self.id.load(SeqCst), error)),
        };
    }

    /// Reads the first rows, or the end of the result, from the session. If the first row is long,
    /// this function only waits until the row begins to arrive. The caller then decides, with
    /// `set_long_values`, how the row is read.
    pub(super) fn pull_first(&mut self, wire: &mut Wire) -> Result<(), Error> {
        let pulled = wire.pull(self.shared.take_spare(), LongRows::Wait);
        self.take(pulled, wire)
    }

    /// Reads the next rows, or the end of the result, from the session.
    fn pull(&mut self, wire: &mut Wire) -> Result<(), Error> {
        let spare = self.rows.take_buffer().or_else(|| self.shared.take_spare());
        let spare = spare.filter(Buffer::is_kept);
        let long_rows = self.rows.parts().map_or(LongRows::Whole, LongRows::Pieces);
        let pulled = wire.pull(spare, long_rows);
        self.take(pulled, wire)
    }

    fn take(
        &mut self,
        pulled: Result<(Option<Buffer>, Option<ResultEnd>), Error>,
        wire: &mut Wire,
    ) -> Result<(), Error> {
        self.moved_bytes += std::mem::take(&mut wire.moved_bytes);
        let (rows, end) = pulled.inspect_err(|_| wire.reader = None)?;
        if let Some(rows) = rows {
            self.rows.replace(rows);
        }
        if let Some(end) = end {
            self.end(end);
        }
        self.messages.append(&mut wire.server.take_notices());
        Ok(())
    }

    /// While another statement was executed, rows of this result or its end may already have been
    /// received. Makes them available to `fetch`, and returns `true` if there were any.
    fn take_delivered(&mut self) -> Result<bool, Error> {
        let Some(delivery) = self.delivery.clone() else {
            return Ok(false);
        };
        let mut delivered = delivery.state();
        if let Some(rows) = delivered.rows.pop()? {
            if let Some(free) = self.rows.replace(rows) {
                self.shared.keep_spare(free);
            }
            return Ok(true);
        }
        match delivered.end.take() {
            Some(end) => {
                drop(delivered);
                self.end(end);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn more(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let delivered = self.take_delivered();
        if matches!(delivered, Ok(true)) {
            return Ok(());
        }
        let pulled = delivered.and_then(|_| {
            shared.with(|wire| {
                let is_reader = match (&wire.reader, &self.delivery) {
                    (Some(reader), Some(delivery)) => Arc::ptr_eq(reader, delivery),
                    _ => false,
                };
                match is_reader {
                    true => self.pull(wire),
                    // Another statement was executed in the meantime. The remaining rows of this
                    // statement were received and stored before that.
                    false if self.take_delivered()? => Ok(()),
                    false => Err(Error::new(ErrorKind::Interface, "the result was closed")),
                }
            })
        });
        pulled.map_err(|error| {
            let error = shared.error_of(self.id.load(SeqCst), error);
            self.state = State::Failed(error.clone());
            error
        })
    }

    /// Creates the error that the caller gets for a deferred value of `column` after it has read a
    /// value of a later column.
    fn skipped(&self, column: usize) -> Error {
        let message = "the server sends values in the order of their columns, and a later one was read\n\
                       Open them from left to right.";
        let name = &self.schema.columns[column].name;
        Error::new(ErrorKind::NotSupported, message).at_column(column, name)
    }

    fn check(&self) -> Result<(), Error> {
        if self.shared.health.is_closed() || !self.shared.is_ours() {
            self.shared.check()?;
        }
        match self.is_cancelled.load(SeqCst) {
            true => Err(cancelled()),
            false => Ok(()),
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(buffer) = self.rows.take_buffer() {
            self.shared.keep_spare(buffer);
        }
    }
}

impl DatabaseStatement for Statement {
    fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    fn next_set(&mut self) -> Result<bool, Error> {
        let Some(further) = self.further.clone() else {
            return Ok(false);
        };
        // Rows of the current result that were not read are discarded.
        self.delivery = None;
        self.state = State::Ended;
        let shared = Arc::clone(&self.shared);
        let found = shared.with(|wire| {
            wire.settle()?;
            self.go_on(&further, wire)
        });
        if !matches!(found, Ok(true)) {
            self.further = None;
        }
        found
    }

    fn receive(&mut self) -> Result<(), Error> {
        while !self.is_ready() {
            self.more()?;
        }
        match &self.state {
            State::Failed(error) if !self.rows.has_more() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn has_further(&self) -> bool {
        self.further
            .as_ref()
            .is_some_and(|further| further.has_more())
    }

    fn set_takes_more(&mut self, takes_more: bool) {
        self.takes_more = takes_more;
    }

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    fn set_long_values(&mut self, long_values: LongValues) {
        self.rows.set_part_bytes(match long_values {
            LongValues::Whole => None,
            LongValues::Parts { part_bytes } => Some(part_bytes),
        });
    }

    fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        let n = if columns.is_empty() {
            0
        } else {
            self.schema.n_columns()
        };
        let is_long = |c: &usize| {
            self.rows
                .kinds()
                .get(*c)
                .is_some_and(|k| matches!(k, Kind::Text | Kind::Bytes))
        };
        if !columns.iter().all(is_long) {
            let message = "only columns of text and bytes can be left out of rows";
            return Err(Error::new(ErrorKind::Programming, message));
        }
        self.rows
            .set_deferred((0..n).map(|i| columns.contains(&i)).collect());
        Ok(())
    }

    fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        self.check()?;
        let is_skipped = offset == 0 && self.last_read.is_some_and(|last| column < last);
        if is_skipped && self.rows.parts().is_some() {
            return Err(self.skipped(column));
        }
        self.last_read = Some(column);
        loop {
            match self.rows.deferred_value(column, offset)? {
                Some(DeferredValue::Null) => return Ok(None),
                Some(DeferredValue::Bytes(bytes, ends)) => {
                    let n_bytes = bytes.len().min(buffer.len());
                    buffer[..n_bytes].copy_from_slice(&bytes[..n_bytes]);
                    let is_last = ends && n_bytes == bytes.len();
                    return Ok(Some(LongPart {
                        form: match self.rows.kinds()[column] {
                            Kind::Bytes => LongForm::Bytes,
                            _ => LongForm::Utf8,
                        },
                        n_bytes,
                        is_last,
                        is_copied: true,
                    }));
                }
                Some(DeferredValue::NotReceived) => match &self.state {
                    State::Reading => self.more()?,
                    State::Failed(error) => return Err(error.clone()),
                    State::Ended => return Err(violation("a result ended inside of a row")),
                },
                None => return Err(self.skipped(column)),
            }
        }
    }
}

impl Source for Statement {
    type Block = Rows;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error> {
        self.check()?;
        self.last_read = None;
        loop {
            // `read_part` reads values of the row that was emitted last, so with deferred columns a
            // block has one row.
            let most_rows = match self.rows.has_deferred() {
                false => budget.block_rows.max(1),
                true => 1,
            };
            match self.rows.advance(most_rows) {
                Ok(0) => {}
                Ok(n) => return Ok(Fetched::Rows(n)),
                Err(error) => {
                    self.state = State::Failed(error.clone());
                    self.rows.take_buffer();
                    return Err(error);
                }
            }
            // Rows that were received before a failure are returned before the error.
            match &self.state {
                State::Ended if !self.takes_more && self.further.is_some() => self.run_rest()?,
                State::Ended => return Ok(Fetched::End),
                State::Failed(error) => return Err(error.clone()),
                State::Reading => self.more()?,
            }
        }
    }

    fn is_ready(&mut self) -> bool {
        self.rows.has_more() || !matches!(self.state, State::Reading)
    }

    fn block(&self) -> &Rows {
        &self.rows
    }

    fn cancel_handle(&self) -> CancelHandle {
        let (activity, id) = (Arc::clone(&self.shared.activity), Arc::clone(&self.id));
        let is_cancelled = Arc::clone(&self.is_cancelled);
        CancelHandle::new(move || {
            is_cancelled.store(true, SeqCst);
            activity.cancel(Some(id.load(SeqCst)));
        })
    }

    fn take_moved_bytes(&mut self) -> usize {
        std::mem::take(&mut self.moved_bytes)
    }

    fn text_policy(&self) -> Policy {
        self.shared.text_policy
    }
}
