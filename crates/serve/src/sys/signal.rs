//! Signals that stop a server, and the one that has access logs opened anew.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::check;
use super::eventfd::add_to;
use crate::server::Handle;

/// The stop descriptor the signals write to; -1 for none.
static STOP_FD: AtomicI32 = AtomicI32::new(-1);

/// How often a signal has asked for access logs to be opened anew.
static N_REOPENS_ASKED: AtomicU32 = AtomicU32::new(0);

/// Puts the former signal actions back when it is dropped.
pub struct SignalGuard {
    former: Vec<(libc::c_int, libc::sigaction)>,
    /// Keeps the stop descriptor open as long as a signal may write to it; `None` for a signal that stops nothing.
    handle: Option<Handle>,
}

/// Stops the server of `handle` on each of `signals` (`libc::SIGINT`, `libc::SIGTERM`): the first one stops it
/// gracefully, the next one cuts what is left. The actions are the process's; only one guard can be alive.
///
/// # Errors
/// `AlreadyExists` while another guard is alive; what sigaction(2) says otherwise.
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

/// Has every access log of this process that goes to a path open it anew on `signal` (`libc::SIGUSR1`), before its next line: after
/// its file was moved away.
///
/// # Errors
/// What sigaction(2) says.
pub fn reopen_on_signal(signal: i32) -> io::Result<SignalGuard> {
    let mut guard = SignalGuard {
        former: Vec::with_capacity(1),
        handle: None,
    };
    guard.on(signal, on_reopen)?;
    Ok(guard)
}

/// How often access logs were to be opened anew so far.
pub(crate) fn n_reopens_asked() -> u32 {
    N_REOPENS_ASKED.load(Ordering::SeqCst)
}

impl SignalGuard {
    /// Sets the action of `signal`. `run` may do only what a signal handler may.
    fn on(&mut self, signal: i32, run: extern "C" fn(libc::c_int)) -> io::Result<()> {
        // SAFETY: all zeroes is a valid sigaction: no flags, the empty mask, the default action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = run as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        let mut former = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: `action` is initialised; both handlers there are only touch an atomic and call write(2), which is safe in
        // a handler; `former` has room for what the kernel writes.
        check(unsafe { libc::sigaction(signal, &raw const action, former.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so the kernel has written it.
        self.former.push((signal, unsafe { former.assume_init() }));
        Ok(())
    }
}

extern "C" fn on_stop(_signal: libc::c_int) {
    let fd = STOP_FD.load(Ordering::SeqCst);
    if fd != -1 {
        // errno is not restored: write(2) on an eventfd of room never fails, and success leaves errno alone.
        add_to(fd, 1);
    }
}

extern "C" fn on_reopen(_signal: libc::c_int) {
    N_REOPENS_ASKED.fetch_add(1, Ordering::SeqCst);
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
