//! Crashes of the process that serves: what they mean, and what is done about the driver at fault.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV};
use signal_hook::low_level::signal_name;

/// As many crashes are survived within [`WITHIN`]; with the next one it is given up. A driver that
/// crashes at each connect would keep the machine busy with starting processes.
pub(crate) const MOST_CRASHES: usize = 10;
/// The time that crashes are counted over.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);
/// After as many crashes within [`WITHIN`] that only one database can have caused, it is set aside.
const CRASHES_OF_ONE: usize = 3;
/// For how long at first; twice as long each further time.
const ASIDE: Duration = Duration::from_secs(60);
/// The longest time, and the time without a crash after which a database starts from the beginning.
const LONGEST_ASIDE: Duration = Duration::from_secs(3600);

/// When the last crashes were, and which databases are set aside for them.
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

/// The crashes within [`WITHIN`].
#[derive(Clone, Debug, Default)]
struct Recent(VecDeque<Instant>);

impl Recent {
    /// Adds a crash at `now`; returns how many there are.
    fn add(&mut self, now: Instant) -> usize {
        self.0.push_back(now);
        while self.0.front().is_some_and(|c| now - *c > WITHIN) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

/// The consequence of a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Serve on.
    Serve,
    /// Serve on without this database, for this time.
    SetAside(usize, Duration),
    /// It crashes again and again, and no database can be said to be at fault.
    GiveUp,
}

impl Crashes {
    /// No crash yet.
    pub(crate) fn new(n_databases: usize) -> Crashes {
        Crashes {
            recent: Recent::default(),
            databases: vec![Suspect::default(); n_databases],
        }
    }

    /// Counts a crash at `now` that one of `suspects` has caused, indexes of databases.
    pub(crate) fn count(&mut self, now: Instant, suspects: &[usize]) -> Verdict {
        let one = match suspects {
            [one] => self.databases.get_mut(*one).map(|suspect| (*one, suspect)),
            _ => None,
        };
        if let Some((database, suspect)) = one
            && let Some(time) = suspect.count(now)
        {
            // Those crashes are accounted for.
            self.recent = Recent::default();
            return Verdict::SetAside(database, time);
        }
        match self.recent.add(now) > MOST_CRASHES {
            true => Verdict::GiveUp,
            false => Verdict::Serve,
        }
    }

    /// The databases that are set aside at `now`, with the time that is left.
    pub(crate) fn set_aside(&self, now: Instant) -> Vec<(usize, Duration)> {
        let left = |suspect: &Suspect| suspect.aside_until?.checked_duration_since(now);
        let databases = self.databases.iter().enumerate();
        databases
            .filter_map(|(i, suspect)| Some((i, left(suspect)?)))
            .collect()
    }
}

impl Suspect {
    /// Counts a crash that this database has caused; returns for how long to set it aside, if that
    /// is due.
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

/// Returns whether a process dies by this signal because of its own instructions, and not because
/// another one sent it.
pub(crate) fn is_own_fault(signal: i32) -> bool {
    matches!(signal, SIGSEGV | SIGBUS | SIGABRT | SIGILL | SIGFPE)
}

/// A line about a process that died by a signal.
pub(crate) fn describe(pid: u32, signal: i32, status: ExitStatus) -> String {
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
        // The first ones are no longer counted.
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
        // Tried again, it crashes at once.
        let mut now = 62;
        for n in [2, 4, 8, 16, 32, 60, 60] {
            let aside = Verdict::SetAside(1, minutes(n));
            assert_eq!(crashes.count(at(start, now), &[1]), aside);
            now += 60 * n;
        }
        assert_eq!(crashes.set_aside(at(start, now + 1)), []);
        // An hour without a crash: from the beginning.
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
