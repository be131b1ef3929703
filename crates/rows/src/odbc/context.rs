//! `StatementContext`: the handle and the connection of an executed statement, for use on the
//! caller's thread or on a prefetch thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::block::CurrentBlock;
use super::driver::{Driver, Further};
use super::handle::StatementHandle;
use super::reader::BlockReader;
use super::shared::SharedConnection;
use crate::error::{Error, ErrorKind, Message};
use crate::source::Budget;

/// The longest duration of a fetch after which a block may be prefetched. After a longer fetch, no
/// block of the statement is prefetched, because closing the statement might have to wait for a
/// prefetch of that duration.
pub(crate) const LONGEST_FETCH: Duration = Duration::from_millis(20);

/// The handle and the connection of an executed statement. Any thread may use them.
#[derive(Clone)]
pub(super) struct StatementContext {
    pub(super) handle: Arc<StatementHandle>,
    pub(super) shared: Arc<SharedConnection>,
    /// The value of the counter `SharedConnection::ended` when the statement was executed. It
    /// counts the commits and rollbacks that closed cursors.
    pub(super) ended: u64,
}

impl StatementContext {
    /// Returns an error if the connection was closed or lost, or if [`StatementContext::check`]
    /// returns one. The caller must call this method before it returns rows that were fetched
    /// earlier: no driver call then detects a closed or lost connection.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        self.shared.health.check()?;
        // The check does not lock the handle, because a cancel in progress holds that lock.
        if self.shared.health.is_closed() {
            return Err(closed());
        }
        self.check()
    }

    /// Returns an error if the statement was cancelled, or if a commit or rollback ended its
    /// cursor.
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

    /// Calls `work` with the driver while the connection's lock is held. If the statement was
    /// cancelled or its cursor was closed, returns an error without calling `work`.
    pub(super) fn in_call<T>(
        &self,
        reader: &mut BlockReader,
        messages: &mut Vec<Message>,
        work: impl FnOnce(&mut BlockReader, &Driver<'_>) -> Result<T, Error>,
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

    /// Fetches the next rows of the statement into `block`.
    pub(super) fn next_block(
        &self,
        reader: &mut BlockReader,
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

/// The outcome of a fetch: its rows or its error, and messages of the database.
pub(crate) struct FetchOutcome {
    pub(crate) read: Result<FetchedRows, Error>,
    pub(crate) messages: Vec<Message>,
    took: Duration,
}

/// The rows of a successful fetch.
#[derive(Default)]
pub(crate) struct FetchedRows {
    /// The number of rows in the block; 0 after the last row.
    pub(crate) n_rows: usize,
    /// The next result with rows, if the driver moved to it after the last row of the current
    /// result; otherwise `None`.
    pub(crate) further: Option<Further>,
}

impl FetchOutcome {
    /// Returns `true` if a thread may now fetch the next block before the caller requests it. The
    /// completed fetch must have returned rows, taken at most [`LONGEST_FETCH`], and left no value
    /// that was read only in part.
    pub(crate) fn can_prefetch(&self, reader: &BlockReader) -> bool {
        matches!(self.read, Ok(FetchedRows { n_rows: 1.., .. }))
            && self.took <= LONGEST_FETCH
            && reader.is_between_blocks()
    }
}

/// Fetches the next rows into `block`. A panic is returned as an error.
pub(crate) fn read(
    context: &StatementContext,
    reader: &mut BlockReader,
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
