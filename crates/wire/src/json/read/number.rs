//! Numbers of any length, digit by digit: those that the kernels leave.

use super::error::{ReadError, Reason};
use super::events::Events;
use super::float;
use super::form::Form;

/// Digits that fit 64 bits whatever they are.
const SHORT_DIGITS: usize = 19;

/// Tells the number at `start`, where a digit or `-` stands, and returns the unit behind it.
#[inline(never)]
pub(super) fn read<F: Form, E: Events>(
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
    // A run of digits, at least one.
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
        super::reader::told(events.not_finite(f64::NEG_INFINITY), start)?;
        return Ok(at + 8);
    }
    if unit(at) == 0x30 && is_digit(at + 1) {
        return no(Reason::LeadingZero, at);
    }
    at = run(at, &mut digits)?;
    let (mut is_float, mut exponent) = (false, 0);
    if unit(at) == 0x2E {
        let behind = run(at + 1, &mut digits)?;
        exponent = -i64::try_from(behind - at - 1).unwrap_or(i64::MAX);
        (at, is_float) = (behind, true);
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
    let is_told = if is_float {
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
    super::reader::told(is_told, start)?;
    Ok(at)
}

/// Digits as a number; those in front that are zero do not count.
#[derive(Default)]
struct Digits {
    value: u64,
    /// Digits from the first that is not 0.
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

    /// The number, or another one where it has more digits.
    fn value_or(&self, other: u64) -> u64 {
        if self.n <= SHORT_DIGITS {
            self.value
        } else {
            other
        }
    }
}

/// Whether this word stands at `at`.
#[inline(always)]
pub(super) fn has_word<F: Form>(text: &[F::Unit], at: usize, word: &[u8]) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() >= word.len()
        && rest
            .iter()
            .zip(word)
            .all(|(&a, &b)| a.into() == u32::from(b))
}
