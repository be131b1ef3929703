//! The one-time code: eight letters, and with TLS behind a dot the fingerprint of the receiver's certificate.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Reason};
use crate::identity::{FINGERPRINT_BYTES, Fingerprint};

/// Crockford's letters: none that is taken for another.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Wrong codes after which a receiver ends.
const MAX_WRONG_CODES: u32 = 3;
/// Letters of the secret: 40 bits. A guesser has three tries.
const SECRET_LETTERS: usize = 8;

/// A code, as a receiver prints it and a sender is given it.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    secret: String,
    fingerprint: Option<Fingerprint>,
}

impl fmt::Debug for Code {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}

impl Code {
    /// One that nobody knows yet.
    ///
    /// # Errors
    /// The system's, where it gives no random bytes.
    pub fn make(fingerprint: Option<Fingerprint>) -> std::io::Result<Code> {
        let mut bytes = [0_u8; SECRET_LETTERS];
        let n = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        if n < bytes.len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let letters = bytes.iter().map(|b| LETTERS[usize::from(b % 32)] as char);
        Ok(Code {
            secret: letters.collect(),
            fingerprint,
        })
    }

    /// Reads what a user typed; in any case, hyphens anywhere. `None` where it is no code.
    #[must_use]
    pub fn parse(text: &str) -> Option<Code> {
        let text: String = text.trim().to_ascii_lowercase();
        let text: String = text.chars().filter(|c| *c != '-').collect();
        let (secret, fingerprint) = match text.split_once('.') {
            Some((secret, fingerprint)) => (secret, Some(decode(fingerprint)?)),
            None => (text.as_str(), None),
        };
        let is_whole =
            secret.len() == SECRET_LETTERS && secret.bytes().all(|b| LETTERS.contains(&b));
        is_whole.then(|| Code {
            secret: secret.to_owned(),
            fingerprint,
        })
    }

    /// What goes over the wire.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// The certificate that the receiver must show; `None`: no TLS.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Whether `given` is the secret. It takes as long for any `given` of a length: hashes are compared, in constant time.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        blake3::hash(given) == blake3::hash(self.secret.as_bytes())
    }
}

/// The comparison of what senders give with the code that they must know.
#[derive(Debug)]
pub(crate) struct CodeCheck {
    expected: Option<Code>,
    /// Locked while a code is compared: senders at the same time have no more tries than one after
    /// the other.
    n_wrong: Mutex<u32>,
}

impl CodeCheck {
    /// Takes any code where `expected` is `None`.
    pub(crate) fn new(expected: Option<Code>) -> CodeCheck {
        CodeCheck {
            expected,
            n_wrong: Mutex::new(0),
        }
    }

    /// Compares the code that a sender gives. After [`MAX_WRONG_CODES`] wrong ones none is right.
    ///
    /// # Errors
    /// [`Error::Refusing`] with [`Reason::Code`].
    pub(crate) fn check(&self, given: &[u8]) -> Result<(), Error> {
        let Some(expected) = &self.expected else {
            return Ok(());
        };
        let mut n_wrong = self.n_wrong();
        if *n_wrong < MAX_WRONG_CODES && expected.is(given) {
            return Ok(());
        }
        *n_wrong = n_wrong.saturating_add(1);
        let words = match given.is_empty() {
            true => "it wants the code that it has printed\ngive it with `--code`",
            false => "the code is wrong\nlook at what the receiver has printed",
        };
        Err(Error::Refusing(Reason::Code, words.to_owned()))
    }

    /// Returns whether too many wrong codes were given.
    pub(crate) fn is_exhausted(&self) -> bool {
        *self.n_wrong() >= MAX_WRONG_CODES
    }

    fn n_wrong(&self) -> MutexGuard<'_, u32> {
        self.n_wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.secret.split_at(SECRET_LETTERS / 2);
        write!(f, "{first}-{second}")?;
        match self.fingerprint {
            Some(fingerprint) => write!(f, ".{}", encode(fingerprint)),
            None => Ok(()),
        }
    }
}

/// 26 letters: 128 bits, and two of nothing.
fn encode(fingerprint: Fingerprint) -> String {
    let number = u128::from_be_bytes(fingerprint);
    (0..26)
        .map(|i| {
            let shift = 123 - 5 * i;
            let bits = if shift >= 0 {
                number >> shift
            } else {
                number << -shift
            };
            LETTERS[(bits % 32) as usize] as char
        })
        .collect()
}

fn decode(text: &str) -> Option<Fingerprint> {
    if text.len() != 26 {
        return None;
    }
    let mut number: u128 = 0;
    for (i, letter) in text.bytes().enumerate() {
        let value = LETTERS.iter().position(|l| *l == letter)? as u128;
        let shift = 123 - 5 * i as i32;
        number |= match shift {
            ..0 if value & ((1 << -shift) - 1) != 0 => return None,
            ..0 => value >> -shift,
            shift => value << shift,
        };
    }
    let bytes: [u8; FINGERPRINT_BYTES] = number.to_be_bytes();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code = Code::make(None).unwrap();
        assert_eq!(
            Code::parse(&format!(" {} \n", code.to_string().to_uppercase())),
            Some(code.clone())
        );
        assert!(code.is(code.secret()));
        assert!(!code.is(b"") && !code.is(&code.secret()[1..]));
        for wrong in [
            "",
            "abcd",
            "abcd-efghi",
            "abcd-efgl",
            "abcd-efgh.",
            "abcd-efgh.0",
        ] {
            assert_eq!(Code::parse(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{code:?}"), "Code(…)");
    }

    proptest! {
        #[test]
        fn a_fingerprint_comes_back(bytes: [u8; 16]) {
            let code = Code::make(Some(bytes)).unwrap();
            let text = code.to_string();
            prop_assert_eq!(text.len(), 9 + 1 + 26);
            prop_assert_eq!(Code::parse(&text), Some(code));
        }
    }
}
