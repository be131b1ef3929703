//! [`Carry`]: converts a long value that arrives in parts.

use crate::convert::{to_json_body, to_utf8};
use crate::{
    ByteSink, ConvertError, Malformed, MalformedKind, Policy, Units, find_malformed, naive,
};

/// Converts the parts of one long text as if they were one text.
///
/// A part may end inside a UTF-8 sequence or a surrogate pair. The carry keeps the 1 to 3 units of
/// this incomplete character for the next part.
///
/// All parts must have the same [`Units`] variant. Call one `finish_` method after the last part.
/// After that call, and after an error, the carry can be used for another text.
///
/// ```
/// use onecopy_text::{Carry, Policy, Units};
///
/// let text = "Köln".as_bytes();
/// let mut sink = Vec::new();
/// let mut carry = Carry::default();
/// for part in [&text[..2], &text[2..]] {
///     carry.to_json_body(Units::Utf8(part), Policy::Strict, &mut sink)?;
/// }
/// carry.finish_json_body(Policy::Strict, &mut sink)?;
/// assert_eq!(sink, text);
/// # Ok::<(), onecopy_text::ConvertError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Carry {
    held: Held,
    /// The number of units before the carried units.
    before_units: usize,
}

/// The carried units: the start of a character.
#[derive(Clone, Copy, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    /// The start of a UTF-8 sequence, and its number of bytes.
    Utf8([u8; 3], usize),
    /// A high surrogate of UTF-16.
    Utf16(u16),
}

/// The result of joining the carried units with the next part.
enum Joined {
    /// A complete character, and the number of its units in the next part.
    Char(char, usize),
    /// Malformed units, and the number of them in the next part.
    Malformed(Malformed, usize),
    /// The character is still incomplete. All units are carried.
    StillOpen,
}

impl Carry {
    /// Creates the state for a new text.
    #[must_use]
    pub fn new() -> Carry {
        Carry::default()
    }

    /// Appends the next part as UTF-8. An incomplete character at its end is carried. Returns the
    /// number of bytes written.
    ///
    /// The conversion is the only copy of the text.
    ///
    /// # Errors
    /// Returns the errors of [`to_utf8`], with positions in the whole text. The sink is then
    /// unchanged.
    pub fn to_utf8<S: ByteSink>(
        &mut self,
        part: Units<'_>,
        policy: Policy,
        sink: &mut S,
    ) -> Result<usize, ConvertError> {
        self.part(part, policy, sink, to_utf8)
    }

    /// Appends the next part as the body of a JSON string. An incomplete character at its end is
    /// carried. Returns the number of bytes written.
    ///
    /// # Errors
    /// Returns the errors of [`Carry::to_utf8`].
    pub fn to_json_body<S: ByteSink>(
        &mut self,
        part: Units<'_>,
        policy: Policy,
        sink: &mut S,
    ) -> Result<usize, ConvertError> {
        self.part(part, policy, sink, to_json_body)
    }

    /// Ends a text in UTF-8. A carried character is malformed. Returns the number of bytes written.
    ///
    /// # Errors
    /// Returns the errors of [`Carry::to_utf8`].
    pub fn finish_utf8<S: ByteSink>(
        &mut self,
        policy: Policy,
        sink: &mut S,
    ) -> Result<usize, ConvertError> {
        let ended = std::mem::take(self);
        let len_units = ended.held.len_units();
        if len_units == 0 {
            return Ok(0);
        }
        if policy != Policy::Replace {
            return Err(ConvertError::Malformed(Malformed {
                kind: MalformedKind::UnexpectedEnd,
                at_units: ended.before_units,
                len_units,
            }));
        }
        to_utf8(Units::Utf32(&[naive::REPLACEMENT]), policy, sink)
    }

    /// Ends the body of a JSON string. A carried character is malformed. Returns the number of
    /// bytes written.
    ///
    /// # Errors
    /// Returns the errors of [`Carry::to_utf8`].
    pub fn finish_json_body<S: ByteSink>(
        &mut self,
        policy: Policy,
        sink: &mut S,
    ) -> Result<usize, ConvertError> {
        // Only U+FFFD may be written, without an escape.
        self.finish_utf8(policy, sink)
    }

    fn part<S: ByteSink>(
        &mut self,
        part: Units<'_>,
        policy: Policy,
        sink: &mut S,
        convert: impl Fn(Units<'_>, Policy, &mut S) -> Result<usize, ConvertError>,
    ) -> Result<usize, ConvertError> {
        let start = sink.mark();
        let result = self.part_unguarded(part, policy, sink, convert);
        if result.is_err() {
            sink.rewind(start);
            *self = Carry::default();
        }
        result
    }

    fn part_unguarded<S: ByteSink>(
        &mut self,
        part: Units<'_>,
        policy: Policy,
        sink: &mut S,
        convert: impl Fn(Units<'_>, Policy, &mut S) -> Result<usize, ConvertError>,
    ) -> Result<usize, ConvertError> {
        if part.is_empty() {
            return Ok(0);
        }
        let n_held = self.held.len_units();
        let (mut n_written, used) = match self.held.join(part) {
            None => (0, 0),
            Some(Joined::StillOpen) => return Ok(0),
            Some(Joined::Char(c, used)) => {
                (convert(Units::Utf32(&[c.into()]), policy, sink)?, used)
            }
            Some(Joined::Malformed(e, _)) if policy != Policy::Replace => {
                return Err(ConvertError::Malformed(e.later_by(self.before_units)));
            }
            Some(Joined::Malformed(_, used)) => {
                let replaced = convert(Units::Utf32(&[naive::REPLACEMENT]), policy, sink)?;
                (replaced, used)
            }
        };
        self.before_units += n_held + used;
        let rest = part.skip(used);
        self.held = Held::open_end(rest);
        let now = rest.take(rest.len_units() - self.held.len_units());
        n_written += convert(now, policy, sink).map_err(|e| match e {
            ConvertError::Malformed(e) => {
                // The search includes the carried units, because a malformed sequence may precede
                // them.
                let e = find_malformed(rest).unwrap_or(e);
                ConvertError::Malformed(e.later_by(self.before_units))
            }
            e => e,
        })?;
        self.before_units += now.len_units();
        Ok(n_written)
    }
}

impl Held {
    fn len_units(self) -> usize {
        match self {
            Held::Nothing => 0,
            Held::Utf8(_, len) => len,
            Held::Utf16(_) => 1,
        }
    }

    /// Returns the incomplete character at the end of `units`.
    fn open_end(units: Units<'_>) -> Held {
        match units {
            Units::Utf8(u) => {
                let tail = &u[u.len().saturating_sub(3)..];
                // Only the last lead byte can start an incomplete sequence.
                let Some(lead) = tail.iter().rposition(|&b| b & 0xC0 != 0x80) else {
                    return Held::Nothing;
                };
                let tail = &tail[lead..];
                match naive::find_malformed(Units::Utf8(tail)) {
                    Some(e) if e.kind == MalformedKind::UnexpectedEnd && e.at_units == 0 => {
                        let mut held = [0; 3];
                        held[..tail.len()].copy_from_slice(tail);
                        Held::Utf8(held, tail.len())
                    }
                    _ => Held::Nothing,
                }
            }
            Units::Utf16(&[.., high @ 0xD800..0xDC00]) => Held::Utf16(high),
            _ => Held::Nothing,
        }
    }

    /// Joins the carried units with the first units of `part`. Returns `None` if no units are
    /// carried.
    fn join(&mut self, part: Units<'_>) -> Option<Joined> {
        let (first, n_held, len) = match (*self, part) {
            (Held::Nothing, _) => return None,
            (Held::Utf8(held, n), Units::Utf8(part)) => {
                let mut joined = [0; 6];
                joined[..n].copy_from_slice(&held[..n]);
                let more = part.len().min(3);
                joined[n..n + more].copy_from_slice(&part[..more]);
                let joined = &joined[..n + more];
                let first = naive::code_points(Units::Utf8(joined)).next()?;
                if matches!(first, Err(e) if e.kind == MalformedKind::UnexpectedEnd) {
                    // At most 3 bytes are kept: a sequence of 4 is complete.
                    let mut held = [0; 3];
                    held[..joined.len()].copy_from_slice(joined);
                    *self = Held::Utf8(held, joined.len());
                    return Some(Joined::StillOpen);
                }
                (first, n, joined.len())
            }
            (Held::Utf16(high), Units::Utf16(part)) => {
                let joined = [high, part[0]];
                (naive::code_points(Units::Utf16(&joined)).next()?, 1, 2)
            }
            (held, part) => panic!("{held:?} is held and {part:?} comes: parts differ in form"),
        };
        debug_assert!(n_held < len);
        Some(match first {
            Ok(c) => {
                let c = char::from_u32(c)?;
                let used = match part {
                    Units::Utf16(_) => 2,
                    _ => c.len_utf8(),
                };
                Joined::Char(c, used - n_held)
            }
            Err(e) => Joined::Malformed(e, e.len_units - n_held),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_cut_in_half_is_joined() {
        let mut sink = Vec::new();
        let mut carry = Carry::new();
        for part in [&[0x61, 0xD83D][..], &[0xDE00, 0x62][..]] {
            carry
                .to_utf8(Units::Utf16(part), Policy::Strict, &mut sink)
                .expect("well-formed");
        }
        assert_eq!(carry.finish_utf8(Policy::Strict, &mut sink), Ok(0));
        assert_eq!(sink, "a\u{1F600}b".as_bytes());
    }

    #[test]
    fn a_sequence_that_comes_byte_by_byte_is_joined() {
        let mut sink = Vec::new();
        let mut carry = Carry::new();
        for byte in "\u{1F600}\"".bytes() {
            carry
                .to_json_body(Units::Utf8(&[byte]), Policy::Strict, &mut sink)
                .expect("well-formed");
        }
        assert_eq!(sink, "\u{1F600}\\\"".as_bytes());
    }

    #[test]
    fn a_text_that_ends_inside_a_character_is_an_error_at_its_position_in_the_whole() {
        let mut sink = Vec::new();
        let mut carry = Carry::new();
        carry
            .to_utf8(Units::Utf8(b"abc"), Policy::Strict, &mut sink)
            .expect("well-formed");
        carry
            .to_utf8(Units::Utf8(b"d\xE4\xB8"), Policy::Strict, &mut sink)
            .expect("open, not malformed yet");
        assert_eq!(
            carry.finish_utf8(Policy::Strict, &mut sink),
            Err(ConvertError::Malformed(Malformed {
                kind: MalformedKind::UnexpectedEnd,
                at_units: 4,
                len_units: 2,
            }))
        );
        assert_eq!(sink, b"abcd");
    }

    #[test]
    fn half_a_pair_before_an_open_end_is_lone_and_not_at_the_end() {
        // Two high surrogates, found by `parts_of_a_text_matches_naive`. The second one is carried.
        let error = Carry::new().to_utf8(
            Units::Utf16(&[0x61, 0xD83D, 0xD800]),
            Policy::Strict,
            &mut Vec::new(),
        );
        assert_eq!(
            error,
            Err(ConvertError::Malformed(Malformed {
                kind: MalformedKind::LoneSurrogate,
                at_units: 1,
                len_units: 1,
            }))
        );
    }

    #[test]
    fn a_carry_is_as_new_after_its_end() {
        let mut sink = Vec::new();
        let mut carry = Carry::new();
        for _ in 0..2 {
            carry
                .to_utf8(Units::Utf16(&[0xD800]), Policy::Replace, &mut sink)
                .expect("memory");
            assert_eq!(carry.finish_utf8(Policy::Replace, &mut sink), Ok(3));
        }
        assert_eq!(sink, "\u{FFFD}\u{FFFD}".as_bytes());
    }
}
