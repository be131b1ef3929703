//! `onecopy serve` with third-party drivers: a child process serves, and is started again when it
//! crashes.
//!
//! A driver runs in the process that calls it, and some drivers crash. For example, psqlodbc 13.02
//! dereferences a null pointer when its connection is lost in the middle of a result. A crash
//! aborts the responses in progress. The supervisor keeps the listening socket open, so clients
//! that wait in the queue of this socket are not disconnected. See
//! `docs/decisions/0041-supervisor.md`.

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

/// The environment variable that lists the disabled databases, as in `2:60,3:17`. An entry has the
/// index of the database and the number of seconds for which it is disabled.
const SET_ASIDE_VARIABLE: &str = "ONECOPY_SET_ASIDE";

/// A configured database whose driver is a third-party driver.
pub(crate) struct Foreign {
    /// The index of the database in the configuration.
    index: usize,
    /// The name of the database and its driver: `sales (psqlodbc (Unicode))`.
    description: String,
}

/// Returns the databases of the configuration that use a third-party driver. If the list is empty,
/// no such driver can crash this process, and no supervisor is needed.
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

/// Returns the state that a child process shares with its supervisor: the counters of driver calls,
/// and the databases that [`SET_ASIDE_VARIABLE`] lists as disabled.
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

/// The values that [`run`] needs to start each child process.
pub(crate) struct Start<'a> {
    /// The command line of this process, whose first element is the program's name.
    pub(crate) again: &'a [OsString],
    /// The text of the configuration. It is read once, because the file may be a pipe, or may
    /// change before a child is started again.
    pub(crate) config: &'a str,
    /// The databases that [`foreign_databases`] returned.
    pub(crate) foreign: &'a [Foreign],
    /// The number of databases in the configuration.
    pub(crate) n_databases: usize,
}

/// Starts a child process that serves on `socket`, and starts another one after each crash. Returns
/// the exit code when a child ends without a crash, when a signal stops the server, or when
/// children crash too often.
pub(crate) fn run(mut socket: Socket, start: &Start<'_>, log: &Log) -> i32 {
    // The handlers are installed before the first child is started, so that no signal is missed.
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
        // All pending signals are read first: a child that ends after a stop signal must not be
        // started again.
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
            // The child ended by itself, and has printed the reason.
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
    /// Returns a list of databases as text, each with its name and driver. The list contains the
    /// databases with a third-party driver for which `fits` returns `true`. The argument of `fits`
    /// is the index of a database in the configuration.
    fn names(&self, fits: impl Fn(usize) -> bool) -> String {
        let fitting = self.foreign.iter().filter(|f| fits(f.index));
        let names: Vec<&str> = fitting.map(|f| f.description.as_str()).collect();
        names.join(", ")
    }

    /// Starts a child process with the command line of this process. The child serves on `socket`,
    /// without the databases in `set_aside`.
    fn child(
        &self,
        socket: &Socket,
        counters: &SharedCounters,
        set_aside: &[(usize, Duration)],
    ) -> io::Result<Child> {
        // This starts the running program itself, even if its file was replaced in the meantime.
        // The child gets the program's original name, by which Python finds its environment.
        let mut command = Command::new("/proc/self/exe");
        let (name, rest) = self.again.split_first().ok_or(io::ErrorKind::NotFound)?;
        command.arg0(name).args(rest).stdin(Stdio::piped());
        socket.lend(&mut command, counters);
        let entry = |(database, time): &(usize, Duration)| format!("{database}:{}", time.as_secs());
        let set_aside: Vec<String> = set_aside.iter().map(entry).collect();
        command.env(SET_ASIDE_VARIABLE, set_aside.join(","));
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // The error of the write is ignored. It means that the child has ended early, which the
            // loop in [`run`] handles.
            let _ = stdin.write_all(self.config.as_bytes());
        }
        Ok(child)
    }
}
