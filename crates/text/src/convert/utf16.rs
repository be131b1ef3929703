//! Text to UTF-16, for wide parameters and statements, and back for a driver's messages.

use super::measure;
use crate::arch::measured::append_utf16;
use crate::validate::find_malformed;
use crate::{ConvertError, Policy, SinkFull, Units};

/// Appends the text as UTF-16 and returns the units written.
///
/// Copies: none besides the conversion (for UTF-16 input one validated copy).
///
/// # Errors
/// [`ConvertError`]; `out` is then as it was.
pub fn to_utf16(
    units: Units<'_>,
    policy: Policy,
    out: &mut Vec<u16>,
) -> Result<usize, ConvertError> {
    let before = out.len();
    // No text has more units in UTF-16 than in the form it comes in, but for UTF-32 with its pairs.
    let worst = match units {
        Units::Utf32(u) => 2 * u.len(),
        _ => units.len_units(),
    };
    out.try_reserve(worst).map_err(|_| SinkFull {
        asked_bytes: worst.saturating_mul(2),
    })?;
    if let Ok(measured) = measure(units, Policy::Strict) {
        append_utf16(&measured, out);
        return Ok(out.len() - before);
    }
    let mut rest = units;
    while let Some(found) = find_malformed(rest) {
        if policy == Policy::Strict {
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

/// UTF-16 as a `String`, with U+FFFD for each lone surrogate: for messages, where an error about the text of an error
/// helps nobody.
#[must_use]
pub fn string_from_utf16(units: &[u16]) -> String {
    let mut out = Vec::new();
    match super::to_utf8(Units::Utf16(units), Policy::Replace, &mut out) {
        Ok(_) => String::from_utf8(out).unwrap_or_default(),
        // Without memory, or the text changed meanwhile.
        Err(_) => String::new(),
    }
}
