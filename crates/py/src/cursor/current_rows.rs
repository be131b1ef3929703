//! `CursorState`: the current result of a cursor, and row tuples that were created in advance, so
//! that a later `fetchone` returns them without a call to the driver.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use onecopy_rows::connect::Statement;
use onecopy_rows::{LongValues, Schema};
use onecopy_text::{Ledger, Stage};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::Cursor;
use super::call::Outputs;
use crate::active_statement::Active;
use crate::arrow::{ArrowStream, ColumnValues, PyColumns};
use crate::guard::Locked;
use crate::next_rows::BATCH_ROWS;
use crate::row_maker::Maker;
use crate::rows::PyRows;
use crate::{errors, ledger};

/// The state of a cursor: its current result, and row tuples that were created in advance and not
/// returned yet.
#[derive(Default)]
pub(super) struct CursorState {
    pub(super) closed: bool,
    /// The statement that returns rows. `None` if the last statement returned no rows, or if its
    /// rows now belong to a stream.
    pub(super) active: Option<Active>,
    /// The Arrow stream that owns the rows of this result. `None` unless an Arrow reader has
    /// requested the schema and has not requested the rows yet.
    pub(super) stream: Option<Py<ArrowStream>>,
    pub(super) n_columns: usize,
    pub(super) schema: Schema,
    /// The number of the current result. The results of all statements of the cursor are counted,
    /// starting with 1.
    pub(super) result: u64,
    /// The output parameters of a procedure; `None` after their values have been received.
    pub(super) outputs: Option<Outputs>,
    /// The indices (from 0) of the columns that `defer` omits from rows. Their values are read in
    /// parts.
    pub(super) deferred: Vec<usize>,
    /// The row whose deferred values were opened most recently with `open_text` or `open_binary`.
    /// The first item is the number of the row. The second lists the indices of the opened columns,
    /// in the order in which they were opened.
    pub(super) opened: (usize, Vec<usize>),
    /// The value of the attribute `description`; `None` until it is first read.
    pub(super) description: Option<Py<PyTuple>>,
    pub(super) row_count: i64,
    pub(super) last_row_id: Option<i64>,
    /// The row factory and the converters; `None` if neither is set.
    pub(super) maker: Option<Arc<Maker>>,
    /// The number of rows of the current result that have been returned to the caller.
    pub(super) n_taken: usize,
    /// The warnings and notices that the database sent during the last call, as items of
    /// `messages`.
    pub(super) messages: Vec<Py<PyAny>>,
    /// Tuples that were created in advance, for `fetchone` and iteration, and have not been
    /// returned yet.
    pub(super) ready: std::vec::IntoIter<Py<PyTuple>>,
    /// The number of row tuples that the next fetch creates in advance: 1 for the first fetch, so
    /// that the first row is returned immediately, then 16, and then [`AHEAD_ROWS`].
    pub(super) ahead: usize,
    /// The error of a fetch that failed after it had read some rows. The error is raised after all
    /// rows in `ready` have been returned.
    pub(super) failure: Option<PyErr>,
}

/// The two kinds of fetch: `AsNeeded` may wait for the database; `OnlyReady` returns only rows that
/// have already arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Receiving {
    AsNeeded,
    OnlyReady,
}

impl Cursor {
    /// Makes `statement` the current statement of the cursor, and creates the row factory for its
    /// rows. `is_late` is `true` if the time limit of the statement has expired. The statement was
    /// then cancelled, and only rows that arrived before the cancellation can be read.
    pub(super) fn begin_result(
        &self,
        slf: &Bound<'_, Cursor>,
        mut state: Locked<'_, CursorState>,
        mut statement: Statement,
        is_late: bool,
    ) -> PyResult<()> {
        let py = slf.py();
        let schema = statement.schema().clone();
        state.n_columns = schema.n_columns();
        state.result = 1 + self.n_results.fetch_add(1, Relaxed);
        state.schema = schema.clone();
        let row_count = statement.row_count();
        state.row_count = row_count.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        state.last_row_id = statement.last_row_id();
        for message in statement.take_messages() {
            let message = errors::message(py, &message)?.into_pyobject(py)?;
            state.messages.push(message.into_any().unbind());
        }
        if !schema.has_rows() {
            drop(crate::active_statement::Detached::new(statement));
            return Ok(());
        }
        statement.set_long_values(LongValues::Whole);
        state.active = Some(Active::new(statement, self.limit.get(), is_late));
        // The cursor is unlocked first, because a row factory is Python code, which may use this
        // cursor.
        drop(state);
        let row_factory = self.row_factory.lock(py)?.as_ref().map(|f| f.clone_ref(py));
        let converters = self.connection.get().converters(py);
        let of_cursor = self.converters.get(py).map(|d| d.bind(py));
        if row_factory.is_none() && of_cursor.is_none_or(|d| d.is_empty()) && converters.is_empty()
        {
            return Ok(());
        }
        let row_factory = row_factory.as_ref().map(|f| f.bind(py));
        let maker = Maker::of(
            slf.as_any(),
            &schema,
            row_factory,
            of_cursor,
            Some(converters),
        )?;
        self.state.lock(py)?.maker = maker.map(Arc::new);
        Ok(())
    }

    /// Fetches up to `limit` rows and calls `take` with each batch of fetched rows. If a row causes
    /// an error, `take` first receives the rows before it, and then the error is returned.
    pub(super) fn pull<'py>(
        &self,
        py: Python<'py>,
        state: &mut CursorState,
        limit: usize,
        receiving: Receiving,
        mut take: impl FnMut(&mut PyRows<'py>) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut sink = PyRows::new(py, state.n_columns, self.connection.get().policy())?;
        let ledger = ledger::current(py)?;
        let mut left = limit;
        let mut last_turn = Instant::now();
        while left > 0 && state.has_rows(receiving) {
            let pulled = self.pull_block(py, state, left, &mut sink, &ledger);
            left -= sink.rows().len();
            take(&mut sink)?;
            pulled?;
            if let Some(active) = state.active.as_mut()
                && left > 0
            {
                active.between(py, &mut last_turn)?;
            }
        }
        Ok(())
    }

    /// Fills `sink` with the next rows, at most `limit`. All of them are from one fetched block, so
    /// fewer rows may be added than remain. If no rows are left, `sink` remains empty.
    fn pull_block<'py>(
        &self,
        py: Python<'py>,
        state: &mut CursorState,
        limit: usize,
        sink: &mut PyRows<'py>,
        ledger: &Ledger,
    ) -> PyResult<()> {
        let Some(active) = state.active.as_mut().filter(|a| !a.is_at_end()) else {
            return Ok(());
        };
        let n_rows = if state.deferred.is_empty() {
            BATCH_ROWS
        } else {
            1
        };
        let pulled = active.pull(py, limit.min(n_rows), sink);
        if let Some(n_changed) = active.row_count {
            state.row_count = i64::try_from(n_changed).unwrap_or(-1);
        }
        sink.fetched.enter(ledger, Stage::Fetch);
        sink.tally.enter(ledger, Stage::Decode);
        sink.leave_out(&state.deferred);
        pulled
    }

    /// Returns the next row, for `fetchone` and iteration; `None` if no rows are left.
    #[inline]
    pub(super) fn next_row(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut state = self.with_rows(py)?;
        let mut row = state.ready.next();
        if row.is_none() {
            self.refill(py, &mut state)?;
            row = state.ready.next();
        }
        let Some(row) = row else {
            return Ok(None);
        };
        state.n_taken += 1;
        let Some(maker) = &state.maker else {
            return Ok(Some(row.into_any()));
        };
        let maker = Arc::clone(maker);
        drop(state);
        maker
            .make(row.into_bound(py))
            .map(|made| Some(made.unbind()))
    }

    #[cold]
    fn refill(&self, py: Python<'_>, state: &mut CursorState) -> PyResult<()> {
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        state.ahead = (state.ahead * 16).clamp(1, AHEAD_ROWS);
        let ahead = if state.deferred.is_empty() {
            state.ahead
        } else {
            1 // Deferred values can be read only from the current row.
        };
        let mut sink = PyRows::new(py, state.n_columns, self.connection.get().policy())?;
        let pulled = self.pull_block(py, state, ahead, &mut sink, &ledger::current(py)?);
        let rows: Vec<_> = sink.rows().take().map(Bound::unbind).collect();
        let is_empty = rows.is_empty();
        state.ready = rows.into_iter();
        match pulled {
            // The rows before the error are returned first. The exception of a signal handler is
            // raised immediately.
            Err(failure) if !is_empty && errors::is_ours(py, &failure) => {
                state.failure = Some(failure);
                Ok(())
            }
            pulled => pulled,
        }
    }

    pub(super) fn fetch(
        &self,
        py: Python<'_>,
        limit: usize,
        receiving: Receiving,
    ) -> PyResult<Py<PyList>> {
        let mut state = self.with_rows(py)?;
        let rows = self.fetch_tuples(py, &mut state, limit, receiving)?;
        state.n_taken += rows.len();
        if let Some(maker) = state.maker.clone() {
            let result = state.result;
            drop(state);
            for (i, row) in rows.iter().enumerate() {
                match maker.make(row.cast_into()?) {
                    Ok(made) => rows.set_item(i, made)?,
                    Err(failure) => {
                        let left = rows.get_slice(i + 1, rows.len());
                        self.put_back(py, result, &left)?;
                        return Err(failure);
                    }
                }
            }
        }
        Ok(rows.unbind())
    }

    /// Makes the tuples `left` the next rows of the result again. A fetch has received these tuples
    /// but not returned them. `result` is the number of the result. Does nothing if the row factory
    /// (Python code) has replaced or closed this result.
    fn put_back(&self, py: Python<'_>, result: u64, left: &Bound<'_, PyList>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        if state.result == result && !state.closed {
            let mut rows = left.extract::<Vec<Py<PyTuple>>>()?;
            state.n_taken -= rows.len();
            rows.extend(state.ready.by_ref());
            state.ready = rows.into_iter();
        }
        Ok(())
    }

    /// Returns up to `limit` rows as a list of columns. An error loses the rows of this fetch. Each
    /// later fetch therefore fails too, so that an incomplete result does not look complete.
    pub(super) fn columns(&self, py: Python<'_>, limit: usize) -> PyResult<Py<PyList>> {
        let mut state = self.with_rows(py)?;
        let schema = state.schema.clone();
        let values = ColumnValues::new(&schema);
        let (values, _) = self.add_columns(py, &mut state, limit, Receiving::AsNeeded, values)?;
        values.finish(py, &schema).map(Bound::unbind)
    }

    /// Appends the next rows to `values`. Stops at `limit` rows, or at the end of the result. With
    /// `Receiving::OnlyReady`, also stops when the next row has not arrived from the database yet.
    /// In this case the returned `bool` is `false`; otherwise it is `true`.
    pub(super) fn add_columns(
        &self,
        py: Python<'_>,
        state: &mut CursorState,
        limit: usize,
        receiving: Receiving,
        values: ColumnValues,
    ) -> PyResult<(ColumnValues, bool)> {
        if state.ready.len() > 0 || state.failure.is_some() {
            return Err(errors::programming(
                py,
                "rows of this statement were prefetched for `fetchone` or iteration\n\
                 fetch only columns, or only rows",
            ));
        }
        if !state.deferred.is_empty() {
            return Err(errors::programming(
                py,
                "the statement has deferred columns, and `fetch_columns` returns complete columns\n\
                 execute the statement without `defer`",
            ));
        }
        let n_before = values.n_rows();
        let policy = self.connection.get().policy();
        let mut sink = PyColumns::new(py, &state.schema, policy, limit, values)?;
        let ledger = ledger::current(py)?;
        let mut last_turn = Instant::now();
        while sink.n_left() > 0 && state.has_rows(receiving) {
            let active = state.active.as_mut();
            let active = active.expect("`with_rows` has looked for it");
            let pulled = active.pull_columns(py, &mut sink);
            sink.objects.fetched.enter(&ledger, Stage::Fetch);
            sink.objects.tally.enter(&ledger, Stage::Decode);
            pulled?;
            active.between(py, &mut last_turn)?;
        }
        state.n_taken += sink.n_rows() - n_before;
        let is_complete = sink.n_left() == 0 || state.active.as_ref().is_none_or(Active::is_at_end);
        Ok((sink.into_values(), is_complete))
    }

    pub(super) fn fetch_tuples<'py>(
        &self,
        py: Python<'py>,
        state: &mut CursorState,
        limit: usize,
        receiving: Receiving,
    ) -> PyResult<Bound<'py, PyList>> {
        let n_ready = state.ready.len().min(limit);
        let rows = PyList::empty(py);
        for row in state.ready.by_ref().take(n_ready) {
            rows.append(row)?;
        }
        if n_ready < limit {
            if let Some(failure) = state.failure.take() {
                return partial(state, rows, limit, failure);
            }
            let pulled = self.pull(py, state, limit - n_ready, receiving, |sink| {
                sink.rows().append_to(&rows)
            });
            if let Err(failure) = pulled {
                return partial(state, rows, limit, failure);
            }
        }
        Ok(rows)
    }
}

impl CursorState {
    /// Creates the state of a cursor that has not executed a statement.
    pub(super) fn nothing() -> CursorState {
        CursorState {
            row_count: -1,
            ..CursorState::default()
        }
    }

    /// Returns `true` if the next fetch does not have to wait for the database, because a row, an
    /// error or the end of the rows is already available.
    pub(super) fn is_ready(&mut self) -> bool {
        self.ready.len() > 0
            || self.failure.is_some()
            || self.active.as_mut().is_none_or(Active::is_ready)
    }

    fn has_rows(&mut self, receiving: Receiving) -> bool {
        let active = self.active.as_mut().filter(|a| !a.is_at_end());
        active.is_some_and(|a| receiving == Receiving::AsNeeded || a.is_ready())
    }
}

/// Returns the result of a fetch that has read `rows` and then failed. A fetch of a limited number
/// of rows returns `rows`, and the next call raises the error. A fetch of all rows raises the error
/// immediately, because the truncated rows would look complete.
fn partial<'py>(
    state: &mut CursorState,
    rows: Bound<'py, PyList>,
    limit: usize,
    failure: PyErr,
) -> PyResult<Bound<'py, PyList>> {
    if limit == usize::MAX || rows.is_empty() || !errors::is_ours(rows.py(), &failure) {
        return Err(failure);
    }
    state.failure = Some(failure);
    Ok(rows)
}

/// The largest number of tuples that are created before iteration requests them. It is large enough
/// to make the cost of each call to the driver negligible per row, and small enough that the tuples
/// remain in the processor's cache.
const AHEAD_ROWS: usize = 256;
