//! Validation of decimals that are given as text. When such a decimal is written as JSON, every
//! digit is kept. Only notation that JSON does not permit, such as a leading `+`, is changed.

use crate::error::WriteError;

/// A validated decimal, split into the parts of which its JSON text consists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimal<'a> {
    /// A finite number. `whole` is the digits before the decimal point; if it is empty, JSON needs
    /// a `0` there. `fraction` is the digits after the point. `exponent` begins with its letter, or
    /// is empty.
    Number {
        negative: bool,
        whole: &'a [u8],
        fraction: &'a [u8],
        exponent: &'a [u8],
    },
    /// NaN or an infinity, which PostgreSQL's `numeric` can contain.
    NonFinite(&'static str),
}

/// Returns `true` if `text` is a decimal (`[+-]digits[.digits][e[+-]digits]`) or the name of NaN or
/// an infinity.
#[inline]
#[must_use]
pub fn is_decimal(text: &[u8]) -> bool {
    is_plain(text) || read(text).is_ok()
}

/// Parses the text `[+-]digits[.digits][e[+-]digits]`, or the name of NaN or an infinity. Either
/// the digits before the point or those after it may be missing, but not both.
///
/// # Errors
/// Returns [`WriteError::NotADecimal`] if the text has another syntax.
pub(crate) fn read(text: &[u8]) -> Result<Decimal<'_>, WriteError> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (digits, rest) = split_digits(unsigned);
    let (fraction, exponent) = match rest {
        [b'.', rest @ ..] => split_digits(rest),
        rest => (&rest[..0], rest),
    };
    if digits.is_empty() && fraction.is_empty() {
        return special(text);
    }
    if !is_exponent(exponent) {
        return Err(WriteError::NotADecimal);
    }
    let zeros = digits.iter().take_while(|d| **d == b'0').count();
    Ok(Decimal::Number {
        negative,
        whole: &digits[zeros..],
        fraction,
        exponent,
    })
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|b| b.is_ascii_digit()).count())
}

fn is_exponent(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] => {
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

fn special(text: &[u8]) -> Result<Decimal<'static>, WriteError> {
    let (negative, name) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    Ok(Decimal::NonFinite(if is("nan") {
        "NaN"
    } else if !(is("infinity") || is("inf")) {
        return Err(WriteError::NotADecimal);
    } else if negative {
        "-Infinity"
    } else {
        "Infinity"
    }))
}

/// Returns `true` if `text` is a JSON number (RFC 8259, section 6) without an exponent, which can
/// be written unchanged. Nearly all decimals from a database are such numbers.
#[inline]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let mut points = 0;
    let mut bad = false;
    for &b in unsigned {
        points += usize::from(b == b'.');
        bad |= !(b.is_ascii_digit() || b == b'.');
    }
    !bad && points <= 1
        && matches!(unsigned, [b'0'] | [b'0', b'.', ..] | [b'1'..=b'9', ..])
        && unsigned.last() != Some(&b'.')
}
