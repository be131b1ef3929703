//! The JSON of plans: a writer, and access to the members of a parsed value.

use onecopy_text::{Policy, Units};
use onecopy_wire::json::read::{Surrogates, naive};
use onecopy_wire::json::write_text;

pub(crate) use naive::Value as Json;

/// The nesting depth of a plan is 5.
const MOST_DEPTH: usize = 16;

/// Parses a text; `None` if it is not valid JSON. A plan is small, so it is read by the plain
/// reader, which builds a tree.
pub(crate) fn parse(text: &str) -> Option<Json> {
    let chars: Vec<u32> = text.chars().map(u32::from).collect();
    naive::parse(&chars, Surrogates::Error, MOST_DEPTH)
}

/// Returns the value of a member of an object; `None` if it is missing or occurs twice.
pub(crate) fn member<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Object(members) = json else {
        return None;
    };
    let is_named = |key: &[u32]| key.iter().copied().eq(name.chars().map(u32::from));
    let mut found = members.iter().filter(|(key, _)| is_named(key));
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

/// Returns the value of a string.
pub(crate) fn text(json: &Json) -> Option<String> {
    match json {
        Json::Str(chars) => chars.iter().map(|&c| char::from_u32(c)).collect(),
        _ => None,
    }
}

/// Returns the value of an integer that is not negative.
pub(crate) fn number(json: &Json) -> Option<u64> {
    match json {
        Json::Int(digits) => digits.parse().ok(),
        _ => None,
    }
}

/// Returns the items of an array.
pub(crate) fn items(json: &Json) -> Option<&[Json]> {
    match json {
        Json::Array(items) => Some(items),
        _ => None,
    }
}

/// A JSON text under construction; the methods insert commas, line ends and indents.
#[derive(Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    depth: usize,
    needs_comma: bool,
    is_after_key: bool,
}

/// The depth from which a value is written on one line.
const LINE_DEPTH: usize = 3;

impl Writer {
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
            depth if depth < LINE_DEPTH => {
                self.out.push(b'\n');
                self.out.extend(std::iter::repeat_n(b' ', 2 * depth));
            }
            _ if self.needs_comma => self.out.push(b' '),
            _ => {}
        }
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
            self.needs_comma = false;
            self.line();
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
