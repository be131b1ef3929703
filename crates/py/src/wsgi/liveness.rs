//! Reports the state of a worker process to its supervisor (`onecopy._supervisor`), without the
//! interpreter.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use onecopy_serve::{Liveness, OnLiveness};

use crate::raw::process;

/// The time between a report of a stuck server and the end of this process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns a function that writes reports to the socket `line`, one byte each. If the server is
/// stuck, the function raises the signal `dump`. Its handler writes the stacks of all threads to
/// the socket. After `PATIENCE`, the function ends the process.
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
