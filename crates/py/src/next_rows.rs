//! Fetches the next rows of a statement, and converts them to tuples or columns.
//!
//! A driver fetches a block of rows without the GIL. SQLite's rows are fetched one at a time, with
//! the GIL held.

use std::cell::RefCell;

use onecopy_rows::connect::StatementVisitor;
use onecopy_rows::{
    AttachedHost, Block, BlockPosition, Budget, DatabaseStatement, Fetched, PumpError, Pumped,
    RowSink, Source,
};
use onecopy_text::Tally;
use pyo3::prelude::*;

use crate::arrow::{ColumnValues, PyColumns};
use crate::errors;
use crate::raw::collector::HeldOff;
use crate::raw::gil;
use crate::raw::interrupt;
use crate::rows::PyRows;
use crate::thread_switch;

/// The number of rows that are converted to tuples in one batch. The tuples of a batch fit into the
/// processor's cache.
pub(crate) const BATCH_ROWS: usize = 512;

/// The number of SQLite rows that are added to columns in one batch.
const COLUMN_ROWS: usize = 4096;

/// Lets other threads and signal handlers run while a SQLite statement holds the GIL.
struct SteppingHost<'py> {
    py: Python<'py>,
    /// The exception of a signal handler, if any.
    raised: RefCell<Option<PyErr>>,
}

impl AttachedHost for SteppingHost<'_> {
    fn turn(&self) -> bool {
        match thread_switch::allow(self.py) {
            Ok(()) => true,
            Err(raised) => {
                self.raised.replace(Some(raised));
                false
            }
        }
    }

    fn released(&self, wait: &mut (dyn FnMut() + Send)) {
        gil::detach(self.py, wait);
    }
}

/// An error while rows are passed to a sink. `Before`: an exception before the sink receives a
/// cell. `Sink`: an error of the sink, without the row number.
enum StepFailure<E> {
    Before(PyErr),
    Sink(E),
}

/// A [`StatementVisitor`] that fetches rows as tuples. Its result is `true` if more rows may
/// follow.
pub(crate) struct PullRows<'p, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) position: &'p mut BlockPosition,
    pub(crate) limit: usize,
    pub(crate) sink: &'p mut PyRows<'py>,
    pub(crate) n_given: u64,
}

impl StatementVisitor for PullRows<'_, '_> {
    type Output = PyResult<bool>;

    fn visit<S: DatabaseStatement>(self, statement: &mut S) -> PyResult<bool> {
        let PullRows {
            py,
            position,
            limit,
            sink,
            n_given,
        } = self;
        if S::HAS_BLOCKS {
            return block(py, statement, position, limit, sink, n_given);
        }
        stepped(py, statement, position, limit, sink).map_err(|failed| match failed {
            StepFailure::Before(e) => e,
            StepFailure::Sink(e) => {
                let row = n_given + sink.rows().n_complete() as u64;
                e.into_py(py, statement.schema(), row)
            }
        })
    }
}

/// A [`StatementVisitor`] that adds rows to columns. Its result is `true` if more rows may follow.
pub(crate) struct PullColumns<'p, 'py> {
    pub(crate) py: Python<'p>,
    pub(crate) position: &'p mut BlockPosition,
    pub(crate) sink: &'p mut PyColumns<'py>,
    pub(crate) n_given: u64,
}

impl StatementVisitor for PullColumns<'_, '_> {
    type Output = PyResult<bool>;

    fn visit<S: DatabaseStatement>(self, statement: &mut S) -> PyResult<bool> {
        let PullColumns {
            py,
            position,
            sink,
            n_given,
        } = self;
        if S::HAS_BLOCKS {
            return columns(py, statement, position, sink, n_given);
        }
        let _held_off = HeldOff::new(py);
        let limit = sink.n_left().min(COLUMN_ROWS);
        let n_before = sink.n_rows();
        stepped(py, statement, position, limit, sink).map_err(|failed| match failed {
            StepFailure::Before(e) => e,
            StepFailure::Sink(e) => {
                let row = n_given + (sink.n_rows() - n_before) as u64;
                e.into_py(py, statement.schema(), row)
            }
        })
    }
}

/// Converts the next rows of SQLite, with the GIL held. Returns `true` if more rows may follow.
fn stepped<S: Source, R: RowSink>(
    py: Python<'_>,
    statement: &mut S,
    position: &mut BlockPosition,
    limit: usize,
    sink: &mut R,
) -> Result<bool, StepFailure<R::Error>> {
    let host = SteppingHost {
        py,
        raised: RefCell::new(None),
    };
    let budget = Budget {
        block_rows: limit,
        ..Budget::default()
    };
    let pumped = statement.pump_attached(position, budget, sink, &host);
    if let Some(raised) = host.raised.into_inner() {
        return Err(StepFailure::Before(raised));
    }
    match pumped {
        Ok(Pumped::More) => Ok(true),
        Ok(Pumped::End) => Ok(false),
        Err(PumpError::Source(e)) => Err(StepFailure::Before(errors::to_py(py, &e))),
        Err(PumpError::Sink(e)) => Err(StepFailure::Sink(e)),
    }
}

/// Fetches the next block if the current block is empty. Returns `true` if there are rows to
/// convert. `moved` counts the bytes of text that the driver's reader moved.
fn next_block<S: Source>(
    py: Python<'_>,
    statement: &mut S,
    position: &mut BlockPosition,
    moved: &mut Tally,
) -> PyResult<bool> {
    if position.next_row >= position.n_rows {
        // The error is boxed because each function that returns the result would copy it.
        let fetched = if statement.is_ready() {
            // The rows are in memory, so the GIL is not released. Other threads can run between two
            // fetches.
            py.check_signals()?;
            statement.fetch(Budget::default()).map_err(Box::new)
        } else if statement.is_at_hand() {
            // Another thread may hold the lock of the connection, so the GIL is released. Ctrl-C
            // has no call to cancel here.
            py.check_signals()?;
            gil::detach(py, || statement.fetch(Budget::default()).map_err(Box::new))
        } else {
            let cancel = statement.cancel_handle();
            interrupt::detached(
                py,
                || cancel,
                || statement.fetch(Budget::default()).map_err(Box::new),
            )?
        };
        moved.copied_again(statement.take_moved_bytes());
        match fetched.map_err(|e| errors::to_py(py, &e))? {
            Fetched::End => return Ok(false),
            Fetched::Rows(n_rows) => {
                *position = BlockPosition {
                    next_row: 0,
                    n_rows,
                }
            }
        }
    }
    Ok(true)
}

/// Adds rows of the current block to columns. Fetches the next block if necessary. Returns `true`
/// if more rows may follow.
fn columns<S: Source>(
    py: Python<'_>,
    statement: &mut S,
    position: &mut BlockPosition,
    sink: &mut PyColumns<'_>,
    n_given: u64,
) -> PyResult<bool> {
    if !next_block(py, statement, position, &mut sink.objects.fetched)? {
        return Ok(false);
    }
    let n_rows = sink.n_left().min(position.n_rows - position.next_row);
    let block = statement.block();
    let held_off = HeldOff::new(py);
    let emitted = block.emit_columns(position.next_row, n_rows, sink);
    drop(held_off);
    let Err(error) = emitted else {
        position.next_row += n_rows;
        return Ok(true);
    };
    // A cell failed in column order. A second pass in row order finds the first failing cell.
    let schema = statement.schema();
    let values = ColumnValues::new(schema);
    let mut again = PyColumns::new(py, schema, sink.policy(), n_rows, values)?;
    Err(match block.emit(position.next_row, &mut again) {
        Ok(_) => error.into_py(py, schema, n_given),
        Err(error) => error.into_py(py, schema, n_given + again.n_rows() as u64),
    })
}

/// Adds rows of the current block to the sink. Fetches the next block if necessary. Returns `true`
/// if more rows may follow.
fn block<'py, S: Source>(
    py: Python<'py>,
    statement: &mut S,
    position: &mut BlockPosition,
    limit: usize,
    sink: &mut PyRows<'py>,
    n_given: u64,
) -> PyResult<bool> {
    if !next_block(py, statement, position, &mut sink.fetched)? {
        return Ok(false);
    }
    let n_rows = limit
        .min(BATCH_ROWS)
        .min(position.n_rows - position.next_row);
    let block = statement.block();
    if block.emit_columns(position.next_row, n_rows, sink).is_ok() {
        position.next_row += n_rows;
        return Ok(true);
    }
    // A cell failed in column order. A second pass in row order returns the rows before the first
    // failing cell.
    sink.clear();
    sink.set_limit(n_rows);
    match block.emit(position.next_row, sink) {
        Ok(_) => {
            position.next_row += sink.rows().n_complete();
            Ok(true)
        }
        Err(e) => {
            let row = n_given + sink.rows().n_complete() as u64;
            Err(e.into_py(py, statement.schema(), row))
        }
    }
}
