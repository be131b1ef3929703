//! The text of doubles in the notation of the Extended JSON specification, such as `1.0` and
//! `1.2345678921232E+18`. NaN and the infinities are written as `NaN`, `Infinity` and `-Infinity`.

use onecopy_text::Put;

use crate::error::non_finite_name;
use crate::number::{put_float, put_hundredths};

/// The limits for the notation of numbers. A number is written with an exponent if its absolute
/// value is at least `LARGE`, or below `SMALL`.
const LARGE: f64 = 1e15;
const SMALL: f64 = 1e-4;

/// Writes the shortest decimal text that is parsed as the same double. The text has a decimal point
/// or an exponent, so that no reader parses it as an integer.
#[inline(always)]
pub(super) fn put<P: Put>(value: f64, window: &mut P) {
    if put_hundredths(value, window) {
        return;
    }
    let magnitude = value.abs();
    if (SMALL..LARGE).contains(&magnitude) {
        // The value is finite, as checked above.
        let _ = put_float(value, window, |_, _| Ok(()));
    } else {
        put_rare(value, window);
    }
}

#[cold]
#[inline(never)]
fn put_rare<P: Put>(value: f64, window: &mut P) {
    if !value.is_finite() {
        window.put(non_finite_name(value).as_bytes());
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    match text.split_once('e') {
        None => window.put(text.as_bytes()),
        Some((digits, exponent)) => {
            window.put(digits.as_bytes());
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ("E-", exponent),
                None => ("E+", exponent.strip_prefix('+').unwrap_or(exponent)),
            };
            window.put(sign.as_bytes());
            window.put(exponent.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onecopy_text::ByteSink;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        put(value, &mut out.window(64).expect("memory"));
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn doubles_have_a_point_or_an_exponent_and_read_back() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.000_122_070_312_5, "-1.0001220703125"),
            (1.234_567_892_123_2e18, "1.2345678921232E+18"),
            (-1.234_567_892_123_2e18, "-1.2345678921232E+18"),
            (f64::MAX, "1.7976931348623157E+308"),
            (5e-324, "5E-324"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text(value), expected);
        }
        let mut state = 1_u64;
        for i in 0..300_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(i | 1);
            let value = match i % 3 {
                0 => f64::from_bits(state),
                1 => (state >> 20) as f64 / 1e6,
                _ => (state >> (i % 60)) as f64,
            };
            if value.is_finite() {
                let text = text(value);
                let read: f64 = text.parse().expect(&text);
                assert_eq!(read.to_bits(), value.to_bits(), "{text}");
                assert!(text.contains(['.', 'E']), "{text}");
            }
        }
    }
}
