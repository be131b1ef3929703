//! `Active`: an executed statement of a cursor, until all of its rows have been returned.

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

/// The time for which a thread reads rows without interruption. After this time, the thread lets
/// other threads acquire the GIL, and runs signal handlers.
const TURN: Duration = Duration::from_millis(4);

/// An executed statement of a cursor, and the position of its next row.
pub(crate) struct Active {
    rest: StatementRest,
    position: BlockPosition,
    /// `true` once the caller has requested a row of this statement.
    is_touched: bool,
    /// The number of rows of the current result that were converted to Python tuples so far.
    n_given: u64,
    /// The number of rows that the statement has changed; `None` if the number is not known. For a
    /// statement with RETURNING, SQLite reports the number only after the last row.
    pub(crate) row_count: Option<u64>,
    /// The time limit of each driver call; `None` for no limit.
    limit: Option<Duration>,
    /// `true` if a driver call exceeded `limit`. Rows that were fetched before that call are still
    /// returned, and then the error is raised.
    is_late: bool,
    /// For each column, a cache of recent strings, so that equal values share one `str` object.
    seen: Vec<TextCache>,
}

const AWAY: &str = "another task waits for rows of this cursor, or was cancelled while it did\n\
                    await its end, or execute the statement again";

/// The state of the statement: it has further rows, has ended, has failed, or is in use by a task
/// on an event loop.
enum StatementRest {
    Open(Box<Detached<Statement>>),
    /// The last row of the result set was fetched. Contains the statement if it has another result
    /// set. If it has none, the statement is already closed, and the value is `None`.
    End(Option<Box<Detached<Statement>>>),
    /// The statement failed. Each later call raises a copy of this exception, made by
    /// [`errors::again`], so that the rows before the failure are never mistaken for a complete
    /// result.
    Failed(PyErr),
    /// A task on an event loop owns the statement while it waits for the next rows.
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

    /// Returns the statement if none of its rows has been fetched, otherwise `None`.
    pub(crate) fn into_untouched(self) -> Option<Statement> {
        match self.rest {
            StatementRest::Open(statement) if !self.is_touched => Some(statement.into_inner()),
            _ => None,
        }
    }

    /// Returns the statement, so that the caller can drop it while the GIL is released. Returns
    /// `None` if the statement was closed, has failed, or is in use by a task on an event loop.
    pub(crate) fn into_statement(self) -> Option<Box<Detached<Statement>>> {
        match self.rest {
            StatementRest::Open(statement) => Some(statement),
            StatementRest::End(further) => further,
            StatementRest::Failed(_) | StatementRest::Away => None,
        }
    }

    /// Omits the values of `columns` from the fetched rows. The caller reads these values in parts
    /// with [`Active::read_part`]. Returns an error if the caller has already requested a row.
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

    /// Reads the next part of a value of the current row, with the GIL released. The value must be
    /// in a column that was passed to [`Active::defer`]. Returns `None` if the value is NULL.
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

    /// Returns a handle that cancels the statement. Returns `None` if the statement has ended, has
    /// failed, or is in use by a task on an event loop.
    pub(crate) fn cancel_handle(&mut self) -> Option<CancelHandle> {
        match &mut self.rest {
            StatementRest::Open(statement) => Some(statement.inner().cancel_handle()),
            _ => None,
        }
    }

    /// Moves the statement out of `self`, for a task that waits for the next rows and then calls
    /// [`Active::put_back`]. Returns `None` if the statement has ended or failed, or was already
    /// moved out.
    pub(crate) fn take_away(&mut self) -> Option<Box<Detached<Statement>>> {
        match std::mem::replace(&mut self.rest, StatementRest::Away) {
            StatementRest::Open(statement) => Some(statement),
            rest => {
                self.rest = rest;
                None
            }
        }
    }

    /// Puts back the statement that [`Active::take_away`] returned. `is_late` is `true` if a driver
    /// call exceeded the time limit in the meantime.
    pub(crate) fn put_back(&mut self, statement: Box<Detached<Statement>>, is_late: bool) {
        self.rest = StatementRest::Open(statement);
        self.is_late |= is_late;
    }

    /// Returns `true` if the next call to [`Active::pull`] will not wait for the database: rows are
    /// available, the last row was fetched, or the statement failed.
    pub(crate) fn is_ready(&mut self) -> bool {
        let at = &self.position;
        match &mut self.rest {
            StatementRest::Open(statement) => {
                at.next_row < at.n_rows || statement.inner().is_ready()
            }
            StatementRest::End(_) | StatementRest::Failed(_) | StatementRest::Away => true,
        }
    }

    /// Returns `true` if the last row of the current result set was fetched, and the statement has
    /// another result set.
    pub(crate) fn has_further(&self) -> bool {
        matches!(self.rest, StatementRest::End(Some(_)))
    }

    /// Returns `true` if the last row of the current result set was fetched.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.rest, StatementRest::End(_))
    }

    /// Runs pending signal handlers and lets other Python threads run, if the time [`TURN`] has
    /// passed since `last_turn`; otherwise does nothing. A Python method that reads several batches
    /// of rows calls this function after each batch.
    ///
    /// # Errors
    /// The exception that a signal handler raises.
    pub(crate) fn between(&mut self, py: Python<'_>, last_turn: &mut Instant) -> PyResult<()> {
        if last_turn.elapsed() >= TURN {
            thread_switch::allow(py).inspect_err(|e| self.fail(py, e))?;
            *last_turn = Instant::now();
        }
        Ok(())
    }

    /// Fills `sink` with tuples of the next rows: at least one row and at most `limit` rows. If no
    /// rows are left, `sink` remains empty.
    ///
    /// # Errors
    /// The error of the database or of a value that cannot be converted, or the exception that a
    /// signal handler raises. `sink` then contains all rows before the failure, and later calls
    /// fail.
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

    /// Appends the next rows to the columns of `sink`: at least one row and at most the number that
    /// `sink` accepts. If no rows are left, nothing is appended.
    ///
    /// # Errors
    /// The error of the database or of a value that cannot be converted, or the exception that a
    /// signal handler raises. The rows that this call has read are lost.
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

    /// Returns `pulled`, which is the result of a read of rows. If `pulled` is an error and the
    /// time limit expired during the read, returns the error for the time limit instead.
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

    /// Updates the state of the statement after an attempt to read rows. `pulled` is `Ok(false)`
    /// after the last row. If `pulled` is an error, the statement is marked as failed.
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

    /// Discards the remaining rows of the current result, and advances the statement to its next
    /// result that has rows. Returns `None` if no later result has rows.
    ///
    /// # Errors
    /// The error of the database, or the exception that a signal handler raises.
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

    /// Returns the statement, so that the caller can advance it to its next result. Returns `None`
    /// if all rows of the current result were read and the statement has no further result.
    ///
    /// # Errors
    /// The error with which the statement has failed.
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

    /// Marks the statement as failed, so that each later call raises an error. Otherwise later
    /// fetches could continue after rows that were lost, and an incomplete result would look
    /// complete.
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

/// Returns the error to raise for a call that failed with `error`. If `watch` reports that the call
/// exceeded its time limit, an error of this library is replaced by an error for the time limit.
/// `watch` is `None` if there is no limit.
fn in_time(py: Python<'_>, error: PyErr, watch: Option<CallWatch>) -> PyErr {
    match watch.and_then(CallWatch::ran_out) {
        Some(late) if errors::is_ours(py, &error) => errors::to_py(py, &late),
        _ => error,
    }
}

/// An object of a driver, such as a statement. `Detached` releases the GIL while it drops the
/// object: the drop of a statement waits for the lock of its connection, and a thread that holds
/// the GIL must not wait for a lock.
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
            // The interpreter is ending, so the GIL cannot be released: the value is dropped on
            // this thread.
            gil::try_attach(|py| gil::detach(py, || drop(inner.take())));
        }
    }
}
