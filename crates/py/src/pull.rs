//! The next rows of a statement, made into tuples or columns.
//!
//! Blocks of a driver are fetched detached, unless they are there already; a source without blocks (SQLite) is stepped
//! attached.

use std::cell::RefCell;

use onecopy_rows::connect::StatementVisitor;
use onecopy_rows::{
    AttachedHost, Block, BlockPosition, Budget, DatabaseStatement, Fetched, PumpError, Pumped,
    RowSink, Source,
};
use onecopy_text::Tally;
use pyo3::prelude::*;

use crate::arrow::PyColumns;
use crate::errors;
use crate::raw::collector::HeldOff;
use crate::raw::ending;
use crate::raw::interrupt;
use crate::rows::PyRows;
use crate::turn;

/// Rows of a block that become tuples at a time: the tuples of a batch stay in cache while its columns are gone through.
pub(crate) const BATCH_ROWS: usize = 512;

/// Rows of SQLite that go into columns at a time: numbers need no cache of their own.
const COLUMN_ROWS: usize = 4096;

/// Whose turn it is while SQLite steps attached.
struct Host<'py> {
    py: Python<'py>,
    /// What a signal handler raised.
    raised: RefCell<Option<PyErr>>,
}

impl AttachedHost for Host<'_> {
    fn turn(&self) -> bool {
        match turn::take(self.py) {
            Ok(()) => true,
            Err(raised) => {
                self.raised.replace(Some(raised));
                false
            }
        }
    }

    fn released(&self, wait: &mut (dyn FnMut() + Send)) {
        ending::detach(self.py, wait);
    }
}

/// Why stepping failed: the sink's error has no row yet.
enum Failed<E> {
    Before(PyErr),
    Sink(E),
}

/// The next rows as tuples. Returns whether more rows may come.
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
            Failed::Before(e) => e,
            Failed::Sink(e) => {
                let row = n_given + sink.rows().n_complete() as u64;
                e.into_py(py, statement.schema(), row)
            }
        })
    }
}

/// The next rows into columns. Returns whether more rows may come.
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
            Failed::Before(e) => e,
            Failed::Sink(e) => {
                let row = n_given + (sink.n_rows() - n_before) as u64;
                e.into_py(py, statement.schema(), row)
            }
        })
    }
}

/// A source without blocks: stepped attached, cell by cell out of its own memory. Returns whether more rows may come.
fn stepped<S: Source, R: RowSink>(
    py: Python<'_>,
    statement: &mut S,
    position: &mut BlockPosition,
    limit: usize,
    sink: &mut R,
) -> Result<bool, Failed<R::Error>> {
    let host = Host {
        py,
        raised: RefCell::new(None),
    };
    let budget = Budget {
        block_rows: limit,
        ..Budget::default()
    };
    let pumped = statement.pump_attached(position, budget, sink, &host);
    if let Some(raised) = host.raised.into_inner() {
        return Err(Failed::Before(raised));
    }
    match pumped {
        Ok(Pumped::More) => Ok(true),
        Ok(Pumped::End) => Ok(false),
        Err(PumpError::Source(e)) => Err(Failed::Before(errors::to_py(py, &e))),
        Err(PumpError::Sink(e)) => Err(Failed::Sink(e)),
    }
}

/// A driver's next block, where nothing is left of the one before; detached, unless its rows are there already. Whether there
/// are rows; the bytes of text that fetching has moved go to `moved`.
fn next_block<S: Source>(
    py: Python<'_>,
    statement: &mut S,
    position: &mut BlockPosition,
    moved: &mut Tally,
) -> PyResult<bool> {
    if position.next_row >= position.n_rows {
        // An error is large, and would be copied from frame to frame in the form of a result without one: boxed.
        let fetched = if statement.is_ready() {
            // To let the GIL go and have it back may take another thread's whole turn; turns are given between two pulls.
            py.check_signals()?;
            statement.fetch(Budget::default()).map_err(Box::new)
        } else if statement.is_at_hand() {
            // Detached, since another thread may be in a call on the connection; nothing is there for Ctrl-C to cancel.
            py.check_signals()?;
            ending::detach(py, || statement.fetch(Budget::default()).map_err(Box::new))
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

/// A driver: the rest of its block into columns. Returns whether more rows may come.
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
    // A cell failed, in column order: once more in row order, so that it is the first.
    let schema = statement.schema();
    let mut again = PyColumns::new(py, schema, sink.policy(), n_rows)?;
    Err(match block.emit(position.next_row, &mut again) {
        Ok(_) => error.into_py(py, schema, n_given),
        Err(error) => error.into_py(py, schema, n_given + again.n_rows() as u64),
    })
}

/// A driver: one detached fetch per block, then columns of its rows. Returns whether more rows may come.
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
    // A cell failed, in column order: once more in row order, so that the rows before it come out and it is the first.
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
