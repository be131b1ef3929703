//! [`read`] and [`Limits`]: the JSON reader (RFC 8259), which is one loop without recursion.

use onecopy_text::convert::Kernels;

use super::error::{ReadError, Reason};
use super::escape::Escaped;
use super::events::{EventResult, JsonEvents, Rejection};
use super::float;
use super::number;
use super::source_form::{Scanner, SourceForm};

/// The limits that the reader imposes on JSON texts in addition to the grammar.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest permitted nesting depth of arrays and objects. 0 permits no array or object.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_depth: 1000 }
    }
}

/// The value that represents the end of the text. No unit has this value.
const END: u32 = u32::MAX;

/// Reads one value, emits its events, and returns the position after the value. The value, or white
/// space before it, must start at position `start`.
///
/// Nothing is copied.
///
/// # Errors
/// Returns a [`ReadError`]. The events before the error were emitted for valid JSON.
#[inline(always)]
pub fn read<F: SourceForm, K: Kernels, E: JsonEvents>(
    kernels: K,
    text: &[F::Unit],
    start: usize,
    limits: Limits,
    events: &mut E,
) -> Result<usize, ReadError> {
    let mut reader = Reader::<F, K> {
        kernels,
        text,
        scanner: F::scanner(kernels, text),
        at: start,
        depth: 0,
        levels: 0,
        outer: Vec::new(),
        limits,
    };
    reader.value(events)?;
    Ok(reader.at)
}

/// Reads a text that consists of exactly one value, with optional white space around it.
///
/// # Errors
/// Returns the errors of [`read`], and [`Reason::TrailingData`] if more text follows the value.
#[inline(always)]
pub fn read_all<F: SourceForm, K: Kernels, E: JsonEvents>(
    kernels: K,
    text: &[F::Unit],
    limits: Limits,
    events: &mut E,
) -> Result<(), ReadError> {
    let end = read::<F, K, E>(kernels, text, 0, limits, events)?;
    let end = end + blank::<F, K>(kernels, &text[end..]);
    if end == text.len() {
        return Ok(());
    }
    Err(ReadError {
        reason: Reason::TrailingData,
        at_units: end,
    })
}

/// Returns the number of units of white space at the start of `rest`.
#[inline(always)]
pub fn blank<F: SourceForm, K: Kernels>(kernels: K, rest: &[F::Unit]) -> usize {
    match rest.first() {
        Some(&unit) if unit.into() <= 0x20 => F::scanner(kernels, rest).blank(0),
        _ => 0,
    }
}

/// The type of a JSON value, as its first unit determines it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Other,
    String,
    Number,
    Object,
    Array,
    True,
    False,
    Null,
}

impl Start {
    /// Returns the type of the value that starts with `unit`, by a table lookup. A branch that
    /// distinguishes `-` from digits would often be mispredicted for numbers with mixed signs.
    #[inline(always)]
    fn of(unit: u32) -> Start {
        static STARTS: [Start; 128] = {
            let mut all = [Start::Other; 128];
            let mut digit = b'0';
            while digit <= b'9' {
                all[digit as usize] = Start::Number;
                digit += 1;
            }
            all[b'-' as usize] = Start::Number;
            all[b'"' as usize] = Start::String;
            all[b'{' as usize] = Start::Object;
            all[b'[' as usize] = Start::Array;
            all[b't' as usize] = Start::True;
            all[b'f' as usize] = Start::False;
            all[b'n' as usize] = Start::Null;
            all
        };
        STARTS.get(unit as usize).copied().unwrap_or(Start::Other)
    }
}

struct Reader<'a, F: SourceForm, K: Kernels> {
    kernels: K,
    text: &'a [F::Unit],
    scanner: F::Scanner<'a, K>,
    /// The position of the next unit to read.
    at: usize,
    depth: usize,
    /// Bits of the 64 innermost levels: 0 for an array, 1 for an object. Bit 0 is the innermost.
    levels: u64,
    /// The bits of the outer levels that do not fit in `levels`, 64 per word, the outermost first.
    outer: Vec<u64>,
    limits: Limits,
}

impl<'a, F: SourceForm, K: Kernels> Reader<'a, F, K> {
    #[inline(always)]
    fn value<E: JsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        'value: loop {
            let unit = self.skip_blank();
            match Start::of(unit) {
                Start::String => self.string(events)?,
                Start::Object => {
                    self.check_depth()?;
                    if self.unit(self.at + 1) == 0x7D {
                        self.located(events.empty_object())?;
                        self.at += 2;
                    } else {
                        self.enter(true);
                        self.located(events.begin_object())?;
                        self.at += 1;
                        if self.skip_blank() != 0x7D {
                            self.key(events)?;
                            continue 'value;
                        }
                        self.located(events.end_object())?;
                        self.leave();
                    }
                }
                Start::Array => {
                    self.check_depth()?;
                    if self.unit(self.at + 1) == 0x5D {
                        self.located(events.empty_array())?;
                        self.at += 2;
                    } else {
                        self.enter(false);
                        self.located(events.begin_array())?;
                        self.at += 1;
                        if self.skip_blank() != 0x5D {
                            continue 'value;
                        }
                        self.located(events.end_array())?;
                        self.leave();
                    }
                }
                Start::Number => self.number(unit == 0x2D, events)?,
                Start::True => {
                    let start = self.word(b"true")?;
                    located(events.boolean(true), start)?;
                }
                Start::False => {
                    let start = self.word(b"false")?;
                    located(events.boolean(false), start)?;
                }
                Start::Null => {
                    let start = self.word(b"null")?;
                    located(events.null(), start)?;
                }
                Start::Other => self.rare(events)?,
            }
            // This loop reads the units after a value: a comma, or closing brackets.
            loop {
                if self.depth == 0 {
                    return Ok(());
                }
                let unit = self.skip_blank();
                if self.levels & 1 == 0 {
                    if unit == 0x2C {
                        self.at += 1;
                        continue 'value;
                    }
                    if unit != 0x5D {
                        return Err(self.no(Reason::NoCommaInArray));
                    }
                    self.located(events.end_array())?;
                } else {
                    if unit == 0x2C {
                        self.at += 1;
                        self.skip_blank();
                        self.key(events)?;
                        continue 'value;
                    }
                    if unit != 0x7D {
                        return Err(self.no(Reason::NoCommaInObject));
                    }
                    self.located(events.end_object())?;
                }
                self.leave();
            }
        }
    }

    /// Returns the unit with the index `at`, or [`END`] after the end of the text.
    #[inline(always)]
    fn unit(&self, at: usize) -> u32 {
        self.text.get(at).map_or(END, |&unit| unit.into())
    }

    /// Returns the text from unit `at` on. It is empty if `at` is after the end of the text.
    #[inline(always)]
    fn rest(&self, at: usize) -> &'a [F::Unit] {
        self.text.get(at..).unwrap_or_default()
    }

    /// Skips white space, and returns the next unit without consuming it.
    #[inline(always)]
    fn skip_blank(&mut self) -> u32 {
        let unit = self.unit(self.at);
        if unit > 0x20 {
            return unit;
        }
        let next = self.unit(self.at + 1);
        if unit == 0x20 && next > 0x20 {
            self.at += 1;
            return next;
        }
        if unit == END {
            return END;
        }
        self.at += self.scanner.blank(self.at);
        self.unit(self.at)
    }

    #[inline(always)]
    fn check_depth(&self) -> Result<(), ReadError> {
        if self.depth >= self.limits.max_depth {
            return Err(self.no(Reason::Depth));
        }
        Ok(())
    }

    #[inline(always)]
    fn enter(&mut self, is_object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.outer.push(self.levels);
        }
        self.depth += 1;
        self.levels = self.levels << 1 | u64::from(is_object);
    }

    /// Leaves the innermost array or object, and skips its closing bracket, which is the next unit.
    #[inline(always)]
    fn leave(&mut self) {
        self.at += 1;
        self.depth -= 1;
        self.levels >>= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.levels = self.outer.pop().expect("one for each 64 levels");
        }
    }

    #[inline(always)]
    fn string<E: JsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        let start = self.at + 1;
        let (text, n) = self.scanner.plain(start);
        if self.unit(start + n) == 0x22 {
            self.at = start + n + 1;
            return located(events.string(text), start);
        }
        let text = self.escaped(start, n)?;
        located(events.escaped_string(text), start)
    }

    /// Reads the key that starts at the next unit, and moves the position after its colon.
    #[inline(always)]
    fn key<E: JsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        if self.unit(self.at) != 0x22 {
            return Err(self.no_key());
        }
        let start = self.at + 1;
        let rest = self.rest(start);
        if let Some(guess) = events.guess(F::IS_UTF8)
            && F::has_key(self.kernels, rest, guess)
        {
            self.at = start + guess.len() + 1;
            located(events.likely_key(), start)?;
        } else {
            let (text, n) = self.scanner.plain(start);
            if self.unit(start + n) == 0x22 {
                self.at = start + n + 1;
                located(events.key(text), start)?;
            } else {
                let text = self.escaped(start, n)?;
                located(events.escaped_key(text), start)?;
            }
        }
        if self.skip_blank() != 0x3A {
            return Err(self.no(Reason::NoColon));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string that starts at `start`, and whose first escape or invalid unit has index `n`.
    #[inline(always)]
    fn escaped(&mut self, start: usize, n: usize) -> Result<Escaped<'a>, ReadError> {
        match F::closing_quote(self.kernels, self.rest(start + n)) {
            Some(after) if self.unit(start + n) == 0x5C => {
                self.at = start + n + after + 1;
                let body = &self.text[start..start + n + after];
                Ok(Escaped::new(F::units(body), n))
            }
            _ => Err(self.no_string(start + n)),
        }
    }

    #[inline(always)]
    fn number<E: JsonEvents>(
        &mut self,
        is_negative: bool,
        events: &mut E,
    ) -> Result<(), ReadError> {
        let start = self.at;
        // No branch depends on the sign, because such a branch would often be mispredicted.
        let first = start + usize::from(is_negative);
        if let Some(short) = self.scanner.short_number(first) {
            self.at = first + short.len;
            if short.n_after == 0 {
                if let Ok(value) = i64::try_from(short.digits) {
                    let sign = i64::from(is_negative);
                    return located(events.int((value ^ -sign) + sign), start);
                }
            } else if let Some(value) = float::of_decimal(short.digits, -(short.n_after as i32)) {
                let value = f64::from_bits(value.to_bits() | u64::from(is_negative) << 63);
                let text = F::units(&self.text[start..self.at]);
                return located(events.float(value, text), start);
            }
        }
        self.at = number::read::<F, E>(self.text, start, events)?;
        Ok(())
    }

    /// Skips `word`, such as `true`, and returns its position. Any other text here is an error.
    #[inline(always)]
    fn word(&mut self, word: &[u8]) -> Result<usize, ReadError> {
        let start = self.at;
        if !number::has_word::<F>(self.text, start, word) {
            return Err(self.no_word(word));
        }
        self.at += word.len();
        Ok(start)
    }

    /// Returns the error for a misspelled or incomplete `word`, such as `tru` instead of `true`.
    #[cold]
    #[inline(never)]
    fn no_word(&mut self, word: &[u8]) -> ReadError {
        let differs = |&(i, &letter): &(usize, &u8)| self.unit(self.at + i) != u32::from(letter);
        let good = word.iter().enumerate().find(differs).map_or(0, |(i, _)| i);
        if self.at + good >= self.text.len() {
            self.at += good;
        }
        self.no_value()
    }

    /// Reads `NaN` or `Infinity` (not valid JSON). The event handler may reject it.
    #[cold]
    #[inline(never)]
    fn rare<E: JsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        let start = self.at;
        for (word, value) in [(&b"NaN"[..], f64::NAN), (b"Infinity", f64::INFINITY)] {
            if number::has_word::<F>(self.text, start, word) {
                self.at += word.len();
                return located(events.not_finite(value), start);
            }
        }
        Err(self.no_value())
    }

    #[inline(always)]
    fn located(&self, result: EventResult) -> Result<(), ReadError> {
        located(result, self.at)
    }

    #[cold]
    #[inline(never)]
    fn no(&self, reason: Reason) -> ReadError {
        let is_end = self.at >= self.text.len();
        let is_syntax = !matches!(reason, Reason::Depth);
        let reason = if is_end && is_syntax {
            Reason::End
        } else {
            reason
        };
        ReadError {
            reason,
            at_units: self.at,
        }
    }

    /// Returns the error for a position at which a value was expected, and no value starts.
    #[cold]
    #[inline(never)]
    fn no_value(&self) -> ReadError {
        let unit = self.unit(self.at);
        let is_mark = match F::units(self.text) {
            onecopy_text::Units::Utf8(text) => text.starts_with(b"\xEF\xBB\xBF"),
            _ => unit == 0xFEFF,
        };
        self.no(match unit {
            _ if self.at == 0 && is_mark => Reason::ByteOrderMark,
            0x5D | 0x7D if self.is_behind_comma() => Reason::TrailingComma,
            _ => Reason::NoValue,
        })
    }

    #[cold]
    #[inline(never)]
    fn no_key(&self) -> ReadError {
        let is_trailing = self.unit(self.at) == 0x7D && self.is_behind_comma();
        self.no(if is_trailing {
            Reason::TrailingComma
        } else {
            Reason::NoKey
        })
    }

    /// Returns `true` if the last unit before `self.at` that is not white space is a comma.
    fn is_behind_comma(&self) -> bool {
        let before = self.text[..self.at].iter().rev().map(|&unit| unit.into());
        let mut before = before.skip_while(|unit: &u32| matches!(unit, 0x20 | 0x0A | 0x0D | 0x09));
        before.next() == Some(0x2C)
    }

    /// Returns the error in a string from `at` on: a control character, or a missing closing quote.
    #[cold]
    #[inline(never)]
    fn no_string(&self, mut at: usize) -> ReadError {
        loop {
            let reason = match self.unit(at) {
                END => Reason::OpenString,
                0x5C if self.unit(at + 1) >= 0x20 && self.unit(at + 1) != END => {
                    at += 2;
                    continue;
                }
                0x5C => {
                    at += 1;
                    continue;
                }
                0..0x20 => Reason::Control,
                _ => {
                    at += 1;
                    continue;
                }
            };
            return ReadError {
                reason,
                at_units: at,
            };
        }
    }
}

/// Converts an error of an event handler. `start` is added to the position in the error.
#[inline(always)]
pub(super) fn located(result: EventResult, start: usize) -> Result<(), ReadError> {
    result.map_err(|refusal| refused(refusal, start))
}

#[cold]
fn refused(refusal: Rejection, start: usize) -> ReadError {
    ReadError {
        reason: refusal.reason,
        at_units: start + refusal.at_units,
    }
}
