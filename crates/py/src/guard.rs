//! `Guarded`: a lock for the state of a Python object. A thread releases the GIL while it waits.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};

use onecopy_rows::deadlock::{self, Deadlock, thread_number};
use pyo3::prelude::*;

use crate::errors;
use crate::raw::{gil, process, stack};

/// State for one thread at a time, in the process that created it.
pub(crate) struct Guarded<T> {
    /// `None` only during `drop`.
    state: Option<Mutex<T>>,
    /// The number of the thread that holds the lock; 0 if no thread does. Relaxed order is
    /// sufficient, because each thread looks only for its own number in [`Guarded::lock`]. The list
    /// of waiting threads synchronises the deadlock check.
    owner: AtomicU64,
    generation: u32,
    /// The kind of the object, for error messages.
    what: &'static str,
}

impl<T: Send> Guarded<T> {
    /// `what` is the kind of the Python object, for error messages.
    pub(crate) fn new(what: &'static str, state: T) -> Guarded<T> {
        Guarded {
            state: Some(Mutex::new(state)),
            owner: AtomicU64::new(0),
            generation: process::generation(),
            what,
        }
    }

    /// Acquires the lock. The thread releases the GIL while it waits.
    ///
    /// # Errors
    /// - `InterfaceError` in a forked child.
    /// - `InterfaceError` if this thread already holds the lock, for example in a signal handler.
    /// - `InterfaceError` if the call would cause a deadlock.
    /// - `RecursionError` if the stack is nearly full.
    #[inline(always)]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<Locked<'_, T>> {
        stack::check(py)?;
        self.check_process(py)?;
        let me = thread_number();
        if self.owner.load(Relaxed) == me {
            return Err(in_use(py, self.what));
        }
        let state = match self.mutex().try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(py)?,
        };
        self.owner.store(me, Relaxed);
        Ok(Locked {
            state,
            owner: &self.owner,
        })
    }

    #[cold]
    fn wait(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, T>> {
        deadlock::wait(&self.owner, || gil::lock(py, self.mutex()))
            .map_err(|Deadlock| errors::interface(py, Deadlock::MESSAGE))
    }

    fn mutex(&self) -> &Mutex<T> {
        self.state.as_ref().expect("only `drop` takes it")
    }

    /// Returns an `InterfaceError` in a forked child.
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
            // A forked child leaks the state, because closing it would end the parent's session.
            std::mem::forget(self.state.take());
        }
    }
}

/// The locked state. Dropping it releases the lock.
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
