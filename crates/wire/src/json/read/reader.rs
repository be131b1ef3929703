//! The grammar (RFC 8259), in one loop without recursion.

use onecopy_text::convert::Kernels;

use super::error::{ReadError, Reason};
use super::escape::Escaped;
use super::events::{Events, Refusal, Told};
use super::float;
use super::form::{Form, Scanner};
use super::number;

/// What is refused though the grammar allows it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How deep arrays and objects may stand in each other; 0 allows none.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_depth: 1000 }
    }
}

/// What stands behind the end of the text, which no unit is.
const END: u32 = u32::MAX;

/// Tells one value to `events` and returns the unit behind it; `start` is where it or the white space before it begins.
///
/// Copies: none.
///
/// # Errors
/// [`ReadError`]; what was told until then was right.
#[inline(always)]
pub fn read<F: Form, K: Kernels, E: Events>(
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

/// As [`read`], of a text with nothing but white space around the value.
///
/// # Errors
/// As [`read`].
#[inline(always)]
pub fn read_all<F: Form, K: Kernels, E: Events>(
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
        reason: Reason::Behind,
        at_units: end,
    })
}

/// Units of white space at the start.
#[inline(always)]
pub fn blank<F: Form, K: Kernels>(kernels: K, rest: &[F::Unit]) -> usize {
    match rest.first() {
        Some(&unit) if unit.into() <= 0x20 => F::scanner(kernels, rest).blank(0),
        _ => 0,
    }
}

/// What a value starts with.
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
    /// By a table: the compiler would tell `-` from the digits by a branch, which is guessed wrong for every other number of
    /// either sign.
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

struct Reader<'a, F: Form, K: Kernels> {
    kernels: K,
    text: &'a [F::Unit],
    scanner: F::Scanner<'a, K>,
    /// The next unit.
    at: usize,
    depth: usize,
    /// The innermost levels, up to 64, the last one lowest: 1 where it is an object.
    levels: u64,
    /// The levels outside of them, 64 in each.
    outer: Vec<u64>,
    limits: Limits,
}

impl<'a, F: Form, K: Kernels> Reader<'a, F, K> {
    #[inline(always)]
    fn value<E: Events>(&mut self, events: &mut E) -> Result<(), ReadError> {
        'value: loop {
            let unit = self.skip_blank();
            match Start::of(unit) {
                Start::String => self.string(events)?,
                Start::Object => {
                    self.check_depth()?;
                    if self.unit(self.at + 1) == 0x7D {
                        self.tell(events.empty_object())?;
                        self.at += 2;
                    } else {
                        self.enter(true);
                        self.tell(events.begin_object())?;
                        self.at += 1;
                        if self.skip_blank() != 0x7D {
                            self.key(events)?;
                            continue 'value;
                        }
                        self.tell(events.end_object())?;
                        self.leave();
                    }
                }
                Start::Array => {
                    self.check_depth()?;
                    if self.unit(self.at + 1) == 0x5D {
                        self.tell(events.empty_array())?;
                        self.at += 2;
                    } else {
                        self.enter(false);
                        self.tell(events.begin_array())?;
                        self.at += 1;
                        if self.skip_blank() != 0x5D {
                            continue 'value;
                        }
                        self.tell(events.end_array())?;
                        self.leave();
                    }
                }
                Start::Number => self.number(unit == 0x2D, events)?,
                Start::True => {
                    let start = self.word(b"true")?;
                    told(events.boolean(true), start)?;
                }
                Start::False => {
                    let start = self.word(b"false")?;
                    told(events.boolean(false), start)?;
                }
                Start::Null => {
                    let start = self.word(b"null")?;
                    told(events.null(), start)?;
                }
                Start::Other => self.rare(events)?,
            }
            // Behind a value.
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
                    self.tell(events.end_array())?;
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
                    self.tell(events.end_object())?;
                }
                self.leave();
            }
        }
    }

    /// The unit at `at`.
    #[inline(always)]
    fn unit(&self, at: usize) -> u32 {
        self.text.get(at).map_or(END, |&unit| unit.into())
    }

    /// The text from `at` on, which is not behind its end.
    #[inline(always)]
    fn rest(&self, at: usize) -> &'a [F::Unit] {
        self.text.get(at..).unwrap_or_default()
    }

    /// Goes on to what is no white space, and gives it.
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

    /// Behind the closing bracket, which is the next unit.
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
    fn string<E: Events>(&mut self, events: &mut E) -> Result<(), ReadError> {
        let start = self.at + 1;
        let (text, n) = self.scanner.plain(start);
        if self.unit(start + n) == 0x22 {
            self.at = start + n + 1;
            return told(events.string(text), start);
        }
        let text = self.escaped(start, n)?;
        told(events.escaped_string(text), start)
    }

    /// A key at the next unit, and the colon behind it.
    #[inline(always)]
    fn key<E: Events>(&mut self, events: &mut E) -> Result<(), ReadError> {
        if self.unit(self.at) != 0x22 {
            return Err(self.no_key());
        }
        let start = self.at + 1;
        let rest = self.rest(start);
        if let Some(guess) = events.guess(F::IS_UTF8)
            && F::has_key(self.kernels, rest, guess)
        {
            self.at = start + guess.len() + 1;
            told(events.likely_key(), start)?;
        } else {
            let (text, n) = self.scanner.plain(start);
            if self.unit(start + n) == 0x22 {
                self.at = start + n + 1;
                told(events.key(text), start)?;
            } else {
                let text = self.escaped(start, n)?;
                told(events.escaped_key(text), start)?;
            }
        }
        if self.skip_blank() != 0x3A {
            return Err(self.no(Reason::NoColon));
        }
        self.at += 1;
        Ok(())
    }

    /// A string that starts at `start` and is not plain from `n` units on.
    #[inline(always)]
    fn escaped(&mut self, start: usize, n: usize) -> Result<Escaped<'a>, ReadError> {
        match F::closing_quote(self.kernels, self.rest(start + n)) {
            Some(behind) if self.unit(start + n) == 0x5C => {
                self.at = start + n + behind + 1;
                let body = &self.text[start..start + n + behind];
                Ok(Escaped::new(F::units(body), n))
            }
            _ => Err(self.no_string(start + n)),
        }
    }

    #[inline(always)]
    fn number<E: Events>(&mut self, is_negative: bool, events: &mut E) -> Result<(), ReadError> {
        let start = self.at;
        // Signs come at random: nothing branches on them.
        let first = start + usize::from(is_negative);
        if let Some(short) = self.scanner.short_number(first) {
            self.at = first + short.len;
            if short.n_behind == 0 {
                if let Ok(value) = i64::try_from(short.digits) {
                    let sign = i64::from(is_negative);
                    return told(events.int((value ^ -sign) + sign), start);
                }
            } else if let Some(value) = float::of_decimal(short.digits, -(short.n_behind as i32)) {
                let value = f64::from_bits(value.to_bits() | u64::from(is_negative) << 63);
                let text = F::units(&self.text[start..self.at]);
                return told(events.float(value, text), start);
            }
        }
        self.at = number::read::<F, E>(self.text, start, events)?;
        Ok(())
    }

    /// Goes behind a word; where it starts.
    #[inline(always)]
    fn word(&mut self, word: &[u8]) -> Result<usize, ReadError> {
        let start = self.at;
        if !number::has_word::<F>(self.text, start, word) {
            return Err(self.no_word(word));
        }
        self.at += word.len();
        Ok(start)
    }

    /// Another word than this one stands at the next unit.
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

    /// What JSON does not have: `NaN` and the infinities, by the events' leave.
    #[cold]
    #[inline(never)]
    fn rare<E: Events>(&mut self, events: &mut E) -> Result<(), ReadError> {
        let start = self.at;
        for (word, value) in [(&b"NaN"[..], f64::NAN), (b"Infinity", f64::INFINITY)] {
            if number::has_word::<F>(self.text, start, word) {
                self.at += word.len();
                return told(events.not_finite(value), start);
            }
        }
        Err(self.no_value())
    }

    #[inline(always)]
    fn tell(&self, is_told: Told) -> Result<(), ReadError> {
        told(is_told, self.at)
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

    /// There is no value at the next unit, or another word.
    #[cold]
    #[inline(never)]
    fn no_value(&self) -> ReadError {
        let unit = self.unit(self.at);
        let is_mark = match F::units(self.text) {
            onecopy_text::Units::Utf8(text) => text.starts_with(b"\xEF\xBB\xBF"),
            _ => unit == 0xFEFF,
        };
        self.no(match unit {
            _ if self.at == 0 && is_mark => Reason::Mark,
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

    /// Whether what stands before the next unit, white space apart, is a comma.
    fn is_behind_comma(&self) -> bool {
        let before = self.text[..self.at].iter().rev().map(|&unit| unit.into());
        let mut before = before.skip_while(|unit: &u32| matches!(unit, 0x20 | 0x0A | 0x0D | 0x09));
        before.next() == Some(0x2C)
    }

    /// A string has no end; its part before `at` is good.
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

/// What was told, with the place where its start is.
#[inline(always)]
pub(super) fn told(is_told: Told, start: usize) -> Result<(), ReadError> {
    is_told.map_err(|refusal| refused(refusal, start))
}

#[cold]
fn refused(refusal: Refusal, start: usize) -> ReadError {
    ReadError {
        reason: refusal.reason,
        at_units: start + refusal.at_units,
    }
}
