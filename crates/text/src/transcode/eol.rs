//! [`LineEnds`] converts line ends, and [`LineCount`] counts lines, in parts of UTF-8 text.

/// The conversion of line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Eol {
    /// Line ends stay unchanged.
    #[default]
    Keep,
    /// `\r\n` becomes `\n`.
    Lf,
    /// `\n` becomes `\r\n`; `\r\n` stays unchanged.
    Crlf,
}

/// Converts line ends. A `\r` at the end of a part is kept for the next part.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineEnds {
    eol: Eol,
    held: bool,
}

impl LineEnds {
    pub(super) fn new(eol: Eol) -> LineEnds {
        LineEnds { eol, held: false }
    }

    pub(super) fn keeps(self) -> bool {
        self.eol == Eol::Keep
    }

    /// Appends the part with converted line ends.
    pub(super) fn push(&mut self, part: &[u8], out: &mut Vec<u8>) {
        let Some((&last, but_last)) = part.split_last() else {
            return;
        };
        if self.held && (self.eol == Eol::Crlf || part[0] != b'\n') {
            out.push(b'\r');
        }
        // In a conversion to `\r\n`, the kept `\r` was written above. So an initial `\n` stays
        // unchanged.
        let mut after_cr = self.held;
        self.held = last == b'\r';
        let part = if self.held { but_last } else { part };
        for line in part.split_inclusive(|&b| b == b'\n') {
            match (self.eol, line) {
                (Eol::Lf, [text @ .., b'\r', b'\n']) => {
                    out.extend_from_slice(text);
                    out.push(b'\n');
                }
                (Eol::Crlf, [b'\n']) if after_cr => out.push(b'\n'),
                (Eol::Crlf, [_, .., b'\r', b'\n'] | [b'\r', b'\n']) => out.extend_from_slice(line),
                (Eol::Crlf, [text @ .., b'\n']) => {
                    out.extend_from_slice(text);
                    out.extend_from_slice(b"\r\n");
                }
                _ => out.extend_from_slice(line),
            }
            after_cr = false;
        }
    }

    /// Appends the kept `\r`, if any.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.held) {
            out.push(b'\r');
        }
    }
}

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line number, from 1.
    pub line: u64,
    /// The number of the character in its line, from 1.
    pub column: u64,
}

/// Counts the lines and characters of UTF-8 in parts. Only `\n` ends a line.
#[derive(Clone, Copy, Debug)]
pub struct LineCount {
    before: Place,
}

impl Default for LineCount {
    fn default() -> LineCount {
        LineCount {
            before: Place { line: 1, column: 1 },
        }
    }
}

impl LineCount {
    /// Counts the lines and characters of the next part.
    pub fn push(&mut self, part: &[u8]) {
        let mut tail = part;
        if let Some(last) = part.iter().rposition(|&b| b == b'\n') {
            let n = part.iter().filter(|&&b| b == b'\n').count();
            self.before.line += n as u64;
            self.before.column = 1;
            tail = &part[last + 1..];
        }
        let n = tail.iter().filter(|&&b| b & 0xC0 != 0x80).count();
        self.before.column += n as u64;
    }

    /// Returns the line and the column of the next character.
    #[must_use]
    pub fn place(&self) -> Place {
        self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(eol: Eol, text: &[u8], part_bytes: usize) -> Vec<u8> {
        let (mut ends, mut out) = (LineEnds::new(eol), Vec::new());
        text.chunks(part_bytes)
            .for_each(|part| ends.push(part, &mut out));
        ends.finish(&mut out);
        out
    }

    #[test]
    fn line_ends_are_changed_however_the_text_is_cut() {
        let text = b"\na\nb\r\nc\r\r\n\r\rd\n\n\r";
        for part_bytes in 1..=text.len() {
            let lf = changed(Eol::Lf, text, part_bytes);
            assert_eq!(lf, b"\na\nb\nc\r\n\r\rd\n\n\r", "{part_bytes}");
            let crlf = changed(Eol::Crlf, text, part_bytes);
            assert_eq!(
                crlf, b"\r\na\r\nb\r\nc\r\r\n\r\rd\r\n\r\n\r",
                "{part_bytes}"
            );
            assert_eq!(changed(Eol::Crlf, &crlf, part_bytes), crlf);
        }
    }

    #[test]
    fn lines_and_columns_count_from_1_and_columns_are_characters() {
        let text = "ä\nbö\n\nxyz".as_bytes();
        for part_bytes in 1..=text.len() {
            let mut count = LineCount::default();
            assert_eq!(count.place(), Place { line: 1, column: 1 });
            text.chunks(part_bytes).for_each(|part| count.push(part));
            assert_eq!(count.place(), Place { line: 4, column: 4 });
        }
    }
}
