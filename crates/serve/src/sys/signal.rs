//! [`stop_on_signals`] and [`reopen_on_signal`]: signal handlers that stop a server, or that reopen
//! its access logs.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::check;
use super::eventfd::add_to;
use crate::server::Handle;

/// The eventfd of the server to which the signal handler writes; -1 if no guard of
/// [`stop_on_signals`] exists.
static STOP_FD: AtomicI32 = AtomicI32::new(-1);

/// The number of signals that have requested a reopen of the access logs, since the start of the
/// process.
static N_REOPEN_REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Keeps signal handlers installed. Dropping the guard restores the previous signal actions.
pub struct SignalGuard {
    former: Vec<(libc::c_int, libc::sigaction)>,
    /// Keeps the server's stop descriptor open, because a signal handler may write to it. `None`
    /// for a guard of [`reopen_on_signal`].
    handle: Option<Handle>,
}

/// Stops the server of `handle` on each of `signals` (such as `libc::SIGINT` and `libc::SIGTERM`).
/// The first signal stops the server gracefully, and the second one aborts the requests in
/// progress. Only one guard of this function can exist at a time, because signal actions belong to
/// the process.
///
/// # Errors
/// `AlreadyExists` while another guard exists; otherwise the error of sigaction(2).
pub fn stop_on_signals(handle: &Handle, signals: &[i32]) -> io::Result<SignalGuard> {
    STOP_FD
        .compare_exchange(-1, handle.stop_fd(), Ordering::SeqCst, Ordering::SeqCst)
        .map_err(|_| io::Error::from(io::ErrorKind::AlreadyExists))?;
    let mut guard = SignalGuard {
        former: Vec::with_capacity(signals.len()),
        handle: Some(handle.clone()),
    };
    for &signal in signals {
        guard.on(signal, on_stop)?;
    }
    Ok(guard)
}

/// Installs a handler for `signal` (such as `libc::SIGUSR1`), which makes the access logs of this
/// process open their files again. Each log that writes to a path opens the path again before it
/// writes its next line. Log rotation sends the signal after it has renamed the file.
///
/// # Errors
/// The error of sigaction(2).
pub fn reopen_on_signal(signal: i32) -> io::Result<SignalGuard> {
    let mut guard = SignalGuard {
        former: Vec::with_capacity(1),
        handle: None,
    };
    guard.on(signal, on_reopen)?;
    Ok(guard)
}

/// Returns the number of signals that have requested a reopen of the access logs, since the start
/// of the process.
pub(crate) fn n_reopens_asked() -> u32 {
    N_REOPEN_REQUESTS.load(Ordering::SeqCst)
}

impl SignalGuard {
    /// Installs the function `run` as the handler of `signal`. The function must be
    /// async-signal-safe.
    fn on(&mut self, signal: i32, run: extern "C" fn(libc::c_int)) -> io::Result<()> {
        // SAFETY: all zeroes is a valid sigaction: no flags, the empty mask, the default action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = run as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        let mut former = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: `action` is initialised; both handlers only touch an atomic and call write(2),
        // which is async-signal-safe; `former` has the size that the kernel writes.
        check(unsafe { libc::sigaction(signal, &raw const action, former.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so the kernel has written it.
        self.former.push((signal, unsafe { former.assume_init() }));
        Ok(())
    }
}

extern "C" fn on_stop(_signal: libc::c_int) {
    let fd = STOP_FD.load(Ordering::SeqCst);
    if fd != -1 {
        // errno need not be saved and restored. write(2) to an eventfd below its limit never fails,
        // and a successful call leaves errno unchanged.
        add_to(fd, 1);
    }
}

extern "C" fn on_reopen(_signal: libc::c_int) {
    N_REOPEN_REQUESTS.fetch_add(1, Ordering::SeqCst);
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        for (signal, former) in self.former.drain(..) {
            // SAFETY: `former` is what the kernel gave for this signal.
            let _ = unsafe { libc::sigaction(signal, &raw const former, std::ptr::null_mut()) };
        }
        if self.handle.is_some() {
            STOP_FD.store(-1, Ordering::SeqCst);
        }
    }
}
