//! Descriptors that pass from a process to the one it starts, and a child's tie to its parent.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::check;

/// Descriptors lent to a child: the listener, the stop counter, the shared counters.
const N_LENT: usize = 3;

/// Tells a child which descriptors its parent lent it: their numbers, then the parent's process id.
const VARIABLE: &str = "ONECOPY_LENT_DESCRIPTORS";

/// Has the child of `command` keep `fds` open under the same numbers, and ignore `ignored` signals from its first
/// instruction on. In this process nothing changes: no other child can get the descriptors by chance.
///
/// The caller keeps the descriptors open for as long as `command` may be spawned; a closed one makes the spawn fail.
pub(crate) fn lend(command: &mut Command, fds: [RawFd; N_LENT], ignored: &'static [i32]) {
    let [a, b, c] = fds;
    command.env(VARIABLE, format!("{a},{b},{c},{}", std::process::id()));
    let in_child = move || {
        for fd in fds {
            // SAFETY: no pointer is passed; a descriptor that is not open is an error, which ends the spawn.
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
    // SAFETY: between fork and exec of a process that may have threads the closure makes system calls alone
    // (fcntl(2) and signal(2), both async-signal-safe); it takes no lock and allocates nothing.
    unsafe { command.pre_exec(in_child) };
}

/// Takes the descriptors that the parent lent this process, and has this process end by SIGKILL when the thread that
/// started it ends. `None`: nothing was lent, or it was taken before.
///
/// # Errors
/// `NotFound`: the parent has ended already. What prctl(2) and fcntl(2) say otherwise.
pub(crate) fn take_lent() -> Option<io::Result<[OwnedFd; N_LENT]>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let text = std::env::var(VARIABLE).ok()?;
    let numbers: Option<Vec<i32>> = text.split(',').map(|n| n.parse().ok()).collect();
    let [a, b, c, parent] = numbers?[..] else {
        return None;
    };
    // Standard input and output are everybody's.
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
    // A parent that ended before that call sends no signal; this process has another one by then. It also shows that the
    // variable was set by the parent, for this process.
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::getppid() } != parent {
        return Err(io::ErrorKind::NotFound.into());
    }
    for fd in fds {
        // SAFETY: no pointer is passed; a descriptor that is not open is an error.
        check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    }
    // SAFETY: all are open, as the calls have shown. The parent opened them and named them to this
    // process only, in which nobody else can know them: its own descriptors got other numbers. They
    // differ, and are taken once.
    Ok(fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}
