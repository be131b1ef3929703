//! Signals that stop a server.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

use super::check;
use super::eventfd::add_to;
use crate::server::Handle;

/// The stop descriptor the signals write to; -1 for none.
static STOP_FD: AtomicI32 = AtomicI32::new(-1);

/// Puts the former signal actions back when it is dropped.
pub struct SignalGuard {
    former: Vec<(libc::c_int, libc::sigaction)>,
    /// Keeps the stop descriptor open as long as a signal may write to it.
    _handle: Handle,
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
        _handle: handle.clone(),
    };
    for &signal in signals {
        // SAFETY: all zeroes is a valid sigaction: no flags, the empty mask, the default action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        let mut former = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: `action` is initialised; its handler only loads an atomic and calls write(2), both safe in a
        // handler; `former` has room for what the kernel writes.
        check(unsafe { libc::sigaction(signal, &raw const action, former.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so the kernel has written it.
        guard.former.push((signal, unsafe { former.assume_init() }));
    }
    Ok(guard)
}

extern "C" fn on_signal(_signal: libc::c_int) {
    let fd = STOP_FD.load(Ordering::SeqCst);
    if fd != -1 {
        // errno is not restored: write(2) on an eventfd of room never fails, and success leaves errno alone.
        add_to(fd, 1);
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        for (signal, former) in self.former.drain(..) {
            // SAFETY: `former` is what the kernel gave for this signal.
            let _ = unsafe { libc::sigaction(signal, &raw const former, std::ptr::null_mut()) };
        }
        STOP_FD.store(-1, Ordering::SeqCst);
    }
}
