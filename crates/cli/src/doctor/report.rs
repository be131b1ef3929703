//! [`Report`]: the findings of `doctor`, as a page for people and as JSON for programs.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use crate::console::{push_json_text, shown, styled};

/// The width in columns of a page that is not written to a terminal.
pub(super) const PAGE_WIDTH: usize = 100;
/// The width in columns of the left margin, in which the level of a finding is printed between
/// spaces.
const INDENT: usize = 11;

/// The level of a finding. The levels are ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// The examined component works.
    Ok,
    /// The finding is information for the user; it is not a problem.
    Note,
    /// The component is not installed. This is not an error, because the user did not request the
    /// component by name.
    Absent,
    /// The component works, but can cause problems.
    Warning,
    /// The component does not work.
    Broken,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Absent => "absent",
            Level::Warning => "warning",
            Level::Broken => "broken",
        }
    }

    fn sgr(self) -> &'static str {
        match self {
            Level::Ok => "32",
            Level::Note => "36",
            Level::Absent => "2",
            Level::Warning => "1;33",
            Level::Broken => "1;31",
        }
    }
}

/// One result of `onecopy doctor`: the state of an examined component, with details and advice.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// The heading under which the finding is listed.
    area: &'static str,
    level: Level,
    /// The name of the examined component.
    subject: String,
    /// The result of the examination, as a sentence.
    says: String,
    /// The details of the component, each as a name and a value, such as the version of a driver.
    facts: Vec<(&'static str, String)>,
    /// Advice for the user; empty if none is needed.
    remedy: String,
}

impl Finding {
    /// Creates a finding without details.
    pub(super) fn new(
        area: &'static str,
        level: Level,
        subject: impl Into<String>,
        says: impl Into<String>,
    ) -> Finding {
        Finding {
            area,
            level,
            subject: subject.into(),
            says: says.into(),
            facts: Vec::new(),
            remedy: String::new(),
        }
    }

    /// Adds a detail with the name `name`; adds nothing if `value` is `None`.
    pub(super) fn fact(mut self, name: &'static str, value: Option<String>) -> Finding {
        self.facts.extend(value.map(|value| (name, value)));
        self
    }

    /// Adds advice for the user, one line for each action.
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedy = remedy.into();
        self
    }
}

/// All findings, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// Appends a finding to the report.
    pub(super) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Returns the level of the worst finding; `None` if there are no findings.
    pub(super) fn worst(&self) -> Option<Level> {
        self.findings.iter().map(|f| f.level).max()
    }

    /// Formats the report as a page, at most `width` columns wide unless a word is longer.
    pub(super) fn page(&self, width: usize, colour: bool) -> String {
        let mut out = format!(
            "{}, {}\n",
            styled(concat!("onecopy ", env!("CARGO_PKG_VERSION")), "1", colour),
            build()
        );
        let mut area = "";
        for finding in &self.findings {
            if finding.area != area {
                area = finding.area;
                let _ = writeln!(out, "\n{}", styled(area, "1", colour));
            }
            finding.write(&mut out, width, colour);
        }
        let count = |level| self.findings.iter().filter(|f| f.level == level).count();
        let (broken, warnings) = (count(Level::Broken), count(Level::Warning));
        let summary = match (broken, warnings) {
            (0, 0) => styled("all that was looked at works", Level::Ok.sgr(), colour),
            (0, n) => styled(&counted(n, "warning"), Level::Warning.sgr(), colour),
            (n, 0) => styled(&counted(n, "thing"), Level::Broken.sgr(), colour) + " broken",
            (n, m) => format!(
                "{} broken, {}",
                styled(&counted(n, "thing"), Level::Broken.sgr(), colour),
                counted(m, "warning")
            ),
        };
        let _ = writeln!(out, "\n{summary}");
        out
    }

    /// Formats the report as one JSON object, whose members are documented in
    /// `docs/reference/command.md`.
    pub(super) fn json(&self) -> String {
        let mut out = String::from("{\"onecopy\":");
        push_json_text(&mut out, env!("CARGO_PKG_VERSION"));
        out.push_str(",\"build\":");
        push_json_text(&mut out, &build());
        out.push_str(",\"worst\":");
        push_json_text(&mut out, self.worst().unwrap_or(Level::Ok).name());
        out.push_str(",\"findings\":[");
        for (index, finding) in self.findings.iter().enumerate() {
            out.push_str(if index == 0 { "\n" } else { ",\n" });
            finding.write_json(&mut out);
        }
        out.push_str("\n]}\n");
        out
    }
}

impl Finding {
    fn write(&self, out: &mut String, width: usize, colour: bool) {
        let name = self.level.name();
        let pad = " ".repeat(INDENT - 2 - name.len());
        let _ = write!(out, "  {}{pad}", styled(name, self.level.sgr(), colour));
        let said = match self.says.is_empty() {
            true => self.subject.clone(),
            false => format!("{}: {}", self.subject, self.says),
        };
        out.push_str(wrapped(&said, width, INDENT, "").trim_start());
        for (name, value) in &self.facts {
            let label = format!("{name:10} ");
            let text = wrapped(value, width, INDENT + label.len(), "");
            let _ = write!(
                out,
                "{}{}{}",
                " ".repeat(INDENT),
                styled(&label, "2", colour),
                text.trim_start()
            );
        }
        for line in self.remedy.lines() {
            out.push_str(&wrapped(line, width, INDENT + 2, "→ "));
        }
    }

    fn write_json(&self, out: &mut String) {
        let members = [
            ("area", self.area),
            ("level", self.level.name()),
            ("subject", &self.subject),
            ("says", &self.says),
            ("remedy", &self.remedy),
        ];
        out.push('{');
        for (name, value) in members {
            push_json_text(out, name);
            out.push(':');
            push_json_text(out, value);
            out.push(',');
        }
        out.push_str("\"facts\":{");
        for (index, (name, value)) in self.facts.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_json_text(out, name);
            out.push(':');
            push_json_text(out, value);
        }
        out.push_str("}}");
    }
}

/// Returns a text such as `3 warnings`: the number `n`, and the noun `what` with a plural `s`. If
/// `n` is 1, the noun gets no `s`.
pub(super) fn counted(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// Wraps `text` at spaces so that no line is wider than `width` columns. All lines are indented by
/// `indent` spaces; on the first line, `mark` replaces the first of these spaces.
fn wrapped(text: &str, width: usize, indent: usize, mark: &str) -> String {
    let available = width.saturating_sub(indent).max(20);
    let mut out = String::new();
    let mut first = true;
    for line in shown(text).lines() {
        let mut used = 0;
        let mut current = String::new();
        for word in line.split(' ') {
            let columns = word.width();
            if used > 0 && used + 1 + columns > available {
                push_line(&mut out, &current, indent, mark, &mut first);
                current.clear();
                used = 0;
            }
            if used > 0 {
                current.push(' ');
                used += 1;
            }
            current.push_str(word);
            used += columns;
        }
        push_line(&mut out, &current, indent, mark, &mut first);
    }
    out
}

fn push_line(out: &mut String, line: &str, indent: usize, mark: &str, first: &mut bool) {
    let mark = if std::mem::take(first) { mark } else { "" };
    let blanks = " ".repeat(indent - mark.width());
    let _ = writeln!(out, "{blanks}{mark}{line}");
}

/// Returns the architecture, the operating system and `debug` or `release` for this build, as text.
pub(super) fn build() -> String {
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    let kind = match cfg!(debug_assertions) {
        true => "debug",
        false => "release",
    };
    format!("{arch} {system}, {kind} build")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        report.add(Finding::new("Area", Level::Ok, "one", ""));
        report.add(
            Finding::new(
                "Area",
                Level::Warning,
                "two",
                "a\u{1b}b \"quoted\" words that go on",
            )
            .fact("file", Some("/x/y.so".to_owned()))
            .fact("package", None)
            .remedy("do this\nand that"),
        );
        report
    }

    #[test]
    fn a_page_keeps_to_its_width_and_shows_nothing_that_a_terminal_obeys() {
        let page = report().page(40, false);
        assert!(
            page.ends_with(
                "\nArea\n  ok       one\n  warning  two: a\u{fffd}b \"quoted\" words that\n           go on\n           \
                 file       /x/y.so\n           → do this\n           → and that\n\n1 warning\n"
            ),
            "{page}"
        );
        assert!(page.lines().all(|l| l.width() <= 40), "{page}");
    }

    #[test]
    fn json_has_every_finding_and_escapes() {
        let json = report().json();
        assert!(json.contains("\"worst\":\"warning\""), "{json}");
        assert!(
            json.contains("\"says\":\"a\\u001bb \\\"quoted\\\" words that go on\""),
            "{json}"
        );
        assert!(json.contains("\"facts\":{\"file\":\"/x/y.so\"}"), "{json}");
    }

    #[test]
    fn colours_stand_around_levels_alone() {
        let page = report().page(80, true);
        assert!(page.contains("\u{1b}[1;33mwarning\u{1b}[0m  two"), "{page}");
        assert!(page.contains("\u{1b}[1mArea\u{1b}[0m"), "{page}");
    }

    #[test]
    fn an_empty_report_has_nothing_broken() {
        assert_eq!(Report::default().worst(), None);
        assert!(Report::default().page(80, false).ends_with("works\n"));
    }
}
