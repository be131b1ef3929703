//! `onecopy serve` over foreign drivers: the serving happens in a child, which is started anew when it crashes.
//!
//! A driver runs in the process that calls it, and some crash: psqlodbc 13.02 reads through a null pointer when its
//! connection dies in the middle of an answer. What is lost then is every answer under way; the socket, and those who
//! wait at it, are not. See `docs/decisions/0041-supervisor.md`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use onecopy_gateway::{Config, Log};
use onecopy_rows::connect::Connection;
use onecopy_serve::Socket;
use signal_hook::consts::{
    SIGABRT, SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGINT, SIGKILL, SIGSEGV, SIGTERM,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use crate::console::error;
use crate::exit;

/// As many crashes are survived within [`WITHIN`]; with the next one it is given up. A driver that crashes at each
/// connect would keep the machine busy with starting processes.
const MOST_CRASHES: usize = 10;
/// The time that [`MOST_CRASHES`] is counted over.
const WITHIN: Duration = Duration::from_secs(60);

/// The databases that are reached through a foreign driver, with what is known of it: `sales (psqlodbc (Unicode))`.
/// Empty: nothing in the configuration can crash this process but ourselves.
pub(crate) fn foreign_databases(config: &Config) -> String {
    let foreign = config.databases.iter().filter_map(|d| {
        let driver = Connection::foreign_driver(d.target.expose())?;
        Some(format!("{} ({driver})", d.name))
    });
    foreign.collect::<Vec<_>>().join(", ")
}

/// What the children are started with.
pub(crate) struct Start<'a> {
    /// The command line of this process, the program's name first.
    pub(crate) again: &'a [OsString],
    /// The text of the configuration. It was read once: its file may be a pipe, or be half edited when a child crashes.
    pub(crate) config: &'a str,
    /// See [`foreign_databases`]; what to name when a child crashes.
    pub(crate) foreign: &'a str,
}

/// Has children serve on `socket`, one after the other, until one ends by itself or is stopped. Returns the exit code.
pub(crate) fn run(mut socket: Socket, start: &Start<'_>, log: &Log) -> i32 {
    // Before the first child is started: no signal may come unseen.
    let mut signals = match Signals::new([SIGINT, SIGTERM, SIGCHLD]) {
        Ok(signals) => signals,
        Err(e) => {
            error(&format!("signals cannot be listened to: {e}"));
            return exit::FAILED;
        }
    };
    let mut child = match start.child(&socket) {
        Ok(child) => child,
        Err(e) => return cannot_start(&e),
    };
    let mut crashes = Crashes::default();
    let mut stopping = false;
    loop {
        // All that came, before it is judged how the child ended: the stop may have been first.
        for _ in signals.wait().filter(|signal| *signal != SIGCHLD) {
            stopping = true;
            socket.stop();
        }
        let status = match child.try_wait() {
            Ok(None) => continue,
            Ok(Some(status)) => status,
            Err(e) => {
                error(&format!("the process that serves was lost: {e}"));
                return exit::FAILED;
            }
        };
        let Some(signal) = status.signal() else {
            // It ended by itself, and has said why.
            return status.code().unwrap_or(exit::FAILED);
        };
        let crash = describe(child.id(), signal, status);
        if stopping {
            log.line(&format!("{crash}, while it was being stopped"));
            return exit::FAILED;
        }
        let foreign = start.foreign;
        if !crashes.survived(Instant::now()) {
            log.line(&format!("{crash}; drivers: {foreign}"));
            error(&format!(
                "the process that serves crashed more than {MOST_CRASHES} times within {} s: given up\n\
                 find the driver at fault with `onecopy query`: {foreign}",
                WITHIN.as_secs()
            ));
            return exit::FAILED;
        }
        child = match start.child(&socket) {
            Ok(child) => child,
            Err(e) => return cannot_start(&e),
        };
        let next = child.id();
        log.line(&format!(
            "{crash}; process {next} serves now; drivers: {foreign}"
        ));
    }
}

fn cannot_start(e: &io::Error) -> i32 {
    error(&format!(
        "the process that serves cannot be started: {e}\n`--unsupervised` serves in one process, which a driver that crashes ends"
    ));
    exit::FAILED
}

impl Start<'_> {
    /// Starts a process by the same command line, which finds the socket that it is lent and serves on it.
    fn child(&self, socket: &Socket) -> io::Result<Child> {
        // This very program, even if its file was replaced meanwhile; Python finds its environment by the name it is
        // called by.
        let mut command = Command::new("/proc/self/exe");
        let (name, rest) = self.again.split_first().ok_or(io::ErrorKind::NotFound)?;
        command.arg0(name).args(rest).stdin(Stdio::piped());
        socket.lend(&mut command);
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A child that ended before it read all is judged by how it ended.
            let _ = stdin.write_all(self.config.as_bytes());
        }
        Ok(child)
    }
}

/// When the last crashes were.
#[derive(Default)]
struct Crashes(VecDeque<Instant>);

impl Crashes {
    /// Counts a crash at `now`; whether to go on.
    fn survived(&mut self, now: Instant) -> bool {
        self.0.push_back(now);
        while self.0.front().is_some_and(|c| now - *c > WITHIN) {
            self.0.pop_front();
        }
        self.0.len() <= MOST_CRASHES
    }
}

/// What happened, in a line.
fn describe(pid: u32, signal: i32, status: ExitStatus) -> String {
    let meaning = match signal {
        SIGSEGV => "a driver used memory that is not its own",
        SIGBUS => "a driver used memory that is not there",
        SIGABRT => "a driver or the C library found an error and gave up",
        SIGILL => "an instruction that this machine does not know",
        SIGFPE => "a driver divided by zero",
        SIGKILL => "ended from outside, or by the kernel for want of memory",
        _ => "ended from outside",
    };
    let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
    let core = if status.core_dumped() {
        ", core dumped"
    } else {
        ""
    };
    format!("crash: process {pid} died by {name} ({meaning}{core}); its answers under way were cut")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_crashes_a_minute_are_survived_and_the_eleventh_is_not() {
        let mut crashes = Crashes::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for i in 0..10 {
            assert!(crashes.survived(at(i)), "{i}");
        }
        // The first ones are no longer counted.
        assert!(crashes.survived(at(61)));
        assert!(!crashes.survived(at(61)));
        assert!(crashes.survived(at(200)));
    }

    #[test]
    fn a_crash_is_told_with_its_meaning() {
        for (status, parts) in [
            (ExitStatus::from_raw(11), ["SIGSEGV", "not its own"]),
            (ExitStatus::from_raw(0x80 | 6), ["SIGABRT", "core dumped"]),
            (ExitStatus::from_raw(50), ["signal 50", "from outside"]),
        ] {
            let said = describe(7, status.signal().unwrap(), status);
            assert!(parts.iter().all(|p| said.contains(p)), "{said}");
        }
    }
}
