//! Cancels a blocking driver call when Ctrl-C is pressed.
//!
//! A blocking driver call does not check Python's signal flags. This module therefore installs its
//! own signal handler during a call on the main thread. The handler calls Python's handler, records
//! the signal and wakes a watcher thread. The watcher thread cancels the call through its
//! [`CancelHandle`]. After the call, Python's signal handlers run and raise `KeyboardInterrupt`.
//!
//! This module replaces only Python's default handler. A handler of the application runs after the
//! call. See `docs/decisions/0050-interrupt.md`.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_wire::CancelHandle;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{gil, process, reserve};

/// The shared state of the main thread, the signal handler and the watcher thread.
struct Watched {
    /// The cancel handle of the main thread's current call.
    cancel: Mutex<Option<CancelHandle>>,
    /// Notified at the end of the current call. The watcher thread then stops its attempts.
    over: Condvar,
    /// `true` after a SIGINT during the current call.
    tripped: AtomicBool,
    /// The eventfd for waking the watcher; -1 before its creation.
    wake: AtomicI32,
    /// The [`process::generation`] of the process with the watcher thread; initially `u32::MAX`.
    generation: AtomicU32,
    before: Handler,
}

/// The previous signal handler. The main thread writes it only while this module's handler is not
/// installed.
struct Handler(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: only the main thread writes it, before the installation of our handler. Only this handler
// reads it; `sigaction` orders the two.
unsafe impl Sync for Handler {}

static WATCHED: Watched = Watched {
    cancel: Mutex::new(None),
    over: Condvar::new(),
    tripped: AtomicBool::new(false),
    wake: AtomicI32::new(-1),
    generation: AtomicU32::new(u32::MAX),
    before: Handler(UnsafeCell::new(MaybeUninit::uninit())),
};

/// This module's signal handler. It is async-signal-safe: it uses only atomics, one `write` and the
/// previous handler.
extern "C" fn on_interrupt(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: errno is restored. The previous handler was stored in full before the installation of
    // ours. Its flags determine the call (Python's handler has only the number as its argument).
    // SIG_DFL and SIG_IGN are not functions, and `begin` does not replace them.
    unsafe {
        let errno = *libc::__errno_location();
        let before = (*WATCHED.before.0.get()).assume_init_ref();
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let call: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(before.sa_sigaction);
            call(signal, info, context);
        } else {
            let call: extern "C" fn(libc::c_int) = std::mem::transmute(before.sa_sigaction);
            call(signal);
        }
        // Python's handler runs first: the cancelled call checks for its record of the signal.
        WATCHED.tripped.store(true, SeqCst);
        wake_watcher();
        *libc::__errno_location() = errno;
    }
}

/// Wakes the watcher thread. Async-signal-safe, but the caller must restore `errno`.
fn wake_watcher() {
    let one = 1u64;
    // SAFETY: eight bytes to an eventfd (or to -1, which fails).
    unsafe { libc::write(WATCHED.wake.load(SeqCst), (&raw const one).cast(), 8) };
}

fn call_under_way() -> MutexGuard<'static, Option<CancelHandle>> {
    lock(&WATCHED.cancel)
}

/// Runs the watcher thread, which cancels the current call after a signal. The thread never
/// acquires the GIL.
fn watch(wake: RawFd) {
    loop {
        let mut count = 0u64;
        // SAFETY: eight bytes from an eventfd that is never closed.
        if unsafe { libc::read(wake, (&raw mut count).cast(), 8) } != 8 {
            continue; // EINTR
        }
        let mut call = call_under_way();
        while WATCHED.tripped.load(SeqCst) {
            let Some(cancel) = call.as_ref() else { break };
            // The lock prevents the begin of another call before the cancellation arrives. The
            // cancellation has no effect before the driver begins the call, so the loop repeats it.
            cancel.cancel();
            let waited = WATCHED.over.wait_timeout(call, Duration::from_millis(50));
            call = unpoisoned(waited).0;
        }
    }
}

/// Starts the watcher thread of this process. Returns `false` on failure.
fn start_watcher() -> bool {
    if WATCHED.generation.load(SeqCst) == process::generation() {
        return true;
    }
    // SAFETY: a plain system call.
    let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if wake < 0 {
        return false;
    }
    WATCHED.wake.store(wake, SeqCst);
    let started = std::thread::Builder::new()
        .name("onecopy-interrupt".into())
        .stack_size(256 << 10)
        .spawn(move || {
            block_signals();
            watch(wake);
        });
    if started.is_err() {
        return false;
    }
    WATCHED.generation.store(process::generation(), SeqCst);
    true
}

/// Blocks all signals in this thread. Other threads receive them.
fn block_signals() {
    // SAFETY: the set is filled before use, and concerns only this thread.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// A guard for this module's signal handler. Its drop restores the previous handler.
struct Installed(libc::sigaction);

impl Installed {
    /// Installs this module's handler for SIGINT. Returns `None` if SIGINT has no handler, or this
    /// one already.
    fn begin() -> Option<Installed> {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a query fills `before`. Ours is a copy with another handler; SA_SIGINFO is the
        // flag for its signature.
        unsafe {
            if libc::sigaction(libc::SIGINT, std::ptr::null(), before.as_mut_ptr()) != 0 {
                return None;
            }
            let before = before.assume_init();
            let ours = on_interrupt as extern "C" fn(_, _, _) as usize;
            if [libc::SIG_DFL, libc::SIG_IGN, ours].contains(&before.sa_sigaction) {
                return None;
            }
            (*WATCHED.before.0.get()).write(before);
            let mut action = before;
            action.sa_sigaction = ours;
            action.sa_flags |= libc::SA_SIGINFO;
            if libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut()) != 0 {
                return None;
            }
            Some(Installed(before))
        }
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // SAFETY: restores the action that `begin` read. Only the main thread changes SIGINT's
        // action (Python's rule), and it was in the driver call.
        unsafe { libc::sigaction(libc::SIGINT, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Returns `true` on the main thread if the handler of SIGINT is Python's default.
fn ctrl_c_is_ours(py: Python<'_>) -> PyResult<bool> {
    if !process::is_main_thread() {
        return Ok(false);
    }
    static CALLS: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (get, default) = CALLS.get_or_try_init(py, || -> PyResult<_> {
        let signal = py.import("_signal")?;
        let default = signal.getattr("default_int_handler")?;
        Ok((signal.getattr("getsignal")?.unbind(), default.unbind()))
    })?;
    Ok(get.bind(py).call1((libc::SIGINT,))?.is(default.bind(py)))
}

/// Calls `call` with the GIL released. On the main thread, Ctrl-C cancels it.
///
/// # Errors
/// The exception of a signal handler.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    cancel: impl FnOnce() -> CancelHandle,
    call: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    reserve::refill();
    if !ctrl_c_is_ours(py)? || !start_watcher() {
        let result = gil::detach(py, call);
        py.check_signals()?;
        return Ok(result);
    }
    let result = watched(py, cancel(), true, call)?;
    py.check_signals()?;
    Ok(result)
}

/// Calls `call` for another library, with or without the GIL. On the main thread, Ctrl-C cancels
/// it. Python's signal handlers run after the other library.
pub(crate) fn anywhere<T: Send>(
    cancel: impl FnOnce() -> CancelHandle + Send,
    call: impl FnOnce() -> T + Send,
) -> T {
    if !process::is_attached() && !process::is_main_thread() {
        return call();
    }
    let mut work = Some((cancel, call));
    let done = gil::try_attach(|py| {
        let (cancel, call) = work.take().expect("only this and the code below take it");
        let is_watched = ctrl_c_is_ours(py).unwrap_or(false) && start_watcher();
        if is_watched {
            // `watched` checks no signals before the call, so it cannot fail.
            watched(py, cancel(), false, call).ok()
        } else {
            Some(gil::detach(py, call))
        }
    });
    match (done, work) {
        (Some(Some(result)), _) => result,
        // The interpreter is ending, so the GIL cannot be released.
        (_, Some((_, call))) => call(),
        (_, None) => unreachable!("a call without a look at signals gives its result"),
    }
}

/// Calls `call` on the main thread with the GIL released. Ctrl-C cancels it. If `looks` is `true`,
/// pending signal handlers run first.
fn watched<T: Send>(
    py: Python<'_>,
    cancel: CancelHandle,
    looks: bool,
    call: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    // The installation precedes the check: the check finds an earlier signal, and a later signal
    // wakes the watcher.
    WATCHED.tripped.store(false, SeqCst);
    // The guard is too large to be moved between stack frames.
    let mut installed = Some(Installed::begin());
    if looks {
        py.check_signals()?;
    }
    let restored = &mut installed;
    let result = gil::detach(py, move || {
        *call_under_way() = Some(cancel);
        if WATCHED.tripped.load(SeqCst) {
            wake_watcher(); // wakes it again: there was no call to cancel before
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        *restored = None;
        *call_under_way() = None;
        // The watcher may still run: a later signal finds no call to cancel.
        if WATCHED.tripped.load(SeqCst) {
            WATCHED.over.notify_all();
        }
        result
    });
    Ok(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}
