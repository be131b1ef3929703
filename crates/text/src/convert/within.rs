//! Text into a destination of the caller, of any size: nothing is written past it, and one pass is
//! enough where the text is well-formed and fits.
//!
//! Where a conversion stops, the contents of the destination are unspecified. Others may write to
//! the text meanwhile: the result is then a mix of what was there at different times, or an error.

use std::fmt;
use std::mem::MaybeUninit;

use crate::arch::{self, decode, encode};
use crate::validate::find_malformed;
use crate::{Malformed, Units, naive};

/// Why a conversion into a place stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithinError {
    /// The text is malformed, and no character was given to stand in; told before [`WithinError::NoRoom`].
    Malformed(Malformed),
    /// The text needs more room than there is.
    NoRoom,
}

impl fmt::Display for WithinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WithinError::Malformed(e) => e.fmt(f),
            WithinError::NoRoom => f.write_str("no room for the text"),
        }
    }
}

impl std::error::Error for WithinError {}

impl From<Malformed> for WithinError {
    fn from(e: Malformed) -> Self {
        WithinError::Malformed(e)
    }
}

/// Writes UTF-16 as UTF-8 and returns the bytes written; `replacement` stands in for each lone surrogate, `None` makes it an error.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`WithinError`].
#[inline]
pub fn utf16_to_utf8(
    src: &[u16],
    replacement: Option<char>,
    out: &mut [MaybeUninit<u8>],
) -> Result<usize, WithinError> {
    match encode::utf16_to_utf8_within(src, out) {
        Some(n) => Ok(n),
        None => slowly::<Utf16ToUtf8>(src, replacement, out),
    }
}

/// Writes UTF-8 as UTF-16 and returns the units written; `replacement` stands in for each maximal subpart of an ill-formed sequence
/// (Unicode 16, section 3.9), `None` makes it an error.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`WithinError`].
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

/// Writes UTF-8 as Latin-1 and returns the bytes written. A character past U+00FF counts as malformed.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`WithinError`]; its position is that of the first character which is malformed or past U+00FF.
#[inline]
pub fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, WithinError> {
    decode::utf8_to_latin1_within(src, out).ok_or_else(|| {
        find_beyond_latin1(src).map_or_else(|| no_room(src, 1, 0, out), WithinError::Malformed)
    })
}

/// Writes Latin-1 as UTF-8 and returns the bytes written.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`WithinError::NoRoom`].
#[inline]
pub fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, WithinError> {
    encode::latin1_to_utf8_within(src, out).ok_or(WithinError::NoRoom)
}

/// Bytes that [`utf16_to_utf8`] writes.
///
/// # Errors
/// [`Malformed`] where there is no replacement.
#[inline]
pub fn utf8_len_from_utf16(src: &[u16], replacement: Option<char>) -> Result<usize, Malformed> {
    match encode::valid_utf8_len(Units::Utf16(src)) {
        Some(n) => Ok(n),
        None => len_slowly(Units::Utf16(src), replacement, char::len_utf8),
    }
}

/// Units that [`utf8_to_utf16`] writes.
///
/// # Errors
/// [`Malformed`] where there is no replacement.
#[inline]
pub fn utf16_len_from_utf8(src: &[u8], replacement: Option<char>) -> Result<usize, Malformed> {
    match decode::valid_utf16_len(src) {
        Some(n) => Ok(n),
        None => len_slowly(Units::Utf8(src), replacement, char::len_utf16),
    }
}

/// Bytes before the first that is not ASCII.
#[inline]
#[must_use]
pub fn ascii_prefix(src: &[u8]) -> usize {
    arch::find_high(src)
}

/// So many good characters behind a malformed part the kernels are asked again.
const ONE_BY_ONE: usize = 32;

/// A conversion whose text may be malformed.
trait Conversion {
    type From: Copy;
    type To: Copy + Default;
    /// Units that one of the text gives at most.
    const MOST: usize;
    fn units(src: &[Self::From]) -> Units<'_>;
    /// `None` where the text is malformed or the place too short.
    fn convert(src: &[Self::From], out: &mut [MaybeUninit<Self::To>]) -> Option<usize>;
    /// Units of a character in the text.
    fn len_units(c: char) -> usize;
    /// Puts a character at the start, and says how many units it has.
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
        encode::utf16_to_utf8_within(src, out)
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

/// Converts text that is malformed or does not fit.
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
        n += C::convert(good, &mut out[n..]).ok_or(WithinError::NoRoom)?;
        // What is malformed seldom stands alone: one by one, until there was none for a while.
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
                out.get_mut(n).ok_or(WithinError::NoRoom)?.write(unit);
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
        None => Err(no_room(rest, C::MOST, at_units, &out[n..])),
    }
}

/// Why text in which nothing malformed was found was not converted: it does not fit, or if it must
/// fit, it has changed.
fn no_room<F, T>(rest: &[F], most: usize, at_units: usize, out: &[T]) -> WithinError {
    if out.len() / most >= rest.len() {
        WithinError::Malformed(Malformed::CHANGED.later_by(at_units))
    } else {
        WithinError::NoRoom
    }
}

/// The length of malformed text with its replacements.
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

/// The first character that is malformed or past U+00FF.
#[cold]
#[inline(never)]
fn find_beyond_latin1(src: &[u8]) -> Option<Malformed> {
    let from = src.iter().position(|&b| b > 0xC3).unwrap_or(src.len());
    let found = find_malformed(Units::Utf8(&src[..from]));
    // Cut off before a byte that continues nothing in Latin-1: what is wrong before it is wrong with it.
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
