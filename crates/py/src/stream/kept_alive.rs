//! `KeptAlive`: the objects that a row stream keeps alive until its statement ends, and the
//! functions that are called at that time.

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::raw::gil;

/// The connection, and the functions that were passed to `RowStream.on_close`. The lock is held
/// only briefly, and never while Python code runs.
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

    /// Registers `function`, which is called when the objects are released. If they have already
    /// been released, calls it immediately.
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

    /// Releases the objects that the stream keeps alive, and calls the registered functions. A
    /// second call has no effect.
    pub(super) fn let_go(&self, py: Python<'_>) {
        let mut inner = self.lock(py);
        inner.is_over = true;
        let connection = inner.connection.take();
        let functions = std::mem::take(&mut inner.functions);
        drop(inner);
        for function in functions {
            call(function.bind(py));
        }
        drop(connection); // If no other code refers to the connection, it is closed here
    }

    /// Visits the references to Python objects. The garbage collector calls this.
    pub(super) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // While the lock is held, the stream is in use, and therefore not garbage.
        if let Ok(inner) = self.0.try_lock() {
            visit.call(&inner.connection)?;
            for function in &inner.functions {
                visit.call(function)?;
            }
        }
        Ok(())
    }

    /// Drops the references to the functions. The garbage collector calls this method if the
    /// references are part of a cycle. The functions are not called, because objects that they use
    /// may already have been cleared.
    pub(super) fn forget(&self) {
        let taken = match self.0.try_lock() {
            Ok(mut inner) => std::mem::take(&mut inner.functions),
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return,
        };
        drop(taken); // Python code may run here, so the lock was released first.
    }
}

fn call(function: &Bound<'_, PyAny>) {
    if let Err(e) = function.call0() {
        e.write_unraisable(function.py(), Some(function));
    }
}
