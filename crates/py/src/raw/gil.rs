//! Acquires and releases the GIL. During the finalization of the interpreter, a thread that
//! acquires the GIL is parked: it waits until the process ends.
//!
//! CPython up to 3.13 ends such a daemon thread with `pthread_exit`. In glibc, this call unwinds
//! the stack and aborts the process at the first Rust frame. CPython from 3.14 on parks the thread,
//! as this module does.
//!
//! An `atexit` callback runs before the finalization. It sets a flag, and waits for the threads
//! that acquire the GIL or run Python code in a call of this crate. Later threads are parked.
//!
//! A [`Task`] has a separate stack, on which CPython never runs. If a task calls [`attach`] or
//! [`try_attach`], the closure runs on the stack of the resuming thread.

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

/// The [`thread_number`] of the finalizing thread; 0 before the finalization.
static ENDED_BY: AtomicU64 = AtomicU64::new(0);

/// The number of threads with a [`Crossing`].
static N_CROSSING: AtomicIsize = AtomicIsize::new(0);

/// A condition variable that notifies the finalizing thread after the last [`Crossing`].
static ALL_ARE_THROUGH: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// The maximum wait of the finalization for threads with a [`Crossing`]. Long Python code must not
/// prevent the exit.
const PATIENCE: Duration = Duration::from_secs(1);

/// Registers the `atexit` callback of the finalization. The import of the module calls this
/// function.
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

/// Ends the outermost [`Crossing`] of this thread. The last one notifies the finalizing thread.
fn end_crossing() {
    if N_CROSSING.fetch_sub(1, SeqCst) == 1 && ENDED_BY.load(SeqCst) != 0 {
        let (mutex, all_are_through) = &ALL_ARE_THROUGH;
        drop(mutex.lock());
        all_are_through.notify_all();
    }
}

/// Returns `true` if another thread finalizes the interpreter.
fn is_ending() -> bool {
    let by = ENDED_BY.load(SeqCst);
    by != 0 && by != thread_number()
}

thread_local! {
    /// The number of nested [`Crossing`]s of this thread. [`N_CROSSING`] counts only the outermost.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A guard for a thread that acquires the GIL or runs Python code. The finalization waits for its
/// drop.
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

/// A guard for a thread without the GIL. The field is its previous number of [`Crossing`]s.
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

/// Parks this thread forever if another thread finalizes the interpreter. The caller must not hold
/// the GIL.
fn park_if_ending() {
    if is_ending() {
        let _paused = Paused::begin();
        loop {
            std::thread::park();
        }
    }
}

/// Releases the GIL and parks this thread forever if another thread finalizes the interpreter.
#[inline]
fn park_attached_if_ending(_: Python<'_>) {
    if is_ending() {
        // SAFETY: attached. The thread state is never restored.
        unsafe { ffi::PyEval_SaveThread() };
        park_if_ending();
    }
}

/// Calls `work` with the GIL released, and acquires the GIL again. Unlike [`Python::detach`], parks
/// the thread during the finalization.
///
/// Inlining avoids a copy of the result, which can be large.
#[inline(always)]
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    /// A guard that begins a [`Crossing`] at its drop, directly before the thread acquires the GIL.
    struct Returning;
    impl Drop for Returning {
        fn drop(&mut self) {
            std::mem::forget(Crossing::begin());
            park_if_ending();
        }
    }
    /// A guard that ends the [`Crossing`] at its drop, directly after the thread has acquired the
    /// GIL.
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

/// Resumes a task with the GIL released. Returns at its end or next wait.
pub(crate) fn resume<T: Send>(py: Python<'_>, task: &mut Task<T>) -> Progress<T> {
    /// A wrapper that makes its contents `Send`, as `detach` requires. The task remains on its
    /// thread.
    struct OfThisThread<T>(T);
    // SAFETY: `detach` runs its closure on the calling thread. Its bound excludes Python's objects,
    // and a task cannot contain them: its call is `Send`.
    unsafe impl<T> Send for OfThisThread<T> {}
    let task = OfThisThread(task);
    detach(py, move || {
        let task = task;
        OfThisThread(task.0.resume())
    })
    .0
}

/// Calls `work`, which may run Python code, with the GIL held. During the finalization, parks the
/// thread.
#[inline]
pub(crate) fn calls<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let crossing = Crossing::begin();
    park_attached_if_ending(py);
    let done = work();
    drop(crossing);
    park_attached_if_ending(py);
    done
}

/// Acquires the GIL and calls `work`. Returns `None` without an interpreter, or during its
/// finalization.
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

/// Acquires the GIL and calls `work`. Unlike [`Python::attach`], parks the thread during the
/// finalization.
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

/// Corrects `N_CROSSING` in a forked child, which has no other threads.
pub(super) fn forget_threads() {
    N_CROSSING.store(isize::from(DEPTH.get() > 0), SeqCst);
}

/// Locks a mutex. Releases the GIL during the wait, because the other thread may need it.
pub(crate) fn lock<'m, T>(_: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    match mutex.try_lock() {
        Ok(locked) => return locked,
        Err(TryLockError::Poisoned(locked)) => return locked.into_inner(),
        Err(TryLockError::WouldBlock) => {}
    }
    // SAFETY: attached; the thread state is restored below. Python's objects are unused until then.
    let state = unsafe { ffi::PyEval_SaveThread() };
    let locked = lock::lock(mutex);
    let _crossing = Crossing::begin();
    park_if_ending();
    // SAFETY: that of this thread, saved above.
    unsafe { ffi::PyEval_RestoreThread(state) };
    locked
}
