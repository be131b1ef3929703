//! Threads at the end of the interpreter: one that comes back to it waits for ever.
//!
//! Up to 3.13, CPython ends a daemon thread that wants to attach while the interpreter is finalized with `pthread_exit`. With glibc
//! that unwinds the stack, and the process is aborted at the first frame of Rust. (From 3.14 on such a thread waits, as here.)
//!
//! A callback of `atexit` runs before the finalization begins. It sets a flag and waits until the threads that attach at this
//! moment, or run Python code inside of a call of ours, are through. From then on each thread that would attach, or run
//! Python code, parks. So none is inside of CPython's own wait with our frames on its stack.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use super::process;

/// Number of the thread that ends the interpreter; 0 before the end.
static ENDED_BY: AtomicU64 = AtomicU64::new(0);

/// Threads inside of a [`Crossing`].
static N_CROSSING: AtomicIsize = AtomicIsize::new(0);

/// Notified when the last [`Crossing`] ends while the interpreter is ending.
static ALL_ARE_THROUGH: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// The longest that the end of the interpreter waits for callbacks of other threads.
const PATIENCE: Duration = Duration::from_secs(1);

/// Has the end of the interpreter noticed; to be called when the module is imported.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let begin = PyCFunction::new_closure(py, None, None, |args, _| begin(args.py()))?;
    py.import("atexit")?.call_method1("register", (begin,))?;
    Ok(())
}

fn begin(py: Python<'_>) {
    ENDED_BY.store(process::thread_number(), SeqCst);
    py.detach(|| {
        let (mutex, all_are_through) = &ALL_ARE_THROUGH;
        let locked = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let _ =
            all_are_through.wait_timeout_while(locked, PATIENCE, |()| N_CROSSING.load(SeqCst) > 0);
    });
}

/// One crossing less.
fn end_crossing() {
    if N_CROSSING.fetch_sub(1, SeqCst) == 1 && ENDED_BY.load(SeqCst) != 0 {
        let (mutex, all_are_through) = &ALL_ARE_THROUGH;
        drop(mutex.lock());
        all_are_through.notify_all();
    }
}

/// Whether another thread ends the interpreter.
fn is_ending() -> bool {
    let by = ENDED_BY.load(SeqCst);
    by != 0 && by != process::thread_number()
}

thread_local! {
    /// Crossings of this thread inside of each other; they count once.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A thread attaches, or runs Python code inside of a call of ours: the end of the interpreter waits for the drop.
struct Crossing;

impl Crossing {
    fn begin() -> Crossing {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            N_CROSSING.fetch_add(1, SeqCst);
        }
        Crossing
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            end_crossing();
        }
    }
}

/// The crossings of a thread that is detached inside of them, or parks: they do not count meanwhile.
struct Paused(usize);

impl Paused {
    fn begin() -> Paused {
        let depth = DEPTH.replace(0);
        if depth != 0 {
            end_crossing();
        }
        Paused(depth)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if self.0 != 0 {
            N_CROSSING.fetch_add(1, SeqCst);
            DEPTH.set(DEPTH.get() + self.0);
        }
    }
}

/// Parks a detached thread where the interpreter is ending.
fn park_if_ending() {
    if is_ending() {
        let _paused = Paused::begin();
        loop {
            std::thread::park();
        }
    }
}

/// As [`park_if_ending`], of a thread that is attached: it lets the interpreter go.
#[inline]
fn park_attached_if_ending(_: Python<'_>) {
    if is_ending() {
        // SAFETY: attached. The thread state is never restored.
        unsafe { ffi::PyEval_SaveThread() };
        park_if_ending();
    }
}

/// Runs `work` detached. In place of [`Python::detach`], everywhere in this crate.
///
/// Inlined, so that what `work` returns is made where it goes: the result of a fetch is large, and there is one a cell of some drivers.
#[inline(always)]
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    /// After `work` has returned or panicked, the thread is about to attach.
    struct Returning;
    impl Drop for Returning {
        fn drop(&mut self) {
            std::mem::forget(Crossing::begin());
            park_if_ending();
        }
    }
    /// After that it is attached.
    struct Returned<'py>(Python<'py>);
    impl Drop for Returned<'_> {
        fn drop(&mut self) {
            drop(Crossing); // that of `Returning`, on this thread
            park_attached_if_ending(self.0);
        }
    }
    // Dropped in the reverse order.
    let _paused = Paused::begin();
    let _returned = Returned(py);
    py.detach(move || {
        let _returning = Returning;
        work()
    })
}

/// Runs `work`, which may run any Python code, attached.
#[inline]
pub(crate) fn calls<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let crossing = Crossing::begin();
    park_attached_if_ending(py);
    let done = work();
    drop(crossing);
    park_attached_if_ending(py);
    done
}

/// Attaches and runs `work`; `None` where there is no interpreter, or another thread ends it. In place of
/// [`Python::try_attach`].
pub(crate) fn try_attach<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    if process::is_attached() {
        return Python::try_attach(work);
    }
    let _crossing = Crossing::begin();
    if is_ending() {
        return None;
    }
    Python::try_attach(work)
}

/// Attaches and runs `work`. In place of [`Python::attach`].
pub(crate) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    if process::is_attached() {
        return Python::attach(work);
    }
    let _crossing = Crossing::begin();
    park_if_ending();
    Python::attach(work)
}

/// To be called in a forked child, which has no other threads.
pub(super) fn forget_threads() {
    N_CROSSING.store(0, SeqCst);
}

/// Locks a mutex; detached where it must wait.
pub(crate) fn lock<'m, T>(_: Python<'_>, mutex: &'m Mutex<T>) -> LockResult<MutexGuard<'m, T>> {
    match mutex.try_lock() {
        Ok(locked) => return Ok(locked),
        Err(TryLockError::Poisoned(locked)) => return Err(locked),
        Err(TryLockError::WouldBlock) => {}
    }
    // SAFETY: attached; the thread state is restored below. Meanwhile nothing of Python's is touched.
    let state = unsafe { ffi::PyEval_SaveThread() };
    let locked = mutex.lock();
    let _crossing = Crossing::begin();
    park_if_ending();
    // SAFETY: that of this thread, saved above.
    unsafe { ffi::PyEval_RestoreThread(state) };
    locked
}
