//! [`Shown`]: a value as a terminal displays it, on one line, without control characters and with a
//! known width in columns.

use onecopy_rows::{Cell, plain_text};
use onecopy_text::Units;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The largest number of characters of a cell that are displayed. `…` replaces the remaining
/// characters.
pub(super) const MAX_CHARS: usize = 2000;

/// The displayed text of a value, with its width in columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) width: usize,
    pub(super) kind: ValueKind,
}

/// The kind of a displayed value. It determines the alignment and the style of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Null,
    Number,
    Other,
}

impl Shown {
    pub(super) fn new(text: String, kind: ValueKind) -> Shown {
        Shown {
            width: text.width(),
            text,
            kind,
        }
    }

    /// Converts the value of a cell to the text that is displayed.
    pub(super) fn of(cell: Cell<'_>) -> Shown {
        let number = |text: String| Shown::new(text, ValueKind::Number);
        let other = |text: String| Shown::new(text, ValueKind::Other);
        match cell.or_text() {
            Cell::Null => Shown::new("NULL".to_owned(), ValueKind::Null),
            Cell::Bool(b) => other(b.to_string()),
            Cell::I64(n) => number(n.to_string()),
            Cell::U64(n) => number(n.to_string()),
            Cell::F32(x) => number(format!("{x:?}")),
            Cell::F64(x) => number(format!("{x:?}")),
            Cell::Decimal(digits) => number(String::from_utf8_lossy(digits).into_owned()),
            Cell::Text(units) => {
                let mut text = Text::default();
                text.push(units);
                text.finish()
            }
            Cell::Bytes(bytes) => {
                let mut hex = Bytes::default();
                hex.push(bytes);
                hex.finish()
            }
            // Dates, times and UUIDs.
            cell => other(plain_text(cell).unwrap_or_else(|| "?".to_owned())),
        }
    }
}

/// Builds the displayed text of a text value. A long value arrives in several parts, each of which
/// is passed to [`Text::push`].
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
    n_chars: usize,
    cut: bool,
    /// UTF-8 text: the bytes at the end of the previous part that are the beginning of a character;
    /// the next part contains the rest of it. (`rest16` contains the first half of a surrogate pair
    /// at the end of a part in UTF-16.)
    rest8: Vec<u8>,
    rest16: Vec<u16>,
}

impl Text {
    /// Appends a text value, or the next part of a long one. Malformed sequences are replaced by
    /// U+FFFD.
    pub(super) fn push(&mut self, units: Units<'_>) {
        if self.cut {
            return;
        }
        // A character has at most four code units, so code units after these are never displayed.
        let units = units.take(units.len_units().min(4 * MAX_CHARS + 4));
        match units {
            Units::Latin1(u) => self.chars(u.iter().map(|&b| char::from(b))),
            Units::Utf8(u) => {
                let mut all = std::mem::take(&mut self.rest8);
                all.extend_from_slice(u);
                let keep = unfinished_utf8(&all);
                self.rest8 = all.split_off(all.len() - keep);
                self.chars(String::from_utf8_lossy(&all).chars());
            }
            Units::Utf16(u) => {
                let mut all = std::mem::take(&mut self.rest16);
                all.extend_from_slice(u);
                let high = all.last().is_some_and(|u| (0xd800..0xdc00).contains(u));
                self.rest16 = all.split_off(all.len() - usize::from(high));
                self.chars(char::decode_utf16(all).map(|c| c.unwrap_or('\u{fffd}')));
            }
            Units::Ucs2(u) => self.chars(u.iter().map(|&u| scalar(u32::from(u)))),
            Units::Utf32(u) => self.chars(u.iter().map(|&u| scalar(u))),
        }
    }

    fn chars(&mut self, chars: impl Iterator<Item = char>) {
        for c in chars {
            if self.n_chars == MAX_CHARS {
                self.cut = true;
                return;
            }
            self.n_chars += 1;
            push_shown(&mut self.out, c);
        }
    }

    pub(super) fn finish(mut self) -> Shown {
        if !self.rest8.is_empty() || !self.rest16.is_empty() {
            self.chars(std::iter::once('\u{fffd}'));
        }
        if self.cut {
            self.out.push('…');
        }
        Shown::new(self.out, ValueKind::Other)
    }
}

/// Returns the length of an incomplete UTF-8 sequence at the end of `bytes`, in bytes. The next
/// part of the value may complete the sequence.
fn unfinished_utf8(bytes: &[u8]) -> usize {
    let n = bytes
        .iter()
        .rev()
        .take(3)
        .take_while(|b| **b & 0xc0 == 0x80)
        .count();
    match bytes.len().checked_sub(n + 1).map(|i| bytes[i]) {
        Some(0xc2..=0xdf) if n < 1 => n + 1,
        Some(0xe0..=0xef) if n < 2 => n + 1,
        Some(0xf0..=0xf4) if n < 3 => n + 1,
        _ => 0,
    }
}

fn scalar(u: u32) -> char {
    char::from_u32(u).unwrap_or('\u{fffd}')
}

/// Appends a character. A character that would control a terminal, or change the order of the
/// characters in the line, is escaped.
fn push_shown(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => {
            out.push_str(&c.escape_unicode().to_string());
        }
        c if c.is_control() => out.push_str(&c.escape_unicode().to_string()),
        c => out.push(c),
    }
}

/// Builds the displayed text of a binary value: its first bytes in hexadecimal.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    head: Vec<u8>,
    len_bytes: usize,
}

impl Bytes {
    const HEAD: usize = 32;

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let space = Self::HEAD - self.head.len();
        self.head
            .extend_from_slice(&bytes[..bytes.len().min(space)]);
        self.len_bytes += bytes.len();
    }

    pub(super) fn finish(self) -> Shown {
        let hex: String = self.head.iter().map(|b| format!("{b:02x}")).collect();
        let text = match self.len_bytes > self.head.len() {
            true => format!("x'{hex}…' ({} bytes)", self.len_bytes),
            false => format!("x'{hex}'"),
        };
        Shown::new(text, ValueKind::Other)
    }
}

/// Truncates `text` to at most `width` columns, with `…` at the end if something was cut off.
/// Returns the text and its width in columns.
pub(super) fn cut(text: &str, width: usize) -> (String, usize) {
    let whole = text.width();
    if whole <= width {
        return (text.to_owned(), whole);
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        out.push(c);
        used += w;
    }
    out.push('…');
    (out, used + 1)
}

#[cfg(test)]
mod tests {
    use onecopy_rows::{Date, Time, Timestamp};

    use super::*;

    fn shown(cell: Cell<'_>) -> String {
        Shown::of(cell).text
    }

    #[test]
    fn values_are_one_line_without_control_characters() {
        let text = "a\tb\r\n\u{1b}[31m\u{202e}\0é漢";
        assert_eq!(
            shown(Cell::Text(Units::Utf8(text.as_bytes()))),
            "a\\tb\\r\\n\\u{1b}[31m\\u{202e}\\u{0}é漢"
        );
        assert_eq!(
            shown(Cell::Text(Units::Utf16(&[0x61, 0xd800]))),
            "a\u{fffd}"
        );
        assert_eq!(shown(Cell::Text(Units::Latin1(&[0xe9]))), "é");
        assert_eq!(shown(Cell::F64(2.0)), "2.0");
        assert_eq!(shown(Cell::Bytes(&[0, 255])), "x'00ff'");
        assert_eq!(
            shown(Cell::Bytes(&[1; 40])),
            format!("x'{}…' (40 bytes)", "01".repeat(32))
        );
        let t = Time {
            hour: 1,
            minute: 2,
            second: 3,
            nanosecond: 450_000_000,
        };
        let d = Date {
            year: 2024,
            month: 2,
            day: 9,
        };
        assert_eq!(shown(Cell::Time(t, 2)), "01:02:03.45");
        let stamp = Timestamp {
            date: d,
            time: t,
            offset_minutes: Some(-210),
        };
        assert_eq!(
            shown(Cell::Timestamp(stamp, 0)),
            "2024-02-09 01:02:03-03:30"
        );
    }

    #[test]
    fn parts_that_end_inside_a_character_give_the_whole_text() {
        let text = "aé漢😀z";
        for at in 0..=text.len() {
            let mut t = Text::default();
            t.push(Units::Utf8(&text.as_bytes()[..at]));
            t.push(Units::Utf8(&text.as_bytes()[at..]));
            assert_eq!(t.finish().text, text, "cut at {at}");
        }
        let units: Vec<u16> = text.encode_utf16().collect();
        for at in 0..=units.len() {
            let mut t = Text::default();
            t.push(Units::Utf16(&units[..at]));
            t.push(Units::Utf16(&units[at..]));
            assert_eq!(t.finish().text, text, "cut at {at}");
        }
        let mut t = Text::default();
        t.push(Units::Utf8(b"a\xc3"));
        assert_eq!(t.finish().text, "a\u{fffd}");
    }

    #[test]
    fn long_text_is_kept_in_part() {
        let long = "é".repeat(MAX_CHARS + 1);
        let shown = Shown::of(Cell::Text(Units::Utf8(long.as_bytes())));
        assert_eq!(shown.width, MAX_CHARS + 1);
        assert!(shown.text.ends_with('…'));
        let exact = "é".repeat(MAX_CHARS);
        assert_eq!(
            Shown::of(Cell::Text(Units::Utf8(exact.as_bytes()))).text,
            exact
        );
    }

    #[test]
    fn a_cut_counts_columns_and_never_splits_a_wide_character() {
        for (text, width, expected) in [
            ("abc", 3, ("abc", 3)),
            ("abcd", 3, ("ab…", 3)),
            ("漢字漢", 6, ("漢字漢", 6)),
            ("漢字漢", 5, ("漢字…", 5)),
            ("漢字漢", 4, ("漢…", 3)),
        ] {
            assert_eq!(cut(text, width), (expected.0.to_owned(), expected.1));
        }
    }
}
