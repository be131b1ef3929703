//! What is told on stderr: errors, notices, progress, the ledger; and whether in colour.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use onecopy_text::{Entry, Ledger, Stage};

/// Whether to colour a stream, by the customs of <https://no-color.org> and <https://bixense.com/clicolors>.
pub(crate) fn coloured(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|v| v != "0") {
        return true;
    }
    is_terminal
        && set("TERM").is_none_or(|t| t != "dumb")
        && set("CLICOLOR").is_none_or(|v| v != "0")
}

/// `text` in an SGR style, or as it is.
pub(crate) fn styled(text: &str, sgr: &str, colour: bool) -> String {
    if colour {
        format!("\u{1b}[{sgr}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// Writes lines to stderr. That nobody reads it any more is no error.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a line of a log to stderr: drivers' messages are in some.
pub(crate) fn log_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown(text));
}

/// An error, its remedies on lines of their own.
pub(crate) fn error(message: &str) {
    label("error", "1;31", message);
}

/// Something worth knowing that is no error.
pub(crate) fn notice(message: &str) {
    label("note", "1;36", message);
}

fn label(label: &str, sgr: &str, message: &str) {
    let colour = coloured(std::io::stderr().is_terminal());
    let message = shown(message).replace('\n', "\n  ");
    tell(&format!("{}: {message}", styled(label, sgr, colour)));
}

/// A message without what a terminal would obey: drivers repeat what a database says, and peers
/// name files. Controls are U+FFFD; characters that change the direction of text are escaped, so
/// that `exe.cod` is not shown as `doc.exe`.
pub(crate) fn shown(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for c in message.trim_end().chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c if changes_direction(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Returns whether a character is a control of the bidirectional algorithm: an embedding, override,
/// isolate or mark (Unicode Standard Annex 9, section 2).
fn changes_direction(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// A line that tells how far a long output is, on a terminal alone and after a second.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// A progress line; hidden unless `show`.
    pub(crate) fn new(show: bool) -> Progress {
        let show = show && std::io::stderr().is_terminal() && coloured_or_dumb();
        let target = match show {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Progress {
            bar,
            started: Instant::now(),
        }
    }

    /// So much was written.
    pub(crate) fn set(&self, n_rows: u64, n_bytes: u64) {
        let elapsed = self.started.elapsed();
        if self.bar.is_hidden() || elapsed < Duration::from_secs(1) {
            return;
        }
        let rate = (n_bytes as f64 / elapsed.as_secs_f64()) as u64;
        self.bar.set_message(format!(
            "{} rows · {} · {}/s",
            HumanCount(n_rows),
            HumanBytes(n_bytes),
            HumanBytes(rate)
        ));
        self.bar.tick();
    }

    /// Takes the line away.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// A bar that tells how far a long conversion is, on a terminal alone and after a second.
pub(crate) struct ByteProgress {
    bar: ProgressBar,
    started: Instant,
}

impl ByteProgress {
    /// A bar over so many bytes, or a line where nobody knows how many; hidden unless `show`.
    pub(crate) fn new(show: bool, len_bytes: Option<u64>) -> ByteProgress {
        ByteProgress::named(show, "", len_bytes)
    }

    /// The same, with what is being done before it.
    pub(crate) fn named(show: bool, what: &str, len_bytes: Option<u64>) -> ByteProgress {
        let show = show && std::io::stderr().is_terminal() && coloured_or_dumb();
        let target = match show {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(len_bytes, target);
        let template = match len_bytes {
            Some(_) => "[{bar:32}] {bytes} of {total_bytes} · {bytes_per_sec} · {eta} left",
            None => "{spinner} {prefix}{bytes} · {bytes_per_sec}",
        };
        if !what.is_empty() {
            bar.set_prefix(format!("{what}: "));
        }
        bar.set_style(
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        ByteProgress {
            bar,
            started: Instant::now(),
        }
    }

    /// So many are there from an earlier run: rate and time left leave them out.
    pub(crate) fn begin_at(&self, n_bytes: u64) {
        self.bar.set_position(n_bytes);
        self.bar.reset_eta();
    }

    /// So many bytes were read.
    pub(crate) fn set(&self, n_bytes: u64) {
        if !self.bar.is_hidden() && self.started.elapsed() >= Duration::from_secs(1) {
            self.bar.set_position(n_bytes);
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// A terminal that cannot move its cursor gets no line that is drawn over.
fn coloured_or_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// The ledger as a table: by stage, and against the text that came in.
pub(crate) fn ledger_table(ledger: &Ledger) -> String {
    let rows = Stage::ALL
        .iter()
        .map(|stage| (stage.name(), ledger.stage(*stage)))
        .filter(|(_, entry)| *entry != Entry::default())
        .chain([("total", ledger.total())]);
    let mut out = format!(
        "{:<12}{:>16}{:>16}{:>16}{:>14}\n",
        "stage", "taken, bytes", "converted", "copied", "conversions"
    );
    for (name, e) in rows {
        out.push_str(&format!(
            "{name:<12}{:>16}{:>16}{:>16}{:>14}\n",
            e.taken, e.converted, e.copied, e.conversions
        ));
    }
    // Each text is taken in once, by the first stage that touches it.
    let total = ledger.total();
    let ratio = |n: u64| n as f64 / total.taken.max(1) as f64;
    out.push_str(&format!(
        "{:<12}{:>16}{:>15.2}x{:>15.2}x",
        "per byte",
        "",
        ratio(total.converted),
        ratio(total.copied)
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use onecopy_text::Tally;

    #[test]
    fn what_a_terminal_would_obey_is_not_shown() {
        assert_eq!(shown("a\u{1b}[31mb\nc\r\n"), "a\u{fffd}[31mb\nc");
        assert_eq!(shown("`a\u{202e}fdp.exe`"), "`a\\u{202e}fdp.exe`");
        for range in [
            '\u{61c}'..='\u{61c}',
            '\u{200e}'..='\u{200f}',
            '\u{202a}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
        ] {
            for c in range {
                assert_eq!(shown(&c.to_string()), c.escape_unicode().to_string());
            }
        }
        let words = "عربي‌ עברית 日本 😀\u{200d}";
        assert_eq!(shown(words), words, "letters of any direction stay");
    }

    #[test]
    fn the_ledger_is_told_by_stage_and_per_payload() {
        let ledger = Ledger::within(&Ledger::off());
        let mut tally = Tally::default();
        tally.converted(100);
        tally.enter(&ledger, Stage::Encode);
        let table = ledger_table(&ledger);
        let lines: Vec<&str> = table.lines().collect();
        assert!(
            lines[1].starts_with("encode") && lines[1].ends_with(" 1"),
            "{table}"
        );
        assert!(
            lines[3].contains("1.00x") && lines[3].contains("0.00x"),
            "{table}"
        );
    }
}
