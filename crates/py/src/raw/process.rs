//! Detects forks, the main thread and the main interpreter.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;

use super::gil;

/// The number of forks between the process that loaded the module and this process: 0 in the
/// process that loaded the module, 1 in its children, 2 in their children.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
    gil::forget_threads();
}

/// Starts counting forks. It is called when the module is loaded.
pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler runs in the child before `fork` returns there; it does only an atomic
        // addition and an atomic store, which are async-signal-safe. The extension is never
        // unloaded, so the pointer stays valid. Out of memory is the only failure; then a fork is
        // not detected, as without the handler.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    });
}

/// Returns `true` if the current interpreter is the main interpreter of the process. This module
/// does not support subinterpreters, because its classes, caches and signal handling exist once in
/// the process.
pub(crate) fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: attached, so there is a current interpreter. The first one has the number 0.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// Returns `true` if this thread holds the GIL. The result is undefined for threads of
/// subinterpreters.
#[inline]
pub(crate) fn is_attached() -> bool {
    // SAFETY: callable by any thread, at any time.
    unsafe { ffi::PyGILState_Check() != 0 }
}

/// Returns `true` if this thread is the first thread of the process, which is Python's main thread.
/// In a forked child, the first thread is the one that called `fork`.
pub(crate) fn is_main_thread() -> bool {
    thread_local! {
        /// The result of this thread's last call to `is_main_thread`, and the number of forks
        /// (`generation`) at the time of this call. A fork makes the result invalid.
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

/// Returns a number that distinguishes this process from its parent and its children: the number of
/// forks since the module was loaded. The call takes one atomic load and no system call.
#[inline]
pub(crate) fn generation() -> u32 {
    FORKS.load(Relaxed)
}

/// Sends a signal to this thread. The signal handler runs before the function returns.
pub(crate) fn raise(signal: i32) {
    // SAFETY: a plain system call; a number that is no signal is an error of it, without effect.
    unsafe { libc::raise(signal) };
}

/// Ends the process immediately, without finalizing the interpreter and without running exit
/// callbacks.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: callable at any time; nothing of the process runs after it.
    unsafe { libc::_exit(code) }
}
