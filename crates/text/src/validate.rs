//! Whether text is well-formed, where it is not, and how long it is in UTF-8.

use crate::arch::{self, encode, scalar, validity};
use crate::{Malformed, Units, naive};

/// Whether the bytes are well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates).
///
/// Copies: none.
#[inline]
#[must_use]
pub fn is_utf8(bytes: &[u8]) -> bool {
    arch::is_ascii(bytes) || validity::is_utf8(bytes)
}

/// The first malformed sequence, or `None` where the text is well-formed.
///
/// Copies: none.
#[must_use]
pub fn find_malformed(units: Units<'_>) -> Option<Malformed> {
    match units {
        Units::Latin1(_) => None,
        Units::Utf8(u) => {
            if arch::is_ascii(u) {
                return None;
            }
            let near = validity::utf8_error_near(u)?;
            // All before is well-formed: go back to a byte that starts a character, and look closely from there.
            let mut from = near.saturating_sub(4).min(u.len());
            while from > 0 && (0x80..0xC0).contains(&u[from]) {
                from -= 1;
            }
            first_from(units, from)
        }
        Units::Utf16(u) => {
            let near = validity::utf16_error_near(u)?;
            let mut from = near.saturating_sub(2).min(u.len());
            // Not between the halves of a pair.
            from -= usize::from(from > 0 && (0xDC00..0xE000).contains(&u[from]));
            first_from(units, from)
        }
        Units::Ucs2(u) => first_from(units, arch::find_surrogate(u)),
        Units::Utf32(u) => {
            let good = |c: &u32| char::from_u32(*c).is_some();
            if !scalar::scan_u32(u).1 {
                return None;
            }
            first_from(units, u.iter().take_while(|c| good(c)).count())
        }
    }
}

/// The first malformed sequence, looked for one code point at a time from a place where a character starts.
fn first_from(units: Units<'_>, from: usize) -> Option<Malformed> {
    naive::find_malformed(units.skip(from)).map(|e| e.later_by(from))
}

/// Bytes of the text as UTF-8.
///
/// For malformed text: with U+FFFD for each malformed sequence, as [`Policy::Replace`](crate::Policy::Replace) writes it.
#[must_use]
pub fn utf8_len(units: Units<'_>) -> usize {
    let well_formed = encode::valid_utf8_len(units);
    well_formed.unwrap_or_else(|| scalar::lossy(units).map(scalar::utf8_len_of).sum())
}
