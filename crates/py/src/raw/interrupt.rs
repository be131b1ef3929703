//! Ctrl-C while a driver call blocks.
//!
//! A blocking call of a driver does not come back to look at Python's signal flags, so Ctrl-C would wait for it. While
//! the main thread is in such a call, a handler of ours is called first: it calls Python's own, notes the signal and
//! wakes a watcher thread. The watcher cancels the call through its [`CancelHandle`]; the call returns,
//! Python's handler runs, and `KeyboardInterrupt` is raised. It costs some system calls per driver call, not per cell.
//!
//! Only where Python's default handler is set: another one may not want the call to end. It runs when the call is over,
//! as it always did. See `docs/decisions/0050-interrupt.md`.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onecopy_wire::CancelHandle;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{ending, process, reserve};

/// What the watcher looks at.
struct Watched {
    /// The call under way on the main thread.
    cancel: Mutex<Option<CancelHandle>>,
    /// The call is over.
    over: Condvar,
    /// SIGINT has come since the call began.
    tripped: AtomicBool,
    /// An eventfd that wakes the watcher; -1 before it is made.
    wake: AtomicI32,
    /// Process generation that the watcher thread runs in; `u32::MAX` before it runs.
    generation: AtomicU32,
    /// The handler that stood before ours.
    before: Handler,
}

/// Written by the main thread while our handler is not installed, read by our handler.
struct Handler(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: it is written only by the main thread before our handler is installed, and read only by the handler while it
// is; `sigaction` orders the two.
unsafe impl Sync for Handler {}

static WATCHED: Watched = Watched {
    cancel: Mutex::new(None),
    over: Condvar::new(),
    tripped: AtomicBool::new(false),
    wake: AtomicI32::new(-1),
    generation: AtomicU32::new(u32::MAX),
    before: Handler(UnsafeCell::new(MaybeUninit::uninit())),
};

/// The signal handler: async-signal-safe, that is atomics, one `write`, and the handler that stood before.
extern "C" fn on_interrupt(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: errno is put back. The handler before ours was stored in full before ours was installed; it is called as its
    // flags say (Python's takes the number alone). The two values SIG_DFL and SIG_IGN are no functions, and `begin` does not
    // install over them.
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
        // After it: the call that is cancelled looks whether Python knows of the signal.
        WATCHED.tripped.store(true, SeqCst);
        wake_watcher();
        *libc::__errno_location() = errno;
    }
}

/// Wakes the watcher. Async-signal-safe; errno may change.
fn wake_watcher() {
    let one = 1u64;
    // SAFETY: eight bytes to an eventfd (or to -1, which fails).
    unsafe { libc::write(WATCHED.wake.load(SeqCst), (&raw const one).cast(), 8) };
}

fn call_under_way() -> MutexGuard<'static, Option<CancelHandle>> {
    WATCHED
        .cancel
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// The watcher: never attached to Python, so it needs no join before the interpreter ends.
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
            // Under the lock: the call cannot be over and another one begun when the cancel lands. Again and again until
            // it is over, since a cancel that comes before the driver has begun is lost.
            cancel.cancel();
            call = WATCHED
                .over
                .wait_timeout(call, Duration::from_millis(50))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// Starts the watcher where it does not run yet in this process. `false` where it cannot.
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

/// Signals of the process are for the threads that expect them.
fn block_signals() {
    // SAFETY: the set is filled before use, and concerns this thread alone.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Our handler stands while this does.
struct Installed(libc::sigaction);

impl Installed {
    /// Installs our handler before the one that stands; `None` where there is none to go on to, or ours stands already.
    fn begin() -> Option<Installed> {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a query fills `before`. Ours is made of it with the handler replaced; SA_SIGINFO says how it is called.
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
        // SAFETY: puts back the action that `begin` read. The main thread alone changes SIGINT's (Python's rule), and it
        // was in the driver call.
        unsafe { libc::sigaction(libc::SIGINT, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Whether this is the thread that runs Python's signal handlers, and Ctrl-C is to end a call there.
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

/// Runs `call` detached. On the main thread Ctrl-C cancels it through `cancel`; then, and for any signal that came
/// meanwhile, Python's handlers run, and what they raise is the error.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    cancel: impl FnOnce() -> CancelHandle,
    call: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    reserve::refill();
    if !ctrl_c_is_ours(py)? || !start_watcher() {
        let result = ending::detach(py, call);
        py.check_signals()?;
        return Ok(result);
    }
    let result = watched(py, cancel(), true, call)?;
    py.check_signals()?;
    Ok(result)
}

/// As [`detached`], from any thread, attached or not: for calls that another library makes of ours. What Python's handlers
/// raise is left to the interpreter, which runs them as soon as that library returns to it.
pub(crate) fn anywhere<T: Send>(
    cancel: impl FnOnce() -> CancelHandle + Send,
    call: impl FnOnce() -> T + Send,
) -> T {
    if !process::is_attached() && !process::is_main_thread() {
        return call();
    }
    let mut work = Some((cancel, call));
    let done = ending::try_attach(|py| {
        let (cancel, call) = work.take().expect("it is taken here and below alone");
        let is_watched = ctrl_c_is_ours(py).unwrap_or(false) && start_watcher();
        if is_watched {
            // Without a look at signals before the call nothing can fail.
            watched(py, cancel(), false, call).ok()
        } else {
            Some(ending::detach(py, call))
        }
    });
    match (done, work) {
        (Some(Some(result)), _) => result,
        // The interpreter is ending: there is nothing to detach from.
        (_, Some((_, call))) => call(),
        (_, None) => unreachable!("a call without a look at signals gives its result"),
    }
}

/// Runs `call` detached, on the main thread; Ctrl-C cancels it. `looks`: Python's handlers run before it, and what they raise
/// is the error.
fn watched<T: Send>(
    py: Python<'_>,
    cancel: CancelHandle,
    looks: bool,
    call: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    // First ours stands, then signals are looked at: one that came before is seen here, one that comes now trips the watcher.
    WATCHED.tripped.store(false, SeqCst);
    // Restored by the closure, which borrows it: with the former action in it, it is too large to be moved from frame to frame.
    let mut installed = Some(Installed::begin());
    if looks {
        py.check_signals()?;
    }
    let restored = &mut installed;
    let result = ending::detach(py, move || {
        *call_under_way() = Some(cancel);
        if WATCHED.tripped.load(SeqCst) {
            wake_watcher(); // It was woken before there was a call to cancel.
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        *restored = None;
        *call_under_way() = None;
        // Nobody waits for this before; a signal from here on finds no call.
        if WATCHED.tripped.load(SeqCst) {
            WATCHED.over.notify_all();
        }
        result
    });
    Ok(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}
