//! Booleans and numbers as they stand bare in JSON and in CSV: one form, two formats.

use onecopy_text::{ByteSink, Window};

use crate::error::{WriteError, non_finite_name};
use crate::short::Short;

/// Puts `true` or `false`.
#[inline]
pub fn put_bool<S: ByteSink>(value: bool, window: &mut Window<'_, S>) {
    if value {
        window.put_short(b"true", 4);
    } else {
        window.put_short(b"false", 5);
    }
}

/// Puts an integer with all its digits.
#[inline]
pub fn put_i64<S: ByteSink>(value: i64, window: &mut Window<'_, S>) {
    Short::of_u64(value.unsigned_abs(), value < 0).put_into(window);
}

/// Puts an unsigned integer with all its digits.
#[inline]
pub fn put_u64<S: ByteSink>(value: u64, window: &mut Window<'_, S>) {
    Short::of_u64(value, false).put_into(window);
}

/// The 64-bit float of the shortest decimal that reads back as `value`: what PostgreSQL and its drivers make of a `real`, and
/// what a reader of our JSON gets. 0.1 stays 0.1, where a plain widening would give 0.10000000149011612.
#[must_use]
pub fn widen(value: f32) -> f64 {
    let wide = f64::from(value);
    if !value.is_finite() || (wide.fract() == 0.0 && wide.abs() < 16_777_216.0) {
        return wide; // No shorter decimal than that of the integer.
    }
    let mut shortest = zmij::Buffer::new();
    let shortest = shortest.format_finite(value);
    shortest.parse().unwrap_or(wide)
}

/// Puts the shortest decimal that reads back as the same float of the same width; for NaN and the infinities what
/// `otherwise` makes of their name.
#[inline]
pub(crate) fn put_float<F, S>(
    value: F,
    window: &mut Window<'_, S>,
    otherwise: impl FnOnce(&'static str, &mut Window<'_, S>) -> Result<(), WriteError>,
) -> Result<(), WriteError>
where
    F: zmij::Float + Copy + Into<f64>,
    S: ByteSink,
{
    let wide: f64 = value.into();
    if !wide.is_finite() {
        return otherwise(non_finite_name(wide), window);
    }
    window.put(zmij::Buffer::new().format_finite(value).as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::widen;

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
        assert!(widen(-0.0).is_sign_negative());
    }
}
