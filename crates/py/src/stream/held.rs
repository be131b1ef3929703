//! What a row stream keeps alive until its statement has ended, and who is told then.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::raw::ending;

/// The connection, and the functions of `RowStream.on_close`. The lock is held for moments, and never while Python code runs.
pub(super) struct Held(Mutex<Inner>);

struct Inner {
    connection: Option<Py<Connection>>,
    functions: Vec<Py<PyAny>>,
    is_over: bool,
}

impl Held {
    pub(super) fn new(connection: Py<Connection>) -> Held {
        Held(Mutex::new(Inner {
            connection: Some(connection),
            functions: Vec::new(),
            is_over: false,
        }))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Inner> {
        ending::lock(py, &self.0).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `function` called when all is let go: now, where it was.
    ///
    /// # Errors
    /// `TypeError` where it cannot be called.
    pub(super) fn add(&self, py: Python<'_>, function: Bound<'_, PyAny>) -> PyResult<()> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err("`function` cannot be called"));
        }
        let mut inner = self.lock(py);
        if !inner.is_over {
            inner.functions.push(function.unbind());
            return Ok(());
        }
        drop(inner);
        call(&function);
        Ok(())
    }

    /// Lets all go, and calls the functions, once.
    pub(super) fn let_go(&self, py: Python<'_>) {
        let mut inner = self.lock(py);
        inner.is_over = true;
        let connection = inner.connection.take();
        let functions = std::mem::take(&mut inner.functions);
        drop(inner);
        for function in functions {
            call(function.bind(py));
        }
        drop(connection); // Where nobody else has it, it is closed here.
    }

    /// Shows the collector what it needs to find a cycle.
    pub(super) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // Held by somebody: then it is no garbage.
        if let Ok(inner) = self.0.try_lock() {
            visit.call(&inner.connection)?;
            for function in &inner.functions {
                visit.call(function)?;
            }
        }
        Ok(())
    }

    /// Breaks a cycle of garbage. The functions are not called: what they need may be gone already.
    pub(super) fn forget(&self) {
        let taken = match self.0.try_lock() {
            Ok(mut inner) => std::mem::take(&mut inner.functions),
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return,
        };
        drop(taken); // Code may run here: behind the lock.
    }
}

fn call(function: &Bound<'_, PyAny>) {
    if let Err(e) = function.call0() {
        e.write_unraisable(function.py(), Some(function));
    }
}
