//! The objects that a row stream keeps alive until its statement ends, and its `on_close`
//! functions.

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::raw::gil;

/// The connection and the `on_close` functions. The lock is never held while Python code runs.
pub(super) struct KeptAlive(Mutex<Inner>);

struct Inner {
    connection: Option<Py<Connection>>,
    functions: Vec<Py<PyAny>>,
    is_over: bool,
}

impl KeptAlive {
    pub(super) fn new(connection: Py<Connection>) -> KeptAlive {
        KeptAlive(Mutex::new(Inner {
            connection: Some(connection),
            functions: Vec::new(),
            is_over: false,
        }))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Inner> {
        gil::lock(py, &self.0)
    }

    /// Registers a function that is called at the release. After the release, calls it immediately.
    ///
    /// # Errors
    /// `TypeError` if `function` is not callable.
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

    /// Releases the objects, and calls the functions. A second call has no effect.
    pub(super) fn let_go(&self, py: Python<'_>) {
        let mut inner = self.lock(py);
        inner.is_over = true;
        let connection = inner.connection.take();
        let functions = std::mem::take(&mut inner.functions);
        drop(inner);
        for function in functions {
            call(function.bind(py));
        }
        drop(connection); // closes an otherwise unused connection
    }

    /// Visits the Python objects, for the garbage collector.
    pub(super) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // If the lock is held, the stream is in use, and not garbage.
        if let Ok(inner) = self.0.try_lock() {
            visit.call(&inner.connection)?;
            for function in &inner.functions {
                visit.call(function)?;
            }
        }
        Ok(())
    }

    /// Drops the functions, for the garbage collector. They are not called, because objects that
    /// they use may be cleared.
    pub(super) fn forget(&self) {
        let taken = match self.0.try_lock() {
            Ok(mut inner) => std::mem::take(&mut inner.functions),
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return,
        };
        drop(taken); // may run Python code, so the lock was released
    }
}

fn call(function: &Bound<'_, PyAny>) {
    if let Err(e) = function.call0() {
        e.write_unraisable(function.py(), Some(function));
    }
}
