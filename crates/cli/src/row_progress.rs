//! [`Reporting`] and [`RowProgress`]: report the progress and the result of a command that writes
//! rows, on a terminal or as JSON. [`RowProgress`] also stops the command after a signal.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};
use onecopy_export::Observer;
use onecopy_wire::CancelHandle;

use crate::args::ProgressForm;
use crate::console::{self, ProgressLine, coloured, print_line, push_json_text, time_left};
use crate::exit;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Stop};
use crate::statement;

/// The shortest time between two progress events in JSON.
const EVENT_EVERY: Duration = Duration::from_millis(500);

/// How a command reports its progress and its result (`--progress` and `--quiet`).
#[derive(Clone, Copy)]
pub(crate) struct Reporting {
    pub(crate) form: ProgressForm,
    pub(crate) is_quiet: bool,
}

impl Reporting {
    /// Runs `command`, which a signal or the end of `time_limit` cancels. Reports its failure as
    /// text or as a JSON event. Returns the exit code.
    pub(crate) fn run(
        self,
        time_limit: Option<Duration>,
        command: impl FnOnce(&Interrupt) -> Result<(), Failure>,
    ) -> i32 {
        if self.form != ProgressForm::Json {
            return statement::run(time_limit, self.is_quiet, command);
        }
        let interrupt = match Interrupt::start(time_limit) {
            Ok(interrupt) => interrupt,
            Err(source) => return Failure::System(source).report(),
        };
        let Err(failure) = command(&interrupt) else {
            return exit::OK;
        };
        let (message, code) = match interrupt.stopped() {
            Some(Stop::Signal) => ("stopped".to_owned(), exit::STOPPED),
            Some(Stop::Timeout) if failure.is_cancel() => {
                (statement::time_limit_message(time_limit), exit::FAILED)
            }
            _ => (failure.to_string(), failure.exit_code()),
        };
        let members = [
            ("message", json_text(&message)),
            ("exit_code", code.to_string()),
        ];
        event("error", &members);
        code
    }

    /// Returns `true` if the progress is displayed. JSON progress is always displayed; other
    /// progress only on a terminal, and not with `--quiet`.
    pub(crate) fn shows_progress(self) -> bool {
        match self.form {
            ProgressForm::Auto => !self.is_quiet && io::stderr().is_terminal(),
            ProgressForm::Json => true,
            ProgressForm::None => false,
        }
    }

    /// Returns `true` if the command prints notices for the user.
    pub(crate) fn shows_notices(self) -> bool {
        !self.is_quiet && self.form != ProgressForm::Json
    }

    /// Creates the display of the command's progress. `n_estimated` is the estimated number of
    /// rows, from which the remaining time is computed.
    pub(crate) fn progress(
        self,
        interrupt: &Interrupt,
        n_estimated: Option<u64>,
    ) -> RowProgress<'_> {
        match self.form {
            ProgressForm::Json => RowProgress::json(interrupt, n_estimated),
            _ => RowProgress::line(interrupt, self.shows_progress(), n_estimated),
        }
    }

    /// Prints the result of the command: a JSON event, to which `members` are added, or a line of
    /// text.
    pub(crate) fn done(
        self,
        n_rows: u64,
        n_bytes: u64,
        started: Instant,
        members: Vec<(&'static str, String)>,
    ) {
        let elapsed = started.elapsed();
        if self.form == ProgressForm::Json {
            let mut all = counts(n_rows, n_bytes, elapsed);
            all.extend(members);
            event("done", &all);
        } else if !self.is_quiet {
            let rate = n_bytes as f64 / elapsed.as_secs_f64().max(1e-3);
            let text = format!(
                "{} {}, {} ({} bytes) in {}, {}/s",
                HumanCount(n_rows),
                if n_rows == 1 { "row" } else { "rows" },
                HumanBytes(n_bytes),
                HumanCount(n_bytes),
                duration(elapsed),
                HumanBytes(rate as u64)
            );
            let colour = coloured(io::stderr().is_terminal());
            print_line(&console::styled(&text, "2", colour));
        }
    }
}

/// Displays the progress of a command that writes rows, and stops the command after a signal.
pub(crate) struct RowProgress<'i> {
    interrupt: &'i Interrupt,
    display: Display,
    started: Instant,
    /// The estimated number of rows of the result; `None` if unknown.
    n_estimated: Option<u64>,
}

enum Display {
    Line(ProgressLine),
    /// JSON events on stderr. The value is the time at which the last event was printed.
    Json(Instant),
}

impl<'i> RowProgress<'i> {
    /// Creates a progress line on the terminal, which is hidden if `show` is `false`. `n_estimated`
    /// is an estimate of the number of rows.
    pub(crate) fn line(
        interrupt: &'i Interrupt,
        show: bool,
        n_estimated: Option<u64>,
    ) -> RowProgress<'i> {
        RowProgress {
            interrupt,
            display: Display::Line(ProgressLine::new(show, n_estimated)),
            started: Instant::now(),
            n_estimated,
        }
    }

    /// Creates a display that prints the progress as JSON events on stderr.
    pub(crate) fn json(interrupt: &'i Interrupt, n_estimated: Option<u64>) -> RowProgress<'i> {
        let now = Instant::now();
        RowProgress {
            interrupt,
            display: Display::Json(now),
            started: now,
            n_estimated,
        }
    }

    /// Removes the progress line from the terminal; has no effect for JSON.
    pub(crate) fn end(self) {
        if let Display::Line(line) = self.display {
            line.end();
        }
    }
}

impl Observer for RowProgress<'_> {
    fn cancels(&mut self, cancel: CancelHandle) {
        self.interrupt.cancels(cancel);
    }

    fn progress(&mut self, n_rows: u64, n_bytes: u64) {
        match &mut self.display {
            Display::Line(line) => line.set(n_rows, n_bytes),
            Display::Json(last) if last.elapsed() >= EVENT_EVERY => {
                *last = Instant::now();
                let elapsed = self.started.elapsed();
                let mut members = counts(n_rows, n_bytes, elapsed);
                if let Some(n_estimated) = self.n_estimated {
                    members.push(("rows_estimated", n_estimated.to_string()));
                    if let Some(left) = time_left(n_rows, n_estimated, elapsed) {
                        members.push(("seconds_left", format!("{:.1}", left.as_secs_f64())));
                    }
                }
                event("progress", &members);
            }
            Display::Json(_) => {}
        }
    }

    fn stops(&self) -> bool {
        self.interrupt.stopped().is_some()
    }
}

/// Prints an event as a JSON object on one line of stderr. `members` are the names of its members,
/// each with its value as JSON text.
pub(crate) fn event(name: &str, members: &[(&str, String)]) {
    let mut line = format!("{{\"event\":\"{name}\"");
    for (key, value) in members {
        line.push_str(&format!(",\"{key}\":{value}"));
    }
    line.push('}');
    print_line(&line);
}

/// Returns the members of a JSON event for the numbers of rows and bytes, and for the elapsed
/// seconds.
pub(crate) fn counts(n_rows: u64, n_bytes: u64, elapsed: Duration) -> Vec<(&'static str, String)> {
    vec![
        ("rows", n_rows.to_string()),
        ("bytes", n_bytes.to_string()),
        ("seconds", format!("{:.3}", elapsed.as_secs_f64())),
    ]
}

pub(crate) fn json_text(text: &str) -> String {
    let mut out = String::new();
    push_json_text(&mut out, text);
    out
}

/// Formats a duration for people: `250 ms`, `2.5 s` or `3 min 20 s`.
pub(crate) fn duration(d: Duration) -> String {
    match d.as_secs() {
        0 => format!("{} ms", d.as_millis()),
        s @ 1..60 => format!("{s}.{} s", d.subsec_millis() / 100),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}
