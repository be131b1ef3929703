//! Detects forks, the main thread and the main interpreter.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;

use super::gil;

/// The number of forks since the module was loaded: 0 in the first process, 1 in its children.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
    gil::forget_threads();
}

/// Starts counting forks. Called when the module is loaded.
pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler runs in the child, with two atomic operations that are
        // async-signal-safe. The extension is never unloaded, so the pointer stays valid. If memory
        // is exhausted, forks are not detected.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    });
}

/// Returns `true` in the main interpreter. Subinterpreters are not supported, because the module's
/// state exists once per process.
pub(crate) fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: attached, so an interpreter exists. The first one has the number 0.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// Returns `true` if this thread holds the GIL. Undefined in subinterpreters.
#[inline]
pub(crate) fn is_attached() -> bool {
    // SAFETY: any thread may call it, at any time.
    unsafe { ffi::PyGILState_Check() != 0 }
}

/// Returns `true` in the first thread of the process. In a forked child, this is the thread that
/// called `fork`.
pub(crate) fn is_main_thread() -> bool {
    thread_local! {
        /// The last result of this thread, and the fork count (`generation`) of that call.
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

/// Returns the number of forks since the module was loaded. It distinguishes this process from its
/// parent and children, without a system call.
#[inline]
pub(crate) fn generation() -> u32 {
    FORKS.load(Relaxed)
}

/// Sends a signal to this thread. The handler runs before the function returns.
pub(crate) fn raise(signal: i32) {
    // SAFETY: a plain system call. An invalid number is an error without effect.
    unsafe { libc::raise(signal) };
}

/// Ends the process immediately, without finalization and exit callbacks.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: callable at any time. No code of the process runs afterwards.
    unsafe { libc::_exit(code) }
}
