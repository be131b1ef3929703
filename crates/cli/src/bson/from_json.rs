//! `onecopy json2bson`: reads JSON objects from the input buffer and writes BSON documents.

use onecopy_text::Units;
use onecopy_wire::bson::extended::{FromJson, FromJsonError, Reason, from_json};
use onecopy_wire::json::read::{self, TextPosition, Utf8};

use super::{Conversion, Input, Writing};
use crate::args::Json2Bson;
use crate::failure::Failure;

/// Runs `onecopy json2bson`.
pub(crate) fn run(args: &Json2Bson) -> i32 {
    let options = FromJson {
        max_bytes: usize::try_from(args.max_bytes).unwrap_or(usize::MAX),
        big_ints: args.big_ints.into(),
        ..FromJson::default()
    };
    let (input, output) = (args.input.as_ref(), args.output.as_ref());
    super::run(input, output, args.quiet, |conversion| {
        let Conversion { input, output } = conversion;
        let start = Line::default();
        Json2BsonRun {
            input,
            output,
            options,
            line: start,
            n_documents: 0,
        }
        .all()
    })
}

/// The position of the first unprocessed byte of the input, for error messages: the number of lines
/// before the line of this byte, and the number of characters before this byte in its line.
#[derive(Default)]
struct Line {
    n_lines: usize,
    n_chars: usize,
}

impl Line {
    fn pass(&mut self, text: &[u8]) {
        let n_lines = text.iter().filter(|b| **b == b'\n').count();
        self.n_lines += n_lines;
        let last = match text.iter().rposition(|b| *b == b'\n') {
            Some(at) => {
                self.n_chars = 0;
                &text[at + 1..]
            }
            None => text,
        };
        self.n_chars += last.iter().filter(|b| **b & 0xC0 != 0x80).count();
    }
}

struct Json2BsonRun<'a> {
    input: &'a mut Input,
    output: &'a mut Writing,
    options: FromJson,
    line: Line,
    n_documents: u64,
}

impl Json2BsonRun<'_> {
    fn all(mut self) -> Result<(), Failure> {
        if self.blank()? == Some(b'[') {
            return self.array();
        }
        while self.blank()?.is_some() {
            self.document()?;
        }
        Ok(())
    }

    fn array(&mut self) -> Result<(), Failure> {
        self.pass(1);
        if self.blank()? == Some(b']') {
            self.pass(1);
            return self.nothing_behind();
        }
        loop {
            self.document()?;
            match self.blank()? {
                Some(b',') => self.pass(1),
                Some(b']') => {
                    self.pass(1);
                    return self.nothing_behind();
                }
                Some(_) => return Err(self.no_json(read::Reason::NoCommaInArray)),
                None => return Err(self.no_json(read::Reason::End)),
            }
        }
    }

    fn nothing_behind(&mut self) -> Result<(), Failure> {
        match self.blank()? {
            None => Ok(()),
            Some(_) => Err(self.no_json(read::Reason::TrailingData)),
        }
    }

    fn pass(&mut self, n_bytes: usize) {
        self.line.pass(&self.input.rest()[..n_bytes]);
        self.input.pass(n_bytes);
    }

    /// Skips white space. Returns the next byte, which remains unprocessed; `None` at the end of
    /// the input.
    fn blank(&mut self) -> Result<Option<u8>, Failure> {
        loop {
            let is_blank = |b: &&u8| matches!(**b, b' ' | b'\n' | b'\r' | b'\t');
            let n_blank = self.input.rest().iter().take_while(is_blank).count();
            self.pass(n_blank);
            if let Some(&byte) = self.input.rest().first() {
                return Ok(Some(byte));
            }
            if self.input.is_last {
                return Ok(None);
            }
            self.input.want(1, self.output)?;
        }
    }

    /// Converts the next document of the input. While the document is incomplete in the buffer,
    /// this method reads more input, and parses the document again from its start.
    fn document(&mut self) -> Result<(), Failure> {
        loop {
            let text = self.input.rest();
            match from_json::<Utf8, _>(text, 0, &self.options, &mut self.output.made) {
                Ok(n_bytes) => {
                    self.pass(n_bytes);
                    self.n_documents += 1;
                    return self.output.flush_large();
                }
                Err(e) if e.is_at_end(text.len()) && !self.input.is_last => {
                    // A long document is parsed again each time its size has doubled.
                    let n_bytes = match text.len() {
                        n @ 0..LONG_BYTES => n + 1,
                        n => 2 * n,
                    };
                    self.input.want(n_bytes, self.output)?;
                }
                Err(e) => return Err(self.no(e)),
            }
        }
    }

    fn no_json(&self, reason: read::Reason) -> Failure {
        let reason = Reason::Json(reason);
        self.no(FromJsonError {
            reason,
            at_units: 0,
        })
    }

    fn no(&self, e: FromJsonError) -> Failure {
        if matches!(e.reason, Reason::SinkFull(_)) {
            return super::no_memory(&self.input.name);
        }
        let place = TextPosition::of(Units::Utf8(self.input.rest()), e.at_units);
        let column = match place.line {
            1 => self.line.n_chars + place.column,
            _ => place.column,
        };
        Failure::Other(format!(
            "`{}` at byte {} (line {}, column {column}, document {}): {}{}",
            self.input.name,
            self.input.offset_bytes() + e.at_units as u64,
            self.line.n_lines + place.line,
            self.n_documents + 1,
            super::without_options(&e.reason),
            remedy(e.reason),
        ))
    }
}

/// If at least this number of bytes of an incomplete document is buffered, the document is parsed
/// again only after its buffered size has doubled.
const LONG_BYTES: usize = 64 << 10;

/// Returns a line of advice that names the option of `json2bson` which avoids an error with this
/// `reason`. Returns an empty string if no option avoids it.
fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::Json(read::Reason::BigInt) => "\nsee `--big-ints`",
        Reason::TooLong(_) => "\nsee `--max-bytes`",
        _ => "",
    }
}
