//! Functions that write booleans and numbers, which have the same text in JSON and CSV.

use onecopy_text::Put;
use onecopy_text::convert::{self, EIGHT_DIGITS, eight_digits};

use crate::error::{WriteError, non_finite_name};

/// Writes `true` or `false`.
#[inline]
pub fn put_bool<P: Put>(value: bool, window: &mut P) {
    if value {
        window.put_short(b"true", 4);
    } else {
        window.put_short(b"false", 5);
    }
}

/// Writes a signed integer in decimal.
#[inline(always)]
pub fn put_i64<P: Put>(value: i64, window: &mut P) {
    window.put_short(b"-", usize::from(value < 0));
    put_u64(value.unsigned_abs(), window);
}

/// Writes a signed integer in decimal, followed by a comma.
#[inline(always)]
pub fn put_i64_comma<P: Put>(value: i64, window: &mut P) {
    window.put_short(b"-", usize::from(value < 0));
    put_u64_comma(value.unsigned_abs(), window);
}

/// Writes an unsigned integer in decimal, followed by a comma. For a number below 1,000, one store
/// instruction writes the digits and the comma.
#[inline(always)]
pub fn put_u64_comma<P: Put>(value: u64, window: &mut P) {
    if let Some(text) = SHORT_WITH_COMMA.get(value as usize) {
        let len = 2 + usize::from(value >= 10) + usize::from(value >= 100);
        window.put_short(text, len);
    } else {
        put_u64(value, window);
        window.put_byte(b',');
    }
}

/// The digits and a comma of each number below 1,000, followed by zero bytes, indexed by the
/// number.
static SHORT_WITH_COMMA: [[u8; 4]; 1000] = {
    let mut all = [[0; 4]; 1000];
    let mut value = 0;
    while value < all.len() {
        let digits = [value / 100, value / 10 % 10, value % 10];
        let mut digit = if value >= 100 {
            0
        } else if value >= 10 {
            1
        } else {
            2
        };
        let mut at = 0;
        while digit < 3 {
            all[value][at] = b'0' + digits[digit] as u8;
            digit += 1;
            at += 1;
        }
        all[value][at] = b',';
        value += 1;
    }
    all
};

/// Writes an unsigned integer in decimal.
#[inline(always)]
pub fn put_u64<P: Put>(value: u64, window: &mut P) {
    if value < 10_000 {
        put_four(value as u32, window);
    } else if value < EIGHT_DIGITS {
        put_first(value, window);
    } else {
        put_long(value, window);
    }
}

/// Writes a number below 10,000 by two table lookups, which take half the time of the
/// multiplications that longer numbers need. Most numbers are below 10,000.
#[inline(always)]
fn put_four<P: Put>(value: u32, window: &mut P) {
    let pair = |n: u32| u32::from(PAIRS[n as usize % 100]);
    let text = pair(value / 100) | pair(value % 100) << 16;
    let n_zeros = 3 - u32::from(value >= 10) - u32::from(value >= 100) - u32::from(value >= 1000);
    let text = text >> (8 * n_zeros);
    window.put_short(&text.to_le_bytes(), 4 - n_zeros as usize);
}

/// The two digits of each number below 100 as ASCII characters, with the first digit in the low
/// byte.
static PAIRS: [u16; 100] = {
    let mut pairs = [0; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = 0x3030 + (i as u16 / 10) + ((i as u16 % 10) << 8);
        i += 1;
    }
    pairs
};

#[inline(always)]
fn put_long<P: Put>(value: u64, window: &mut P) {
    let (high, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    if high < 10_000 {
        put_four(high as u32, window);
    } else if high < EIGHT_DIGITS {
        put_first(high, window);
    } else {
        put_first(high / EIGHT_DIGITS, window);
        window.put_short(
            &(eight_digits(high % EIGHT_DIGITS) | ZEROS).to_le_bytes(),
            8,
        );
    }
    window.put_short(&(eight_digits(low) | ZEROS).to_le_bytes(), 8);
}

/// Writes the digits of a number below 10^8, without leading zeros.
#[inline(always)]
fn put_first<P: Put>(value: u64, window: &mut P) {
    let digits = eight_digits(value);
    // The number of leading zeros, at most seven, so that the number 0 has one digit.
    let n_zeros = (digits | 1 << 56).trailing_zeros() / 8;
    let text = (digits | ZEROS) >> (8 * n_zeros);
    window.put_short(&text.to_le_bytes(), 8 - n_zeros as usize);
}

/// Eight bytes that contain the character `0`.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Returns the `f64` nearest to the shortest decimal that is parsed as `value`. PostgreSQL and its
/// drivers return this number for a `real`. For example, 0.1 stays 0.1, while a plain conversion
/// gives 0.10000000149011612.
#[must_use]
pub fn widen(value: f32) -> f64 {
    let wide = f64::from(value);
    if !value.is_finite() || (wide.fract() == 0.0 && wide.abs() < 16_777_216.0) {
        return wide; // The decimal of the integer is the shortest.
    }
    let mut shortest = zmij::Buffer::new();
    let shortest = shortest.format_finite(value);
    shortest.parse().unwrap_or(wide)
}

/// Returns the `f64` with which an `f32` parameter is bound. An integer is returned unchanged,
/// because the column may have an integer type. Any other number is converted by [`widen`]. For an
/// integer, the result of `widen` can be another integer: it is 134,217,730 for 134,217,728,
/// because 134,217,730 is the shortest decimal number that is rounded to this `f32`.
#[must_use]
pub fn widen_parameter(value: f32) -> f64 {
    let wide = f64::from(value);
    match wide.fract() == 0.0 {
        true => wide,
        false => widen(value),
    }
}

/// Writes a float whose shortest decimal has at most two digits after the point, such as a price.
/// For any other float, returns `false` and writes nothing.
///
/// Such a decimal is an integer below 10^15 divided by 100, so it has at most 15 digits. Two
/// different decimals of at most 15 digits never have the same nearest float. Therefore, if `value`
/// is the float nearest to such a decimal, no shorter decimal is parsed as `value`. The division of
/// the two integers, which floats represent exactly, is rounded once, so its result is the float
/// nearest to the decimal.
#[inline(always)]
pub(crate) fn put_hundredths<P: Put>(value: f64, window: &mut P) -> bool {
    const MOST: f64 = 1e13;
    /// An upper bound of the relative error of the product `value * 100`. Both `value` itself and
    /// the multiplication have a relative rounding error of at most 2^-53.
    const NEAR: f64 = 1.0 / (1_u64 << 50) as f64;
    let magnitude = value.abs();
    // Adding this constant (1.5 * 2^52) to a number and subtracting it again rounds the number to
    // an integer, because the sum has no bits for a fraction.
    const SHIFTER: f64 = 6_755_399_441_055_744.0;
    let exact = magnitude * 100.0;
    let hundredths = (exact + SHIFTER) - SHIFTER;
    // If the product is not close to an integer, the division that would verify it is skipped.
    if (exact - hundredths).abs() > exact * NEAR || magnitude >= MOST {
        return false;
    }
    if hundredths / 100.0 != magnitude {
        return false;
    }
    let hundredths = hundredths as u64;
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    window.put_short(b"-", usize::from(value.is_sign_negative()));
    put_u64(whole, window);
    let (tens, ones) = (rest / 10, rest % 10);
    let places = [b'.', b'0' + tens as u8, b'0' + ones as u8];
    window.put_short(&places, 2 + usize::from(ones != 0));
    true
}

/// Writes the shortest decimal text that is parsed as the same float of type `F`. If `value` is NaN
/// or infinite, calls `otherwise` with the name of this value instead.
#[inline]
pub(crate) fn put_float<F, P>(
    value: F,
    window: &mut P,
    otherwise: impl FnOnce(&'static str, &mut P) -> Result<(), WriteError>,
) -> Result<(), WriteError>
where
    F: zmij::Float + Copy + Into<f64>,
    P: Put,
{
    let wide: f64 = value.into();
    if !wide.is_finite() {
        return otherwise(non_finite_name(wide), window);
    }
    let is_put = match size_of::<F>() == size_of::<f64>() {
        true => convert::put_float(wide, window),
        false => convert::put_float32(wide as f32, window),
    };
    if is_put {
        return Ok(());
    }
    window.put_made(zmij::Buffer::new(), |buffer| {
        buffer.format_finite(value).as_bytes()
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use onecopy_text::ByteSink;

    use super::*;

    #[test]
    fn integers_have_all_their_digits() {
        let mut values = vec![0, 1, 9, 10, 99, 100, 9_999, 10_000, u64::MAX];
        for power in 1..20 {
            let ten = 10_u64.pow(power);
            values.extend([ten - 1, ten, ten + 1, ten / 3, ten / 7 * 5]);
        }
        values.extend((0..1_000_000).map(|i| i * 97));
        for value in values {
            let mut out = Vec::new();
            put_u64(value, &mut out.window(40).expect("memory"));
            assert_eq!(out, value.to_string().as_bytes());
            let mut out = Vec::new();
            put_u64_comma(value, &mut out.window(40).expect("memory"));
            assert_eq!(out, format!("{value},").as_bytes());
            let mut out = Vec::new();
            let negative = (value as i64).wrapping_neg();
            put_i64_comma(negative, &mut out.window(40).expect("memory"));
            assert_eq!(out, format!("{negative},").as_bytes());
            out.clear();
            put_i64(negative, &mut out.window(40).expect("memory"));
            assert_eq!(out, negative.to_string().as_bytes());
        }
    }

    /// Formats a float with the library zmij, which [`put_float`] also uses outside of its fast
    /// path.
    fn shortest(value: f64) -> String {
        zmij::Buffer::new().format(value).to_owned()
    }

    fn by_hundredths(value: f64) -> Option<String> {
        let mut out = Vec::new();
        let done = put_hundredths(value, &mut out.window(40).expect("memory"));
        done.then(|| String::from_utf8(out).expect("digits"))
    }

    #[test]
    fn a_float_of_two_places_is_put_as_by_the_library() {
        let mut n_put = 0;
        let mut state = 1_u64;
        for i in 0..2_000_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(i | 1);
            let digits = 10_u64.pow((state >> 60) as u32 + 1);
            let number = (state >> 3) % digits;
            for scale in [1.0, 10.0, 100.0, 1000.0] {
                let value = number as f64 / scale;
                let value = if state & 1 == 0 { value } else { -value };
                if let Some(text) = by_hundredths(value) {
                    assert_eq!(text, shortest(value));
                    n_put += 1;
                }
            }
            let bits = f64::from_bits(state.rotate_left(17));
            if let Some(text) = by_hundredths(bits) {
                assert_eq!(text, shortest(bits));
            }
        }
        assert!(n_put > 1_000_000, "{n_put}");
    }

    #[test]
    fn floats_at_the_border_of_two_places_are_right() {
        for value in [
            0.0,
            -0.0,
            0.01,
            0.005,
            0.1,
            0.29,
            1.005,
            99.99,
            1e12 + 0.01,
            9_999_999_999_999.99,
        ] {
            assert_eq!(
                by_hundredths(value).unwrap_or_else(|| shortest(value)),
                shortest(value)
            );
        }
        assert_eq!(by_hundredths(2.5).as_deref(), Some("2.5"));
        assert_eq!(by_hundredths(100.0).as_deref(), Some("100.0"));
        for value in [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e13,
            1e300,
            0.001,
            f64::MIN_POSITIVE,
        ] {
            assert_eq!(by_hundredths(value), None, "{value}");
        }
    }

    #[test]
    fn a_float_of_32_bit_widens_to_what_its_decimal_says() {
        for (value, wide) in [
            (0.1_f32, 0.1),
            (-0.1, -0.1),
            (1.5, 1.5),
            (16_777_216.0, 16_777_216.0),
            (123_456.79, 123_456.79),
            (1e-30, 1e-30),
            (f32::MAX, 3.402_823_5e38),
            (f32::from_bits(1), 1e-45),
            (f32::INFINITY, f64::INFINITY),
        ] {
            assert_eq!(widen(value), wide, "{value}");
        }
        assert!(widen(f32::NAN).is_nan());
        for (value, wide) in [
            (134_217_728.0, 134_217_728.0),
            (0.1, 0.1),
            (f32::MIN, f64::from(f32::MIN)),
        ] {
            assert_eq!(widen_parameter(value), wide, "{value}");
        }
        assert_eq!(widen_parameter(f32::INFINITY), f64::INFINITY);
        assert!(widen(-0.0).is_sign_negative());
    }
}
