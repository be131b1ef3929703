//! Reports the state of a worker process to its supervisor (`onecopy._supervisor`). The thread that
//! writes the reports, a watchdog, does not use the interpreter.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use onecopy_serve::{Liveness, OnLiveness};

use crate::raw::process;

/// The time that the supervisor has to end this process after a report that the server is stuck.
/// When this time has passed, the process ends itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns a function that writes reports of the watchdog to the socket `line`, one byte each. If
/// the report is that the server is stuck, the function then raises the signal `dump`, whose
/// handler writes the stacks of all threads to the socket. Then it writes a zero byte, and ends the
/// process if the supervisor has not done so within `PATIENCE`.
pub(super) fn reporter(line: OwnedFd, dump: i32) -> OnLiveness {
    let line = UnixStream::from(line);
    Arc::new(move |liveness| {
        let word = match liveness {
            Liveness::Late => b"L",
            Liveness::Beating => b"B",
            Liveness::NoBeat => b"S",
            Liveness::AllBusy => b"T",
            _ => return,
        };
        let sent = (&line).write_all(word);
        if matches!(liveness, Liveness::NoBeat | Liveness::AllBusy) {
            process::raise(dump);
            if sent.and_then(|()| (&line).write_all(b"\0")).is_ok() {
                std::thread::park_timeout(PATIENCE); // the supervisor kills this process
            }
            process::exit_now(1);
        }
    })
}
