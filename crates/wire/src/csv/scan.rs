//! Whether a text needs quotes, seen in its own units before anything is written.
//!
//! All that asks for quotes is ASCII, so a unit is what it seems in each encoding: no unit of a surrogate pair and no
//! byte of a UTF-8 sequence is below U+0080. Looking first costs a pass over units in the first-level cache; looking
//! at the UTF-8 after it was written would cost a move of all of it where an opening quote is missing.

use onecopy_text::Units;

/// Units looked at before a decision: a vector of bytes on every machine we build for.
const STEP: usize = 16;

/// Whether the text can stand without quotes: it is not empty, holds no delimiter, quote, CR or LF, and neither begins
/// nor ends with a space or tab.
#[inline]
#[must_use]
pub fn is_bare(units: Units<'_>, delimiter: u8) -> bool {
    match units {
        Units::Latin1(u) | Units::Utf8(u) => is_bare_in(u, delimiter),
        Units::Utf16(u) | Units::Ucs2(u) => is_bare_in(u, u16::from(delimiter)),
        Units::Utf32(u) => is_bare_in(u, u32::from(delimiter)),
    }
}

#[inline]
fn is_bare_in<T: Copy + PartialEq + From<u8>>(u: &[T], delimiter: T) -> bool {
    let (Some(first), Some(last)) = (u.first(), u.last()) else {
        return false;
    };
    let blank = |c: &T| *c == T::from(b' ') || *c == T::from(b'\t');
    if blank(first) || blank(last) {
        return false;
    }
    let special = |c: T| {
        (c == delimiter) | (c == T::from(b'"')) | (c == T::from(b'\r')) | (c == T::from(b'\n'))
    };
    // `|` rather than `any`: without an exit in it the loop over a step becomes vector code.
    let step_is_special =
        |step: &[T; STEP]| step.iter().fold(false, |found, c| found | special(*c));
    let Some(last_step) = u.last_chunk::<STEP>() else {
        return !u.iter().fold(false, |found, c| found | special(*c));
    };
    let mut rest = u;
    while let Some((step, behind)) = rest.split_first_chunk::<STEP>() {
        if step_is_special(step) {
            return false;
        }
        rest = behind;
    }
    // The last step overlaps the one before it: a second look is cheaper than a loop over what is left.
    !step_is_special(last_step)
}

/// Splits behind the first `"`; `None` where there is none.
#[inline]
#[must_use]
pub fn split_after_quote(units: Units<'_>) -> Option<(Units<'_>, Units<'_>)> {
    Some(match units {
        Units::Latin1(u) => {
            let (a, b) = split_in(u)?;
            (Units::Latin1(a), Units::Latin1(b))
        }
        Units::Utf8(u) => {
            let (a, b) = split_in(u)?;
            (Units::Utf8(a), Units::Utf8(b))
        }
        Units::Utf16(u) => {
            let (a, b) = split_in(u)?;
            (Units::Utf16(a), Units::Utf16(b))
        }
        Units::Ucs2(u) => {
            let (a, b) = split_in(u)?;
            (Units::Ucs2(a), Units::Ucs2(b))
        }
        Units::Utf32(u) => {
            let (a, b) = split_in(u)?;
            (Units::Utf32(a), Units::Utf32(b))
        }
    })
}

#[inline]
fn split_in<T: Copy + PartialEq + From<u8>>(u: &[T]) -> Option<(&[T], &[T])> {
    let quote = T::from(b'"');
    let mut at = 0;
    for step in u.chunks(STEP) {
        if step.iter().fold(false, |found, c| found | (*c == quote)) {
            let inside = step.iter().position(|c| *c == quote)?;
            return Some(u.split_at(at + inside + 1));
        }
        at += step.len();
    }
    None
}
