//! Strings with escapes.

use onecopy_text::Units;
use onecopy_text::convert::Kernels;

use super::error::Reason;
use super::events::Refusal;

/// What to do with a lone surrogate: an escape, or a character of a `str`, that is no part of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surrogates {
    /// Refuse it.
    #[default]
    Error,
    /// Put U+FFFD for it.
    Replace,
    /// Take it as it is: no text then, but what Python can hold.
    Pass,
}

/// The body of a string with escapes, of which it is known where it ends. The escapes are not yet looked at, nor is the text
/// validated.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a> {
    body: Units<'a>,
    n_plain: usize,
}

/// What became of a part of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Units of the body that were read.
    pub n_read: usize,
    /// Bytes that were written.
    pub n_written: usize,
    /// Whether one of them belongs to a lone surrogate, which UTF-8 does not have.
    pub has_surrogate: bool,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Text without escapes, not yet validated, and the unit of the body where it stands.
    Run(Units<'a>, usize),
    /// The character of an escape.
    Char(u32),
}

/// The least room for a part.
pub const LEAST_PART_BYTES: usize = 64;

impl<'a> Escaped<'a> {
    pub(super) fn new(body: Units<'a>, n_plain: usize) -> Escaped<'a> {
        Escaped { body, n_plain }
    }

    /// A text without escapes, to be read by its characters.
    #[must_use]
    pub fn of(text: Units<'a>) -> Escaped<'a> {
        Escaped::new(text, text.len_units())
    }

    /// The units between the quotes.
    #[must_use]
    pub fn body(&self) -> Units<'a> {
        self.body
    }

    /// Units before the first escape.
    #[must_use]
    pub fn n_plain(&self) -> usize {
        self.n_plain
    }

    /// Writes the text from unit `from` of the body on, as much as there is room for, where it is UTF-8. All of it fits into as
    /// many bytes as the body has; less is written in whole characters, if the text is well-formed, which is for
    /// the caller to find out.
    ///
    /// Copies: one, without the escapes.
    ///
    /// # Errors
    /// [`Refusal`] of an escape, with its place in the body.
    ///
    /// # Panics
    /// Where the body is not UTF-8, and where the room is less than the rest of the body and than [`LEAST_PART_BYTES`].
    #[inline(always)]
    pub fn unescape<K: Kernels>(
        &self,
        kernels: K,
        from: usize,
        surrogates: Surrogates,
        out: &mut [u8],
    ) -> Result<Part, Refusal> {
        let Units::Utf8(body) = self.body else {
            panic!("the body is in another form");
        };
        let mut end = body.len();
        if end - from > out.len() {
            assert!(out.len() >= LEAST_PART_BYTES, "too little room for a part");
            end = from + out.len();
            // Where a character starts.
            let continues = |at: usize| body[at] & 0xC0 == 0x80;
            end -= (0..3).take_while(|&n| continues(end - n)).count();
        }
        let mut part = Part {
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
            // One of four digits, one that is cut by the end of the part, or a wrong one.
            if at == end || (at + 1 == end && end < body.len() && body[at + 1] != b'u') {
                break;
            }
            if !hex_escapes(body, from, surrogates, out, &mut part)? {
                break;
            }
        }
        Ok(part)
    }

    /// The text in parts: runs without escapes, as they stand, and the characters of the escapes between them.
    pub fn pieces<K: Kernels + 'a>(
        &self,
        kernels: K,
        surrogates: Surrogates,
    ) -> impl Iterator<Item = Result<Piece<'a>, Refusal>> + 'a {
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
                return Some(chars.next()?.map(Piece::Char));
            }
            chars.at += n;
            Some(Ok(Piece::Run(body.skip(at).take(n), at)))
        })
    }

    /// The characters, one by one: the slow twin, and what is done with text in other forms.
    pub fn chars(&self, surrogates: Surrogates) -> impl Iterator<Item = Result<u32, Refusal>> + 'a {
        Chars {
            body: self.body,
            at: 0,
            surrogates,
        }
    }
}

/// Writes escapes of four digits that stand side by side; whether there was room for all.
#[inline(never)]
fn hex_escapes(
    body: &[u8],
    from: usize,
    surrogates: Surrogates,
    out: &mut [u8],
    part: &mut Part,
) -> Result<bool, Refusal> {
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

/// The character of the escape of four digits, or two of them, at `at`, and the units that it has.
#[inline(always)]
fn hex_escape(
    at: usize,
    surrogates: Surrogates,
    unit: impl Fn(usize) -> Option<u32>,
) -> Result<(u32, usize), Refusal> {
    let no = |reason| Refusal {
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

/// A lone surrogate under the policy; `None` where it is refused.
fn lone(c: u32, surrogates: Surrogates) -> Option<u32> {
    match surrogates {
        Surrogates::Error => None,
        Surrogates::Replace => Some(0xFFFD),
        Surrogates::Pass => Some(c),
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
    surrogates: Surrogates,
}

impl Chars<'_> {
    /// The character at `at` without a look at escapes, and its units.
    fn plain(&self, at: usize) -> Option<Result<(u32, usize), Refusal>> {
        let one = |c: Option<&u32>| c.map(|&c| Ok((c, 1)));
        let found = match self.body {
            Units::Latin1(u) => one(u.get(at).map(|&b| u32::from(b)).as_ref()),
            Units::Ucs2(u) | Units::Utf16(u) => one(u.get(at).map(|&b| u32::from(b)).as_ref()),
            Units::Utf32(u) => one(u.get(at)),
            Units::Utf8(u) => {
                let rest = u.get(at..).filter(|rest| !rest.is_empty())?;
                // Its first character, or what is malformed.
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
                Some(lone(c, self.surrogates).map(|c| (c, n)).ok_or(Refusal {
                    reason: Reason::Surrogate,
                    at_units: at,
                }))
            }
            found => found,
        }
    }
}

/// What is malformed in `rest`, which stands at `at`.
///
/// # Panics
/// Where nothing is: a bug of the caller.
#[must_use]
pub fn malformed(rest: Units<'_>, at: usize) -> Refusal {
    let found = onecopy_text::find_malformed(rest).expect("a fast path has found malformed text");
    let reason = match found.kind {
        onecopy_text::MalformedKind::LoneSurrogate => Reason::Surrogate,
        // The string ends, not the text: a quote or an escape stands where the sequence was to go on.
        onecopy_text::MalformedKind::UnexpectedEnd => {
            Reason::Malformed(onecopy_text::MalformedKind::InvalidContinuation)
        }
        kind => Reason::Malformed(kind),
    };
    Refusal {
        reason,
        at_units: at + found.at_units,
    }
}

impl Iterator for Chars<'_> {
    type Item = Result<u32, Refusal>;

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
