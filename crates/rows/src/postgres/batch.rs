//! Executes one statement for a batch of rows of parameters in few round trips.

use std::sync::Arc;

use postgres_protocol::message::frontend;

use super::delivery::Completion;
use super::execute::{begin, describe, prepare, write_execution};
use super::parameters::{self, UniformRows};
use super::shared::Shared;
use super::statement_cache::PreparedStatement;
use super::wire::{Event, Wire};
use crate::error::Error;
use crate::value::Value;

/// Executes `sql` once for each row of parameters in `rows`, and returns the number of changed rows
/// if the server reports it. Each value is sent with the same parameter type as in a single
/// execution. `first_row` is the index (from 0) that the first row of `rows` has among all rows of
/// the caller. An error contains the index, counted in the same way, of the row that caused it.
pub(super) fn run_batch(
    shared: &Shared,
    wire: &mut Wire,
    sql: &str,
    rows: &[Vec<Value>],
    first_row: u64,
) -> Result<Option<u64>, Error> {
    let (translated, _) = wire.cache.translated(sql);
    // If a row of parameters cannot be sent, only the rows before it are executed, and then its
    // error is returned.
    let (mut rows, mut refused) = (rows, None);
    for (i, values) in rows.iter().enumerate() {
        if let Err(error) = parameters::check(translated.n_parameters, values) {
            let error = error.at_row(first_row + i as u64);
            if i == 0 {
                return Err(error);
            }
            (rows, refused) = (&rows[..i], Some(error));
            break;
        }
    }
    let mut pending = Pending {
        sql: &translated.sql,
        first_row,
        n: 0,
        changed: Some(0),
    };
    while !rows.is_empty() {
        let part = UniformRows::first(rows, |_, _, _| None);
        rows = &rows[part.rows.len()..];
        let kept = wire.cache.prepared(sql, &part.types);
        let prepared = match kept.filter(|_| pending.n > 0) {
            Some(kept) => kept,
            None => {
                // The server prepares a statement while no execution is pending, so that an error
                // of an earlier row is returned before an error of this statement.
                pending.complete(wire)?;
                prepare_many(shared, wire, sql, &part.types)
                    .map_err(|e| e.at_row(pending.first_row))?
            }
        };
        let (kinds, _) = describe(&prepared, wire);
        for values in part.rows {
            write_execution(wire, &prepared, values.iter(), &kinds)?;
        }
        pending.n += part.rows.len();
    }
    pending.complete(wire)?;
    refused.map_or(Ok(pending.changed), Err)
}

/// A group of executions of one statement. The messages that request them are in the output buffer,
/// and the server's responses to these messages have not been read yet.
struct Pending<'s> {
    sql: &'s str,
    /// The index (from 0) of the row of parameters of the first execution in this group.
    first_row: u64,
    n: usize,
    /// The number of rows that all earlier executions have changed; `None` if it is unknown.
    changed: Option<u64>,
}

impl Pending<'_> {
    /// Sends the statement executions that are in the output buffer, and reads the server's
    /// responses to them.
    fn complete(&mut self, wire: &mut Wire) -> Result<(), Error> {
        let n = std::mem::take(&mut self.n);
        if n == 0 {
            return Ok(());
        }
        frontend::sync(&mut wire.out);
        wire.send()?;
        let (ended, changed) = read_completions(wire, self.sql, n, self.first_row)?;
        self.first_row += n as u64;
        self.changed = self.changed.zip(changed).map(|(sum, n)| sum + n);
        ended
    }
}

/// Returns a prepared statement for many executions of `sql`: from the statement cache, or prepared
/// now. `declared` are the parameter types (object identifiers). If a transaction must be started,
/// sends BEGIN first.
pub(super) fn prepare_many(
    shared: &Shared,
    wire: &mut Wire,
    sql: &str,
    declared: &[u32],
) -> Result<Arc<PreparedStatement>, Error> {
    wire.check_for_pooler()?;
    let (translated, n_uses) = wire.cache.translated(sql);
    let preamble = begin(shared, wire, sql)?;
    if let Some(kept) = wire.cache.prepared(sql, declared) {
        wire.send()?;
        wire.read_preamble(preamble)?;
        return Ok(kept);
    }
    let name = wire.cache.new_name(sql, n_uses.max(2));
    let new = Arc::new(prepare(wire, &translated.sql, name, declared, preamble)?);
    wire.cache.keep(sql, &new);
    Ok(new)
}

/// Reads the server's responses to `n` executions, up to the message ReadyForQuery. The first of
/// these executions is for the row of parameters with the index `first_row`. Returns two values:
/// `Ok`, or the error of the first execution that failed; and the number of rows that the
/// executions changed.
///
/// # Errors
/// The connection was lost, or the server violated the protocol. An error of an execution is in the
/// returned value instead.
pub(super) fn read_completions(
    wire: &mut Wire,
    sql: &str,
    n: usize,
    first_row: u64,
) -> Result<(Result<(), Error>, Option<u64>), Error> {
    let (mut n_done, mut changed, mut ended) = (0, Some(0), Ok(()));
    loop {
        match wire.event()? {
            Event::Completed(completion) => {
                n_done += 1;
                changed = changed.zip(completion.n_changed).map(|(sum, n)| sum + n);
            }
            Event::Failed(fields) => {
                ended = ended.and_then(|()| Err(fields.to_error(sql).at_row(first_row + n_done)));
            }
            Event::Row => wire.skip()?,
            Event::Ready => {
                let is_complete = ended.is_err() || n_done == n as u64;
                wire.completed(is_complete.then(Completion::default))?;
                return Ok((ended, changed));
            }
            _ => {}
        }
    }
}
