//! [`Code`]: the one-time code with which a receiver recognizes the sender. The code has eight
//! letters. With TLS, they are followed by a dot and the fingerprint of the receiver's certificate.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Reason};
use crate::identity::{FINGERPRINT_BYTES, Fingerprint};

/// The digits and letters of Crockford's base 32, which excludes letters that look like others.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The number of wrong codes after which a receiver accepts no further code.
const MAX_WRONG_CODES: u32 = 3;
/// The number of letters of the secret. Each letter has 5 bits, so the secret has 40 bits. An
/// attacker can try only [`MAX_WRONG_CODES`] secrets.
const SECRET_LETTERS: usize = 8;

/// A one-time code, which the receiver prints and the user passes to the sender.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    secret: String,
    fingerprint: Option<Fingerprint>,
}

impl fmt::Debug for Code {
    /// Formats the code for debugging as `Code(…)`, without its secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}

impl Code {
    /// Creates a new random code.
    ///
    /// # Errors
    /// The error of the system if it returns no random bytes.
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

    /// Parses a code as typed by a user, in upper or lower case and with hyphens anywhere; returns
    /// `None` if the text is not a code.
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

    /// Returns the secret of the code, which is sent to the receiver.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// Returns the fingerprint of the certificate that the receiver must present; `None` without
    /// TLS.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Returns `true` if `given` equals the secret. The hashes of `given` and of the secret are
    /// compared in constant time, so the duration of the call depends only on the length of
    /// `given`.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        blake3::hash(given) == blake3::hash(self.secret.as_bytes())
    }
}

/// Compares the codes of senders with the code of the receiver, and counts the wrong ones.
#[derive(Debug)]
pub(crate) struct CodeCheck {
    expected: Option<Code>,
    /// The number of wrong codes so far. The lock is held during a comparison, so that several
    /// senders together have no more attempts than one sender.
    n_wrong: Mutex<u32>,
}

impl CodeCheck {
    /// Creates the check for the code `expected`. If `expected` is `None`, any code is accepted.
    pub(crate) fn new(expected: Option<Code>) -> CodeCheck {
        CodeCheck {
            expected,
            n_wrong: Mutex::new(0),
        }
    }

    /// Compares the code of a sender with the code of the receiver. After [`MAX_WRONG_CODES`] wrong
    /// codes, even the right code is refused.
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
            true => "the receiver requires the code that it has printed\npass it with `--code`",
            false => "the code is wrong\nlook at what the receiver has printed",
        };
        Err(Error::Refusing(Reason::Code, words.to_owned()))
    }

    /// Returns `true` if the receiver has received at least [`MAX_WRONG_CODES`] wrong codes, so
    /// that it accepts no further code.
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

/// Encodes the 128 bits of a fingerprint as 26 letters; the last two bits are unused.
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
