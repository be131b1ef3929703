//! A statement under execution: its rows are read from the socket as they are consumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::cancel::cancelled;
use super::rows::Rows;
use super::shared::Shared;
use super::types::Kind;
use super::wire::{Completion, Delivery, Wire};
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{Budget, Fetched, LongForm, LongPart, Source};

#[derive(Debug)]
enum State {
    /// Rows may come.
    Reading,
    /// All rows are in the block.
    Ended,
    /// It failed, and reports it again.
    Failed(Error),
}

/// A statement of PostgreSQL under execution.
#[derive(Debug)]
pub struct Statement {
    shared: Arc<Shared>,
    id: u64,
    schema: Schema,
    rows: Rows,
    delivery: Option<Arc<Delivery>>,
    state: State,
    row_count: Option<u64>,
    messages: Vec<Message>,
    is_cancelled: Arc<AtomicBool>,
}

impl Statement {
    pub(super) fn reading(
        shared: Arc<Shared>,
        id: u64,
        schema: Schema,
        kinds: Arc<[Kind]>,
        delivery: Arc<Delivery>,
    ) -> Statement {
        Statement {
            shared,
            id,
            schema,
            rows: Rows::new(kinds),
            delivery: Some(delivery),
            state: State::Reading,
            row_count: None,
            messages: Vec::new(),
            is_cancelled: Arc::default(),
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
            Err(error) => State::Failed(self.shared.error_of(self.id, error)),
        };
    }

    /// Reads the next rows or the end from the session.
    pub(super) fn pull(&mut self, wire: &mut Wire) -> Result<(), Error> {
        let spare = self.rows.take_buffer().or_else(|| self.shared.take_spare());
        let spare = spare.filter(super::buffer::Buffer::is_kept);
        let (rows, end) = wire.pull(spare).inspect_err(|_| wire.reader = None)?;
        if let Some(rows) = rows {
            self.rows.replace(rows);
        }
        if let Some(end) = end {
            self.end(end);
        }
        self.messages.append(&mut wire.server.take_notices());
        Ok(())
    }

    /// Takes what was received for it while another statement ran; whether there was anything.
    fn take_delivered(&mut self) -> bool {
        let Some(delivery) = self.delivery.clone() else {
            return false;
        };
        let mut delivered = delivery.state();
        if let Some(chunk) = delivered.chunks.pop_front() {
            if let Some(free) = self.rows.replace(chunk) {
                self.shared.keep_spare(free);
            }
            return true;
        }
        match delivered.end.take() {
            Some(end) => {
                drop(delivered);
                self.end(end);
                true
            }
            None => false,
        }
    }

    fn more(&mut self) -> Result<(), Error> {
        if self.take_delivered() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let pulled = shared.with(|wire| {
            let is_reader = match (&wire.reader, &self.delivery) {
                (Some(reader), Some(delivery)) => Arc::ptr_eq(reader, delivery),
                _ => false,
            };
            match is_reader {
                true => self.pull(wire),
                // Another statement has run meanwhile: the rest was delivered.
                false if self.take_delivered() => Ok(()),
                false => Err(Error::new(ErrorKind::Interface, "the result was closed")),
            }
        });
        pulled.map_err(|error| {
            let error = shared.error_of(self.id, error);
            self.state = State::Failed(error.clone());
            error
        })
    }

    fn check(&self) -> Result<(), Error> {
        if let State::Failed(error) = &self.state {
            return Err(error.clone());
        }
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

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
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
        self.rows.deferred = (0..n).map(|i| columns.contains(&i)).collect();
        Ok(())
    }

    fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        self.check()?;
        let Some((value, kind)) = self.rows.raw_value(self.rows.last_emitted(), column) else {
            return Ok(None);
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = value.get(offset..).unwrap_or_default();
        let n_bytes = rest.len().min(buffer.len());
        buffer[..n_bytes].copy_from_slice(&rest[..n_bytes]);
        Ok(Some(LongPart {
            form: if kind == Kind::Bytes {
                LongForm::Bytes
            } else {
                LongForm::Utf8
            },
            n_bytes,
            is_last: n_bytes == rest.len(),
            is_copied: true,
        }))
    }
}

impl Source for Statement {
    type Block = Rows;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error> {
        self.check()?;
        loop {
            match self.rows.advance(budget.block_rows.max(1)) {
                Ok(0) => {}
                Ok(n) => return Ok(Fetched::Rows(n)),
                Err(error) => {
                    self.state = State::Failed(error.clone());
                    return Err(error);
                }
            }
            match &self.state {
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
        let (activity, id) = (Arc::clone(&self.shared.activity), self.id);
        let is_cancelled = Arc::clone(&self.is_cancelled);
        CancelHandle::new(move || {
            is_cancelled.store(true, SeqCst);
            activity.cancel(Some(id));
        })
    }

    fn text_policy(&self) -> Policy {
        self.shared.text_policy
    }
}
