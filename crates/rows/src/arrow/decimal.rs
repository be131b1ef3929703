//! Converts the digits of decimals to and from the integers that represent them in Arrow.

use super::error::ValueError;

/// An integer of 256 bits in two's complement, as four 64-bit words, the least significant first.
pub(crate) type Int256 = [u64; 4];

/// The text of a decimal, split into its sign, the digits before the point and the digits after it.
struct DecimalParts<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

/// Splits a decimal into its sign, the digits before the point and the digits after it; `None` if
/// the text is not a decimal or has an exponent.
fn parts(text: &[u8]) -> Option<DecimalParts<'_>> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let point = digits
        .iter()
        .position(|b| *b == b'.')
        .unwrap_or(digits.len());
    let whole = &digits[..point];
    let fraction = digits.get(point + 1..).unwrap_or(&[]);
    let is_number = !(whole.is_empty() && fraction.is_empty())
        && whole.iter().chain(fraction).all(u8::is_ascii_digit);
    is_number.then_some(DecimalParts {
        is_negative,
        whole,
        fraction,
    })
}

/// Returns the number of digits before the point, without leading zeros, and the number of digits
/// after the point; `None` if the text is not a decimal.
pub(crate) fn size(text: &[u8]) -> Option<(usize, usize)> {
    let parts = parts(text)?;
    let n_leading = parts.whole.iter().take_while(|b| **b == b'0').count();
    Some((parts.whole.len() - n_leading, parts.fraction.len()))
}

/// Returns the error for a text that cannot be stored as a decimal: the NaN or an infinity of
/// PostgreSQL's `numeric`, or a text that is not a number.
#[cold]
pub(crate) fn without_digits(text: &[u8]) -> ValueError {
    match is_not_finite(text) {
        true => ValueError::Kind,
        false => ValueError::Invalid,
    }
}

/// Returns `true` if the text is NaN or an infinity, as PostgreSQL writes them.
pub(crate) fn is_not_finite(text: &[u8]) -> bool {
    matches!(text, b"NaN" | b"Infinity" | b"-Infinity")
}

/// Calls `take` with each digit of the number: the digits before the point, then `scale` digits
/// after the point. If `scale` is negative, the last `-scale` digits before the point are omitted.
///
/// # Errors
/// A digit of the fraction after the first `scale` digits is not zero.
fn each_digit(
    parts: &DecimalParts<'_>,
    scale: i8,
    mut take: impl FnMut(u8),
) -> Result<(), ValueError> {
    let n_fraction = usize::try_from(scale.max(0)).unwrap_or(0);
    let n_cut = usize::try_from(-i16::from(scale.min(0))).unwrap_or(0);
    let n_whole = parts.whole.len().saturating_sub(n_cut);
    let kept = parts.fraction.len().min(n_fraction);
    let is_lost = |digits: &[u8]| digits.iter().any(|b| *b != b'0');
    if is_lost(&parts.whole[n_whole..]) || is_lost(&parts.fraction[kept..]) {
        return Err(ValueError::Scale);
    }
    for b in parts.whole[..n_whole].iter().chain(&parts.fraction[..kept]) {
        take(b - b'0');
    }
    for _ in kept..n_fraction {
        take(0);
    }
    Ok(())
}

/// Multiplies the decimal by 10 to the power `scale`, and returns the product as an integer of 128
/// bits.
///
/// # Errors
/// The text is not a decimal, has more than `scale` digits after the point, or more than
/// `precision` digits in all.
#[inline]
pub(crate) fn to_i128(text: &[u8], precision: u8, scale: i8) -> Result<i128, ValueError> {
    let parts = parts(text).ok_or_else(|| without_digits(text))?;
    let most = parts.whole.len() + usize::try_from(scale.max(0)).unwrap_or(0);
    let value = if most <= 18 {
        // In the usual case the digits fit into one 64-bit word.
        let mut value = 0_i64;
        each_digit(&parts, scale, |digit| value = value * 10 + i64::from(digit))?;
        i128::from(value)
    } else {
        let (mut value, mut is_over) = (0_i128, false);
        each_digit(&parts, scale, |digit| {
            let next = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(digit.into()));
            is_over |= next.is_none();
            value = next.unwrap_or(0);
        })?;
        if is_over {
            return Err(ValueError::Range);
        }
        value
    };
    if value >= 10_i128.pow(u32::from(precision.min(38))) {
        return Err(ValueError::Range);
    }
    Ok(if parts.is_negative { -value } else { value })
}

/// Multiplies the decimal by 10 to the power `scale`, and returns the product as an integer of 256
/// bits.
///
/// # Errors
/// The errors of [`to_i128`].
pub(crate) fn to_wide(text: &[u8], precision: u8, scale: i8) -> Result<Int256, ValueError> {
    let parts = parts(text).ok_or_else(|| without_digits(text))?;
    let (mut value, mut n_digits) = ([0_u64; 4], 0_usize);
    each_digit(&parts, scale, |digit| {
        if n_digits > 0 || digit != 0 {
            n_digits += 1;
        }
        // 76 digits need less than 253 bits. More digits overflow here and are refused below.
        let mut carry = u128::from(digit);
        for word in &mut value {
            let product = u128::from(*word) * 10 + carry;
            (*word, carry) = (product as u64, product >> 64);
        }
    })?;
    if n_digits > usize::from(precision) {
        return Err(ValueError::Range);
    }
    Ok(if parts.is_negative {
        negated(value)
    } else {
        value
    })
}

fn negated(value: Int256) -> Int256 {
    let mut carry = true;
    value.map(|word| {
        let (word, over) = (!word).overflowing_add(u64::from(carry));
        carry = over;
        word
    })
}

/// Returns the digits of an integer, with a decimal point before the last `scale` digits.
pub(crate) fn digits_of_i128(value: i128, scale: i8) -> String {
    pointed(value < 0, value.unsigned_abs().to_string(), scale)
}

/// Returns the digits of an integer of 256 bits, with a decimal point before the last `scale`
/// digits.
pub(crate) fn digits_of_wide(value: Int256, scale: i8) -> String {
    let is_negative = value[3] >> 63 != 0;
    let mut rest = if is_negative { negated(value) } else { value };
    let mut digits = String::new();
    while rest != [0; 4] {
        let mut remainder = 0_u128;
        for word in rest.iter_mut().rev() {
            let dividend = (remainder << 64) | u128::from(*word);
            (*word, remainder) = ((dividend / 10) as u64, dividend % 10);
        }
        digits.push(char::from(b'0' + remainder as u8));
    }
    let digits: String = digits.chars().rev().collect();
    let digits = if digits.is_empty() {
        "0".into()
    } else {
        digits
    };
    pointed(is_negative, digits, scale)
}

fn pointed(is_negative: bool, mut digits: String, scale: i8) -> String {
    if scale < 0 && digits != "0" {
        digits.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs())));
    }
    let n_fraction = usize::try_from(scale.max(0)).unwrap_or(0);
    if n_fraction > 0 {
        let missing = (n_fraction + 1).saturating_sub(digits.len());
        digits.insert_str(0, &"0".repeat(missing));
        digits.insert(digits.len() - n_fraction, '.');
    }
    if is_negative {
        digits.insert(0, '-');
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_become_integers_and_come_back() {
        for (text, scale, value, back) in [
            ("0", 0, 0, "0"),
            ("-0.05", 2, -5, "-0.05"),
            (".5", 2, 50, "0.50"),
            ("12.3400", 2, 1234, "12.34"),
            ("-9999999999.99", 2, -999_999_999_999, "-9999999999.99"),
            ("1200", -2, 12, "1200"),
        ] {
            assert_eq!(to_i128(text.as_bytes(), 38, scale), Ok(value), "{text}");
            assert_eq!(digits_of_i128(value, scale), back);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_apart() {
        assert_eq!(to_i128(b"1.234", 38, 2), Err(ValueError::Scale));
        assert_eq!(to_i128(b"1250", 38, -2), Err(ValueError::Scale));
        assert_eq!(to_i128(b"100.00", 4, 2), Err(ValueError::Range));
        assert_eq!(to_i128(&[b'9'; 60], 38, 0), Err(ValueError::Range));
        assert_eq!(to_wide(&[b'9'; 77], 76, 0), Err(ValueError::Range));
        for text in [&b"NaN"[..], b"Infinity", b"-Infinity"] {
            assert_eq!(to_i128(text, 38, 2), Err(ValueError::Kind));
            assert_eq!(to_wide(text, 76, 2), Err(ValueError::Kind));
        }
        for text in ["", "-", ".", "1e5", "nan", "1.2.3", "1 "] {
            assert_eq!(
                to_i128(text.as_bytes(), 38, 2),
                Err(ValueError::Invalid),
                "{text}"
            );
            assert_eq!(
                to_wide(text.as_bytes(), 76, 2),
                Err(ValueError::Invalid),
                "{text}"
            );
        }
        assert_eq!(size(b"-0012.3400"), Some((2, 4)));
        assert_eq!(size(b"0.0"), Some((0, 1)));
    }

    proptest! {
        #[test]
        fn wide_matches_narrow(value in -(10_i128.pow(37))..10_i128.pow(37), scale in 0_i8..20) {
            let text = digits_of_i128(value, scale);
            prop_assert_eq!(to_i128(text.as_bytes(), 38, scale), Ok(value));
            let wide = to_wide(text.as_bytes(), 76, scale).unwrap();
            prop_assert_eq!(wide[0] as i128 | ((wide[1] as i128) << 64), value);
            prop_assert_eq!(digits_of_wide(wide, scale), text);
        }

        #[test]
        fn wide_digits_come_back(digits in "-?[1-9][0-9]{0,50}\\.[0-9]{20}") {
            let wide = to_wide(digits.as_bytes(), 76, 20).unwrap();
            prop_assert_eq!(digits_of_wide(wide, 20), digits);
        }
    }
}
