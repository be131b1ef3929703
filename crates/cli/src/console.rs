//! Output on stderr: errors, notices, progress, and the table of converted and copied bytes. Also
//! determines whether the output is coloured.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle,
};
use onecopy_text::{Entry, Ledger, Policy, Stage, Units};
use onecopy_wire::json::scalar::write_text;

/// Returns `true` if the output to a stream is to be coloured, according to the conventions of
/// <https://no-color.org> and <https://bixense.com/clicolors>. `is_terminal` is `true` if the
/// stream is a terminal.
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

/// Returns `text` in the terminal style `sgr`. The escape sequence of the style is inserted before
/// the text, and the escape sequence that resets the style after it. Returns `text` unchanged if
/// `colour` is `false`.
pub(crate) fn styled(text: &str, sgr: &str, colour: bool) -> String {
    if colour {
        format!("\u{1b}[{sgr}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// Writes lines to stderr. A closed pipe is not an error.
pub(crate) fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a log line to stderr. Control characters are replaced, because the line may contain a
/// message from a driver.
pub(crate) fn log_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown(text));
}

/// Writes an error to stderr. Lines of the message after the first are advice.
pub(crate) fn error(message: &str) {
    label("error", "1;31", message);
}

/// Writes a message that is not an error to stderr.
pub(crate) fn notice(message: &str) {
    label("note", "1;36", message);
}

fn label(label: &str, sgr: &str, message: &str) {
    let colour = coloured(std::io::stderr().is_terminal());
    let message = shown(message).replace('\n', "\n  ");
    print_line(&format!("{}: {message}", styled(label, sgr, colour)));
}

/// Returns a message without characters that control a terminal. The message of a driver may
/// contain such characters from a database, and a peer may send them in a file name. Control
/// characters become U+FFFD. Characters that change the writing direction are escaped, so that
/// `exe.cod` is not displayed as `doc.exe`.
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

/// Returns `true` for a control character of the Unicode bidirectional algorithm (Unicode Standard
/// Annex 9, section 2), which changes the writing direction.
fn changes_direction(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Appends a text as a JSON string. Any character in the text is permitted, because messages of
/// drivers may contain any character.
pub(crate) fn push_json_text(out: &mut String, text: &str) {
    let mut bytes: Vec<u8> = Vec::new();
    // The text is well-formed and a `Vec` can grow, so this does not fail.
    if write_text(Units::Utf8(text.as_bytes()), Policy::Replace, &mut bytes).is_ok() {
        out.push_str(&String::from_utf8_lossy(&bytes));
    }
}

/// A progress line for a long output, with a bar if the number of rows was estimated. It appears
/// only on a terminal, and after one second.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    started: Instant,
    n_estimated: Option<u64>,
}

impl ProgressLine {
    /// Creates a progress line, which is displayed only if `show` is `true`. `n_estimated` is an
    /// estimate of the number of rows.
    pub(crate) fn new(show: bool, n_estimated: Option<u64>) -> ProgressLine {
        let show = show && std::io::stderr().is_terminal() && coloured_or_dumb();
        let target = match show {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(n_estimated, target);
        let template = match n_estimated {
            Some(_) => "[{bar:24}] {msg}",
            None => "{spinner} {msg}",
        };
        bar.set_style(
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_spinner())
                .progress_chars("=> "),
        );
        ProgressLine {
            bar,
            started: Instant::now(),
            n_estimated,
        }
    }

    /// Sets the numbers of rows and bytes written.
    pub(crate) fn set(&self, n_rows: u64, n_bytes: u64) {
        let elapsed = self.started.elapsed();
        if self.bar.is_hidden() || elapsed < Duration::from_secs(1) {
            return;
        }
        let rate = (n_bytes as f64 / elapsed.as_secs_f64()) as u64;
        let mut text = format!(
            "{} rows · {} · {}/s",
            HumanCount(n_rows),
            HumanBytes(n_bytes),
            HumanBytes(rate)
        );
        if let Some(left) = self.n_estimated.and_then(|n| time_left(n_rows, n, elapsed)) {
            text.push_str(&format!(" · about {} left", HumanDuration(left)));
        }
        self.bar.set_position(n_rows);
        self.bar.set_message(text);
        self.bar.tick();
    }

    /// Removes the progress line.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the time that the remaining rows will take if the rate does not change. Returns `None`
/// before the first row, and if more rows than estimated were written.
pub(crate) fn time_left(n_rows: u64, n_estimated: u64, elapsed: Duration) -> Option<Duration> {
    let n_left = n_estimated.checked_sub(n_rows).filter(|_| n_rows > 0)?;
    Some(elapsed.mul_f64(n_left as f64 / n_rows as f64))
}

/// A progress bar for a long conversion. It appears only on a terminal, and after one second.
pub(crate) struct ByteProgress {
    bar: ProgressBar,
    started: Instant,
}

impl ByteProgress {
    /// Creates a bar for `len_bytes` bytes, or a progress line if the length is not known. It is
    /// displayed only if `show` is `true`.
    pub(crate) fn new(show: bool, len_bytes: Option<u64>) -> ByteProgress {
        ByteProgress::named(show, "", len_bytes)
    }

    /// Creates a progress bar, or a progress line if `len_bytes` is `None`, with the name of the
    /// operation (`what`) before it. It is displayed only if `show` is `true`.
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

    /// Sets the number of bytes that an earlier run has transferred. The displayed rate and
    /// remaining time are computed without these bytes.
    pub(crate) fn begin_at(&self, n_bytes: u64) {
        self.bar.set_position(n_bytes);
        self.bar.reset_eta();
    }

    /// Sets the number of bytes processed so far, which the bar displays.
    pub(crate) fn set(&self, n_bytes: u64) {
        if !self.bar.is_hidden() && self.started.elapsed() >= Duration::from_secs(1) {
            self.bar.set_position(n_bytes);
        }
    }

    /// Removes the progress bar.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns `true` if the terminal can redraw a line.
fn coloured_or_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Formats the ledger as a table with a row for each stage. The ledger counts the bytes of text
/// that were converted and copied. The last row has the ratios of these totals to the number of
/// bytes received.
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
    // Each text is counted as received only once, by the first stage that processes it.
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
