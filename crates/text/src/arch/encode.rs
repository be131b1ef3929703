//! Computes lengths in UTF-8 and UTF-16, and converts UTF-32 to bodies of JSON strings.

use std::mem::MaybeUninit;

use super::dispatch::{
    is_ascii, is_utf8, is_utf16, shape_of_utf8, utf8_len_from_latin1, utf8_len_from_ucs4,
    utf8_len_from_units, utf16_len_from_utf8,
};
use super::scalar;
use crate::{Kind, Units};

/// Returns the length of the text in UTF-8; `None` for malformed text.
#[inline]
pub(crate) fn valid_utf8_len(units: Units<'_>) -> Option<usize> {
    match units {
        Units::Latin1(u) => Some(utf8_len_from_latin1(u)),
        Units::Utf8(u) => (is_ascii(u) || is_utf8(u)).then_some(u.len()),
        Units::Utf16(u) => match utf8_len_from_units(u) {
            (n, found) if !found || is_utf16(u) => Some(n),
            _ => None,
        },
        Units::Ucs2(u) => match utf8_len_from_units(u) {
            (n, false) => Some(n),
            _ => None,
        },
        Units::Utf32(u) => utf8_len_from_ucs4(u),
    }
}

/// Returns the number of UTF-16 units of UTF-8 text; `None` for malformed text.
#[inline]
pub(crate) fn valid_utf16_len(src: &[u8]) -> Option<usize> {
    let shape = shape_of_utf8(src)?;
    Some(if shape.kind < Kind::Ucs4 {
        shape.n_chars
    } else {
        utf16_len_from_utf8(src)
    })
}

/// Writes UTF-32 text as the body of a JSON string. Returns `None` if the text is malformed. The
/// contents of `out` are then unspecified.
///
/// # Panics
/// Panics if `out` is too short, which is a bug in the caller.
pub(crate) fn utf32_to_json(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if scalar::scan_u32(src).1 {
        return None;
    }
    let dst = out.as_mut_ptr().cast::<u8>();
    let mut n = 0;
    for &c in src {
        let escape = scalar::is_escape(c).then(|| scalar::escape(c as u8));
        let len = match &escape {
            Some(escape) => escape.as_slice().len(),
            None => scalar::utf8_len_of(c),
        };
        assert!(len <= out.len() - n, "the destination is too short");
        // SAFETY: `len` bytes remain in `out`, and `escape` does not overlap them.
        unsafe {
            match &escape {
                Some(escape) => dst
                    .add(n)
                    .copy_from_nonoverlapping(escape.as_slice().as_ptr(), len),
                None => _ = scalar::write_utf8(c, dst.add(n)),
            }
        }
        n += len;
    }
    Some(n)
}

/// Returns the length of UTF-32 text as the body of a JSON string. For malformed text, the length
/// has no meaning.
pub(crate) fn json_len_from_utf32(src: &[u32]) -> usize {
    src.iter()
        .map(|&c| {
            if scalar::is_escape(c) {
                scalar::escape(c as u8).as_slice().len()
            } else {
                scalar::utf8_len_of(c)
            }
        })
        .sum()
}

/// Returns the length of UTF-32 text in UTF-8. For malformed text, the length has no meaning.
pub(crate) fn utf8_len_from_utf32(src: &[u32]) -> usize {
    utf8_len_from_ucs4(src).unwrap_or_else(|| src.iter().map(|&c| scalar::utf8_len_of(c)).sum())
}
