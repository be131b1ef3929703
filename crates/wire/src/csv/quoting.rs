//! [`is_bare`] determines whether a text can be written without quotes. It examines the units of
//! the text in their original encoding, before the text is written.
//!
//! Every character that requires quotes is ASCII. In any encoding, no unit of a surrogate pair and
//! no byte of a multi-byte UTF-8 sequence is below 0x80. Therefore each unit can be examined
//! separately. The scan costs one pass over units that are in the L1 cache. If the text were
//! scanned after it was written, the written text would have to be moved to insert an opening
//! quote.

use onecopy_text::Units;

/// The number of code units that are examined together, without a branch. This number of one-byte
/// units fills a 128-bit vector, which every supported CPU has.
const STEP: usize = 16;

/// Returns `true` if the text needs no quotes: it is not empty, contains no delimiter, quote, CR or
/// LF, and neither begins nor ends with a space or tab.
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
    // `|` is used instead of `any`, because the compiler vectorizes only a loop without an early
    // exit.
    let step_is_special =
        |step: &[T; STEP]| step.iter().fold(false, |found, c| found | special(*c));
    let Some(last_step) = u.last_chunk::<STEP>() else {
        return !u.iter().fold(false, |found, c| found | special(*c));
    };
    let mut rest = u;
    while let Some((step, after)) = rest.split_first_chunk::<STEP>() {
        if step_is_special(step) {
            return false;
        }
        rest = after;
    }
    // The last group of [`STEP`] units may overlap the group before it. Examining some units twice
    // is cheaper than a loop over the remaining units.
    !step_is_special(last_step)
}

/// Splits the text after its first `"` and returns both parts. Returns `None` if the text contains
/// no `"`.
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

/// Splits units after their first `"`, as [`split_after_quote`] does.
#[inline]
pub(super) fn split_in<T: Copy + PartialEq + From<u8>>(u: &[T]) -> Option<(&[T], &[T])> {
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
