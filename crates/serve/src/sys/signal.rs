//! [`stop_on_signals`] and [`reopen_on_signal`]: signals that stop a server or reopen its access
//! logs.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::check;
use super::eventfd::add_to;
use crate::server::Handle;

/// The stop descriptor to which signal handlers write; -1 if there is none.
static STOP_FD: AtomicI32 = AtomicI32::new(-1);

/// The number of times that a signal has requested a reopen of the access logs, since the start of
/// the process.
static N_REOPEN_REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Restores the previous signal actions when it is dropped.
pub struct SignalGuard {
    former: Vec<(libc::c_int, libc::sigaction)>,
    /// Keeps the stop descriptor open as long as a signal handler may write to it; `None` for a
    /// guard of [`reopen_on_signal`].
    handle: Option<Handle>,
}

/// Stops the server of `handle` on each of `signals` (`libc::SIGINT`, `libc::SIGTERM`). The first
/// signal stops it gracefully; the next one aborts the requests in progress. Signal actions belong
/// to the process, so only one guard of this function can exist.
///
/// # Errors
/// `AlreadyExists` while another guard is alive; otherwise the error of sigaction(2).
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

/// Sets an action for `signal` (`libc::SIGUSR1`): each access log of this process that writes to a
/// path opens the path again before it writes its next line. Send the signal after the log file was
/// renamed.
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

/// Returns the number of times that a signal has requested a reopen of the access logs, since the
/// start of the process.
pub(crate) fn n_reopens_asked() -> u32 {
    N_REOPEN_REQUESTS.load(Ordering::SeqCst)
}

impl SignalGuard {
    /// Sets `run` as the action of `signal`. `run` must be safe in a signal handler.
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
        // errno need not be restored: write(2) to an eventfd below its limit never fails, and a
        // success leaves errno unchanged.
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
