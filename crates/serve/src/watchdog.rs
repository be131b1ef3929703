//! The watchdog, which detects handlers that make no progress
//! (`docs/decisions/0105-worker-watchdog.md`).
//!
//! The watchdog distinguishes two cases. In the first case, no heartbeat occurs. In the second
//! case, as many handlers are running as are permitted, and none of them returns, sends a part of
//! its body, or waits for its client.
//!
//! After a second without progress (or half the timeout, if this is shorter), the server
//! temporarily stops accepting connections, so that another process with the same listener accepts
//! them. After half the timeout without a heartbeat, the server closes connections that have no
//! request in progress. After the timeout, the watchdog reports once that the handlers are stuck.

use std::time::{Duration, Instant};

use crate::accept_gate::Pause;
use crate::liveness::{Liveness, Watchdog};
use crate::shared::Shared;

/// After this time without progress, the server temporarily stops accepting connections. If half of
/// the watchdog's timeout is shorter, half of the timeout is used instead.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state of a server that one check of the watchdog examines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerSample {
    pub(crate) n_beats: u64,
    /// The number of events that prove progress. Such an event is the start of a handler, the
    /// return of a handler, or the sending of a part of a response body.
    pub(crate) n_moves: u64,
    /// `true` if two conditions are met: the number of running handlers is the permitted maximum,
    /// and none of these handlers waits for its client.
    pub(crate) all_busy: bool,
}

/// The result of one check of the watchdog. `report` is the report to make; `None` if there is
/// none. The server accepts connections if `accepts` is `true`, and closes connections without a
/// request if `closes_idle` is `true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WatchdogVerdict {
    report: Option<Liveness>,
    accepts: bool,
    closes_idle: bool,
}

/// Measures how long the handlers have made no progress.
struct ProgressTimer {
    timeout: Duration,
    last: ServerSample,
    no_beat: Duration,
    all_busy: Duration,
    is_late: bool,
}

impl ProgressTimer {
    fn new(timeout: Duration) -> ProgressTimer {
        ProgressTimer {
            timeout,
            last: ServerSample::default(),
            no_beat: Duration::ZERO,
            all_busy: Duration::ZERO,
            is_late: false,
        }
    }

    fn patience(&self) -> Duration {
        PATIENCE.min(self.timeout / 2)
    }

    /// Returns the time between two checks of the watchdog. It is a quarter of
    /// [`ProgressTimer::patience`], the time without progress after which the server stops
    /// accepting connections.
    fn interval(&self) -> Duration {
        self.patience() / 4
    }

    /// Evaluates the server state `seen`. `elapsed` is the time since the previous check. If it is
    /// longer than two check intervals, only two intervals are counted: the process or the machine
    /// was paused, and a pause of all threads is not a lack of progress of the handlers.
    fn look(&mut self, seen: ServerSample, elapsed: Duration) -> WatchdogVerdict {
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
        WatchdogVerdict {
            report,
            accepts: !self.is_late && self.all_busy < self.patience(),
            closes_idle: self.no_beat >= self.timeout / 2,
        }
    }
}

/// Checks the server at regular intervals. Returns when the server ends, or after it has reported
/// that the server's handlers are stuck.
pub(crate) fn run(shared: &Shared, watchdog: &Watchdog) {
    let mut progress = ProgressTimer::new(watchdog.timeout);
    let mut before = Instant::now();
    let mut accepts = true;
    while let Some((n_moves, all_busy)) = shared
        .scheduler
        .wait_for_look(progress.interval(), !accepts)
    {
        let now = Instant::now();
        let seen = ServerSample {
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

    /// Performs `n` checks, a quarter of a second apart. The state for check number `k` is
    /// `see(k)`. Returns all reports, and the result of the last check.
    fn looks(
        progress: &mut ProgressTimer,
        n: u64,
        see: impl Fn(u64) -> ServerSample,
    ) -> (Vec<Liveness>, WatchdogVerdict) {
        let mut last = WatchdogVerdict::default();
        let mut reports = Vec::new();
        for k in 0..n {
            last = progress.look(see(k), Duration::from_millis(250));
            reports.extend(last.report);
        }
        (reports, last)
    }

    fn beating(k: u64) -> ServerSample {
        ServerSample {
            n_beats: k + 1,
            ..ServerSample::default()
        }
    }

    fn silent(_: u64) -> ServerSample {
        ServerSample {
            n_beats: 7,
            ..ServerSample::default()
        }
    }

    #[test]
    fn a_server_that_beats_is_never_stuck() {
        let (reports, last) = looks(&mut ProgressTimer::new(TIMEOUT), 1_000, beating);
        assert!(reports.is_empty() && last.accepts && !last.closes_idle);
    }

    #[test]
    fn without_a_beat_it_accepts_nothing_after_a_second_and_is_stuck_after_the_timeout() {
        let mut progress = ProgressTimer::new(TIMEOUT);
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
        let mut progress = ProgressTimer::new(TIMEOUT);
        looks(&mut progress, 100, silent);
        let (reports, last) = looks(&mut progress, 1, beating);
        assert_eq!(reports, [Liveness::Beating]);
        assert!(last.accepts && !last.closes_idle);
    }

    #[test]
    fn time_in_which_the_watchdog_did_not_run_either_does_not_count() {
        let mut progress = ProgressTimer::new(TIMEOUT);
        progress.look(silent(0), Duration::ZERO);
        let verdict = progress.look(silent(0), Duration::from_secs(3_600));
        assert!(verdict.accepts && verdict.report.is_none());
    }

    #[test]
    fn handlers_that_are_all_busy_and_do_not_move_are_stuck_and_one_that_moves_is_enough() {
        let busy = |moves: fn(u64) -> u64| {
            move |k| ServerSample {
                n_beats: k + 1,
                n_moves: moves(k),
                all_busy: true,
            }
        };
        let (reports, last) = looks(&mut ProgressTimer::new(TIMEOUT), 1_000, busy(|k| k / 100));
        assert!(reports.is_empty() && !last.accepts && !last.closes_idle);
        let mut progress = ProgressTimer::new(TIMEOUT);
        let (reports, last) = looks(&mut progress, 121, busy(|_| 9));
        assert_eq!(reports, [Liveness::AllBusy]);
        assert!(!last.accepts && !last.closes_idle);
        let one_is_free = |k| ServerSample {
            all_busy: k % 50 > 0,
            ..busy(|_| 9)(k)
        };
        assert!(
            looks(&mut ProgressTimer::new(TIMEOUT), 1_000, one_is_free)
                .0
                .is_empty()
        );
    }

    #[test]
    fn a_short_timeout_has_a_short_patience() {
        let mut progress = ProgressTimer::new(Duration::from_millis(400));
        assert_eq!(progress.interval(), Duration::from_millis(50));
        progress.look(silent(0), Duration::ZERO);
        let (reports, _) = looks(&mut progress, 4, silent); // Each check counts as 100 ms.
        assert_eq!(reports, [Liveness::Late, Liveness::NoBeat]);
    }
}
