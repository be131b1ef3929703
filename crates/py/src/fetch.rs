//! A statement whose rows are being read, and how it ends.

use std::time::{Duration, Instant};

use onecopy_rows::connect::Statement;
use onecopy_rows::{BlockPosition, LongPart};
use pyo3::prelude::*;

use crate::arrow::PyColumns;
use crate::errors;
use crate::limit::Watch;
use crate::pull::{PullColumns, PullRows};
use crate::raw::ending;
use crate::raw::interrupt;
use crate::raw::seen::Seen;
use crate::rows::PyRows;
use crate::turn;

/// How long rows are read attached between two turns of the host's other threads and signal handlers.
const TURN: Duration = Duration::from_millis(4);

/// A statement whose rows are being read.
pub(crate) struct Active {
    rest: Rest,
    position: BlockPosition,
    /// Whether rows were asked for.
    is_touched: bool,
    /// Rows that became tuples so far.
    n_given: u64,
    /// Rows changed, as known after the last row: SQLite counts those of RETURNING only then.
    pub(crate) row_count: Option<u64>,
    /// Of each call of the driver.
    limit: Option<Duration>,
    /// Texts that stood in its columns before.
    seen: Vec<Seen>,
}

/// What is left of a statement.
enum Rest {
    Open(Box<Detached<Statement>>),
    /// The last row was fetched, and the statement closed at once, unless a further result stands behind it.
    End(Option<Box<Detached<Statement>>>),
    /// It failed, and says so again: what was cut short must not look complete. Never raised itself: see [`errors::again`].
    Failed(PyErr),
}

impl Active {
    pub(crate) fn new(statement: Statement, limit: Option<Duration>) -> Active {
        Active {
            rest: Rest::Open(Box::new(Detached::new(statement))),
            position: BlockPosition::default(),
            is_touched: false,
            n_given: 0,
            row_count: None,
            limit,
            seen: Vec::new(),
        }
    }

    /// The statement, where none of its rows was fetched yet.
    pub(crate) fn into_untouched(self) -> Option<Statement> {
        match self.rest {
            Rest::Open(statement) if !self.is_touched => Some(statement.into_inner()),
            _ => None,
        }
    }

    /// The statement, to be ended where that is done detached anyway.
    pub(crate) fn into_statement(self) -> Option<Box<Detached<Statement>>> {
        match self.rest {
            Rest::Open(statement) => Some(statement),
            Rest::End(further) => further,
            Rest::Failed(_) => None,
        }
    }

    /// Leaves columns out of rows, where none was fetched yet.
    pub(crate) fn defer(&mut self, py: Python<'_>, columns: Vec<usize>) -> PyResult<()> {
        match &mut self.rest {
            Rest::Open(statement) if !self.is_touched => statement
                .inner()
                .defer(columns)
                .map_err(|e| errors::to_py(py, &e)),
            _ => Err(errors::programming(
                py,
                "rows were fetched already\ndefer columns before the first of them",
            )),
        }
    }

    /// The next part of a deferred value of the current row, detached; `None` for NULL.
    pub(crate) fn read_part(
        &mut self,
        py: Python<'_>,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> PyResult<Option<LongPart>> {
        let Rest::Open(statement) = &mut self.rest else {
            return Err(errors::programming(py, "there is no row to read it from"));
        };
        let statement = statement.inner();
        let cancel = statement.cancel_handle();
        let watch = Watch::start(self.limit, || cancel.clone());
        let part = interrupt::detached(
            py,
            || cancel,
            || statement.read_part(column, offset, buffer),
        )?;
        part.map_err(|e| in_time(py, errors::to_py(py, &e), watch))
    }

    /// Whether a further result stands behind the last row.
    pub(crate) fn has_further(&self) -> bool {
        matches!(self.rest, Rest::End(Some(_)))
    }

    /// Whether the last row was fetched.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.rest, Rest::End(_))
    }

    /// Between two pulls of one call: lets other threads run where a turn is due, and runs signal handlers.
    ///
    /// # Errors
    /// What a handler raised.
    pub(crate) fn between(&mut self, py: Python<'_>, last_turn: &mut Instant) -> PyResult<()> {
        if last_turn.elapsed() >= TURN {
            turn::take(py).inspect_err(|e| self.fail(py, e))?;
            *last_turn = Instant::now();
        }
        Ok(())
    }

    /// Makes tuples of the next rows in `sink`: at least one and up to `limit`, none at the end.
    ///
    /// # Errors
    /// Of the source, of a cell, or what a signal handler raised. The rows before the failure are complete in `sink`;
    /// no more will come.
    pub(crate) fn pull<'py>(
        &mut self,
        py: Python<'py>,
        limit: usize,
        sink: &mut PyRows<'py>,
    ) -> PyResult<()> {
        let statement = match &mut self.rest {
            Rest::Open(statement) => statement,
            Rest::End(_) => return Ok(()),
            Rest::Failed(error) => return Err(errors::again(py, error)),
        };
        self.is_touched = true;
        sink.set_limit(limit);
        let n_columns = sink.rows().n_columns();
        sink.remember(n_columns, &mut self.seen);
        let watch = Watch::start(self.limit, || statement.inner().cancel_handle());
        let pulled = statement.inner().visit(PullRows {
            py,
            position: &mut self.position,
            limit,
            sink,
            n_given: self.n_given,
        });
        let pulled = pulled.map_err(|e| in_time(py, e, watch));
        sink.rows().cut_incomplete();
        self.n_given += sink.rows().len() as u64;
        self.seen = sink.seen();
        self.after(py, pulled)
    }

    /// Puts the next rows into columns: at least one and up to what `sink` takes, none at the end.
    ///
    /// # Errors
    /// As [`Active::pull`]; no row of this call comes again.
    pub(crate) fn pull_columns(
        &mut self,
        py: Python<'_>,
        sink: &mut PyColumns<'_>,
    ) -> PyResult<()> {
        let statement = match &mut self.rest {
            Rest::Open(statement) => statement,
            Rest::End(_) => return Ok(()),
            Rest::Failed(error) => return Err(errors::again(py, error)),
        };
        self.is_touched = true;
        let watch = Watch::start(self.limit, || statement.inner().cancel_handle());
        let n_before = sink.n_rows();
        let pulled = statement.inner().visit(PullColumns {
            py,
            position: &mut self.position,
            sink,
            n_given: self.n_given,
        });
        let pulled = pulled.map_err(|e| in_time(py, e, watch));
        self.n_given += (sink.n_rows() - n_before) as u64;
        self.after(py, pulled)
    }

    /// Notes how a pull ended.
    fn after(&mut self, py: Python<'_>, pulled: PyResult<bool>) -> PyResult<()> {
        match pulled {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.seen = Vec::new();
                let rest = std::mem::replace(&mut self.rest, Rest::End(None));
                if let Rest::Open(mut statement) = rest {
                    self.row_count = statement.inner().row_count();
                    if statement.inner().has_further() {
                        self.rest = Rest::End(Some(statement));
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

    /// The statement on its next result with rows, those left of this one given up; `None` where there is none.
    ///
    /// # Errors
    /// Of the source, or what a signal handler raised.
    pub(crate) fn into_next(self, py: Python<'_>) -> PyResult<Option<Statement>> {
        let mut statement = match self.rest {
            Rest::Open(statement) | Rest::End(Some(statement)) => statement,
            Rest::End(None) => return Ok(None),
            Rest::Failed(error) => return Err(error),
        };
        let inner = statement.inner();
        let cancel = inner.cancel_handle();
        let watch = Watch::start(self.limit, || cancel.clone());
        let found = interrupt::detached(py, || cancel, || inner.next_set())?;
        let found = found.map_err(|e| in_time(py, errors::to_py(py, &e), watch))?;
        Ok(found.then(|| statement.into_inner()))
    }

    /// Ends it: rows of this fetch may be lost with `error`, so that none may come after it.
    fn fail(&mut self, py: Python<'_>, error: &PyErr) {
        self.rest = Rest::Failed(match errors::is_ours(py, error) {
            true => errors::again(py, error),
            false => errors::interface(
                py,
                "the statement ended when it was interrupted\nexecute it again",
            ),
        });
    }
}

/// The error of a call that failed: that of its time limit, where that ran out.
fn in_time(py: Python<'_>, error: PyErr, watch: Option<Watch>) -> PyErr {
    match watch.and_then(Watch::ran_out) {
        Some(late) if errors::is_ours(py, &error) => errors::to_py(py, &late),
        _ => error,
    }
}

/// Something of a driver that is dropped detached: closing a statement takes the connection's lock, which is never
/// waited for while attached.
pub(crate) struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    pub(crate) fn new(inner: T) -> Detached<T> {
        Detached(Some(inner))
    }

    pub(crate) fn inner(&mut self) -> &mut T {
        self.0
            .as_mut()
            .expect("it is taken by `into_inner` and `drop` alone")
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("it is taken here and by `drop` alone")
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        if let Some(inner) = self.0.take() {
            let mut inner = Some(inner);
            // No interpreter to detach from (it is ending): dropped where we are.
            ending::try_attach(|py| ending::detach(py, || drop(inner.take())));
        }
    }
}
