//! `onecopy serve` over foreign drivers: the serving happens in a child, which is started anew when it crashes.
//!
//! A driver runs in the process that calls it, and some crash: psqlodbc 13.02 reads through a null pointer when its
//! connection dies in the middle of an answer. What is lost then is every answer under way; the socket, and those who
//! wait at it, are not. See `docs/decisions/0041-supervisor.md`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onecopy_gateway::{Config, DriverCalls, Log, Supervision};
use onecopy_rows::connect::Connection;
use onecopy_serve::{SharedCounters, Socket};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::console::error;
use crate::crashes::{Crashes, MOST_CRASHES, Verdict, WITHIN, describe, is_own_fault};
use crate::exit;

/// Databases that the process which serves does not use, and for how many seconds: `2:60,3:17`.
const SET_ASIDE_VARIABLE: &str = "ONECOPY_SET_ASIDE";

/// A database that is reached through a foreign driver.
pub(crate) struct Foreign {
    /// Its index in the configuration.
    index: usize,
    /// Its name and what is known of the driver: `sales (psqlodbc (Unicode))`.
    description: String,
}

/// The databases that are reached through a foreign driver. Empty: only a fault of our own can
/// crash this process.
pub(crate) fn foreign_databases(config: &Config) -> Vec<Foreign> {
    let databases = config.databases.iter().enumerate();
    databases
        .filter_map(|(index, d)| {
            let driver = Connection::foreign_driver(d.target.expose())?;
            let description = format!("{} ({driver})", d.name);
            Some(Foreign { index, description })
        })
        .collect()
}

/// The counters and the databases set aside, as the supervisor of this process passes them.
pub(crate) fn supervision(counters: SharedCounters) -> Supervision {
    let text = std::env::var(SET_ASIDE_VARIABLE).unwrap_or_default();
    let set_aside = text.split(',').filter_map(|entry| {
        let (database, seconds) = entry.split_once(':')?;
        let seconds = Duration::from_secs(seconds.parse().ok()?);
        Some((database.parse().ok()?, seconds))
    });
    Supervision {
        set_aside: set_aside.collect(),
        calls: Some(DriverCalls::new(counters)),
    }
}

/// What the children are started with.
pub(crate) struct Start<'a> {
    /// The command line of this process, the program's name first.
    pub(crate) again: &'a [OsString],
    /// The text of the configuration. It was read once: its file may be a pipe, or be half edited when a child crashes.
    pub(crate) config: &'a str,
    /// See [`foreign_databases`].
    pub(crate) foreign: &'a [Foreign],
    /// Databases in the configuration.
    pub(crate) n_databases: usize,
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
    let counters = match DriverCalls::counters(start.n_databases) {
        Ok(counters) => counters,
        Err(e) => return cannot_start(&e),
    };
    let calls = DriverCalls::new(counters.clone());
    let mut crashes = Crashes::new(start.n_databases);
    let mut child = match start.child(&socket, &counters, &[]) {
        Ok(child) => child,
        Err(e) => return cannot_start(&e),
    };
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
        let now = Instant::now();
        let mut suspects = calls.take_suspects(start.n_databases);
        suspects.retain(|_| is_own_fault(signal));
        let drivers = match suspects.is_empty() {
            true => format!("drivers: {}", start.names(|_| true)),
            false => format!("in a call to: {}", start.names(|i| suspects.contains(&i))),
        };
        let verdict = crashes.count(now, &suspects);
        if verdict == Verdict::GiveUp {
            log.line(&format!("{crash}; {drivers}"));
            error(&format!(
                "the process that serves crashed more than {MOST_CRASHES} times within {} s: given up\n\
                 find the driver at fault with `onecopy query`: {}",
                WITHIN.as_secs(),
                start.names(|_| true)
            ));
            return exit::FAILED;
        }
        child = match start.child(&socket, &counters, &crashes.set_aside(now)) {
            Ok(child) => child,
            Err(e) => return cannot_start(&e),
        };
        let next = child.id();
        log.line(&format!("{crash}; process {next} serves now; {drivers}"));
        if let Verdict::SetAside(database, time) = verdict {
            log.line(&format!(
                "set aside database={}: its driver crashed the process again and again; \
                 its queries answer 503 for {} s, the other databases are served",
                start.names(|i| i == database),
                time.as_secs()
            ));
        }
    }
}

fn cannot_start(e: &io::Error) -> i32 {
    error(&format!(
        "the process that serves cannot be started: {e}\n`--unsupervised` serves in one process, which a driver that crashes ends"
    ));
    exit::FAILED
}

impl Start<'_> {
    /// The foreign databases among those whose index fits, with their drivers.
    fn names(&self, fits: impl Fn(usize) -> bool) -> String {
        let fitting = self.foreign.iter().filter(|f| fits(f.index));
        let names: Vec<&str> = fitting.map(|f| f.description.as_str()).collect();
        names.join(", ")
    }

    /// Starts a process by the same command line, which finds the socket that it is lent and serves on it.
    fn child(
        &self,
        socket: &Socket,
        counters: &SharedCounters,
        set_aside: &[(usize, Duration)],
    ) -> io::Result<Child> {
        // This very program, even if its file was replaced meanwhile; Python finds its environment by the name it is
        // called by.
        let mut command = Command::new("/proc/self/exe");
        let (name, rest) = self.again.split_first().ok_or(io::ErrorKind::NotFound)?;
        command.arg0(name).args(rest).stdin(Stdio::piped());
        socket.lend(&mut command, counters);
        let entry = |(database, time): &(usize, Duration)| format!("{database}:{}", time.as_secs());
        let set_aside: Vec<String> = set_aside.iter().map(entry).collect();
        command.env(SET_ASIDE_VARIABLE, set_aside.join(","));
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A child that ended before it read all is judged by how it ended.
            let _ = stdin.write_all(self.config.as_bytes());
        }
        Ok(child)
    }
}
