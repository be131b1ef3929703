//! Detection of handlers that make no progress (decision 0104).
//!
//! No progress is no beat, or no handler free and none of them moving. After a second of it (half
//! the timeout where that is shorter) the server accepts no connection: another process that shares
//! the listener does. After half the timeout without a beat it closes connections that have no
//! request under way. After the timeout it is stuck, and that is reported once.

use std::time::{Duration, Instant};

use crate::accept_gate::Pause;
use crate::liveness::{Liveness, Watchdog};
use crate::shared::Shared;

/// Time without progress after which no connection is accepted, at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state of a server at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) n_beats: u64,
    /// Handlers entered and left, and parts of bodies sent.
    pub(crate) n_moves: u64,
    /// As many handlers run as may, and none waits for its client.
    pub(crate) all_busy: bool,
}

/// The consequence of a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Verdict {
    report: Option<Liveness>,
    accepts: bool,
    closes_idle: bool,
}

/// Time without progress.
struct Progress {
    timeout: Duration,
    last: Seen,
    no_beat: Duration,
    all_busy: Duration,
    is_late: bool,
}

impl Progress {
    fn new(timeout: Duration) -> Progress {
        Progress {
            timeout,
            last: Seen::default(),
            no_beat: Duration::ZERO,
            all_busy: Duration::ZERO,
            is_late: false,
        }
    }

    fn patience(&self) -> Duration {
        PATIENCE.min(self.timeout / 2)
    }

    /// Time between two looks.
    fn interval(&self) -> Duration {
        self.patience() / 4
    }

    /// Adds a look, `elapsed` after the one before. Not more than two intervals of it count: a
    /// process that was stopped, or a machine that was, has lost that time for all its threads.
    fn look(&mut self, seen: Seen, elapsed: Duration) -> Verdict {
        let elapsed = elapsed.min(2 * self.interval());
        self.no_beat = match seen.n_beats == self.last.n_beats {
            true => self.no_beat + elapsed,
            false => Duration::ZERO,
        };
        let is_still = seen.all_busy && self.last.all_busy && seen.n_moves == self.last.n_moves;
        self.all_busy = match is_still {
            true => self.all_busy + elapsed,
            false => Duration::ZERO,
        };
        self.last = seen;
        let was_late = self.is_late;
        self.is_late = self.no_beat >= self.patience();
        let report = if self.no_beat >= self.timeout {
            Some(Liveness::NoBeat)
        } else if self.all_busy >= self.timeout {
            Some(Liveness::AllBusy)
        } else {
            match (was_late, self.is_late) {
                (false, true) => Some(Liveness::Late),
                (true, false) => Some(Liveness::Beating),
                _ => None,
            }
        };
        Verdict {
            report,
            accepts: !self.is_late && self.all_busy < self.patience(),
            closes_idle: self.no_beat >= self.timeout / 2,
        }
    }
}

/// Watches until the server ends, or is stuck.
pub(crate) fn run(shared: &Shared, watchdog: &Watchdog) {
    let mut progress = Progress::new(watchdog.timeout);
    let mut before = Instant::now();
    let mut accepts = true;
    while let Some((n_moves, all_busy)) = shared
        .scheduler
        .wait_for_look(progress.interval(), !accepts)
    {
        let now = Instant::now();
        let seen = Seen {
            n_beats: watchdog.pulse.n_beats(),
            n_moves,
            all_busy,
        };
        let verdict = progress.look(seen, now - before);
        before = now;
        if verdict.accepts != accepts {
            accepts = verdict.accepts;
            match accepts {
                true => shared.gate.resume(Pause::STUCK, &shared.epoll),
                false => shared.gate.pause(Pause::STUCK, &shared.epoll),
            }
        }
        shared.close_idle(verdict.closes_idle);
        if let Some(report) = verdict.report {
            (watchdog.on_liveness)(report);
            if matches!(report, Liveness::NoBeat | Liveness::AllBusy) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// The reports of `n` looks a quarter of a second apart, each of what `see` makes of its
    /// number; and the last verdict.
    fn looks(
        progress: &mut Progress,
        n: u64,
        see: impl Fn(u64) -> Seen,
    ) -> (Vec<Liveness>, Verdict) {
        let mut last = Verdict::default();
        let mut reports = Vec::new();
        for k in 0..n {
            last = progress.look(see(k), Duration::from_millis(250));
            reports.extend(last.report);
        }
        (reports, last)
    }

    fn beating(k: u64) -> Seen {
        Seen {
            n_beats: k + 1,
            ..Seen::default()
        }
    }

    fn silent(_: u64) -> Seen {
        Seen {
            n_beats: 7,
            ..Seen::default()
        }
    }

    #[test]
    fn a_server_that_beats_is_never_stuck() {
        let (reports, last) = looks(&mut Progress::new(TIMEOUT), 1_000, beating);
        assert!(reports.is_empty() && last.accepts && !last.closes_idle);
    }

    #[test]
    fn without_a_beat_it_accepts_nothing_after_a_second_and_is_stuck_after_the_timeout() {
        let mut progress = Progress::new(TIMEOUT);
        let (reports, last) = looks(&mut progress, 4, silent);
        assert!(reports.is_empty() && last.accepts);
        let (reports, last) = looks(&mut progress, 1, silent);
        assert_eq!(reports, [Liveness::Late]);
        assert!(!last.accepts && !last.closes_idle);
        let (reports, last) = looks(&mut progress, 56, silent);
        assert!(reports.is_empty() && !last.accepts && last.closes_idle);
        let (reports, _) = looks(&mut progress, 60, silent);
        assert_eq!(reports, [Liveness::NoBeat]);
    }

    #[test]
    fn a_beat_ends_all_of_that() {
        let mut progress = Progress::new(TIMEOUT);
        looks(&mut progress, 100, silent);
        let (reports, last) = looks(&mut progress, 1, beating);
        assert_eq!(reports, [Liveness::Beating]);
        assert!(last.accepts && !last.closes_idle);
    }

    #[test]
    fn time_in_which_the_watchdog_did_not_run_either_does_not_count() {
        let mut progress = Progress::new(TIMEOUT);
        progress.look(silent(0), Duration::ZERO);
        let verdict = progress.look(silent(0), Duration::from_secs(3_600));
        assert!(verdict.accepts && verdict.report.is_none());
    }

    #[test]
    fn handlers_that_are_all_busy_and_do_not_move_are_stuck_and_one_that_moves_is_enough() {
        let busy = |moves: fn(u64) -> u64| {
            move |k| Seen {
                n_beats: k + 1,
                n_moves: moves(k),
                all_busy: true,
            }
        };
        let (reports, last) = looks(&mut Progress::new(TIMEOUT), 1_000, busy(|k| k / 100));
        assert!(reports.is_empty() && !last.accepts && !last.closes_idle);
        let mut progress = Progress::new(TIMEOUT);
        let (reports, last) = looks(&mut progress, 121, busy(|_| 9));
        assert_eq!(reports, [Liveness::AllBusy]);
        assert!(!last.accepts && !last.closes_idle);
        let one_is_free = |k| Seen {
            all_busy: k % 50 > 0,
            ..busy(|_| 9)(k)
        };
        assert!(
            looks(&mut Progress::new(TIMEOUT), 1_000, one_is_free)
                .0
                .is_empty()
        );
    }

    #[test]
    fn a_short_timeout_has_a_short_patience() {
        let mut progress = Progress::new(Duration::from_millis(400));
        assert_eq!(progress.interval(), Duration::from_millis(50));
        progress.look(silent(0), Duration::ZERO);
        let (reports, _) = looks(&mut progress, 4, silent); // Each counts as 100 ms.
        assert_eq!(reports, [Liveness::Late, Liveness::NoBeat]);
    }
}
