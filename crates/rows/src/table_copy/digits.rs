//! `DecimalDigits`: a decimal number in a normal form, so that numbers in different notations can
//! be compared.

/// A finite number as its significant digits and a power of ten. Equal numbers have equal fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecimalDigits {
    is_negative: bool,
    /// The significant digits, without leading and trailing zeros; empty for 0.
    digits: String,
    /// The number of digits after the decimal point. It is negative for multiples of ten (700: -2).
    scale: i64,
}

impl DecimalDigits {
    /// Parses a number as databases write it, such as `-12.50` or `1.5e-07`. Returns `None` for any
    /// other text. Text with a plus sign or leading zeros is not accepted, because `007` may be a
    /// code instead of a number.
    pub(super) fn parse(text: &str) -> Option<DecimalDigits> {
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let has_point_only = mantissa.contains('.') && fraction.is_empty();
        if !is_digits(whole)
            || !is_digits(fraction)
            || whole.is_empty()
            || has_point_only
            || (whole.len() > 1 && whole.starts_with('0'))
        {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let significant = all.trim_end_matches('0');
        if significant.is_empty() {
            return Some(DecimalDigits {
                is_negative: false,
                digits: String::new(),
                scale: 0,
            });
        }
        let n_zeros = all.len() - significant.len();
        Some(DecimalDigits {
            is_negative,
            digits: significant.trim_start_matches('0').to_owned(),
            scale: fraction.len() as i64 - n_zeros as i64 - i64::from(exponent),
        })
    }

    /// Parses the shortest decimal notation of a float; returns `None` for a NaN or an infinity.
    pub(super) fn of_f64(value: f64) -> Option<DecimalDigits> {
        DecimalDigits::parse(&format!("{value:e}"))
    }

    /// Returns the float whose shortest decimal notation is equal to this number; `None` if no such
    /// float exists. `text` is the text from which this number was parsed.
    pub(super) fn to_f64(&self, text: &str) -> Option<f64> {
        let value: f64 = text.parse().ok()?;
        (DecimalDigits::of_f64(value)? == *self).then_some(value)
    }

    /// Returns the 32-bit float whose shortest decimal notation is equal to this number; `None` if
    /// no such float exists. `text` is the text from which this number was parsed.
    pub(super) fn to_f32(&self, text: &str) -> Option<f32> {
        let value: f32 = text.parse().ok()?;
        (DecimalDigits::parse(&format!("{value:e}"))? == *self).then_some(value)
    }

    /// Returns how many digits after the decimal point are needed to represent the number exactly.
    /// The result is negative for a multiple of ten (-2 for 700).
    pub(super) fn scale(&self) -> i64 {
        self.scale
    }

    /// Returns the number in decimal notation without an exponent. Returns `None` if more than
    /// 1,000 zeros would have to be added.
    pub(super) fn plain(&self) -> Option<String> {
        const MOST_ZEROS: usize = 1000;
        let sign = if self.is_negative { "-" } else { "" };
        let n_zeros = usize::try_from(self.scale.unsigned_abs()).ok()?;
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        if self.scale <= 0 {
            let zeros = (n_zeros <= MOST_ZEROS).then(|| "0".repeat(n_zeros))?;
            return Some(format!("{sign}{}{zeros}", self.digits));
        }
        let n_missing = n_zeros.saturating_sub(self.digits.len());
        let zeros = (n_missing <= MOST_ZEROS).then(|| "0".repeat(n_missing))?;
        let padded = format!("{zeros}{}", self.digits);
        let (whole, fraction) = padded.split_at(padded.len() - n_zeros);
        let whole = if whole.is_empty() { "0" } else { whole };
        Some(format!("{sign}{whole}.{fraction}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> DecimalDigits {
        DecimalDigits::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn equal_numbers_have_equal_digits() {
        for (a, b) in [
            ("0", "-0.00"),
            ("1", "1.0"),
            ("1e3", "1000"),
            ("1.5e-07", "0.00000015"),
            ("-12.50", "-1.25E+01"),
            ("0.05", "5e-2"),
        ] {
            assert_eq!(parsed(a), parsed(b), "{a}");
        }
        assert_ne!(parsed("1"), parsed("-1"));
        assert_ne!(parsed("1"), parsed("10"));
        for text in [
            "", "-", ".", "1.", ".5", "+1", "007", "00", " 1", "1 ", "0x1", "1e", "e1", "NaN",
            "inf", "1.2.3", "1_000", "--1",
        ] {
            assert_eq!(DecimalDigits::parse(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_without_an_exponent_are_written_back() {
        for (text, plain, scale) in [
            ("0.00", "0", 0),
            ("1e3", "1000", -3),
            ("-1.50", "-1.5", 1),
            ("1.5e-07", "0.00000015", 8),
            ("120", "120", -1),
            ("12.34", "12.34", 2),
        ] {
            let number = parsed(text);
            assert_eq!(number.plain().as_deref(), Some(plain), "{text}");
            assert_eq!(number.scale(), scale, "{text}");
        }
        assert_eq!(parsed("1e2000").plain(), None);
        assert_eq!(parsed("1e-2000").plain(), None);
    }

    #[test]
    fn floats_have_the_digits_of_their_shortest_notation() {
        for text in ["0.1", "19.99", "-1e300", "5e-324", "123456789"] {
            assert!(parsed(text).to_f64(text).is_some(), "{text}");
        }
        for text in [
            "0.1000000000000000055",
            "9007199254740993",
            "1e400",
            "1e-400",
        ] {
            assert_eq!(parsed(text).to_f64(text), None, "{text}");
        }
        assert_eq!(parsed("0.1").to_f32("0.1"), Some(0.1));
        assert_eq!(parsed("16777217").to_f32("16777217"), None);
    }

    /// Returns a number as text with an exponent and `n_fraction` digits after the point, and the
    /// exact value of the number times 10^24.
    fn notation(mantissa: i64, n_fraction: u32, exponent: i32) -> (String, i128) {
        let digits = mantissa.unsigned_abs().to_string();
        let padded = format!("{digits:0>width$}", width = n_fraction as usize + 1);
        let (whole, fraction) = padded.split_at(padded.len() - n_fraction as usize);
        let sign = if mantissa < 0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        let text = format!("{sign}{whole}{point}{fraction}e{exponent}");
        let power = 24 + exponent - n_fraction as i32;
        (text, i128::from(mantissa) * 10_i128.pow(power as u32))
    }

    proptest! {
        #[test]
        fn digits_are_equal_if_the_exact_values_are(
            a in -99_999_i64..100_000, b in -99_999_i64..100_000,
            fractions in (0_u32..8, 0_u32..8), exponents in (-6_i32..7, -6_i32..7),
        ) {
            let (a, exact_a) = notation(a, fractions.0, exponents.0);
            let (b, exact_b) = notation(b, fractions.1, exponents.1);
            prop_assert_eq!(parsed(&a) == parsed(&b), exact_a == exact_b, "{} {}", a, b);
            let (same, exact_same) = notation(-1230, fractions.0, exponents.0);
            let plain = parsed(&same).plain().unwrap_or_default();
            let n_fraction = plain.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let whole: i128 = plain.replace('.', "").parse().unwrap_or_default();
            prop_assert_eq!(whole * 10_i128.pow(24 - n_fraction as u32), exact_same, "{}", plain);
        }

        #[test]
        fn only_numbers_are_parsed(text in "[-+0-9.eE ]{0,12}|\\PC{0,8}") {
            if DecimalDigits::parse(&text).is_some() {
                prop_assert!(text.parse::<f64>().is_ok());
            }
        }
    }
}
