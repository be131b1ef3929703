//! `CursorState`: the current result of a cursor and its prepared row tuples.

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

/// The state of a cursor: its current result and its prepared row tuples.
#[derive(Default)]
pub(super) struct CursorState {
    pub(super) closed: bool,
    /// The statement that returns rows. `None` without rows, or if a stream owns them.
    pub(super) active: Option<Active>,
    /// The Arrow stream of this result, until a reader requests its rows.
    pub(super) stream: Option<Py<ArrowStream>>,
    pub(super) n_columns: usize,
    pub(super) schema: Schema,
    /// The number of the current result of this cursor, starting with 1.
    pub(super) result: u64,
    /// The output parameters of a procedure, until their values arrive.
    pub(super) outputs: Option<Outputs>,
    /// The indices of the columns that `defer` omits from rows.
    pub(super) deferred: Vec<usize>,
    /// The row of the last `open_text` or `open_binary` call, and its opened columns in order.
    pub(super) opened: (usize, Vec<usize>),
    /// The attribute `description`; `None` until its first read.
    pub(super) description: Option<Py<PyTuple>>,
    pub(super) row_count: i64,
    pub(super) last_row_id: Option<i64>,
    /// The row factory and the converters.
    pub(super) maker: Option<Arc<Maker>>,
    /// The number of returned rows of the current result.
    pub(super) n_taken: usize,
    /// The warnings and notices of the last call, as items of `messages`.
    pub(super) messages: Vec<Py<PyAny>>,
    /// The prepared tuples for `fetchone` and iteration.
    pub(super) ready: std::vec::IntoIter<Py<PyTuple>>,
    /// The number of tuples that the next fetch prepares: 1, then 16, then [`AHEAD_ROWS`].
    pub(super) ahead: usize,
    /// The error of a fetch. It is raised after all rows in `ready`.
    pub(super) failure: Option<PyErr>,
}

/// `AsNeeded` waits for the database. `OnlyReady` returns only the rows that have arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Receiving {
    AsNeeded,
    OnlyReady,
}

impl Cursor {
    /// Makes `statement` the current statement and creates its row factory. `is_late` is `true` if
    /// the time limit has expired.
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
        // This unlocks the cursor: a row factory is Python code and may use it.
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

    /// Fetches up to `limit` rows and calls `take` with each batch. The rows before an error reach
    /// `take` first.
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

    /// Fills `sink` with the next rows of one fetched block, at most `limit`.
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

    /// Returns the next row; `None` at the end.
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
            // Returns the rows before the error first. The exception of a signal handler has no
            // delay.
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

    /// Puts the fetched tuples `left` back, if `result` is still the number of the current result.
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

    /// Returns up to `limit` rows as a list of columns. After an error, each later fetch fails.
    pub(super) fn columns(&self, py: Python<'_>, limit: usize) -> PyResult<Py<PyList>> {
        let mut state = self.with_rows(py)?;
        let schema = state.schema.clone();
        let values = ColumnValues::new(&schema);
        let (values, _) = self.add_columns(py, &mut state, limit, Receiving::AsNeeded, values)?;
        values.finish(py, &schema).map(Bound::unbind)
    }

    /// Appends the next rows to `values`, up to `limit`. Returns `false` if the next row has not
    /// arrived yet.
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
    /// Creates the state of a cursor without a statement.
    pub(super) fn nothing() -> CursorState {
        CursorState {
            row_count: -1,
            ..CursorState::default()
        }
    }

    /// Returns `true` if the next fetch does not wait for the database.
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

/// Returns the result of a fetch that failed after `rows`. Only a limited fetch returns these rows.
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

/// The maximum number of prepared tuples. They fit into the processor's cache.
const AHEAD_ROWS: usize = 256;
