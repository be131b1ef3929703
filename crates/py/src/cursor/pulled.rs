//! Rows of a cursor: what a statement gives, pulled and made ahead.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use onecopy_rows::connect::Statement;
use onecopy_rows::{LongValues, Schema};
use onecopy_text::Stage;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::Cursor;
use super::call::Outputs;
use crate::arrow::{ArrowStream, PyColumns};
use crate::fetch::Active;
use crate::guard::Locked;
use crate::maker::Maker;
use crate::pull::BATCH_ROWS;
use crate::rows::PyRows;
use crate::{errors, ledger};

/// What the last statement left.
#[derive(Default)]
pub(super) struct State {
    pub(super) closed: bool,
    /// Its rows; `None` for a statement without rows, and after a stream took them.
    pub(super) active: Option<Active>,
    /// They are a stream's, of which the types were asked for first.
    pub(super) stream: Option<Py<ArrowStream>>,
    pub(super) n_columns: usize,
    pub(super) schema: Schema,
    /// Which result of the cursor it is, counted from 1.
    pub(super) result: u64,
    /// Where output parameters of a procedure are awaited.
    pub(super) outputs: Option<Outputs>,
    /// Columns left out of rows.
    pub(super) deferred: Vec<usize>,
    /// The row (its number) of which deferred values were opened, and their columns in that order.
    pub(super) opened: (usize, Vec<usize>),
    /// Made when it is asked for.
    pub(super) description: Option<Py<PyTuple>>,
    pub(super) row_count: i64,
    pub(super) last_row_id: Option<i64>,
    /// What becomes of the tuples, where that is something.
    pub(super) maker: Option<Arc<Maker>>,
    /// Rows handed out of the current result.
    pub(super) n_taken: usize,
    /// What the database said beside the result.
    pub(super) messages: Vec<Py<PyAny>>,
    /// Tuples made ahead of `fetchone` and iteration.
    pub(super) ready: std::vec::IntoIter<Py<PyTuple>>,
    /// How many to make ahead next time: 1, 16, then all, so that the first row comes at once.
    pub(super) ahead: usize,
    /// An error that came after the rows in `ready`.
    pub(super) failure: Option<PyErr>,
}

impl Cursor {
    /// Notes what a statement gives, and what is to become of its rows.
    pub(super) fn begin_result(
        &self,
        slf: &Bound<'_, Cursor>,
        mut state: Locked<'_, State>,
        mut statement: Statement,
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
        if state.n_columns == 0 {
            drop(crate::fetch::Detached::new(statement));
            return Ok(());
        }
        statement.set_long_values(LongValues::Whole);
        state.active = Some(Active::new(statement, self.limit.get()));
        // A row factory is code of the user's, which may use this cursor.
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

    /// Up to `limit` further rows, handed to `take` in batches; an error comes after the rows before it.
    pub(super) fn pull<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        limit: usize,
        mut take: impl FnMut(&mut PyRows<'py>) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut sink = PyRows::new(py, state.n_columns, self.connection.get().policy())?;
        let ledger = ledger::current(py)?;
        let mut left = limit;
        let mut last_turn = Instant::now();
        while left > 0 {
            let Some(active) = state.active.as_mut().filter(|a| !a.is_at_end()) else {
                break;
            };
            let n_rows = if state.deferred.is_empty() {
                BATCH_ROWS
            } else {
                1
            };
            let pulled = active.pull(py, left.min(n_rows), &mut sink);
            if let Some(n_changed) = active.row_count {
                state.row_count = i64::try_from(n_changed).unwrap_or(-1);
            }
            sink.fetched.enter(&ledger, Stage::Fetch);
            sink.tally.enter(&ledger, Stage::Decode);
            left -= sink.rows().len();
            sink.leave_out(&state.deferred);
            take(&mut sink)?;
            pulled?;
            if left > 0 {
                active.between(py, &mut last_turn)?;
            }
        }
        Ok(())
    }

    /// The next row for `fetchone` and iteration.
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
    fn refill(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        state.ahead = (state.ahead * 16).clamp(1, AHEAD_ROWS);
        let ahead = if state.deferred.is_empty() {
            state.ahead
        } else {
            1 // The values left out are those of the row that stands.
        };
        let mut rows = Vec::with_capacity(ahead);
        let pulled = self.pull(py, state, ahead, |sink| {
            rows.extend(sink.rows().take().map(Bound::unbind));
            Ok(())
        });
        let is_empty = rows.is_empty();
        state.ready = rows.into_iter();
        match pulled {
            // The rows before it come first. What a signal handler raised does not wait.
            Err(failure) if !is_empty && errors::is_ours(py, &failure) => {
                state.failure = Some(failure);
                Ok(())
            }
            pulled => pulled,
        }
    }

    pub(super) fn fetch(&self, py: Python<'_>, limit: usize) -> PyResult<Py<PyList>> {
        let mut state = self.with_rows(py)?;
        let rows = self.fetch_tuples(py, &mut state, limit)?;
        state.n_taken += rows.len();
        if let Some(maker) = state.maker.clone() {
            drop(state);
            for (i, row) in rows.iter().enumerate() {
                rows.set_item(i, maker.make(row.cast_into()?)?)?;
            }
        }
        Ok(rows.unbind())
    }

    /// Up to `limit` further rows as columns. An error ends the result: what was cut short must not look complete.
    pub(super) fn columns(&self, py: Python<'_>, limit: usize) -> PyResult<Py<PyList>> {
        let mut state = self.with_rows(py)?;
        if state.ready.len() > 0 || state.failure.is_some() {
            return Err(errors::programming(
                py,
                "rows of this statement were made ahead for `fetchone` or iteration\nfetch columns alone, or rows alone",
            ));
        }
        let schema = state.schema.clone();
        let active = state.active.as_mut();
        let active = active.expect("`with_rows` has looked for it");
        let mut sink = PyColumns::new(py, &schema, self.connection.get().policy(), limit)?;
        let ledger = ledger::current(py)?;
        let mut last_turn = Instant::now();
        while sink.n_left() > 0 && !active.is_at_end() {
            let pulled = active.pull_columns(py, &mut sink);
            sink.objects.fetched.enter(&ledger, Stage::Fetch);
            sink.objects.tally.enter(&ledger, Stage::Decode);
            pulled?;
            active.between(py, &mut last_turn)?;
        }
        state.n_taken += sink.n_rows();
        sink.finish().map(Bound::unbind)
    }

    pub(super) fn fetch_tuples<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        limit: usize,
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
            let pulled = self.pull(py, state, limit - n_ready, |sink| {
                sink.rows().append_to(&rows)
            });
            if let Err(failure) = pulled {
                return partial(state, rows, limit, failure);
            }
        }
        Ok(rows)
    }
}

impl State {
    /// Of a cursor that ran nothing yet.
    pub(super) fn nothing() -> State {
        State {
            row_count: -1,
            ..State::default()
        }
    }
}

/// What a fetch gives that failed after `rows`: the rows before the failure, and the failure with the next call. One that
/// asked for all rows gives the failure alone: a result cut short would look complete.
fn partial<'py>(
    state: &mut State,
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

/// At most this many rows are made ahead of iteration: enough to spread a call over, few enough to stay in cache.
const AHEAD_ROWS: usize = 256;
