//! Detects that the process was forked after a connection was opened.
//!
//! SQLite forbids the use of a connection after a fork (<https://sqlite.org/howtocorrupt.html>,
//! section 2.6), and a server's socket cannot serve two processes. The child process must therefore
//! neither use nor free the handles of connections.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of forks between the process that first called `watch_forks` and this process, its
/// descendant; 0 in the process that made this call.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static REGISTERED: Once = Once::new();

/// Counts a fork. `fork` of the C library calls this function in the child process before it
/// returns. The function is `unsafe` because `pthread_atfork` requires the type of its parameter.
///
/// # Safety
/// No requirement: it only increments an atomic.
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Relaxed);
}

/// Returns the number of forks between the process that first called `watch_forks` and this
/// process. A value that differs from an earlier one shows that the process was forked meanwhile.
/// The call loads one atomic, whereas `getpid` would be a system call at every driver call. A child
/// that was created by the system call `clone`, without the C library, is not detected.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Registers the fork handler, so that forks are counted from now on.
pub(crate) fn watch_forks() {
    // SAFETY: the handler touches one atomic, which is safe between fork and exec (POSIX
    // pthread_atfork).
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}
