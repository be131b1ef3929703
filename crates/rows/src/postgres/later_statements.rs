//! `Further`: the second and later statements of a SQL string. Each statement is executed when the
//! caller requests its result. If the connection has to execute another SQL string before that, the
//! remaining statements are executed first, and their results are stored in memory.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use onecopy_wire::lock::lock;

use super::execute::execute_one;
use super::shared::Shared;
use super::statement::Statement;
use super::waiting::{Pieces, Waiting};
use super::wire::Wire;
use crate::error::Error;
use crate::source::Source;
use crate::value::Value;

/// The remaining work of a SQL string with several statements, after its first statement: the
/// statements that were not executed yet, and the results that were not read yet.
#[derive(Debug)]
pub(super) struct Further {
    pieces: Arc<Mutex<Pieces>>,
    results: Mutex<VecDeque<Result<Statement, Error>>>,
}

/// Executes the next statement of the SQL string and returns its result; `None` if no statement is
/// left. If the statement fails, the statements after it are discarded.
fn run(
    pieces: &Mutex<Pieces>,
    shared: &Arc<Shared>,
    wire: &mut Wire,
) -> Option<Result<Statement, Error>> {
    let mut pieces = lock(pieces);
    let text = pieces.texts.pop_front()?;
    let (translated, n_uses) = wire.cache.translated(&text);
    let n_values = translated.n_parameters.min(pieces.values.len());
    let values: Vec<Value> = pieces.values.drain(..n_values).collect();
    let result = execute_one(shared, wire, &text, (&translated, n_uses), &values);
    if let Err(error) = &result {
        pieces.texts.clear();
        pieces.unreported = Some(error.clone());
    }
    Some(result)
}

/// Executes all remaining statements of the SQL string. It is called before the connection executes
/// another SQL string. The results are stored, unless the `Statement` that would read them was
/// dropped.
///
/// # Errors
/// The error of a statement, if the `Statement` that would report it was dropped.
fn run_all(waiting: Waiting, shared: &Arc<Shared>, wire: &mut Wire) -> Result<(), Error> {
    let further = || {
        let further = waiting.results.upgrade();
        further.and_then(|further| further.downcast::<Further>().ok())
    };
    while let Some(result) = run(&waiting.pieces, shared, wire) {
        if let Some(further) = further() {
            lock(&further.results).push_back(result);
        }
        wire.settle()?;
    }
    let unreported = lock(&waiting.pieces).unreported.take();
    match unreported {
        Some(mut error) if further().is_none() => {
            error.message.push_str(
                "\nthis is the error of a later statement of an earlier SQL text: \
                 `nextset` after its rows would have reported it",
            );
            Err(error)
        }
        _ => Ok(()),
    }
}

impl Waiting {
    /// Discards the statements that were not executed yet.
    pub(super) fn clear(self) {
        lock(&self.pieces).texts.clear();
    }
}

impl Further {
    /// Creates the state of a SQL string of which no statement was executed yet. `texts` are the
    /// statements that are to be executed later, and `values` are the values of all their
    /// parameters, in order.
    pub(super) fn new(texts: &[String], values: &[Value]) -> Arc<Further> {
        Arc::new(Further {
            pieces: Arc::new(Mutex::new(Pieces {
                texts: texts.iter().cloned().collect(),
                values: values.iter().cloned().collect(),
                unreported: None,
            })),
            results: Mutex::default(),
        })
    }

    pub(super) fn waiting(self: &Arc<Self>) -> Waiting {
        let results: Arc<dyn Any + Send + Sync> = Arc::<Further>::clone(self);
        Waiting {
            pieces: Arc::clone(&self.pieces),
            results: Arc::downgrade(&results),
            run_all,
        }
    }

    /// Returns `true` if a statement of the SQL string is still to be executed, or one of its
    /// results is still to be read.
    pub(super) fn has_more(&self) -> bool {
        !lock(&self.results).is_empty() || !lock(&self.pieces).texts.is_empty()
    }

    /// Returns the result of the next statement. If the statement was executed ahead, this is its
    /// stored result; otherwise the statement is executed now. Returns `None` if no statement is
    /// left.
    pub(super) fn run_next(
        &self,
        shared: &Arc<Shared>,
        wire: &mut Wire,
    ) -> Option<Result<Statement, Error>> {
        let kept = lock(&self.results).pop_front();
        let next = kept.or_else(|| run(&self.pieces, shared, wire))?;
        if next.is_err() {
            lock(&self.pieces).unreported = None;
        }
        Some(next)
    }

    /// Executes the next statement before the caller requests it, and stores its result. Returns
    /// `true` if the statement was executed and all rows of its result were received; the
    /// connection can then execute the next statement. Otherwise returns `false`.
    pub(super) fn run_ahead(&self, shared: &Arc<Shared>, wire: &mut Wire) -> bool {
        let Some(result) = run(&self.pieces, shared, wire) else {
            return false;
        };
        let is_at_end = result.as_ref().is_ok_and(Statement::is_at_end);
        lock(&self.results).push_back(result);
        is_at_end
    }
}

impl Statement {
    /// Replaces this result with the next result of the SQL string that has rows. Results without
    /// rows are skipped. Returns `false` if no result with rows is left.
    pub(super) fn go_on(&mut self, further: &Further, wire: &mut Wire) -> Result<bool, Error> {
        let shared = Arc::clone(self.shared());
        while let Some(next) = further.run_next(&shared, wire) {
            let mut next = next?;
            self.append_messages(&mut next);
            if next.schema().has_rows() {
                self.replace_result(next);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
