//! The slow path for numbers, which reads numbers of any length digit by digit. The vector kernels
//! read most numbers; they leave the others to this module.

use super::error::{ReadError, Reason};
use super::events::JsonEvents;
use super::float;
use super::source_form::SourceForm;

/// The largest number of decimal digits for which every value fits into 64 bits.
const SHORT_DIGITS: usize = 19;

/// Reads the number that starts at unit `start` and emits its event. Returns the position after the
/// number.
#[inline(never)]
pub(super) fn read<F: SourceForm, E: JsonEvents>(
    text: &[F::Unit],
    start: usize,
    events: &mut E,
) -> Result<usize, ReadError> {
    let unit = |at: usize| text.get(at).map_or(0, |&unit| unit.into());
    let is_digit = |at: usize| matches!(unit(at), 0x30..=0x39);
    let no = |reason, at_units| -> Result<usize, ReadError> { Err(ReadError { reason, at_units }) };
    let mut at = start + usize::from(unit(start) == 0x2D);
    let is_negative = at > start;
    let mut digits = Digits::default();
    // Reads one or more digits, and returns the position after them. No digit is an error.
    let run = |from: usize, digits: &mut Digits| {
        let mut at = from;
        while is_digit(at) {
            digits.push(unit(at) - 0x30);
            at += 1;
        }
        if at > from {
            return Ok(at);
        }
        let reason = if at >= text.len() {
            Reason::End
        } else {
            Reason::NoDigit
        };
        no(reason, at)
    };
    if is_negative && has_word::<F>(text, at, b"Infinity") {
        super::reader::located(events.not_finite(f64::NEG_INFINITY), start)?;
        return Ok(at + 8);
    }
    if unit(at) == 0x30 && is_digit(at + 1) {
        return no(Reason::LeadingZero, at);
    }
    at = run(at, &mut digits)?;
    let (mut is_float, mut exponent) = (false, 0);
    if unit(at) == 0x2E {
        let after = run(at + 1, &mut digits)?;
        exponent = -i64::try_from(after - at - 1).unwrap_or(i64::MAX);
        (at, is_float) = (after, true);
    }
    if unit(at) | 0x20 == 0x65 {
        let sign = unit(at + 1);
        let from = at + 1 + usize::from(matches!(sign, 0x2B | 0x2D));
        let mut power = Digits::default();
        (at, is_float) = (run(from, &mut power)?, true);
        let power = i64::try_from(power.value_or(1 << 40)).unwrap_or(1 << 40);
        exponent += if sign == 0x2D { -power } else { power };
    }
    let (number, mut place) = (&text[start..at], Vec::new());
    let result = if is_float {
        let short = (digits.n <= SHORT_DIGITS)
            .then(|| float::of_decimal(digits.value, i32::try_from(exponent).ok()?))
            .flatten();
        let value = match short {
            Some(value) if is_negative => -value,
            Some(value) => value,
            None => float::of_text(F::ascii(number, &mut place)),
        };
        events.float(value, F::units(number))
    } else {
        let value = i128::from(digits.value_or(u64::MAX));
        match i64::try_from(if is_negative { -value } else { value }) {
            Ok(value) => events.int(value),
            Err(_) => events.big_int(F::ascii(number, &mut place)),
        }
    };
    super::reader::located(result, start)?;
    Ok(at)
}

/// The digits of a number that were read so far.
#[derive(Default)]
struct Digits {
    value: u64,
    /// The number of digits that were read, not counting leading zeros.
    n: usize,
}

impl Digits {
    fn push(&mut self, digit: u32) {
        if self.n > 0 || digit != 0 {
            self.n += 1;
        }
        if self.n <= SHORT_DIGITS {
            self.value = self.value * 10 + u64::from(digit);
        }
    }

    /// Returns the integer that the digits form; `other` if there are more than [`SHORT_DIGITS`]
    /// digits.
    fn value_or(&self, other: u64) -> u64 {
        if self.n <= SHORT_DIGITS {
            self.value
        } else {
            other
        }
    }
}

/// Returns `true` if the ASCII text `word` is in `text` at position `at`.
#[inline(always)]
pub(super) fn has_word<F: SourceForm>(text: &[F::Unit], at: usize, word: &[u8]) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() >= word.len()
        && rest
            .iter()
            .zip(word)
            .all(|(&a, &b)| a.into() == u32::from(b))
}
