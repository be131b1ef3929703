//! Reports of a worker's watchdog to its supervisor (`onecopy.workers`), made without the
//! interpreter.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use onecopy_serve::{Liveness, OnLiveness};

use crate::raw::process;

/// Time in which the supervisor ends this process after a report; then it ends by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes reports to `line`: one byte each, and for a server that is stuck the stacks, which the
/// handler of the signal `dump` writes there too, with a zero byte after them. The process does not
/// outlive that report.
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
                std::thread::park_timeout(PATIENCE); // The supervisor kills this process.
            }
            process::exit_now(1);
        }
    })
}
