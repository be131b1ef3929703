//! Forks, and threads told apart.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;

use super::ending;

/// How many forks lie between the process that loaded the module and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
    ending::forget_threads();
}

/// Starts counting forks; to be called when the module is loaded. Costs nothing until a fork.
pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler runs in the child before `fork` returns there; all it does is an atomic addition and an
        // atomic store, which are async-signal-safe. The extension is never unloaded, so the pointer stays valid. Out of memory is the only
        // failure; then a fork goes unnoticed, as without the handler.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    });
}

/// Whether this is the interpreter that the process started with. Classes, caches and signal handling of ours are the
/// process's, not the interpreter's.
pub(crate) fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: attached, so there is a current interpreter. The first one has the number 0.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// Whether this thread is attached to the interpreter. Of no use on a thread of another interpreter.
#[inline]
pub(crate) fn is_attached() -> bool {
    // SAFETY: callable by any thread, at any time.
    unsafe { ffi::PyGILState_Check() != 0 }
}

/// Whether this is the first thread of the process: Python's main thread (in a forked child: the one that forked, which both
/// agree on).
pub(crate) fn is_main_thread() -> bool {
    thread_local! {
        /// The process that the thread asked in last, and the answer there.
        static KNOWN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
    }
    match KNOWN.get() {
        Some((process, is_main)) if process == generation() => is_main,
        _ => {
            // SAFETY: plain system calls.
            let (thread, process) = unsafe { (libc::syscall(libc::SYS_gettid), libc::getpid()) };
            let is_main = thread == libc::c_long::from(process);
            KNOWN.set(Some((generation(), is_main)));
            is_main
        }
    }
}

/// A number of this process: another one after each fork. An atomic load, no system call.
#[inline]
pub(crate) fn generation() -> u32 {
    FORKS.load(Relaxed)
}

/// A number of this thread, never 0 and never given twice.
#[inline]
pub(crate) fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Relaxed);
    }
    NUMBER.with(|n| *n)
}

/// Sends a signal to this thread: a handler that it has runs before this returns.
pub(crate) fn raise(signal: i32) {
    // SAFETY: a plain system call; a number that is no signal is an error of it, without effect.
    unsafe { libc::raise(signal) };
}

/// Ends the process at once, without the interpreter and without callbacks.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: callable at any time; nothing of the process runs after it.
    unsafe { libc::_exit(code) }
}
