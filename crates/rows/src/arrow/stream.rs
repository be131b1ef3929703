//! `ArrowStream`: the rows of a statement as consecutive Arrow batches, in constant memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use onecopy_text::{Ledger, Stage, Tally};
use onecopy_wire::CancelHandle;

use super::array::Batch;
use super::plan::ArrowOptions;
use super::rows::{ArrowRows, Misfit};
use super::types::is_made;
use super::types::{DataType, Field};
use crate::arrow_c::Batches;
use crate::connect::{Statement, StatementVisitor};
use crate::database::DatabaseStatement;
use crate::error::{Error, ErrorKind};
use crate::source::{Block, BlockPosition, Budget, LongValues, PumpError, Pumped};

/// The rows of a statement as a stream of Arrow batches.
///
/// If the database describes the types of all columns, the types are known before the first row;
/// otherwise the first batch is fetched when the types are requested. All batches have the same
/// types. No batch follows a batch that failed. The rows at which batches end depend only on the
/// rows, not on the blocks in which they were received.
#[derive(Debug)]
pub struct ArrowStream {
    statement: Statement,
    rows: ArrowRows,
    options: ArrowOptions,
    position: BlockPosition,
    ledger: Ledger,
    cancelled: Arc<AtomicBool>,
    state: ArrowStreamState,
    /// The first batch, if it was fetched early to determine the types and not yet returned;
    /// otherwise `None`.
    ahead: Option<Batch>,
    /// `true` after the first batch. The column types no longer change then.
    is_settled: bool,
}

#[derive(Debug)]
enum ArrowStreamState {
    Running,
    Done,
    Failed(Error),
}

impl ArrowStream {
    /// Streams the rows of `statement` from its first row on. `ledger` counts the bytes of text
    /// that are converted.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if the statement returns no rows, or the options name a column
    /// that does not exist; [`ErrorKind::NotSupported`] if they name a type that this crate can
    /// import, but not create.
    pub fn new(
        mut statement: Statement,
        options: &ArrowOptions,
        ledger: &Ledger,
    ) -> Result<ArrowStream, Error> {
        if !statement.schema().has_rows() {
            return Err(Error::new(
                ErrorKind::Programming,
                "the statement returns no rows\nstream a SELECT, or add RETURNING",
            ));
        }
        statement.set_long_values(LongValues::Whole);
        statement.defer(Vec::new())?;
        statement.set_takes_more(false);
        Ok(ArrowStream {
            rows: ArrowRows::new(statement.schema(), options, statement.text_policy())?,
            statement,
            options: options.clone(),
            position: BlockPosition::default(),
            ledger: ledger.clone(),
            cancelled: Arc::new(AtomicBool::new(false)),
            state: ArrowStreamState::Running,
            ahead: None,
            is_settled: false,
        })
    }

    /// Changes the column types to the types in `fields`, which a consumer requested. Has no effect
    /// after the first row was fetched. A requested type that this crate cannot create is ignored,
    /// and the consumer has to cast that column. The whole request is ignored if its fields differ
    /// from the columns in number, name or order.
    pub fn request(&mut self, fields: &[Field]) {
        let columns = &self.statement.schema().columns;
        let is_same = columns.len() == fields.len()
            && columns.iter().zip(fields).all(|(c, f)| c.name == f.name);
        if !is_same || self.is_settled || self.rows.n_rows() > 0 {
            return;
        }
        let now = self.rows.fields();
        let is_undecided = self.rows.is_undecided();
        let requested = fields.iter().zip(&now).filter(|(field, now)| {
            let is_other = field.data_type != now.data_type || is_undecided;
            is_other && is_made(&field.data_type) && field.data_type != DataType::Null
        });
        let mut options = self.options.clone();
        options
            .types
            .extend(requested.map(|(f, _)| (f.name.clone(), f.data_type.clone())));
        let policy = self.statement.text_policy();
        if let Ok(rows) = ArrowRows::new(self.statement.schema(), &options, policy) {
            self.rows = rows;
        }
    }

    /// Returns a handle with which any thread can cancel the stream. After that, the current call
    /// and all later calls fail.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        let (flag, source) = (self.cancelled.clone(), self.statement.cancel_handle());
        CancelHandle::new(move || {
            flag.store(true, Relaxed);
            source.cancel();
        })
    }

    /// Returns the number of rows in all batches that were fetched so far. This includes a batch
    /// that was fetched, but not returned to the caller yet.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.rows.n_rows()
    }

    /// Fetches rows until the batch is full; returns `None` if no row is left.
    fn fill(&mut self) -> Result<Option<Batch>, Error> {
        let mut is_end = false;
        while !self.rows.is_full() && !is_end {
            if self.cancelled.load(Relaxed) {
                let message = "the stream of batches was cancelled";
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
            let budget = Budget::default();
            let (position, rows) = (&mut self.position, &mut self.rows);
            let most_rows = rows.n_until_check();
            let pumped = self
                .statement
                .pump_columns(position, budget, most_rows, rows);
            is_end = match pumped {
                Ok(Pumped::More) => false,
                Ok(Pumped::End) => true,
                Err(PumpError::Source(error)) => return Err(error),
                Err(PumpError::Sink(misfit)) => return Err(self.first_misfit(misfit)),
            };
        }
        if is_end {
            self.state = ArrowStreamState::Done;
        }
        let batch = self.rows.take()?;
        self.is_settled = true;
        Ok((batch.n_rows > 0).then_some(batch))
    }

    /// Returns the error for the first cell, in row order, that its column cannot store. `misfit`
    /// is the first such cell in column order, because the block was emitted column by column. In
    /// row order, another such cell may precede it.
    fn first_misfit(&mut self, misfit: Misfit) -> Error {
        let found = self.rows.error(misfit);
        let mut rows = self.rows.same_again();
        let again = self.statement.visit(EmitAgain {
            first_row: self.position.next_row,
            rows: &mut rows,
        });
        match again {
            Some(misfit) => rows.error(misfit),
            None => found,
        }
    }

    fn enter_counts(&mut self) {
        let mut fetched = Tally::default();
        fetched.copied_again(self.statement.take_moved_bytes());
        fetched.enter(&self.ledger, Stage::Fetch);
        self.rows.tally.enter(&self.ledger, Stage::Encode);
    }

    fn next_filled(&mut self) -> Result<Option<Batch>, Error> {
        match &self.state {
            ArrowStreamState::Running => {}
            ArrowStreamState::Done => return Ok(None),
            ArrowStreamState::Failed(error) => return Err(error.clone()),
        }
        let filled = self.fill();
        self.enter_counts();
        filled.map_err(|mut error| {
            // A driver may report the cancellation as an error of another kind.
            if self.cancelled.load(Relaxed) {
                error.kind = ErrorKind::Cancelled;
            }
            self.state = ArrowStreamState::Failed(error.clone());
            error
        })
    }
}

/// A [`StatementVisitor`] that emits the statement's current block a second time, in row order.
/// Returns the first cell that its column cannot store.
struct EmitAgain<'r> {
    first_row: usize,
    rows: &'r mut ArrowRows,
}

impl StatementVisitor for EmitAgain<'_> {
    type Output = Option<Misfit>;

    fn visit<S: DatabaseStatement>(self, statement: &mut S) -> Option<Misfit> {
        if !S::HAS_BLOCKS {
            return None;
        }
        statement.block().emit(self.first_row, self.rows).err()
    }
}

impl Batches for ArrowStream {
    fn fields(&mut self) -> Result<Vec<Field>, Error> {
        if !self.is_settled && self.rows.is_undecided() {
            self.ahead = self.next_filled()?;
        }
        Ok(self.rows.fields())
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        match self.ahead.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.next_filled(),
        }
    }
}
