//! File descriptors that a child process inherits. The parent calls [`lend`], and the child calls
//! [`take_lent`]. The child is killed when its parent ends.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::check;

/// The number of file descriptors that a parent process passes to its child: those of the listener,
/// of the stop counter and of the shared counters.
const N_LENT: usize = 3;

/// The environment variable in which the parent passes the numbers of the descriptors, followed by
/// its own process id.
const VARIABLE: &str = "ONECOPY_LENT_DESCRIPTORS";

/// Prepares `command` so that its child process inherits the descriptors `fds` under the same
/// numbers. The child also ignores the signals `ignored` from its first instruction on. In this
/// process the descriptors do not change, so no other child inherits them.
///
/// The caller must keep the descriptors open as long as `command` may be spawned. If one of them is
/// closed, spawning fails.
pub(crate) fn lend(command: &mut Command, fds: [RawFd; N_LENT], ignored: &'static [i32]) {
    let [a, b, c] = fds;
    command.env(VARIABLE, format!("{a},{b},{c},{}", std::process::id()));
    let in_child = move || {
        for fd in fds {
            // SAFETY: no pointer is passed; a descriptor that is not open is an error, which ends
            // the spawn.
            check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })?;
        }
        for &signal in ignored {
            // SAFETY: SIG_IGN runs no code. It stays in force over exec.
            if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec, in a process that may have threads, the closure makes only
    // async-signal-safe system calls (fcntl(2) and signal(2)); it takes no lock and allocates
    // nothing.
    unsafe { command.pre_exec(in_child) };
}

/// Returns the descriptors that the parent passed to this process by [`lend`]. After this call, the
/// kernel kills this process (SIGKILL) when the parent's thread that started it ends. Returns
/// `None` if no descriptors were passed, and in each call after the first.
///
/// # Errors
/// `NotFound` if the parent has already ended. Otherwise the error of prctl(2) or fcntl(2).
pub(crate) fn take_lent() -> Option<io::Result<[OwnedFd; N_LENT]>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let text = std::env::var(VARIABLE).ok()?;
    let numbers: Option<Vec<i32>> = text.split(',').map(|n| n.parse().ok()).collect();
    let [a, b, c, parent] = numbers?[..] else {
        return None;
    };
    // The descriptors 0 to 2 are standard input, output and error, and are never passed by
    // [`lend`].
    if [a, b, c].iter().any(|fd| *fd <= 2)
        || a == b
        || b == c
        || a == c
        || TAKEN.swap(true, Ordering::SeqCst)
    {
        return None;
    }
    Some(take([a, b, c], parent))
}

fn take(fds: [RawFd; N_LENT], parent: i32) -> io::Result<[OwnedFd; N_LENT]> {
    // SAFETY: the option takes a number and no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    // If the parent ended before the call of prctl(2), no signal is sent, and this process has
    // another parent now. The comparison also proves that the variable was set for this process.
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::getppid() } != parent {
        return Err(io::ErrorKind::NotFound.into());
    }
    for fd in fds {
        // SAFETY: no pointer is passed; a descriptor that is not open is an error.
        check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    }
    // SAFETY: the calls of fcntl(2) have shown that the descriptors are open. They differ from each
    // other, and this function is called once. Nothing else in this process owns them: the parent
    // opened them before this process started, and passed their numbers only to this function.
    Ok(fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}
