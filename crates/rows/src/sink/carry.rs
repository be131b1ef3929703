//! What a part of a long text leaves for the next one: a sequence that a part ended inside of.

use onecopy_text::{MalformedKind, Units, naive};
use onecopy_wire::WriteError;

/// Takes text in parts and gives it on in pieces that end between characters; a few units wait for the next part.
///
/// Copies: none but of those few units. Where the text is malformed, its place is told in units of the whole value.
#[derive(Clone, Debug, Default)]
pub struct Carry {
    held: Held,
    /// Units of the value that were given on.
    done_units: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    /// 1 to 3 bytes that begin a UTF-8 sequence.
    Utf8 { bytes: [u8; 4], len: usize },
    /// A high surrogate.
    High(u16),
}

impl Carry {
    /// Gives on what can be given: what was held with what completes it, then the part up to its last whole character.
    ///
    /// # Errors
    /// Those of `write`, with their place counted from the start of the value.
    pub fn part(
        &mut self,
        part: Units<'_>,
        mut write: impl FnMut(Units<'_>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match part {
            Units::Utf8(bytes) => {
                let rest = self.complete_utf8(bytes, &mut write)?;
                let (whole, tail) = rest.split_at(rest.len() - unfinished_utf8(rest));
                self.give(Units::Utf8(whole), &mut write)?;
                self.hold_utf8(tail);
                Ok(())
            }
            Units::Utf16(units) => {
                let Some((first, behind)) = units.split_first() else {
                    return Ok(());
                };
                let mut rest = units;
                if let Held::High(high) = std::mem::take(&mut self.held) {
                    if matches!(first, 0xDC00..=0xDFFF) {
                        self.give(Units::Utf16(&[high, *first]), &mut write)?;
                        rest = behind;
                    } else {
                        self.give(Units::Utf16(&[high]), &mut write)?;
                    }
                }
                if let [whole @ .., high @ 0xD800..=0xDBFF] = rest {
                    self.held = Held::High(*high);
                    rest = whole;
                }
                self.give(Units::Utf16(rest), &mut write)
            }
            whole => self.give(whole, &mut write),
        }
    }

    /// Gives on what is still held, which is malformed, and starts anew.
    ///
    /// # Errors
    /// As [`Carry::part`].
    pub fn end(
        &mut self,
        mut write: impl FnMut(Units<'_>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match std::mem::take(&mut self.held) {
            Held::Nothing => {}
            Held::Utf8 { bytes, len } => self.give(Units::Utf8(&bytes[..len]), &mut write)?,
            Held::High(high) => self.give(Units::Utf16(&[high]), &mut write)?,
        }
        self.done_units = 0;
        Ok(())
    }

    fn give(
        &mut self,
        piece: Units<'_>,
        write: &mut impl FnMut(Units<'_>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        if piece.is_empty() {
            return Ok(());
        }
        write(piece).map_err(|error| match error {
            WriteError::Malformed(mut malformed) => {
                malformed.at_units += self.done_units;
                WriteError::Malformed(malformed)
            }
            error => error,
        })?;
        self.done_units += piece.len_units();
        Ok(())
    }

    fn hold_utf8(&mut self, tail: &[u8]) {
        if !tail.is_empty() {
            let mut bytes = [0; 4];
            bytes[..tail.len()].copy_from_slice(tail);
            self.held = Held::Utf8 {
                bytes,
                len: tail.len(),
            };
        }
    }

    /// Completes a held sequence from the start of `next`, gives it on, and returns what is left of `next`.
    fn complete_utf8<'p>(
        &mut self,
        mut next: &'p [u8],
        write: &mut impl FnMut(Units<'_>) -> Result<(), WriteError>,
    ) -> Result<&'p [u8], WriteError> {
        while let Held::Utf8 { mut bytes, len } = self.held {
            let Some((first, behind)) = next.split_first() else {
                break;
            };
            bytes[len] = *first;
            let longer = &bytes[..len + 1];
            if unfinished_utf8(longer) == longer.len() {
                self.hold_utf8(longer);
                next = behind;
                continue;
            }
            self.held = Held::Nothing;
            // One whole character, or else a malformed start that the new byte is no part of.
            if naive::code_points(Units::Utf8(longer)).all(|c| c.is_ok()) {
                self.give(Units::Utf8(longer), write)?;
                next = behind;
            } else {
                self.give(Units::Utf8(&bytes[..len]), write)?;
            }
        }
        Ok(next)
    }
}

/// How many bytes at the end begin a sequence that could go on: 0 to 3.
fn unfinished_utf8(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(lead) = tail.iter().rposition(|b| *b >= 0xC0) else {
        return 0;
    };
    let last = naive::code_points(Units::Utf8(&tail[lead..])).next();
    match last {
        Some(Err(malformed)) if malformed.kind == MalformedKind::UnexpectedEnd => tail.len() - lead,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onecopy_text::{Policy, convert};
    use proptest::prelude::*;

    /// The text of a value that comes in these parts.
    fn in_parts<T: Copy>(
        units: &[T],
        cuts: &[usize],
        policy: Policy,
        as_units: impl Fn(&[T]) -> Units<'_>,
    ) -> Result<Vec<u8>, WriteError> {
        let (mut carry, mut out, mut at) = (Carry::default(), Vec::new(), 0);
        let write = |piece: Units<'_>, out: &mut Vec<u8>| {
            convert::to_utf8(piece, policy, out)?;
            Ok(())
        };
        for &cut in cuts.iter().chain([&units.len()]) {
            let cut = cut.clamp(at, units.len());
            carry.part(as_units(&units[at..cut]), |p| write(p, &mut out))?;
            at = cut;
        }
        carry.end(|p| write(p, &mut out))?;
        Ok(out)
    }

    fn whole(units: Units<'_>, policy: Policy) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::new();
        convert::to_utf8(units, policy, &mut out)?;
        Ok(out)
    }

    /// Bytes of all lengths of sequence, whole, cut short and overlong.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"a"[..],
            b"\xC3\xA9",
            b"\xE6\x9D\xB1",
            b"\xF0\x9F\x98\x80",
            b"\xC3",
            b"\xE6",
            b"\xE6\x9D",
            b"\xF0\x9F",
            b"\xF0\x9F\x98",
            b"\xE0\x80",
            b"\xED\xA0\x80",
            b"\xF4\x90\x80\x80",
            b"\x80",
            b"\xFF",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|p| p.concat())
    }

    proptest! {
        #[test]
        fn utf8_in_parts_matches_the_whole(bytes in bytes(), mut cuts in prop::collection::vec(0..30_usize, 0..8)) {
            cuts.sort_unstable();
            let every: Vec<usize> = (0..bytes.len()).collect();
            for policy in [Policy::Strict, Policy::Replace] {
                // What was taken for the end of the text may turn out an invalid continuation: the place is the same.
                let place = |r: Result<Vec<u8>, WriteError>| r.map_err(|e| match e {
                    WriteError::Malformed(m) => (m.at_units, m.len_units),
                    e => panic!("{e}"),
                });
                let expected = place(whole(Units::Utf8(&bytes), policy));
                prop_assert_eq!(place(in_parts(&bytes, &cuts, policy, |u| Units::Utf8(u))), expected.clone());
                prop_assert_eq!(place(in_parts(&bytes, &every, policy, |u| Units::Utf8(u))), expected);
            }
        }

        #[test]
        fn utf16_in_parts_matches_the_whole(
            units in prop::collection::vec(prop::sample::select(vec![0x61_u16, 0x6771, 0xD83D, 0xDE00]), 0..12),
            mut cuts in prop::collection::vec(0..12_usize, 0..8),
        ) {
            cuts.sort_unstable();
            let every: Vec<usize> = (0..units.len()).collect();
            for policy in [Policy::Strict, Policy::Replace] {
                let place = |r: Result<Vec<u8>, WriteError>| r.map_err(|e| match e {
                    WriteError::Malformed(m) => (m.at_units, m.len_units),
                    e => panic!("{e}"),
                });
                let expected = place(whole(Units::Utf16(&units), policy));
                prop_assert_eq!(place(in_parts(&units, &cuts, policy, |u| Units::Utf16(u))), expected.clone());
                prop_assert_eq!(place(in_parts(&units, &every, policy, |u| Units::Utf16(u))), expected);
            }
        }
    }
}
