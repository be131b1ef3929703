//! Conversions into a destination of any size that the caller provides. Nothing is written past the
//! end of the destination. Well-formed text that fits is converted in one pass.
//!
//! If a conversion fails, the contents of the destination are unspecified. Other threads may write
//! to the text during the conversion. The result is then a mix of the text's contents at different
//! times, or an error.

use std::fmt;
use std::mem::MaybeUninit;

use crate::arch::{decode, dispatch, encode};
use crate::validate::find_malformed;
use crate::{Malformed, Units, naive};

/// The reason why a conversion into a destination failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithinError {
    /// The text is malformed, and the caller gave no replacement character. A text that is
    /// malformed and also too long is reported as malformed.
    Malformed(Malformed),
    /// The converted text is longer than the destination.
    TooSmall,
}

impl fmt::Display for WithinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WithinError::Malformed(e) => e.fmt(f),
            WithinError::TooSmall => f.write_str("the destination is too small for the text"),
        }
    }
}

impl std::error::Error for WithinError {}

impl From<Malformed> for WithinError {
    fn from(e: Malformed) -> Self {
        WithinError::Malformed(e)
    }
}

/// Writes UTF-16 as UTF-8 and returns the number of bytes written. Each lone surrogate becomes
/// `replacement`. If `replacement` is `None`, a lone surrogate is an error.
///
/// Copies: none besides the conversion itself.
///
/// # Errors
/// Returns a [`WithinError`] if the text is malformed and `replacement` is `None`, or if the result
/// does not fit into `out`.
#[inline]
pub fn utf16_to_utf8(
    src: &[u16],
    replacement: Option<char>,
    out: &mut [MaybeUninit<u8>],
) -> Result<usize, WithinError> {
    match dispatch::utf16_to_utf8(src, out) {
        Some(n) => Ok(n),
        None => slowly::<Utf16ToUtf8>(src, replacement, out),
    }
}

/// Writes UTF-8 as UTF-16 and returns the number of units written. Each maximal subpart of an
/// ill-formed sequence (Unicode 16, section 3.9) becomes `replacement`. If `replacement` is `None`,
/// malformed text is an error.
///
/// Copies: none besides the conversion itself.
///
/// # Errors
/// Returns a [`WithinError`] if the text is malformed and `replacement` is `None`, or if the result
/// does not fit into `out`.
#[inline]
pub fn utf8_to_utf16(
    src: &[u8],
    replacement: Option<char>,
    out: &mut [MaybeUninit<u16>],
) -> Result<usize, WithinError> {
    match decode::utf8_to_utf16_within(src, out) {
        Some(n) => Ok(n),
        None => slowly::<Utf8ToUtf16>(src, replacement, out),
    }
}

/// Writes UTF-8 as Latin-1 and returns the number of bytes written. A character past U+00FF counts
/// as malformed.
///
/// Copies: none besides the conversion itself.
///
/// # Errors
/// Returns [`WithinError::Malformed`] with the position of the first character that is malformed or
/// past U+00FF, or [`WithinError::TooSmall`] if the result does not fit into `out`.
#[inline]
pub fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, WithinError> {
    decode::utf8_to_latin1_within(src, out).ok_or_else(|| {
        find_beyond_latin1(src).map_or_else(|| too_small(src, 1, 0, out), WithinError::Malformed)
    })
}

/// Writes Latin-1 as UTF-8 and returns the number of bytes written.
///
/// Copies: none besides the conversion itself.
///
/// # Errors
/// Returns [`WithinError::TooSmall`] if the result does not fit into `out`.
#[inline]
pub fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, WithinError> {
    dispatch::latin1_to_utf8(src, out).ok_or(WithinError::TooSmall)
}

/// Returns the number of bytes that [`utf16_to_utf8`] writes for this text and replacement.
///
/// # Errors
/// Returns [`Malformed`] for malformed text if `replacement` is `None`.
#[inline]
pub fn utf8_len_from_utf16(src: &[u16], replacement: Option<char>) -> Result<usize, Malformed> {
    match encode::valid_utf8_len(Units::Utf16(src)) {
        Some(n) => Ok(n),
        None => len_slowly(Units::Utf16(src), replacement, char::len_utf8),
    }
}

/// Returns the number of units that [`utf8_to_utf16`] writes for this text and replacement.
///
/// # Errors
/// Returns [`Malformed`] for malformed text if `replacement` is `None`.
#[inline]
pub fn utf16_len_from_utf8(src: &[u8], replacement: Option<char>) -> Result<usize, Malformed> {
    match encode::valid_utf16_len(src) {
        Some(n) => Ok(n),
        None => len_slowly(Units::Utf8(src), replacement, char::len_utf16),
    }
}

/// Returns the number of bytes before the first non-ASCII byte.
#[inline]
#[must_use]
pub fn ascii_prefix(src: &[u8]) -> usize {
    dispatch::find_high(src)
}

/// The number of well-formed characters that are converted one by one after a malformed sequence,
/// before a kernel converts the following text.
const ONE_BY_ONE: usize = 32;

/// A conversion between two encodings, whose input may be malformed.
trait Conversion {
    type From: Copy;
    type To: Copy + Default;
    /// The largest number of output units that one input unit can yield.
    const MOST: usize;
    fn units(src: &[Self::From]) -> Units<'_>;
    /// Converts text and returns the number of output units written. Returns `None` if the text is
    /// malformed or the destination is too short.
    fn convert(src: &[Self::From], out: &mut [MaybeUninit<Self::To>]) -> Option<usize>;
    /// Returns the number of input units that encode the character `c`.
    fn len_units(c: char) -> usize;
    /// Writes a character in the output encoding to the start of `out`, and returns its number of
    /// units.
    fn encode(c: char, out: &mut [Self::To; 4]) -> usize;
}

struct Utf16ToUtf8;

impl Conversion for Utf16ToUtf8 {
    type From = u16;
    type To = u8;
    const MOST: usize = 3;
    fn units(src: &[u16]) -> Units<'_> {
        Units::Utf16(src)
    }
    fn convert(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
        dispatch::utf16_to_utf8(src, out)
    }
    fn len_units(c: char) -> usize {
        c.len_utf16()
    }
    fn encode(c: char, out: &mut [u8; 4]) -> usize {
        c.encode_utf8(out).len()
    }
}

struct Utf8ToUtf16;

impl Conversion for Utf8ToUtf16 {
    type From = u8;
    type To = u16;
    const MOST: usize = 1;
    fn units(src: &[u8]) -> Units<'_> {
        Units::Utf8(src)
    }
    fn convert(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
        decode::utf8_to_utf16_within(src, out)
    }
    fn len_units(c: char) -> usize {
        c.len_utf8()
    }
    fn encode(c: char, out: &mut [u16; 4]) -> usize {
        c.encode_utf16(out).len()
    }
}

/// Converts text that the kernels did not convert, because it is malformed or longer than the
/// destination. Each malformed sequence becomes `replacement`. If `replacement` is `None`,
/// malformed text is an error.
#[cold]
#[inline(never)]
fn slowly<C: Conversion>(
    src: &[C::From],
    replacement: Option<char>,
    out: &mut [MaybeUninit<C::To>],
) -> Result<usize, WithinError> {
    let (mut rest, mut n) = (src, 0);
    while let Some(found) = find_malformed(C::units(rest)) {
        let Some(replacement) = replacement else {
            return Err(found.into());
        };
        let (good, other) = rest.split_at(found.at_units);
        n += C::convert(good, &mut out[n..]).ok_or(WithinError::TooSmall)?;
        // Malformed sequences often follow each other. After a malformed sequence, characters are
        // therefore converted one by one, until `ONE_BY_ONE` successive characters were
        // well-formed.
        let (mut used, mut since) = (0, 0);
        for item in naive::code_points(C::units(other)) {
            let (c, from_units) = match item {
                Ok(c) => {
                    let c = char::from_u32(c).expect("the naive decoder gives scalar values");
                    since += 1;
                    (c, C::len_units(c))
                }
                Err(e) => {
                    since = 0;
                    (replacement, e.len_units)
                }
            };
            let mut units = [C::To::default(); 4];
            let n_units = C::encode(c, &mut units);
            for &unit in &units[..n_units] {
                out.get_mut(n).ok_or(WithinError::TooSmall)?.write(unit);
                n += 1;
            }
            used += from_units;
            if since == ONE_BY_ONE {
                break;
            }
        }
        rest = &other[used..];
    }
    let at_units = src.len() - rest.len();
    match C::convert(rest, &mut out[n..]) {
        Some(last) => Ok(n + last),
        None => Err(too_small(rest, C::MOST, at_units, &out[n..])),
    }
}

/// Returns the error for well-formed text that was not converted. If the longest possible result
/// would fit into `out`, another thread has changed the text; otherwise the destination is too
/// small.
fn too_small<F, T>(rest: &[F], most: usize, at_units: usize, out: &[T]) -> WithinError {
    if out.len() / most >= rest.len() {
        WithinError::Malformed(Malformed::CHANGED.later_by(at_units))
    } else {
        WithinError::TooSmall
    }
}

/// Returns the number of output units for malformed text in which each malformed sequence becomes
/// `replacement`. If `replacement` is `None`, returns the first malformed sequence as an error.
#[cold]
#[inline(never)]
fn len_slowly(
    units: Units<'_>,
    replacement: Option<char>,
    len_of: impl Fn(char) -> usize,
) -> Result<usize, Malformed> {
    let mut n = 0;
    for item in naive::code_points(units) {
        n += match (item, replacement) {
            (Ok(c), _) => len_of(char::from_u32(c).expect("the naive decoder gives scalar values")),
            (Err(_), Some(c)) => len_of(c),
            (Err(e), None) => return Err(e),
        };
    }
    Ok(n)
}

/// Returns an error for the first character that is malformed or past U+00FF; `None` if there is
/// none.
#[cold]
#[inline(never)]
fn find_beyond_latin1(src: &[u8]) -> Option<Malformed> {
    let from = src.iter().position(|&b| b > 0xC3).unwrap_or(src.len());
    let found = find_malformed(Units::Utf8(&src[..from]));
    // The text is divided before a byte above 0xC3, which is not a continuation byte. So a
    // character that is incomplete at the end of the first part is also malformed in the whole
    // text.
    found.or_else(|| {
        let (n_units, rest) = (from, Units::Utf8(src.get(from..)?));
        let first = naive::code_points(rest).next()?;
        Some(match first {
            Ok(c) => Malformed {
                kind: crate::MalformedKind::OutOfRange,
                at_units: n_units,
                len_units: char::from_u32(c).map_or(1, char::len_utf8),
            },
            Err(e) => e.later_by(n_units),
        })
    })
}
