//! [`Crashes`]: counts crashes of the serving process, and decides when a database whose driver
//! caused them is disabled.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV};
use signal_hook::low_level::signal_name;

/// The largest number of crashes within [`WITHIN`] after which the supervisor starts a new process.
/// After one further crash, the supervisor ends. Without this limit, a driver that crashes at each
/// connect would keep the machine busy with new processes.
pub(crate) const MOST_CRASHES: usize = 10;
/// A crash is counted only if it occurred within this time before the present.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);
/// The number of crashes within [`WITHIN`] after which a database is disabled for the first time.
/// Only crashes that no other database can have caused are counted.
const CRASHES_OF_ONE: usize = 3;
/// The time for which a database is disabled when it is disabled for the first time. Each later
/// time, it is disabled for twice as long as before.
const ASIDE: Duration = Duration::from_secs(60);
/// The longest time for which a database is disabled. If a database that was enabled again causes
/// no crash for this time, its earlier crashes are no longer counted.
const LONGEST_ASIDE: Duration = Duration::from_secs(3600);

/// Counts the recent crashes, in total and for each database, and records which databases are
/// disabled.
pub(crate) struct Crashes {
    recent: Recent,
    databases: Vec<Suspect>,
}

#[derive(Clone, Debug, Default)]
struct Suspect {
    recent: Recent,
    n_aside: u32,
    aside_until: Option<Instant>,
}

/// The times of the crashes within [`WITHIN`].
#[derive(Clone, Debug, Default)]
struct Recent(VecDeque<Instant>);

impl Recent {
    /// Adds a crash at `now`; returns the number of crashes within [`WITHIN`].
    fn add(&mut self, now: Instant) -> usize {
        self.0.push_back(now);
        while self.0.front().is_some_and(|c| now - *c > WITHIN) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

/// The supervisor's decision after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The supervisor continues to serve all databases.
    Serve,
    /// The supervisor disables the database with this index for this time, and continues to serve
    /// the other databases.
    SetAside(usize, Duration),
    /// The supervisor ends, because the process crashes repeatedly and no single database explains
    /// the crashes.
    GiveUp,
}

impl Crashes {
    /// Creates a counter that has counted no crash yet, for a configuration with `n_databases`
    /// databases.
    pub(crate) fn new(n_databases: usize) -> Crashes {
        Crashes {
            recent: Recent::default(),
            databases: vec![Suspect::default(); n_databases],
        }
    }

    /// Counts a crash at the time `now`, and returns what the supervisor must do. `suspects` has
    /// the indexes of the databases whose drivers may have caused the crash.
    pub(crate) fn count(&mut self, now: Instant, suspects: &[usize]) -> Verdict {
        let one = match suspects {
            [one] => self.databases.get_mut(*one).map(|suspect| (*one, suspect)),
            _ => None,
        };
        if let Some((database, suspect)) = one
            && let Some(time) = suspect.count(now)
        {
            // These crashes are not counted again, because disabling the database handles them.
            self.recent = Recent::default();
            return Verdict::SetAside(database, time);
        }
        match self.recent.add(now) > MOST_CRASHES {
            true => Verdict::GiveUp,
            false => Verdict::Serve,
        }
    }

    /// Returns the databases that are disabled at the time `now`, each with the remaining time.
    pub(crate) fn set_aside(&self, now: Instant) -> Vec<(usize, Duration)> {
        let left = |suspect: &Suspect| suspect.aside_until?.checked_duration_since(now);
        let databases = self.databases.iter().enumerate();
        databases
            .filter_map(|(i, suspect)| Some((i, left(suspect)?)))
            .collect()
    }
}

impl Suspect {
    /// Counts a crash that only the driver of this database can have caused. Returns the time for
    /// which the database is disabled, or `None` if this crash does not disable it.
    fn count(&mut self, now: Instant) -> Option<Duration> {
        if self
            .aside_until
            .is_some_and(|until| now >= until + LONGEST_ASIDE)
        {
            *self = Suspect::default();
        }
        if self.recent.add(now) < CRASHES_OF_ONE && self.n_aside == 0 {
            return None;
        }
        let time = (ASIDE * 2_u32.saturating_pow(self.n_aside.min(10))).min(LONGEST_ASIDE);
        self.n_aside += 1;
        self.aside_until = Some(now + time);
        self.recent = Recent::default();
        Some(time)
    }
}

/// Returns `true` for the signals that end a process because of its own error: an invalid memory
/// access, an invalid instruction, an arithmetic error, or a call to `abort`.
pub(crate) fn is_own_fault(signal: i32) -> bool {
    matches!(signal, SIGSEGV | SIGBUS | SIGABRT | SIGILL | SIGFPE)
}

/// Returns a log line which reports that the process `pid` was ended by `signal`.
pub(crate) fn describe(pid: u32, signal: i32, status: ExitStatus) -> String {
    let meaning = match signal {
        SIGSEGV => "a driver used memory that is not its own",
        SIGBUS => "a driver accessed invalid memory",
        SIGABRT => "a driver or the C library found an error and gave up",
        SIGILL => "an instruction that this machine does not support",
        SIGFPE => "a driver divided by zero",
        SIGKILL => "killed by another process, or by the kernel when memory ran out",
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

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn ten_crashes_a_minute_are_survived_and_the_eleventh_is_not() {
        let mut crashes = Crashes::new(2);
        let start = Instant::now();
        for i in 0..10 {
            assert_eq!(crashes.count(at(start, i), &[]), Verdict::Serve, "{i}");
        }
        // The first crashes are more than a minute ago and are no longer counted.
        assert_eq!(crashes.count(at(start, 61), &[0, 1]), Verdict::Serve);
        assert_eq!(crashes.count(at(start, 61), &[0, 1]), Verdict::GiveUp);
        assert_eq!(crashes.count(at(start, 200), &[0, 1]), Verdict::Serve);
    }

    #[test]
    fn a_database_that_crashes_three_times_is_set_aside_and_longer_each_time() {
        let mut crashes = Crashes::new(2);
        let start = Instant::now();
        let minutes = |n| Duration::from_secs(60 * n);
        for seconds in [0, 1] {
            assert_eq!(crashes.count(at(start, seconds), &[1]), Verdict::Serve);
        }
        let aside = Verdict::SetAside(1, minutes(1));
        assert_eq!(crashes.count(at(start, 2), &[1]), aside);
        assert_eq!(
            crashes.set_aside(at(start, 22)),
            [(1, Duration::from_secs(40))]
        );
        // When the database is used again, it crashes immediately.
        let mut now = 62;
        for n in [2, 4, 8, 16, 32, 60, 60] {
            let aside = Verdict::SetAside(1, minutes(n));
            assert_eq!(crashes.count(at(start, now), &[1]), aside);
            now += 60 * n;
        }
        assert_eq!(crashes.set_aside(at(start, now + 1)), []);
        // After an hour without a crash, the counting starts again.
        assert_eq!(crashes.count(at(start, now + 3600), &[1]), Verdict::Serve);
    }

    #[test]
    fn databases_that_are_set_aside_one_after_the_other_leave_the_limit_alone() {
        let mut crashes = Crashes::new(20);
        let now = Instant::now();
        for database in 0..20 {
            assert_eq!(crashes.count(now, &[database]), Verdict::Serve);
            assert_eq!(crashes.count(now, &[database]), Verdict::Serve);
            let Verdict::SetAside(aside, _) = crashes.count(now, &[database]) else {
                panic!("{database} is served");
            };
            assert_eq!(aside, database);
        }
        assert_eq!(crashes.set_aside(now).len(), 20);
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
