//! The reference implementations, which convert one code point at a time. The fast implementations
//! are tested against them.

use crate::{Kind, Malformed, MalformedKind, Policy, Shape, Units};

/// U+FFFD, the replacement character for malformed sequences.
pub const REPLACEMENT: u32 = 0xFFFD;

/// Returns the code points of `units`, with an error for each malformed sequence.
pub fn code_points(units: Units<'_>) -> impl Iterator<Item = Result<u32, Malformed>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= units.len_units() {
            return None;
        }
        let start = at;
        let (item, used) = match units {
            Units::Latin1(u) => (Ok(u32::from(u[at])), 1),
            Units::Utf8(u) => utf8_at(&u[at..]),
            Units::Utf16(u) => utf16_at(&u[at..]),
            Units::Ucs2(u) => (scalar(u32::from(u[at])), 1),
            Units::Utf32(u) => (scalar(u[at]), 1),
        };
        at += used;
        Some(item.map_err(|kind| Malformed {
            kind,
            at_units: start,
            len_units: used,
        }))
    })
}

fn scalar(c: u32) -> Result<u32, MalformedKind> {
    match c {
        0xD800..=0xDFFF => Err(MalformedKind::LoneSurrogate),
        0x11_0000.. => Err(MalformedKind::OutOfRange),
        _ => Ok(c),
    }
}

// Each unit is read only once, because another thread may change it.

fn utf16_at(u: &[u16]) -> (Result<u32, MalformedKind>, usize) {
    match (u[0], u.get(1).copied()) {
        (high @ 0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => (
            Ok(0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00)),
            2,
        ),
        (0xD800..=0xDBFF, None) => (Err(MalformedKind::UnexpectedEnd), 1),
        (0xD800..=0xDFFF, _) => (Err(MalformedKind::LoneSurrogate), 1),
        (c, _) => (Ok(u32::from(c)), 1),
    }
}

/// Decodes the first character of `u` (Unicode 16, table 3-7). Returns the character or the error,
/// and its length in bytes.
fn utf8_at(u: &[u8]) -> (Result<u32, MalformedKind>, usize) {
    let lead = u[0];
    let (n, low, high) = match lead {
        c @ 0..0x80 => return (Ok(u32::from(c)), 1),
        0xC2..=0xDF => (2, 0x80, 0xBF),
        0xE0 => (3, 0xA0, 0xBF),
        0xE1..=0xEC | 0xEE..=0xEF => (3, 0x80, 0xBF),
        0xED => (3, 0x80, 0x9F),
        0xF0 => (4, 0x90, 0xBF),
        0xF1..=0xF3 => (4, 0x80, 0xBF),
        0xF4 => (4, 0x80, 0x8F),
        _ => return (Err(MalformedKind::InvalidStartByte), 1),
    };
    let mut c = u32::from(lead) & (0x7F >> n);
    for i in 1..n {
        let range = if i == 1 { low..=high } else { 0x80..=0xBF };
        match u.get(i).copied() {
            None => return (Err(MalformedKind::UnexpectedEnd), i),
            Some(b) if !range.contains(&b) => return (Err(MalformedKind::InvalidContinuation), i),
            Some(b) => c = c << 6 | u32::from(b & 0x3F),
        }
    }
    (Ok(c), n)
}

/// Returns the first malformed sequence, if any.
#[must_use]
pub fn find_malformed(units: Units<'_>) -> Option<Malformed> {
    code_points(units).find_map(Result::err)
}

/// Returns the code points of the text. `policy` handles malformed sequences.
///
/// # Errors
/// Returns the first [`Malformed`] sequence under [`Policy::Strict`].
pub fn decode(units: Units<'_>, policy: Policy) -> Result<Vec<u32>, Malformed> {
    code_points(units)
        .map(|item| match (item, policy) {
            (Err(_), Policy::Replace) => Ok(REPLACEMENT),
            (item, _) => item,
        })
        .collect()
}

/// Returns the kind and length of the narrowest `str` for the text.
///
/// # Errors
/// Returns the errors of [`decode`].
pub fn shape(units: Units<'_>, policy: Policy) -> Result<Shape, Malformed> {
    let code_points = decode(units, policy)?;
    let kind = Kind::of(code_points.iter().copied().max().unwrap_or(0));
    Ok(Shape {
        kind,
        n_chars: code_points.len(),
    })
}

/// Returns the text in UTF-8. `policy` handles malformed sequences.
///
/// # Errors
/// Returns the errors of [`decode`].
pub fn to_utf8(units: Units<'_>, policy: Policy) -> Result<Vec<u8>, Malformed> {
    let mut out = String::new();
    out.extend(
        decode(units, policy)?
            .into_iter()
            .map(|c| char::from_u32(c).expect("decode gives scalar values only")),
    );
    Ok(out.into_bytes())
}

/// Returns the text in UTF-16. `policy` handles malformed sequences.
///
/// # Errors
/// Returns the errors of [`decode`].
pub fn to_utf16(units: Units<'_>, policy: Policy) -> Result<Vec<u16>, Malformed> {
    let mut out = Vec::new();
    for c in decode(units, policy)? {
        let c = char::from_u32(c).expect("decode gives scalar values only");
        out.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    Ok(out)
}

/// Returns the text as the body of a JSON string, without quotes (RFC 8259, section 7). `"`, `\`
/// and control characters are escaped with a letter (`\n`), or with `\u` and four digits.
///
/// # Errors
/// Returns the errors of [`decode`].
pub fn to_json_body(units: Units<'_>, policy: Policy) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::new();
    for c in decode(units, policy)? {
        match c {
            0x22 => out.extend(b"\\\""),
            0x5C => out.extend(b"\\\\"),
            0x08 => out.extend(b"\\b"),
            0x0C => out.extend(b"\\f"),
            0x0A => out.extend(b"\\n"),
            0x0D => out.extend(b"\\r"),
            0x09 => out.extend(b"\\t"),
            0..0x20 => out.extend(format!("\\u{c:04x}").into_bytes()),
            _ => {
                let c = char::from_u32(c).expect("decode gives scalar values only");
                out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    Ok(out)
}
