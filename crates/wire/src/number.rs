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
