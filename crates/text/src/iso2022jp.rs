//! [`Iso2022JpState`]: the state of an ISO-2022-JP decoder. encoding_rs does not expose this state.

/// A character set of ISO-2022-JP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    #[default]
    Ascii,
    Roman,
    Katakana,
    /// JIS X 0208, with two bytes for each character.
    Pairs,
}

/// The state of an ISO-2022-JP decoder between two parts of a stream (WHATWG Encoding Standard,
/// section 12.2.1).
///
/// ```
/// use onecopy_text::Iso2022JpState;
///
/// let mut state = Iso2022JpState::default();
/// state.push(b"a\x1b$B$\"$");
/// assert_eq!((state.number(), state.pending()), (3, &b"$"[..]));
/// assert_eq!(Iso2022JpState::of_number(3), Some(state.without_pending()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iso2022JpState {
    set: Set,
    /// The escape sequence at the end of the input, if any. Another escape sequence after it is an
    /// error.
    escape: Option<[u8; 2]>,
    /// The bytes of an incomplete escape sequence or character.
    pending: [u8; 2],
    n_pending: usize,
}

/// A decoder state: the character set, the final escape sequence, and input that leads to the
/// state.
type Prelude = (Set, Option<[u8; 2]>, &'static [u8]);

/// The decoder states without an incomplete character, indexed by their numbers.
const PRELUDES: [Prelude; 9] = [
    (Set::Ascii, None, b""),
    (Set::Roman, None, b"\x1b(J!"),
    (Set::Katakana, None, b"\x1b(I!"),
    (Set::Pairs, None, b"\x1b$B!!"),
    (Set::Ascii, Some(*b"(B"), b"\x1b(B"),
    (Set::Roman, Some(*b"(J"), b"\x1b(J"),
    (Set::Katakana, Some(*b"(I"), b"\x1b(I"),
    (Set::Pairs, Some(*b"$B"), b"\x1b$B"),
    (Set::Pairs, Some(*b"$@"), b"\x1b$@"),
];

const ESCAPE: u8 = 0x1B;

impl Iso2022JpState {
    /// Updates the state for the next bytes.
    pub fn push(&mut self, part: &[u8]) {
        part.iter().for_each(|&byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        match (self.pending(), byte) {
            (&[ESCAPE], b'$' | b'(') => return self.begin(&[ESCAPE, byte]),
            (&[ESCAPE, kind], _) => {
                let escape = [kind, byte];
                let found = PRELUDES.iter().find(|(_, known, _)| *known == Some(escape));
                self.n_pending = 0;
                self.escape = found.map(|_| escape);
                match found {
                    Some((set, ..)) => self.set = *set,
                    None => self.push(&escape), // the escape starts no sequence
                }
                return;
            }
            (&[ESCAPE], _) => {
                self.n_pending = 0;
                self.escape = None;
                return self.byte(byte);
            }
            (_, ESCAPE) => return self.begin(&[ESCAPE]),
            _ => {}
        }
        self.escape = None;
        let is_lead = self.set == Set::Pairs && self.n_pending == 0 && (0x21..0x7F).contains(&byte);
        self.n_pending = 0;
        if is_lead {
            self.begin(&[byte]);
        }
    }

    fn begin(&mut self, bytes: &[u8]) {
        self.pending[..bytes.len()].copy_from_slice(bytes);
        self.n_pending = bytes.len();
    }

    /// Returns the bytes of an incomplete escape sequence or character.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.pending[..self.n_pending]
    }

    /// Returns this state without incomplete bytes.
    #[must_use]
    pub fn without_pending(&self) -> Iso2022JpState {
        Iso2022JpState {
            pending: [0; 2],
            n_pending: 0,
            ..*self
        }
    }

    /// Returns the number of this state, from 0 to 8, without its incomplete bytes. A new decoder
    /// has the number 0.
    #[must_use]
    pub fn number(&self) -> u8 {
        let is_it = |state: &Prelude| (state.0, state.1) == (self.set, self.escape);
        PRELUDES.iter().position(is_it).unwrap_or_default() as u8
    }

    /// Returns the state with this number; `None` for an unknown number.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Iso2022JpState> {
        let &(set, escape, _) = PRELUDES.get(usize::from(number))?;
        Some(Iso2022JpState {
            set,
            escape,
            ..Iso2022JpState::default()
        })
    }

    /// Returns bytes that bring a new decoder to this state, without its incomplete bytes. The
    /// caller must discard the text that these bytes yield.
    #[must_use]
    pub fn prelude(&self) -> &'static [u8] {
        PRELUDES[usize::from(self.number())].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoding, Policy, TranscodeOptions, Transcoder};

    const BYTES: &[u8] = b"\x1b\x1b$$(BJI@!\"~a\x0e\xa1\n";

    fn decoder() -> Transcoder {
        let options = TranscodeOptions {
            on_malformed: Policy::BackslashReplace,
            ..TranscodeOptions::default()
        };
        let encoding = Encoding::by_name("iso-2022-jp").unwrap();
        Transcoder::new(encoding, Encoding::Utf8, options)
    }

    /// Decodes the rest of a stream with a new decoder, from the saved `state` on.
    fn resumed(state: &Iso2022JpState, rest: &[u8]) -> Vec<u8> {
        let (mut decoder, mut dropped, mut text) = (decoder(), Vec::new(), Vec::new());
        decoder.push(state.prelude(), &mut dropped).unwrap();
        decoder.push(state.pending(), &mut text).unwrap();
        decoder.push(rest, &mut text).unwrap();
        decoder.finish(&mut text).unwrap();
        text
    }

    #[test]
    fn a_decoder_that_resumes_by_the_state_returns_the_rest_of_the_text() {
        let mut seed = 9_u64;
        let mut random = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % n
        };
        for _ in 0..20_000 {
            let stream: Vec<u8> = (0..random(14))
                .map(|_| BYTES[random(BYTES.len())])
                .collect();
            let (head, rest) = stream.split_at(random(stream.len() + 1));
            let (mut whole, mut text, mut state) =
                (decoder(), Vec::new(), Iso2022JpState::default());
            whole.push(head, &mut text).unwrap();
            let n = text.len();
            whole.push(rest, &mut text).unwrap();
            whole.finish(&mut text).unwrap();
            state.push(head);
            assert_eq!(
                resumed(&state, rest),
                text[n..],
                "{head:02x?} {rest:02x?} {state:?}"
            );
            let again = Iso2022JpState::of_number(state.number());
            assert_eq!(again, Some(state.without_pending()));
        }
        assert_eq!(Iso2022JpState::of_number(9), None);
    }
}
