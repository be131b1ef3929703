//! The reference implementation of the JSON reader, for tests and fuzzing. It is a recursive parser
//! that reads one character at a time and builds a tree.

use onecopy_text::{Policy, Units};

use super::escape::{Escaped, malformed};
use super::events::{EventResult, JsonEvents, Rejection, Text};

/// A JSON value as a tree. Integers are stored as digits. The keys of an object keep their order
/// and may occur several times.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Value {
    Null,
    Bool(bool),
    /// An integer as its digits, with a leading `-` if it is negative. `-0` is stored as `0`.
    Int(String),
    /// A number with a fraction or an exponent, as the bits of the nearest `f64`.
    Float(u64),
    /// A string as its code points, some of which may be lone surrogates.
    Str(Vec<u32>),
    Array(Vec<Value>),
    Object(Vec<(Vec<u32>, Value)>),
}

/// Parses a text that is given as code points. Returns `None` if the text is not valid JSON, or if
/// it is nested deeper than `max_depth`.
#[must_use]
pub fn parse(text: &[u32], surrogates: Policy, max_depth: usize) -> Option<Value> {
    let mut parser = Parser {
        text,
        at: 0,
        surrogates,
    };
    let value = parser.value(max_depth)?;
    parser.blank();
    (parser.at == text.len()).then_some(value)
}

struct Parser<'a> {
    text: &'a [u32],
    at: usize,
    surrogates: Policy,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text
            .get(self.at)
            .map(|&c| char::from_u32(c).unwrap_or('\u{FFFF}'))
    }

    fn take(&mut self, c: char) -> Option<()> {
        (self.peek()? == c).then(|| self.at += 1)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(' ' | '\n' | '\r' | '\t')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.blank();
        match self.peek()? {
            'n' => self.word("null", Value::Null),
            't' => self.word("true", Value::Bool(true)),
            'f' => self.word("false", Value::Bool(false)),
            '"' => self.string().map(Value::Str),
            '[' => self.array(depth.checked_sub(1)?),
            '{' => self.object(depth.checked_sub(1)?),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        word.chars().try_for_each(|c| self.take(c))?;
        Some(value)
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.take('[')?;
        let mut items = Vec::new();
        self.blank();
        if self.take(']').is_some() {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.blank();
            if self.take(',').is_none() {
                self.take(']')?;
                return Some(Value::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take('{')?;
        let mut items = Vec::new();
        self.blank();
        if self.take('}').is_some() {
            return Some(Value::Object(items));
        }
        loop {
            self.blank();
            let key = self.string()?;
            self.blank();
            self.take(':')?;
            items.push((key, self.value(depth)?));
            self.blank();
            if self.take(',').is_none() {
                self.take('}')?;
                return Some(Value::Object(items));
            }
        }
    }

    fn hex(&mut self) -> Option<u32> {
        (0..4).try_fold(0, |value, _| {
            let digit = self.peek()?.to_digit(16)?;
            self.at += 1;
            Some(value * 16 + digit)
        })
    }

    fn string(&mut self) -> Option<Vec<u32>> {
        self.take('"')?;
        let mut text = Vec::new();
        loop {
            let c = *self.text.get(self.at)?;
            self.at += 1;
            match c {
                0x22 => return Some(text),
                0x5C => {
                    let letter = self.peek()?;
                    self.at += 1;
                    let c = match letter {
                        '"' | '\\' | '/' => letter as u32,
                        'b' => 8,
                        'f' => 12,
                        'n' => 10,
                        'r' => 13,
                        't' => 9,
                        'u' => self.hex_escape()?,
                        _ => return None,
                    };
                    text.push(c);
                }
                0..0x20 => return None,
                0xD800..0xE000 => text.push(self.lone(c)?),
                _ => text.push(c),
            }
        }
    }

    fn hex_escape(&mut self) -> Option<u32> {
        let first = self.hex()?;
        if !(0xD800..0xE000).contains(&first) {
            return Some(first);
        }
        let after = self.at;
        if first < 0xDC00
            && self.take('\\').is_some()
            && self.take('u').is_some()
            && let Some(second @ 0xDC00..0xE000) = self.hex()
        {
            return Some(0x1_0000 + (first - 0xD800) * 0x400 + (second - 0xDC00));
        }
        self.at = after;
        self.lone(first)
    }

    fn lone(&self, c: u32) -> Option<u32> {
        match self.surrogates {
            Policy::Replace => Some(0xFFFD),
            Policy::SurrogatePass => Some(c),
            _ => None,
        }
    }

    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        let _ = self.take('-');
        let is_zero = self.peek() == Some('0');
        if self.digits()? > 1 && is_zero {
            return None;
        }
        let mut is_float = false;
        if self.take('.').is_some() {
            self.digits()?;
            is_float = true;
        }
        if self.take('e').is_some() || self.take('E').is_some() {
            if self.take('+').is_none() {
                let _ = self.take('-');
            }
            self.digits()?;
            is_float = true;
        }
        let text = &self.text[start..self.at];
        let text: String = text.iter().filter_map(|&c| char::from_u32(c)).collect();
        if is_float {
            let value: f64 = text.parse().ok()?;
            return value.is_finite().then(|| Value::Float(value.to_bits()));
        }
        Some(Value::Int(if text == "-0" { "0".to_owned() } else { text }))
    }
}

/// An event handler that builds a [`Value`] from the events of the reader.
#[derive(Debug, Default)]
pub struct Tree {
    /// The treatment of lone surrogates.
    pub surrogates: Policy,
    open: Vec<(Value, Vec<u32>)>,
    done: Option<Value>,
    key: Vec<u32>,
}

impl Tree {
    /// Creates an event handler that handles lone surrogates as the policy `surrogates` specifies.
    #[must_use]
    pub fn new(surrogates: Policy) -> Tree {
        Tree {
            surrogates,
            ..Tree::default()
        }
    }

    /// Returns the value that was built from the events; `None` if the events ended before the
    /// value was complete.
    #[must_use]
    pub fn finish(self) -> Option<Value> {
        self.done
    }

    fn put(&mut self, value: Value) -> EventResult {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some((Value::Object(items), _)) => items.push((std::mem::take(&mut self.key), value)),
            Some((Value::Array(items), _)) => items.push(value),
            Some(_) => unreachable!("nothing else is open"),
        }
        Ok(())
    }

    fn end(&mut self) -> EventResult {
        let (value, key) = self.open.pop().expect("it was begun");
        self.key = key;
        self.put(value)
    }

    fn text(&self, text: Text<'_>) -> Result<Vec<u32>, Rejection> {
        let units = text.units();
        if let Units::Utf8(bytes) = units {
            let text = std::str::from_utf8(bytes).map_err(|_| malformed(units, 0))?;
            return Ok(text.chars().map(u32::from).collect());
        }
        // The text has no escapes and therefore no backslash, so no character is interpreted as an
        // escape.
        Escaped::of(units).chars(self.surrogates).collect()
    }
}

impl JsonEvents for Tree {
    fn null(&mut self) -> EventResult {
        self.put(Value::Null)
    }
    fn boolean(&mut self, value: bool) -> EventResult {
        self.put(Value::Bool(value))
    }
    fn int(&mut self, value: i64) -> EventResult {
        self.put(Value::Int(value.to_string()))
    }
    fn big_int(&mut self, digits: &[u8]) -> EventResult {
        self.put(Value::Int(String::from_utf8_lossy(digits).into_owned()))
    }
    fn float(&mut self, value: f64, _: Units<'_>) -> EventResult {
        if value.is_infinite() {
            return Err(Rejection::here(super::Reason::FloatRange));
        }
        self.put(Value::Float(value.to_bits()))
    }
    fn string(&mut self, text: Text<'_>) -> EventResult {
        let text = self.text(text)?;
        self.put(Value::Str(text))
    }
    fn escaped_string(&mut self, text: Escaped<'_>) -> EventResult {
        let text = text.chars(self.surrogates).collect::<Result<_, _>>()?;
        self.put(Value::Str(text))
    }
    fn key(&mut self, text: Text<'_>) -> EventResult {
        self.key = self.text(text)?;
        Ok(())
    }
    fn escaped_key(&mut self, text: Escaped<'_>) -> EventResult {
        self.key = text.chars(self.surrogates).collect::<Result<_, _>>()?;
        Ok(())
    }
    fn begin_array(&mut self) -> EventResult {
        let key = std::mem::take(&mut self.key);
        self.open.push((Value::Array(Vec::new()), key));
        Ok(())
    }
    fn end_array(&mut self) -> EventResult {
        self.end()
    }
    fn begin_object(&mut self) -> EventResult {
        let key = std::mem::take(&mut self.key);
        self.open.push((Value::Object(Vec::new()), key));
        Ok(())
    }
    fn end_object(&mut self) -> EventResult {
        self.end()
    }
}
