//! What a statement that runs needs of its connection, on whichever thread its rows are fetched.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::block::CurrentBlock;
use super::driver::{Driver, Further};
use super::handle::StatementHandle;
use super::reader::Reader;
use super::shared::Shared;
use crate::error::{Error, ErrorKind, Message};
use crate::source::Budget;

/// Behind a fetch that took longer nothing is fetched ahead: who closes the statement would wait for it.
pub(crate) const LONGEST_FETCH: Duration = Duration::from_millis(20);

/// How the driver is reached for a statement that runs, from whichever thread.
#[derive(Clone)]
pub(super) struct StatementContext {
    pub(super) handle: Arc<StatementHandle>,
    pub(super) shared: Arc<Shared>,
    /// `Shared::ended` when it was executed.
    pub(super) ended: u64,
}

impl StatementContext {
    /// As [`StatementContext::check`], where no call of the driver is due.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        self.shared.health.check()?;
        // Not by its handle: a cancel under way would hold that up.
        if self.shared.health.is_closed() {
            return Err(closed());
        }
        self.check()
    }

    /// Whether its rows may still be given.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.handle.is_cancelled() {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "the statement was cancelled",
            ));
        }
        if self.shared.ended.load(Ordering::SeqCst) != self.ended {
            return Err(Error::new(
                ErrorKind::Interface,
                "the cursor was ended by a commit or rollback of its connection\n\
                 Read all rows before it, or use a second connection.",
            ));
        }
        Ok(())
    }

    /// Runs `work` with the driver, where the statement can go on.
    pub(super) fn in_call<T>(
        &self,
        reader: &mut Reader,
        messages: &mut Vec<Message>,
        work: impl FnOnce(&mut Reader, &Driver<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.handle.is_cancelled() {
            self.check()?;
        }
        let call = self.shared.enter()?;
        if self.handle.get().is_null() {
            return Err(closed());
        }
        self.check()?;
        let _busy = self.shared.busy(&self.handle);
        let driver = Driver::new(&self.shared, &self.handle);
        call.set_fetch_size(reader.fetch_size);
        let result = work(reader, &driver);
        messages.append(&mut driver.messages.into_inner());
        call.watch(result)
    }

    /// Reads the next rows into `block`.
    pub(super) fn next_block(
        &self,
        reader: &mut Reader,
        block: &mut CurrentBlock,
        budget: Budget,
        messages: &mut Vec<Message>,
    ) -> Result<FetchedRows, Error> {
        self.in_call(reader, messages, |reader, driver| {
            let n_rows = reader.advance(driver, block, budget)?;
            let further = match n_rows {
                0 => driver.further_rows()?,
                _ => None,
            };
            Ok(FetchedRows { n_rows, further })
        })
    }
}

#[cold]
pub(super) fn gone() -> Error {
    let message =
        "rows are being read by another thread, or it is gone: this is a fault of onecopy";
    Error::new(ErrorKind::Internal, message)
}

fn closed() -> Error {
    let message =
        "the statement was closed: with its connection, or before a table was dropped or altered";
    Error::new(ErrorKind::Interface, message)
}

/// How a fetch ended.
pub(crate) struct FetchOutcome {
    pub(crate) read: Result<FetchedRows, Error>,
    pub(crate) messages: Vec<Message>,
    took: Duration,
}

/// What a fetch found.
#[derive(Default)]
pub(crate) struct FetchedRows {
    /// Rows in the block; 0 at the end.
    pub(crate) n_rows: usize,
    /// The result behind the last row.
    pub(crate) further: Option<Further>,
}

impl FetchOutcome {
    /// Whether the next block may be read before anybody asks for it.
    pub(crate) fn can_prefetch(&self, reader: &Reader) -> bool {
        matches!(self.read, Ok(FetchedRows { n_rows: 1.., .. }))
            && self.took <= LONGEST_FETCH
            && reader.is_between_blocks()
    }
}

/// Reads a block. A panic is an error.
pub(crate) fn read(
    context: &StatementContext,
    reader: &mut Reader,
    block: &mut CurrentBlock,
    budget: Budget,
) -> FetchOutcome {
    let begun = Instant::now();
    let mut messages = Vec::new();
    let read = catch_unwind(AssertUnwindSafe(|| {
        context.next_block(reader, block, budget, &mut messages)
    }));
    let read = read.unwrap_or_else(|_| {
        let message = "reading rows panicked: this is a fault of onecopy";
        Err(Error::new(ErrorKind::Internal, message))
    });
    FetchOutcome {
        read,
        messages,
        took: begun.elapsed(),
    }
}
