//! A statement's rows as batches, one after the other, in constant memory.

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

/// Rows on their way into batches.
///
/// The types of the columns are known before the first row where the database tells them all; else the first batch is fetched
/// when they are asked for. Batches are of one type. One that fails is not given, and no other comes behind it.
#[derive(Debug)]
pub struct ArrowStream {
    statement: Statement,
    rows: ArrowRows,
    options: ArrowOptions,
    position: BlockPosition,
    ledger: Ledger,
    cancelled: Arc<AtomicBool>,
    state: State,
    /// The first batch, where it had to be fetched to tell the types.
    ahead: Option<Batch>,
    /// A batch was made: types do not change any more.
    is_settled: bool,
}

#[derive(Debug)]
enum State {
    Running,
    Done,
    Failed(Error),
}

impl ArrowStream {
    /// The rows of `statement` from its first row on; what is done to their text is counted in `ledger`.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] where it gives no rows, or a type is asked for a column that is not there;
    /// [`ErrorKind::NotSupported`] for a type that is never made.
    pub fn new(
        mut statement: Statement,
        options: &ArrowOptions,
        ledger: &Ledger,
    ) -> Result<ArrowStream, Error> {
        if statement.schema().n_columns() == 0 {
            return Err(Error::new(
                ErrorKind::Programming,
                "the statement gives no rows\nstream a SELECT, or add RETURNING",
            ));
        }
        statement.set_long_values(LongValues::Whole);
        statement.set_takes_more(false);
        Ok(ArrowStream {
            rows: ArrowRows::new(statement.schema(), options, statement.text_policy())?,
            statement,
            options: options.clone(),
            position: BlockPosition::default(),
            ledger: ledger.clone(),
            cancelled: Arc::new(AtomicBool::new(false)),
            state: State::Running,
            ahead: None,
            is_settled: false,
        })
    }

    /// Takes the types that a reader would rather have, as far as they can be made and nothing was fetched yet; what it asks
    /// for besides is its own to cast. Fields of another number or order are no request for this result.
    pub fn request(&mut self, fields: &[Field]) {
        let columns = &self.statement.schema().columns;
        let is_same = columns.len() == fields.len()
            && columns.iter().zip(fields).all(|(c, f)| c.name == f.name);
        if !is_same || self.is_settled || self.rows.n_rows() > 0 {
            return;
        }
        let now = self.rows.fields();
        let is_undecided = self.rows.is_undecided();
        let asked = fields.iter().zip(&now).filter(|(asked, now)| {
            let is_other = asked.data_type != now.data_type || is_undecided;
            is_other && is_made(&asked.data_type) && asked.data_type != DataType::Null
        });
        let mut options = self.options.clone();
        options
            .types
            .extend(asked.map(|(f, _)| (f.name.clone(), f.data_type.clone())));
        let policy = self.statement.text_policy();
        if let Ok(rows) = ArrowRows::new(self.statement.schema(), &options, policy) {
            self.rows = rows;
        }
    }

    /// A handle that stops it from any thread: the call under way fails, and each later one.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        let (flag, source) = (self.cancelled.clone(), self.statement.cancel_handle());
        CancelHandle::new(move || {
            flag.store(true, Relaxed);
            source.cancel();
        })
    }

    /// Rows in batches so far, those of the next one included.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.rows.n_rows()
    }

    /// Fills a batch; `None` where no row is left.
    fn fill(&mut self) -> Result<Option<Batch>, Error> {
        let mut is_end = false;
        while !self.rows.is_full() && !is_end {
            if self.cancelled.load(Relaxed) {
                let message = "the stream of batches was cancelled";
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
            let budget = Budget::default();
            let (position, rows) = (&mut self.position, &mut self.rows);
            let pumped = self.statement.pump_columns(position, budget, rows);
            is_end = match pumped {
                Ok(Pumped::More) => false,
                Ok(Pumped::End) => true,
                Err(PumpError::Source(error)) => return Err(error),
                Err(PumpError::Sink(misfit)) => return Err(self.first_misfit(misfit)),
            };
        }
        if is_end {
            self.state = State::Done;
        }
        let batch = self.rows.take()?;
        self.is_settled = true;
        Ok((batch.n_rows > 0).then_some(batch))
    }

    /// The first value of the block that does not fit, in the order of rows: it came column by column.
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
            State::Running => {}
            State::Done => return Ok(None),
            State::Failed(error) => return Err(error.clone()),
        }
        let filled = self.fill();
        self.enter_counts();
        filled.map_err(|mut error| {
            // A driver that was told to stop may say so in words of its own.
            if self.cancelled.load(Relaxed) {
                error.kind = ErrorKind::Cancelled;
            }
            self.state = State::Failed(error.clone());
            error
        })
    }
}

/// Emits the rows of a block once more, in row order; the first value that does not fit.
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
