//! [`Policy`], which specifies how malformed text is handled, and [`Malformed`], the error that
//! reports its position.

use std::fmt;

/// The handling of malformed text, and of characters that the output encoding cannot represent. The
/// names of the policies are those of Python's error handlers, and are the values of the option
/// `errors`.
///
/// Every conversion supports [`Policy::BASIC`]. A conversion that does not support a given policy
/// handles it as [`Policy::Strict`]. A function that receives the name of a policy from its caller
/// refuses unsupported policies with [`Policy::of_name`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// `strict`: stop with an error at the first malformed sequence, or at the first character that
    /// the encoding cannot represent.
    #[default]
    Strict,
    /// `replace`: write U+FFFD for each maximal subpart of an ill-formed sequence (Unicode 16,
    /// section 3.9, "U+FFFD substitution of maximal subparts"), and for each lone surrogate. Write
    /// a question mark for a character that the encoding cannot represent.
    Replace,
    /// `ignore`: omit malformed bytes, and characters that the encoding cannot represent.
    Ignore,
    /// `surrogatepass`: accept lone surrogates in UTF-8, UTF-16, UTF-32 and JSON, and write them in
    /// these encodings. Stop at any other malformed sequence or character.
    SurrogatePass,
    /// `backslashreplace`: write `\xNN` for each malformed byte, and `\xNN`, `\uNNNN` or
    /// `\UNNNNNNNN` for a character that the encoding cannot represent, or for a lone surrogate in
    /// JSON.
    BackslashReplace,
    /// `xmlcharrefreplace`: write `&#N;`, a character reference of XML, for a character that the
    /// encoding cannot represent. Stop at malformed bytes.
    XmlCharRefReplace,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 6] = [
        Policy::Strict,
        Policy::Replace,
        Policy::Ignore,
        Policy::SurrogatePass,
        Policy::BackslashReplace,
        Policy::XmlCharRefReplace,
    ];

    /// The policies that every conversion supports.
    pub const BASIC: [Policy; 2] = [Policy::Strict, Policy::Replace];

    /// Returns the name of the policy, which is the value of the option `errors`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::Strict => "strict",
            Policy::Replace => "replace",
            Policy::Ignore => "ignore",
            Policy::SurrogatePass => "surrogatepass",
            Policy::BackslashReplace => "backslashreplace",
            Policy::XmlCharRefReplace => "xmlcharrefreplace",
        }
    }

    /// Returns the policy of this name.
    ///
    /// # Errors
    /// Returns an error if no policy in `supported` has this name.
    pub fn of_name(name: &str, supported: &'static [Policy]) -> Result<Policy, UnsupportedPolicy> {
        let found = supported.iter().find(|policy| policy.name() == name);
        found.copied().ok_or(UnsupportedPolicy { supported })
    }
}

/// The value of the option `errors` is not the name of a supported [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedPolicy {
    supported: &'static [Policy],
}

impl fmt::Display for UnsupportedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`errors` must be one of ")?;
        for (i, policy) in self.supported.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}\"{}\"", policy.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnsupportedPolicy {}

/// The reason why text is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedKind {
    /// UTF-8: a byte that cannot start a sequence (a continuation byte, 0xC0, 0xC1, or 0xF5 to
    /// 0xFF).
    InvalidStartByte,
    /// UTF-8: a byte that cannot continue the sequence before it. It is not a continuation byte, or
    /// the sequence would be an overlong form or a surrogate.
    InvalidContinuation,
    /// UTF-8 and UTF-16: the text ends inside a character.
    UnexpectedEnd,
    /// UTF-16, UTF-32 and UCS-2: a surrogate that is not part of a pair.
    LoneSurrogate,
    /// UTF-32: a unit above U+10FFFF.
    OutOfRange,
    /// Another thread, a process or a device wrote to the text during the conversion. In the error,
    /// the length is 0, and the position is not exact: it is the start of the text, or of the part
    /// of the text that was being converted. The caller must convert from memory that nothing
    /// writes to.
    Changed,
}

/// The first malformed sequence of a text. Position and length are in input units, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The reason why the sequence is malformed.
    pub kind: MalformedKind,
    /// The start of the ill-formed sequence, in input units.
    pub at_units: usize,
    /// The number of units of the malformed sequence (1 to 3). In UTF-8, it is a maximal subpart of
    /// an ill-formed sequence, as Unicode defines it.
    pub len_units: usize,
}

impl Malformed {
    /// The error for a text that other code has changed between two reads of the text.
    pub(crate) const CHANGED: Malformed = Malformed {
        kind: MalformedKind::Changed,
        at_units: 0,
        len_units: 0,
    };

    /// Adds `n_units` to the position of the error. If a caller has converted only a part of a
    /// text, which begins at unit `n_units`, the result has the position in the whole text.
    #[must_use]
    pub fn later_by(self, n_units: usize) -> Malformed {
        Malformed {
            at_units: self.at_units + n_units,
            ..self
        }
    }
}

impl fmt::Display for MalformedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MalformedKind::InvalidStartByte => "invalid start byte",
            MalformedKind::InvalidContinuation => "invalid continuation byte",
            MalformedKind::UnexpectedEnd => "unexpected end of data",
            MalformedKind::LoneSurrogate => "lone surrogate",
            MalformedKind::OutOfRange => "code point not in range(0x110000)",
            MalformedKind::Changed => "the buffer changed while it was read",
        })
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at unit {}", self.kind, self.at_units)
    }
}

impl std::error::Error for Malformed {}
