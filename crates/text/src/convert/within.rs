//! Conversions into a destination of any size. Nothing is written past its end.
//!
//! After an error, the contents of the destination are unspecified. Other threads may write to the
//! text during the conversion. The result is then a mix of old and new text, or an error.

use std::fmt;
use std::mem::MaybeUninit;

use crate::arch::{decode, dispatch, encode};
use crate::validate::find_malformed;
use crate::{Malformed, Units, naive};

/// The error of a conversion into a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithinError {
    /// The text is malformed, and there is no replacement character. This error precedes
    /// [`WithinError::TooSmall`].
    Malformed(Malformed),
    /// The result is longer than the destination.
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

/// Writes UTF-16 as UTF-8 and returns the number of bytes. Each lone surrogate becomes
/// `replacement`, or is an error for `None`.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// Returns a [`WithinError`] for malformed text without `replacement`, or if `out` is too short.
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

/// Writes UTF-8 as UTF-16 and returns the number of units. Each maximal subpart of an ill-formed
/// sequence (Unicode 16, section 3.9) becomes `replacement`, or is an error for `None`.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// Returns a [`WithinError`] for malformed text without `replacement`, or if `out` is too short.
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

/// Writes UTF-8 as Latin-1 and returns the number of bytes. A character past U+00FF is malformed.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// Returns [`WithinError::Malformed`] for the first malformed character, and
/// [`WithinError::TooSmall`] if `out` is too short.
#[inline]
pub fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, WithinError> {
    decode::utf8_to_latin1_within(src, out).ok_or_else(|| {
        find_beyond_latin1(src).map_or_else(|| too_small(src, 1, 0, out), WithinError::Malformed)
    })
}

/// Writes Latin-1 as UTF-8 and returns the number of bytes.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// Returns [`WithinError::TooSmall`] if the result does not fit into `out`.
#[inline]
pub fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, WithinError> {
    dispatch::latin1_to_utf8(src, out).ok_or(WithinError::TooSmall)
}

/// Returns the number of bytes that [`utf16_to_utf8`] writes.
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

/// Returns the number of units that [`utf8_to_utf16`] writes.
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

/// The number of valid characters after a malformed sequence before a kernel is used again.
const ONE_BY_ONE: usize = 32;

/// A conversion between two encodings, whose input may be malformed.
trait Conversion {
    type From: Copy;
    type To: Copy + Default;
    /// The largest number of output units for one input unit.
    const MOST: usize;
    fn units(src: &[Self::From]) -> Units<'_>;
    /// Converts text and returns the number of output units. Returns `None` if the text is
    /// malformed or does not fit.
    fn convert(src: &[Self::From], out: &mut [MaybeUninit<Self::To>]) -> Option<usize>;
    /// Returns the number of input units of the character `c`.
    fn len_units(c: char) -> usize;
    /// Writes a character to the start of `out`. Returns its number of units.
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

/// Converts text that is malformed or does not fit. Each malformed sequence becomes `replacement`,
/// or is an error for `None`.
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
        // Malformed sequences often follow each other. So characters are converted one by one,
        // until `ONE_BY_ONE` characters in sequence were valid.
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

/// Returns the error for well-formed text that was not converted. If the longest result fits into
/// `out`, another thread has changed the text.
fn too_small<F, T>(rest: &[F], most: usize, at_units: usize, out: &[T]) -> WithinError {
    if out.len() / most >= rest.len() {
        WithinError::Malformed(Malformed::CHANGED.later_by(at_units))
    } else {
        WithinError::TooSmall
    }
}

/// Returns the number of output units of malformed text. If `replacement` is `None`, returns the
/// first malformed sequence as an error.
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

/// Returns an error for the first character that is malformed or past U+00FF.
#[cold]
#[inline(never)]
fn find_beyond_latin1(src: &[u8]) -> Option<Malformed> {
    let from = src.iter().position(|&b| b > 0xC3).unwrap_or(src.len());
    let found = find_malformed(Units::Utf8(&src[..from]));
    // The text is divided before a byte above 0xC3, which always starts a sequence. So a character
    // that is incomplete in the first part is also malformed in the whole text.
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
