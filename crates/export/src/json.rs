//! Functions that read the parsed JSON of manifests and plans, and a writer of this JSON.

use onecopy_text::{Policy, Units};
use onecopy_wire::json::write_text;

pub(crate) use serde_json::Value as Json;

/// Parses a JSON text; returns `None` if it is not valid JSON.
pub(crate) fn parse(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok()
}

/// Returns the value of the member `name`; `None` if `json` is not an object with this member.
pub(crate) fn member<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    json.as_object()?.get(name)
}

/// Returns a copy of the value of a JSON string; `None` if `json` is not a string.
pub(crate) fn text(json: &Json) -> Option<String> {
    json.as_str().map(str::to_owned)
}

/// Returns the items of a JSON array; `None` if `json` is not an array.
pub(crate) fn items(json: &Json) -> Option<&[Json]> {
    json.as_array().map(Vec::as_slice)
}

/// A JSON text to which values are appended. The methods insert commas, line ends and indentation.
#[derive(Default)]
pub(crate) struct JsonWriter {
    out: Vec<u8>,
    depth: usize,
    needs_comma: bool,
    is_after_key: bool,
}

/// Each value is written on a separate line if it is inside of fewer brackets than this number.
/// Values inside of more brackets are written without line ends.
const LINE_DEPTH: usize = 3;

impl JsonWriter {
    /// Creates a writer that writes the whole JSON text on one line.
    pub(crate) fn of_line() -> JsonWriter {
        JsonWriter {
            depth: LINE_DEPTH,
            ..JsonWriter::default()
        }
    }

    fn separate(&mut self) {
        if std::mem::take(&mut self.is_after_key) {
            return;
        }
        if self.needs_comma {
            self.out.push(b',');
        }
        self.line();
    }

    fn line(&mut self) {
        match self.depth {
            0 => {}
            depth if depth < LINE_DEPTH => self.indent(),
            _ if self.needs_comma => self.out.push(b' '),
            _ => {}
        }
    }

    fn indent(&mut self) {
        self.out.push(b'\n');
        self.out.extend(std::iter::repeat_n(b' ', 2 * self.depth));
    }

    pub(crate) fn open(&mut self, bracket: char) {
        self.separate();
        self.out.push(bracket as u8);
        self.depth += 1;
        self.needs_comma = false;
    }

    pub(crate) fn close(&mut self, bracket: char) {
        self.depth -= 1;
        if self.needs_comma && self.depth + 1 < LINE_DEPTH {
            self.indent();
        }
        self.out.push(bracket as u8);
        self.needs_comma = true;
    }

    pub(crate) fn key(&mut self, name: &str) {
        self.string(name);
        self.out.extend_from_slice(b": ");
        self.is_after_key = true;
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.separate();
        let written = write_text(Units::Utf8(text.as_bytes()), Policy::Replace, &mut self.out);
        written.expect("a `str` is valid, and a `Vec` has no limit");
        self.needs_comma = true;
    }

    /// Writes a number, `true`, `false` or `null`, given as JSON text.
    pub(crate) fn raw(&mut self, text: &str) {
        self.separate();
        self.out.extend_from_slice(text.as_bytes());
        self.needs_comma = true;
    }

    /// Writes a string, or null.
    pub(crate) fn optional_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// Writes a number, or null.
    pub(crate) fn optional_number(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.raw(&number.to_string()),
            None => self.raw("null"),
        }
    }

    /// Writes an array of strings on one line.
    pub(crate) fn strings(&mut self, texts: &[String]) {
        self.open('[');
        texts.iter().for_each(|text| self.string(text));
        self.close(']');
    }

    pub(crate) fn finish(self) -> String {
        String::from_utf8(self.out).expect("only text was written")
    }
}
