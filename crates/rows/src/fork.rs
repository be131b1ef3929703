//! Whether this process is still the one that opened the connection.
//!
//! SQLite forbids carrying a connection over a fork (<https://sqlite.org/howtocorrupt.html>, section 2.6), and two processes on
//! one socket of a server are lost: the child must neither use nor free the handles.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many forks lie between this process and the first one that looked.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static REGISTERED: Once = Once::new();

/// Runs in the child, before `fork` returns there; `pthread_atfork` wants an unsafe function pointer.
///
/// # Safety
/// None: it touches one atomic.
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Relaxed);
}

/// The fork generation of this process: a load, where `getpid` would be a system call for every driver call.
///
/// A child made by a bare `clone` system call, past the C library, is not noticed.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Sees to it that forks are counted from here on.
pub(crate) fn watch_forks() {
    // SAFETY: the handler touches one atomic, which is safe between fork and exec (POSIX pthread_atfork).
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}
