//! `Active`: an executed statement of a cursor.

use std::time::{Duration, Instant};

use onecopy_rows::connect::Statement;
use onecopy_rows::{BlockPosition, LongPart};
use onecopy_wire::CancelHandle;
use pyo3::prelude::*;

use crate::arrow::PyColumns;
use crate::errors;
use crate::limit::{self, CallWatch};
use crate::next_rows::{PullColumns, PullRows};
use crate::raw::gil;
use crate::raw::interrupt;
use crate::raw::text_cache::TextCache;
use crate::rows::PyRows;
use crate::thread_switch;

/// The time of reading between two pauses for signals and other Python threads.
const TURN: Duration = Duration::from_millis(4);

pub(crate) struct Active {
    rest: StatementRest,
    position: BlockPosition,
    /// `true` after the caller has requested a row.
    is_touched: bool,
    /// The number of rows of this result that are Python tuples already.
    n_given: u64,
    /// The number of changed rows; `None` if unknown.
    pub(crate) row_count: Option<u64>,
    /// The time limit of each driver call.
    limit: Option<Duration>,
    /// `true` if a driver call exceeded `limit`. The rows before that call are still returned.
    is_late: bool,
    /// A cache of recent strings for each column.
    seen: Vec<TextCache>,
}

const AWAY: &str = "another task waits for rows of this cursor, or was cancelled while it did\n\
                    await its end, or execute the statement again";

/// The state of the statement.
enum StatementRest {
    Open(Box<Detached<Statement>>),
    /// The current result is read. Contains the statement if it has another result set.
    End(Option<Box<Detached<Statement>>>),
    /// The statement failed. Each later call raises a copy of this exception.
    Failed(PyErr),
    /// A task on an event loop owns the statement.
    Away,
}

impl Active {
    pub(crate) fn new(statement: Statement, limit: Option<Duration>, is_late: bool) -> Active {
        Active {
            rest: StatementRest::Open(Box::new(Detached::new(statement))),
            position: BlockPosition::default(),
            is_touched: false,
            n_given: 0,
            row_count: None,
            limit,
            is_late,
            seen: Vec::new(),
        }
    }

    /// Returns the statement if no row was fetched.
    pub(crate) fn into_untouched(self) -> Option<Statement> {
        match self.rest {
            StatementRest::Open(statement) if !self.is_touched => Some(statement.into_inner()),
            _ => None,
        }
    }

    /// Returns the statement. The caller can drop it while the GIL is released.
    pub(crate) fn into_statement(self) -> Option<Box<Detached<Statement>>> {
        match self.rest {
            StatementRest::Open(statement) => Some(statement),
            StatementRest::End(further) => further,
            StatementRest::Failed(_) | StatementRest::Away => None,
        }
    }

    /// Omits the values of `columns` from the fetched rows. The caller reads these values in parts
    /// with [`Active::read_part`].
    ///
    /// # Errors
    /// If the caller has already requested a row.
    pub(crate) fn defer(&mut self, py: Python<'_>, columns: Vec<usize>) -> PyResult<()> {
        match &mut self.rest {
            StatementRest::Open(statement) if !self.is_touched => statement
                .inner()
                .defer(columns)
                .map_err(|e| errors::to_py(py, &e)),
            _ => Err(errors::programming(
                py,
                "rows were fetched already\ndefer columns before the first of them",
            )),
        }
    }

    /// Reads the next part of a deferred value in the current row. `None` for NULL.
    pub(crate) fn read_part(
        &mut self,
        py: Python<'_>,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> PyResult<Option<LongPart>> {
        let StatementRest::Open(statement) = &mut self.rest else {
            return Err(errors::programming(py, "there is no row to read it from"));
        };
        let statement = statement.inner();
        let cancel = statement.cancel_handle();
        let watch = CallWatch::start(self.limit, || cancel.clone());
        let part = interrupt::detached(
            py,
            || cancel,
            || statement.read_part(column, offset, buffer),
        )?;
        part.map_err(|e| in_time(py, errors::to_py(py, &e), watch))
    }

    /// Returns a handle that cancels the statement, if the statement is still active.
    pub(crate) fn cancel_handle(&mut self) -> Option<CancelHandle> {
        match &mut self.rest {
            StatementRest::Open(statement) => Some(statement.inner().cancel_handle()),
            _ => None,
        }
    }

    /// Moves the statement to a task that waits for rows. The task returns it with
    /// [`Active::put_back`].
    pub(crate) fn take_away(&mut self) -> Option<Box<Detached<Statement>>> {
        match std::mem::replace(&mut self.rest, StatementRest::Away) {
            StatementRest::Open(statement) => Some(statement),
            rest => {
                self.rest = rest;
                None
            }
        }
    }

    /// Puts back the statement from [`Active::take_away`]. `is_late` is `true` after an expired
    /// time limit.
    pub(crate) fn put_back(&mut self, statement: Box<Detached<Statement>>, is_late: bool) {
        self.rest = StatementRest::Open(statement);
        self.is_late |= is_late;
    }

    /// Returns `true` if the time limit of an earlier call has expired.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Returns `true` if the next [`Active::pull`] does not wait for the database.
    pub(crate) fn is_ready(&mut self) -> bool {
        let at = &self.position;
        match &mut self.rest {
            StatementRest::Open(statement) => {
                at.next_row < at.n_rows || statement.inner().is_ready()
            }
            StatementRest::End(_) | StatementRest::Failed(_) | StatementRest::Away => true,
        }
    }

    /// Returns `true` if this result is read and another result set follows.
    pub(crate) fn has_further(&self) -> bool {
        matches!(self.rest, StatementRest::End(Some(_)))
    }

    /// Returns `true` if the last row of this result was fetched.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.rest, StatementRest::End(_))
    }

    /// Runs signal handlers and other Python threads if [`TURN`] has passed since `last_turn`.
    ///
    /// # Errors
    /// The exception of a signal handler.
    pub(crate) fn between(&mut self, py: Python<'_>, last_turn: &mut Instant) -> PyResult<()> {
        if last_turn.elapsed() >= TURN {
            thread_switch::allow(py).inspect_err(|e| self.fail(py, e))?;
            *last_turn = Instant::now();
        }
        Ok(())
    }

    /// Fills `sink` with the next rows, at most `limit`. `sink` remains empty at the end.
    ///
    /// # Errors
    /// The error of the database, of a conversion, or of a signal handler. `sink` then contains the
    /// rows before the failure. Later calls fail.
    pub(crate) fn pull<'py>(
        &mut self,
        py: Python<'py>,
        limit: usize,
        sink: &mut PyRows<'py>,
    ) -> PyResult<()> {
        let statement = match &mut self.rest {
            StatementRest::Open(statement) => statement,
            StatementRest::End(_) => return Ok(()),
            StatementRest::Failed(error) => return Err(errors::again(py, error)),
            StatementRest::Away => return Err(errors::interface(py, AWAY)),
        };
        self.is_touched = true;
        sink.set_limit(limit);
        let n_columns = sink.rows().n_columns();
        sink.remember(n_columns, &mut self.seen);
        let watch = CallWatch::start(self.limit, || statement.inner().cancel_handle());
        let pulled = statement.inner().visit(PullRows {
            py,
            position: &mut self.position,
            limit,
            sink,
            n_given: self.n_given,
        });
        let pulled = self.in_time(py, pulled, watch);
        sink.rows().cut_incomplete();
        self.n_given += sink.rows().len() as u64;
        self.seen = sink.seen();
        self.after(py, pulled)
    }

    /// Appends the next rows to the columns of `sink`.
    ///
    /// # Errors
    /// The error of the database, of a conversion, or of a signal handler. The rows of this call
    /// are lost.
    pub(crate) fn pull_columns(
        &mut self,
        py: Python<'_>,
        sink: &mut PyColumns<'_>,
    ) -> PyResult<()> {
        let statement = match &mut self.rest {
            StatementRest::Open(statement) => statement,
            StatementRest::End(_) => return Ok(()),
            StatementRest::Failed(error) => return Err(errors::again(py, error)),
            StatementRest::Away => return Err(errors::interface(py, AWAY)),
        };
        self.is_touched = true;
        let watch = CallWatch::start(self.limit, || statement.inner().cancel_handle());
        let n_before = sink.n_rows();
        let pulled = statement.inner().visit(PullColumns {
            py,
            position: &mut self.position,
            sink,
            n_given: self.n_given,
        });
        let pulled = self.in_time(py, pulled, watch);
        self.n_given += (sink.n_rows() - n_before) as u64;
        self.after(py, pulled)
    }

    /// Replaces an error in `pulled` by a time limit error if the time limit expired.
    fn in_time<T>(
        &mut self,
        py: Python<'_>,
        pulled: PyResult<T>,
        watch: Option<CallWatch>,
    ) -> PyResult<T> {
        self.is_late |= watch.and_then(CallWatch::ran_out).is_some();
        let limit = self.limit.filter(|_| self.is_late);
        pulled.map_err(|error| match limit {
            Some(limit) if errors::is_ours(py, &error) => errors::to_py(py, &limit::ran_out(limit)),
            _ => error,
        })
    }

    /// Updates the state of the statement after a read. `pulled` is `Ok(false)` after the last row.
    fn after(&mut self, py: Python<'_>, pulled: PyResult<bool>) -> PyResult<()> {
        match pulled {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.seen = Vec::new();
                let rest = std::mem::replace(&mut self.rest, StatementRest::End(None));
                if let StatementRest::Open(mut statement) = rest {
                    self.row_count = statement.inner().row_count();
                    if statement.inner().has_further() {
                        self.rest = StatementRest::End(Some(statement));
                    }
                }
                Ok(())
            }
            Err(error) => {
                self.fail(py, &error);
                Err(error)
            }
        }
    }

    /// Discards the remaining rows and advances to the next result with rows.
    ///
    /// # Errors
    /// The error of the database or of a signal handler.
    pub(crate) fn into_next(self, py: Python<'_>) -> PyResult<Option<Statement>> {
        let limit = self.limit;
        let Some(mut statement) = self.into_further(py)? else {
            return Ok(None);
        };
        let inner = statement.inner();
        let cancel = inner.cancel_handle();
        let watch = CallWatch::start(limit, || cancel.clone());
        let found = interrupt::detached(py, || cancel, || inner.next_set())?;
        let found = found.map_err(|e| in_time(py, errors::to_py(py, &e), watch))?;
        Ok(found.then(|| statement.into_inner()))
    }

    /// Returns the statement, which the caller then advances to its next result.
    ///
    /// # Errors
    /// The error that ended the statement.
    pub(crate) fn into_further(self, py: Python<'_>) -> PyResult<Option<Box<Detached<Statement>>>> {
        match self.rest {
            StatementRest::Open(statement) | StatementRest::End(Some(statement)) => {
                Ok(Some(statement))
            }
            StatementRest::End(None) => Ok(None),
            StatementRest::Failed(error) => Err(error),
            StatementRest::Away => Err(errors::interface(py, AWAY)),
        }
    }

    /// Marks the statement as failed. Later fetches then raise an error and do not skip lost rows.
    fn fail(&mut self, py: Python<'_>, error: &PyErr) {
        self.rest = StatementRest::Failed(match errors::is_ours(py, error) {
            true => errors::again(py, error),
            false => errors::interface(
                py,
                "the statement ended when it was interrupted\nexecute it again",
            ),
        });
    }
}

/// Replaces `error` by a time limit error if `watch` reports an expired limit.
fn in_time(py: Python<'_>, error: PyErr, watch: Option<CallWatch>) -> PyErr {
    match watch.and_then(CallWatch::ran_out) {
        Some(late) if errors::is_ours(py, &error) => errors::to_py(py, &late),
        _ => error,
    }
}

/// A driver object. `Detached` releases the GIL while it drops the object.
pub(crate) struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    pub(crate) fn new(inner: T) -> Detached<T> {
        Detached(Some(inner))
    }

    pub(crate) fn inner(&mut self) -> &mut T {
        self.0
            .as_mut()
            .expect("only `into_inner` and `drop` take it")
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("only this and `drop` take it")
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        if let Some(inner) = self.0.take() {
            let mut inner = Some(inner);
            // The interpreter is ending, so the GIL cannot be released.
            gil::try_attach(|py| gil::detach(py, || drop(inner.take())));
        }
    }
}
