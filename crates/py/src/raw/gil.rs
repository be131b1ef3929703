//! Acquires and releases the GIL. A thread that tries to acquire the GIL while the interpreter is
//! being finalized is parked until the process ends.
//!
//! If a daemon thread attaches during the finalization, CPython up to 3.13 ends it with
//! `pthread_exit`. In glibc this function unwinds the stack, and the process is aborted at the
//! first Rust frame. (From 3.14 on, CPython parks such a thread, as this module does.)
//!
//! A callback of `atexit` runs before the finalization begins. It sets a flag, and waits for the
//! threads that are attaching or running Python code inside a call to this crate. From then on,
//! each thread that tries to attach or to run Python code is parked. Therefore no thread with Rust
//! frames on its stack can reach the code of CPython that ends it.
//!
//! A [`Task`] runs on a separate stack, and CPython never runs on that stack. If a task calls
//! [`attach`] or [`try_attach`], the closure is called on the stack of the thread that resumed the
//! task.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use onecopy_rows::deadlock::thread_number;
use onecopy_rows::task::{self, Progress, Task};
use onecopy_wire::lock;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use super::process;

/// The [`thread_number`] of the thread that finalizes the interpreter; 0 before the finalization
/// begins.
static ENDED_BY: AtomicU64 = AtomicU64::new(0);

/// The number of threads that have a [`Crossing`], because they are attaching to the interpreter or
/// running Python code.
static N_CROSSING: AtomicIsize = AtomicIsize::new(0);

/// The condition variable that is notified during the finalization when the last thread has dropped
/// its [`Crossing`].
static ALL_ARE_THROUGH: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// The longest time that the finalization waits for threads that have a [`Crossing`], because they
/// acquire the GIL or run Python code. The finalization then continues, so that a thread that runs
/// Python code for a long time does not prevent the exit.
const PATIENCE: Duration = Duration::from_secs(1);

/// Registers the `atexit` callback that begins the finalization. This function is called when the
/// module is imported.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let begin = PyCFunction::new_closure(py, None, None, |args, _| begin(args.py()))?;
    py.import("atexit")?.call_method1("register", (begin,))?;
    Ok(())
}

fn begin(py: Python<'_>) {
    ENDED_BY.store(thread_number(), SeqCst);
    py.detach(|| {
        let (mutex, all_are_through) = &ALL_ARE_THROUGH;
        let locked = lock::lock(mutex);
        let _ =
            all_are_through.wait_timeout_while(locked, PATIENCE, |()| N_CROSSING.load(SeqCst) > 0);
    });
}

/// Ends the outermost [`Crossing`] of this thread. If no thread has a `Crossing` any more and the
/// interpreter is being finalized, notifies the thread that waits for this.
fn end_crossing() {
    if N_CROSSING.fetch_sub(1, SeqCst) == 1 && ENDED_BY.load(SeqCst) != 0 {
        let (mutex, all_are_through) = &ALL_ARE_THROUGH;
        drop(mutex.lock());
        all_are_through.notify_all();
    }
}

/// Returns `true` if a thread other than this one is finalizing the interpreter.
fn is_ending() -> bool {
    let by = ENDED_BY.load(SeqCst);
    by != 0 && by != thread_number()
}

thread_local! {
    /// The number of nested [`Crossing`]s of this thread. Only the outermost one is counted in
    /// [`N_CROSSING`].
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A guard that exists while a thread acquires the GIL, or runs Python code inside a call to this
/// crate. The finalization waits until the guard is dropped.
pub(crate) struct Crossing;

impl Crossing {
    pub(crate) fn begin() -> Crossing {
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

/// A guard that exists while a thread has released the GIL or is parked. During this time, the
/// thread is not counted in [`N_CROSSING`]. The field is the number of [`Crossing`]s that the
/// thread had before.
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

/// If another thread is finalizing the interpreter, parks this thread forever. The caller must not
/// hold the GIL.
fn park_if_ending() {
    if is_ending() {
        let _paused = Paused::begin();
        loop {
            std::thread::park();
        }
    }
}

/// If another thread is finalizing the interpreter, releases the GIL and parks this thread forever.
/// The caller must hold the GIL.
#[inline]
fn park_attached_if_ending(_: Python<'_>) {
    if is_ending() {
        // SAFETY: attached. The thread state is never restored.
        unsafe { ffi::PyEval_SaveThread() };
        park_if_ending();
    }
}

/// Calls `work` with the GIL released, and acquires the GIL again. If the interpreter is being
/// finalized at that time, this function parks the thread; [`Python::detach`] does not.
///
/// The function is inlined, so that the result of `work` is created at its destination and not
/// copied. The copy would be expensive: the result of a fetch is large, and some drivers require
/// one call for each cell.
#[inline(always)]
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    /// A guard that begins a [`Crossing`] when it is dropped. This happens when `work` has returned
    /// or panicked, directly before the thread acquires the GIL.
    struct Returning;
    impl Drop for Returning {
        fn drop(&mut self) {
            std::mem::forget(Crossing::begin());
            park_if_ending();
        }
    }
    /// A guard that is dropped directly after the thread has acquired the GIL. Its drop ends the
    /// [`Crossing`] that the drop of `Returning` has begun.
    struct Returned<'py>(Python<'py>);
    impl Drop for Returned<'_> {
        fn drop(&mut self) {
            drop(Crossing); // This drops the crossing that `Returning` has created on this thread.
            park_attached_if_ending(self.0);
        }
    }
    // The two guards are dropped in the reverse order.
    let _paused = Paused::begin();
    let _returned = Returned(py);
    py.detach(move || {
        let _returning = Returning;
        work()
    })
}

/// Resumes a task with the GIL released. Returns when the task has ended or has to wait again.
pub(crate) fn resume<T: Send>(py: Python<'_>, task: &mut Task<T>) -> Progress<T> {
    /// A wrapper that makes its contents `Send`, which `detach` requires. It is sound because the
    /// task is not moved to another thread.
    struct OfThisThread<T>(T);
    // SAFETY: `detach` runs its closure on the calling thread; the bound is there to keep Python's
    // objects out of it, which a task cannot hold: its call is `Send`.
    unsafe impl<T> Send for OfThisThread<T> {}
    let task = OfThisThread(task);
    detach(py, move || {
        let task = task;
        OfThisThread(task.0.resume())
    })
    .0
}

/// Calls `work`, which may run any Python code, with the GIL held. Before and after the call, the
/// thread is parked if another thread is finalizing the interpreter.
#[inline]
pub(crate) fn calls<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let crossing = Crossing::begin();
    park_attached_if_ending(py);
    let done = work();
    drop(crossing);
    park_attached_if_ending(py);
    done
}

/// Acquires the GIL and calls `work`. If there is no interpreter, or another thread is finalizing
/// it, returns `None` without calling `work`. This crate uses it instead of [`Python::try_attach`].
pub(crate) fn try_attach<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    task::call_outside(|| {
        if process::is_attached() {
            return Python::try_attach(work);
        }
        let _crossing = Crossing::begin();
        if is_ending() {
            return None;
        }
        Python::try_attach(work)
    })
}

/// Acquires the GIL and calls `work`. Unlike [`Python::attach`], it parks the thread if another
/// thread is finalizing the interpreter.
pub(crate) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    task::call_outside(|| {
        if process::is_attached() {
            return Python::attach(work);
        }
        let _crossing = Crossing::begin();
        park_if_ending();
        Python::attach(work)
    })
}

/// Sets the number of threads that are acquiring the GIL or running Python code (`N_CROSSING`) to
/// 0. It must be called in a forked child, in which the other threads of the parent do not exist.
pub(super) fn forget_threads() {
    N_CROSSING.store(0, SeqCst);
}

/// Locks a mutex. If another thread holds the mutex, the GIL is released during the wait, because
/// that thread may have to acquire the GIL before it can unlock the mutex.
pub(crate) fn lock<'m, T>(_: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    match mutex.try_lock() {
        Ok(locked) => return locked,
        Err(TryLockError::Poisoned(locked)) => return locked.into_inner(),
        Err(TryLockError::WouldBlock) => {}
    }
    // SAFETY: attached; the thread state is restored below. Meanwhile nothing of Python's is
    // touched.
    let state = unsafe { ffi::PyEval_SaveThread() };
    let locked = lock::lock(mutex);
    let _crossing = Crossing::begin();
    park_if_ending();
    // SAFETY: that of this thread, saved above.
    unsafe { ffi::PyEval_RestoreThread(state) };
    locked
}
