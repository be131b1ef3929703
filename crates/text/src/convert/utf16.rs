//! Converts text to UTF-16 and back, for ODBC.

use super::measure;
use crate::arch::measured::append_utf16;
use crate::validate::find_malformed;
use crate::{ConvertError, Policy, SinkFull, Units};

/// Appends the text as UTF-16 and returns the number of units written.
///
/// Copies: none besides the conversion, which also copies UTF-16.
///
/// # Errors
/// Returns a [`ConvertError`] if the text is malformed or memory is exhausted. `out` is then
/// unchanged.
pub fn to_utf16(
    units: Units<'_>,
    policy: Policy,
    out: &mut Vec<u16>,
) -> Result<usize, ConvertError> {
    let before = out.len();
    // Only UTF-32 can become longer: a character past U+FFFF has two units in UTF-16.
    let worst = match units {
        Units::Utf32(u) => 2 * u.len(),
        _ => units.len_units(),
    };
    out.try_reserve(worst).map_err(|_| SinkFull {
        requested_bytes: worst.saturating_mul(2),
    })?;
    if let Ok(measured) = measure(units, Policy::Strict) {
        append_utf16(&measured, out);
        return Ok(out.len() - before);
    }
    let mut rest = units;
    while let Some(found) = find_malformed(rest) {
        if policy != Policy::Replace {
            return Err(found.into());
        }
        let good = measure(rest.take(found.at_units), Policy::Strict)?;
        append_utf16(&good, out);
        out.push(0xFFFD);
        rest = rest.skip(found.at_units + found.len_units);
    }
    append_utf16(&measure(rest, Policy::Strict)?, out);
    Ok(out.len() - before)
}

/// Converts UTF-16 to a `String`, with U+FFFD for each lone surrogate. Error messages of ODBC
/// drivers may be malformed.
#[must_use]
pub fn string_from_utf16(units: &[u16]) -> String {
    let mut out = Vec::new();
    match super::to_utf8(Units::Utf16(units), Policy::Replace, &mut out) {
        Ok(_) => String::from_utf8(out).unwrap_or_default(),
        // Memory is exhausted, or the text has changed.
        Err(_) => String::new(),
    }
}
