//! A lock for the state behind a Python object: never waited for while attached, never taken twice by one thread,
//! never used in a forked child.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::errors;
use crate::raw::{ending, process, stack};

/// State that belongs to the process it was made in, used by one thread at a time.
pub(crate) struct Guarded<T> {
    /// Always there until the drop.
    state: Option<Mutex<T>>,
    /// Number of the thread that holds the lock; 0 when nobody does. Only its own thread ever compares equal, so
    /// relaxed order is enough.
    owner: AtomicU64,
    generation: u32,
    /// What it is, for messages: `connection`, `cursor`, `stream`.
    what: &'static str,
}

impl<T: Send> Guarded<T> {
    /// Guards `state`; `what` names it in messages.
    pub(crate) fn new(what: &'static str, state: T) -> Guarded<T> {
        Guarded {
            state: Some(Mutex::new(state)),
            owner: AtomicU64::new(0),
            generation: process::generation(),
            what,
        }
    }

    /// Locks it; detaches from the interpreter where it must wait.
    ///
    /// # Errors
    /// `InterfaceError` in a forked child, and where this thread holds the lock already: a finalizer or signal handler
    /// that comes back to the object it interrupted would wait for itself. `RecursionError` where the stack is nearly full:
    /// callbacks of the methods of all these objects may nest them.
    #[inline(always)]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<Locked<'_, T>> {
        stack::check(py)?;
        self.check_process(py)?;
        let me = process::thread_number();
        if self.owner.load(Relaxed) == me {
            return Err(in_use(py, self.what));
        }
        let state = ending::lock(py, self.mutex()).unwrap_or_else(PoisonError::into_inner);
        self.owner.store(me, Relaxed);
        Ok(Locked {
            state,
            owner: &self.owner,
        })
    }

    fn mutex(&self) -> &Mutex<T> {
        self.state.as_ref().expect("it is taken in `drop` alone")
    }

    /// Fails in a forked child.
    #[inline(always)]
    pub(crate) fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(foreign(py, self.what))
    }
}

#[cold]
fn in_use(py: Python<'_>, what: &str) -> PyErr {
    let message = format!("this {what} is in use further down in the same thread");
    errors::interface(py, &message)
}

#[cold]
fn foreign(py: Python<'_>, what: &str) -> PyErr {
    let message = format!(
        "this {what} was opened in another process (before a fork)\nopen one in this process"
    );
    errors::interface(py, &message)
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            // Leaked in a forked child: closing it would say goodbye on the parent's socket.
            std::mem::forget(self.state.take());
        }
    }
}

/// A held lock.
pub(crate) struct Locked<'a, T> {
    state: MutexGuard<'a, T>,
    owner: &'a AtomicU64,
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.state
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Relaxed);
    }
}
