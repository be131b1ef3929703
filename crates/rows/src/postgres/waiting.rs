//! `Waiting`: the session's reference to the statements of a SQL string that were not executed yet.
//! The session executes these statements before any other SQL string.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use super::shared::Shared;
use super::wire::Wire;
use crate::error::Error;
use crate::value::Value;

/// The statements of a SQL string that were not executed yet, and the values of their parameters.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) texts: VecDeque<String>,
    pub(super) values: VecDeque<Value>,
    /// The error of a statement that was executed before the caller requested its result; `None`
    /// after the caller has received the error.
    pub(super) unreported: Option<Error>,
}

/// The type of the function that executes the remaining statements of a SQL string. A function
/// pointer is used because this module must not import the module that executes statements, which
/// imports this one.
pub(super) type RunAll = fn(Waiting, &Arc<Shared>, &mut Wire) -> Result<(), Error>;

/// The session's reference to the statements of a SQL string that were not executed yet. `results`
/// is a weak reference to the storage for their results, which the `Statement` that reads them
/// owns.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) pieces: Arc<Mutex<Pieces>>,
    pub(super) results: Weak<dyn Any + Send + Sync>,
    pub(super) run_all: RunAll,
}
