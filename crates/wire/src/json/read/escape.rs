//! [`Escaped`]: the contents of a JSON string with escapes. They can be unescaped as a whole or in
//! parts.
//!
//! The functions that unescape have a [`Policy`] parameter, which determines the treatment of lone
//! surrogates. A lone surrogate can be an escape, or a character of a Python `str`.
//! [`Policy::Replace`] replaces it with U+FFFD. [`Policy::SurrogatePass`] accepts it; the result is
//! then valid as a `str`, but not as UTF-8. Under any other policy, a lone surrogate is an error.

use onecopy_text::convert::Kernels;
use onecopy_text::{Policy, Units};

use super::error::Reason;
use super::events::Rejection;

/// The contents of a JSON string (the code units between its quotes) that has escapes. Neither the
/// escapes nor the characters were validated.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a> {
    body: Units<'a>,
    n_plain: usize,
}

/// The result of unescaping a part of a string's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unescaped {
    /// The number of units (bytes of UTF-8) of the string's contents that were read.
    pub n_read: usize,
    /// The number of bytes of the result, which were written to the output buffer.
    pub n_written: usize,
    /// `true` if the output contains a lone surrogate, so that it is not valid UTF-8.
    pub has_surrogate: bool,
}

/// A part of a string with escapes: unescaped text, or the character of one escape.
#[derive(Clone, Copy, Debug)]
pub enum EscapedPart<'a> {
    /// A part of the string that contains no escapes, and the position of this part in the string's
    /// contents, in code units. The part was not validated.
    Run(Units<'a>, usize),
    /// The code point that an escape represents.
    Char(u32),
}

/// The smallest size in bytes of an output buffer that [`Escaped::unescape`] accepts.
pub const LEAST_PART_BYTES: usize = 64;

impl<'a> Escaped<'a> {
    pub(super) fn new(body: Units<'a>, n_plain: usize) -> Escaped<'a> {
        Escaped { body, n_plain }
    }

    /// Creates an `Escaped` from text that contains no escapes. The caller can then use one
    /// iterator for text with and without escapes.
    #[must_use]
    pub fn of(text: Units<'a>) -> Escaped<'a> {
        Escaped::new(text, text.len_units())
    }

    /// Returns the contents of the string, which are the units between its quotes.
    #[must_use]
    pub fn body(&self) -> Units<'a> {
        self.body
    }

    /// Returns the number of code units before the first escape in the string.
    #[must_use]
    pub fn n_plain(&self) -> usize {
        self.n_plain
    }

    /// Replaces the escapes in the contents from byte `from` on, and writes as much of the result
    /// to `out` as fits. The contents must be UTF-8, which this function does not validate. The
    /// result is never longer than the contents. If the contents are well-formed, a result that did
    /// not fit completely ends at a character boundary.
    ///
    /// The text is copied once, in the pass that replaces the escapes.
    ///
    /// # Errors
    /// Returns the [`Rejection`] of an invalid escape, with its position in the contents.
    ///
    /// # Panics
    /// Panics if the contents are not UTF-8. Also panics if `out` is shorter than the remaining
    /// contents and shorter than [`LEAST_PART_BYTES`].
    #[inline(always)]
    pub fn unescape<K: Kernels>(
        &self,
        kernels: K,
        from: usize,
        surrogates: Policy,
        out: &mut [u8],
    ) -> Result<Unescaped, Rejection> {
        let Units::Utf8(body) = self.body else {
            panic!("the body is in another form");
        };
        let mut end = body.len();
        if end - from > out.len() {
            assert!(out.len() >= LEAST_PART_BYTES, "too little space for a part");
            end = from + out.len();
            // The end is moved back to a byte at which a character starts.
            let continues = |at: usize| body[at] & 0xC0 == 0x80;
            end -= (0..3).take_while(|&n| continues(end - n)).count();
        }
        let mut part = Unescaped {
            n_read: 0,
            n_written: 0,
            has_surrogate: false,
        };
        while from + part.n_read < end {
            let rest = &body[from + part.n_read..end];
            let piece = kernels.unescape_u8(rest, &mut out[part.n_written..]);
            part.n_read += piece.n_read;
            part.n_written += piece.n_written;
            let at = from + part.n_read;
            // The next escape is a `\u` escape, is cut off by the end of this part, or is invalid.
            if at == end || (at + 1 == end && end < body.len() && body[at + 1] != b'u') {
                break;
            }
            if !hex_escapes(body, from, surrogates, out, &mut part)? {
                break;
            }
        }
        Ok(part)
    }

    /// Returns an iterator over the parts of the string. A part is either a piece of text without
    /// escapes, or the character that one escape represents.
    pub fn pieces<K: Kernels + 'a>(
        &self,
        kernels: K,
        surrogates: Policy,
    ) -> impl Iterator<Item = Result<EscapedPart<'a>, Rejection>> + 'a {
        let body = self.body;
        let mut chars = Chars {
            body,
            at: 0,
            surrogates,
        };
        std::iter::from_fn(move || {
            let at = chars.at;
            if at >= body.len_units() {
                return None;
            }
            let n = match body.skip(at) {
                Units::Latin1(rest) | Units::Utf8(rest) => kernels.plain_u8(rest).len(),
                Units::Ucs2(rest) | Units::Utf16(rest) => kernels.plain_u16(rest).0,
                Units::Utf32(rest) => kernels.plain_u32(rest).0,
            };
            if n == 0 {
                return Some(chars.next()?.map(EscapedPart::Char));
            }
            chars.at += n;
            Some(Ok(EscapedPart::Run(body.skip(at).take(n), at)))
        })
    }

    /// Returns an iterator over the characters of the string, with escapes replaced. Tests compare
    /// [`Escaped::unescape`] with this function. It is also used if the contents are not UTF-8.
    pub fn chars(&self, surrogates: Policy) -> impl Iterator<Item = Result<u32, Rejection>> + 'a {
        Chars {
            body: self.body,
            at: 0,
            surrogates,
        }
    }
}

/// Replaces a sequence of consecutive `\uXXXX` escapes. Returns `false` if a replacement does not
/// fit into `out`.
#[inline(never)]
fn hex_escapes(
    body: &[u8],
    from: usize,
    surrogates: Policy,
    out: &mut [u8],
    part: &mut Unescaped,
) -> Result<bool, Rejection> {
    loop {
        let at = from + part.n_read;
        let (c, len) = hex_escape(at, surrogates, |at| body.get(at).map(|&b| u32::from(b)))?;
        let mut bytes = [0; 4];
        let n = if let Some(c) = char::from_u32(c) {
            c.encode_utf8(&mut bytes).len()
        } else {
            part.has_surrogate = true;
            bytes[..3].copy_from_slice(&[
                0xE0 | (c >> 12) as u8,
                0x80 | (c >> 6 & 0x3F) as u8,
                0x80 | (c & 0x3F) as u8,
            ]);
            3
        };
        let Some(place) = out.get_mut(part.n_written..part.n_written + n) else {
            return Ok(false);
        };
        place.copy_from_slice(&bytes[..n]);
        part.n_read += len;
        part.n_written += n;
        let next = from + part.n_read;
        if body.get(next) != Some(&b'\\') || body.get(next + 1) != Some(&b'u') {
            return Ok(true);
        }
    }
}

/// Returns the character that the `\u` escape at `at` represents, and the length of the escape in
/// units. If the escape and the next one are a surrogate pair, returns the character of the pair
/// and the length of both escapes.
#[inline(always)]
fn hex_escape(
    at: usize,
    surrogates: Policy,
    unit: impl Fn(usize) -> Option<u32>,
) -> Result<(u32, usize), Rejection> {
    let no = |reason| Rejection {
        reason,
        at_units: at,
    };
    if unit(at + 1) != Some(0x75) {
        return Err(no(Reason::Escape));
    }
    let digits =
        |at: usize| (at..at + 4).try_fold(0, |value, at| Some(value << 4 | hex_digit(unit(at)?)?));
    let first = digits(at + 2).ok_or(no(Reason::HexEscape))?;
    if first & 0xF800 != 0xD800 {
        return Ok((first, 6));
    }
    if first < 0xDC00
        && unit(at + 6) == Some(0x5C)
        && unit(at + 7) == Some(0x75)
        && let Some(second @ 0xDC00..0xE000) = digits(at + 8)
    {
        return Ok((0x1_0000 + ((first & 0x3FF) << 10 | second & 0x3FF), 12));
    }
    lone(first, surrogates)
        .map(|c| (c, 6))
        .ok_or(no(Reason::Surrogate))
}

/// Applies the policy `surrogates` to the lone surrogate `c`. Returns the code point to write for
/// `c`, or `None` if the policy treats lone surrogates as errors.
fn lone(c: u32, surrogates: Policy) -> Option<u32> {
    match surrogates {
        Policy::Replace => Some(0xFFFD),
        Policy::SurrogatePass => Some(c),
        _ => None,
    }
}

#[inline(always)]
fn hex_digit(unit: u32) -> Option<u32> {
    static DIGITS: [u8; 128] = {
        let mut all = [0xFF; 128];
        let mut i = 0;
        while i < 16 {
            all[b"0123456789abcdef"[i] as usize] = i as u8;
            all[b"0123456789ABCDEF"[i] as usize] = i as u8;
            i += 1;
        }
        all
    };
    let digit = *DIGITS.get(unit as usize)?;
    (digit < 16).then_some(u32::from(digit))
}

struct Chars<'a> {
    body: Units<'a>,
    at: usize,
    surrogates: Policy,
}

impl Chars<'_> {
    /// Returns the character that starts at unit `at`, and its number of units. Returns `None` at
    /// the end of the contents. Escapes are not replaced: a backslash is returned as a character.
    fn plain(&self, at: usize) -> Option<Result<(u32, usize), Rejection>> {
        let one = |c: Option<&u32>| c.map(|&c| Ok((c, 1)));
        let found = match self.body {
            Units::Latin1(u) => one(u.get(at).map(|&b| u32::from(b)).as_ref()),
            Units::Ucs2(u) | Units::Utf16(u) => one(u.get(at).map(|&b| u32::from(b)).as_ref()),
            Units::Utf32(u) => one(u.get(at)),
            Units::Utf8(u) => {
                let rest = u.get(at..).filter(|rest| !rest.is_empty())?;
                // Finds the first character of `rest`. If no valid character is there, `rest`
                // starts with a malformed sequence.
                let valid = match std::str::from_utf8(&rest[..rest.len().min(4)]) {
                    Ok(text) => text,
                    Err(e) => std::str::from_utf8(&rest[..e.valid_up_to()]).unwrap_or_default(),
                };
                return Some(match valid.chars().next() {
                    Some(c) => Ok((u32::from(c), c.len_utf8())),
                    None => Err(malformed(Units::Utf8(rest), at)),
                });
            }
        };
        match found {
            Some(Ok((c, n))) if c & 0xFFFF_F800 == 0xD800 => {
                Some(lone(c, self.surrogates).map(|c| (c, n)).ok_or(Rejection {
                    reason: Reason::Surrogate,
                    at_units: at,
                }))
            }
            found => found,
        }
    }
}

/// Returns an error with the position of the first malformed text in a JSON string. `rest` contains
/// the contents of the string from unit `at` on.
///
/// # Panics
/// Panics if `rest` is well-formed, which is a bug in the caller.
#[must_use]
pub fn malformed(rest: Units<'_>, at: usize) -> Rejection {
    let found = onecopy_text::find_malformed(rest).expect("a fast path has found malformed text");
    let reason = match found.kind {
        onecopy_text::MalformedKind::LoneSurrogate => Reason::Surrogate,
        // A quote or an escape interrupts the sequence. The error is reported as an invalid
        // continuation, because the text itself does not end here.
        onecopy_text::MalformedKind::UnexpectedEnd => {
            Reason::Malformed(onecopy_text::MalformedKind::InvalidContinuation)
        }
        kind => Reason::Malformed(kind),
    };
    Rejection {
        reason,
        at_units: at + found.at_units,
    }
}

impl Iterator for Chars<'_> {
    type Item = Result<u32, Rejection>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let found = match self.plain(at)? {
            Ok((0x5C, _)) => {
                let unit = |at| self.plain(at)?.ok().map(|(c, _)| c);
                let letter = unit(at + 1).and_then(|c| u8::try_from(c).ok());
                match letter {
                    Some(b'"' | b'\\' | b'/') => Ok((u32::from(letter.unwrap_or(0)), 2)),
                    Some(b'b') => Ok((8, 2)),
                    Some(b'f') => Ok((12, 2)),
                    Some(b'n') => Ok((10, 2)),
                    Some(b'r') => Ok((13, 2)),
                    Some(b't') => Ok((9, 2)),
                    _ => hex_escape(at, self.surrogates, unit),
                }
            }
            found => found,
        };
        Some(match found {
            Ok((c, n)) => {
                self.at += n;
                Ok(c)
            }
            Err(refusal) => {
                self.at = usize::MAX;
                Err(refusal)
            }
        })
    }
}
