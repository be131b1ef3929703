//! [`is_utf8`] and [`find_malformed`] validate text. [`utf8_len`] returns its length in UTF-8.

use crate::arch::dispatch::{self, find_surrogate, is_ascii, utf8_error_near, utf16_error_near};
use crate::arch::{encode, scalar};
use crate::{Malformed, Units, naive};

/// Returns `true` for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates).
///
/// Nothing is copied.
#[inline]
#[must_use]
pub fn is_utf8(bytes: &[u8]) -> bool {
    is_ascii(bytes) || dispatch::is_utf8(bytes)
}

/// Returns the first malformed sequence, if any.
///
/// Nothing is copied.
#[must_use]
pub fn find_malformed(units: Units<'_>) -> Option<Malformed> {
    match units {
        Units::Latin1(_) => None,
        Units::Utf8(u) => {
            if is_ascii(u) {
                return None;
            }
            let near = utf8_error_near(u)?;
            // All text before `near` is well-formed. The search starts at a character a few bytes
            // before `near`.
            let mut from = near.saturating_sub(4).min(u.len().saturating_sub(1));
            while from > 0 && (0x80..0xC0).contains(&u[from]) {
                from -= 1;
            }
            first_from(units, from)
        }
        Units::Utf16(u) => {
            let near = utf16_error_near(u)?;
            let mut from = near.saturating_sub(2).min(u.len().saturating_sub(1));
            // The search does not start inside a surrogate pair.
            from -= usize::from(from > 0 && (0xDC00..0xE000).contains(&u[from]));
            first_from(units, from)
        }
        Units::Ucs2(u) => first_from(units, find_surrogate(u)),
        Units::Utf32(u) => {
            let good = |c: &u32| char::from_u32(*c).is_some();
            if !scalar::scan_u32(u).1 {
                return None;
            }
            first_from(units, u.iter().take_while(|c| good(c)).count())
        }
    }
}

/// Returns the first malformed sequence from unit `from` on. A character must start at `from`.
fn first_from(units: Units<'_>, from: usize) -> Option<Malformed> {
    naive::find_malformed(units.skip(from)).map(|e| e.later_by(from))
}

/// Returns the length of the text in UTF-8.
///
/// A malformed sequence counts as U+FFFD, as [`Policy::Replace`](crate::Policy::Replace) writes it.
#[must_use]
pub fn utf8_len(units: Units<'_>) -> usize {
    let well_formed = encode::valid_utf8_len(units);
    well_formed.unwrap_or_else(|| scalar::lossy(units).map(scalar::utf8_len_of).sum())
}
