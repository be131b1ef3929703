//! Executes one statement for many rows of parameters, in batches.

use std::sync::Arc;

use super::batch::run_batch;
use super::cancel::cancelled;
use super::execute::check_text;
use super::multi_row_insert::RepeatedInsert;
use super::parameters::translate;
use super::server::TransactionStatus;
use super::shared::Shared;
use crate::error::Error;
use crate::sql::insert::RowInsert;
use crate::value::{Batches, Value};

/// The largest number of rows in a batch that may be inserted by COPY. For each binary COPY, the
/// server creates the state of 1,000 buffered rows, which takes as long as 700 rows.
const COPIED_ROWS: usize = 8192;

/// The largest number of values in such a batch, if it has more than 1,024 rows.
const COPIED_VALUES: usize = 1 << 18;

/// Calls `f` within a transaction. In autocommit mode, begins a transaction before the call and
/// commits it afterwards, or rolls it back if `f` fails. A transaction that is already open is
/// neither committed nor rolled back.
pub(super) fn in_transaction<T>(
    shared: &Arc<Shared>,
    f: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let is_own = shared.autocommit()
        && shared.call(|wire| Ok(wire.server.status() == TransactionStatus::Idle))?;
    if !is_own {
        return f();
    }
    shared.call(|wire| wire.command("BEGIN"))?;
    let done = f();
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = shared.call(|wire| wire.command(end));
    // If `f` and the rollback have failed, the error of `f` is returned.
    done.and_then(|done| ended.map(|_| done))
}

/// Executes a statement for each row of parameters, many rows in one round trip. Returns the total
/// number of changed rows; `None` if the server does not report it. With autocommit, no row is
/// stored if a row fails or if `rows` returns an error.
pub(super) fn execute_many(
    shared: &Arc<Shared>,
    sql: &str,
    rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
) -> Result<Option<u64>, Error> {
    check_text(sql)?;
    // The iterator may run the caller's code, so it is called while the session is not locked.
    let mut batches = match RowInsert::read(sql) {
        Some(insert) if insert.has_only_parameters => {
            let n_parameters = translate(sql).n_parameters;
            Batches::of_rows(
                rows,
                (COPIED_VALUES / n_parameters.max(1)).clamp(1024, COPIED_ROWS),
            )
        }
        _ => Batches::new(rows),
    };
    let Some(first) = batches.next() else {
        return batches.end().map(|()| Some(0));
    };
    in_transaction(shared, || {
        let (mut n_rows, mut changed) = (0, Some(0));
        let repeated = RepeatedInsert::new(shared, sql, first.len())?;
        let mut id = 0;
        for values in std::iter::once(first).chain(&mut batches) {
            // A cancel may arrive too late to end its batch.
            if shared.activity.was_cancelled(id) {
                return Err(cancelled());
            }
            let n = shared.call(|wire| {
                id = shared.activity.begin();
                let many = match &repeated {
                    Some(repeated) => repeated.run(shared, wire, sql, &values, n_rows, id),
                    None => run_batch(shared, wire, sql, &values, n_rows),
                };
                shared.activity.finish();
                many.map_err(|error| shared.error_of(id, error))
            })?;
            changed = changed.zip(n).map(|(sum, n)| sum + n);
            n_rows += values.len() as u64;
        }
        batches.end().map(|()| changed)
    })
}
