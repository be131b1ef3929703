//! [`Policy`]: the handling of malformed text. [`Malformed`]: the error for it.

use std::fmt;

/// How to handle malformed text, and characters that the encoding lacks. The names are those of
/// Python's error handlers, and the values of the option `errors`.
///
/// Every conversion supports [`Policy::BASIC`]. It treats an unsupported policy as
/// [`Policy::Strict`]. [`Policy::of_name`] refuses unsupported names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// `strict`: stop at the first malformed sequence, or at the first character that the encoding
    /// cannot represent.
    #[default]
    Strict,
    /// `replace`: write U+FFFD for each lone surrogate, and for each maximal subpart of an
    /// ill-formed sequence (Unicode 16, section 3.9). Write `?` for a character that the encoding
    /// cannot represent.
    Replace,
    /// `ignore`: omit malformed bytes, and characters that the encoding cannot represent.
    Ignore,
    /// `surrogatepass`: accept and write lone surrogates in UTF-8, UTF-16, UTF-32 and JSON. Stop at
    /// all other errors.
    SurrogatePass,
    /// `backslashreplace`: write `\xNN` for each malformed byte. Write `\xNN`, `\uNNNN` or
    /// `\UNNNNNNNN` for a character that the encoding cannot represent, or for a lone surrogate in
    /// JSON.
    BackslashReplace,
    /// `xmlcharrefreplace`: write `&#N;` for a character that the encoding cannot represent. Stop
    /// at malformed bytes.
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

    /// Returns the name of the policy, a value of the option `errors`.
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

/// The name is not that of a supported [`Policy`].
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
    /// UTF-8: a byte that cannot continue a sequence. It is not a continuation byte, or makes an
    /// overlong form or a surrogate.
    InvalidContinuation,
    /// UTF-8 and UTF-16: the text ends inside a character.
    UnexpectedEnd,
    /// UTF-16, UTF-32 and UCS-2: a surrogate that is not part of a pair.
    LoneSurrogate,
    /// UTF-32: a unit above U+10FFFF.
    OutOfRange,
    /// The text changed during the conversion. The length is 0, and the position is the start of
    /// the text or of a part. Convert from memory that nothing writes to.
    Changed,
}

/// The first malformed sequence of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The reason why the sequence is malformed.
    pub kind: MalformedKind,
    /// The start of the sequence in input units, counted from 0.
    pub at_units: usize,
    /// The number of units of the sequence (1 to 3).
    pub len_units: usize,
}

impl Malformed {
    /// The error for a text that changed between two reads.
    pub(crate) const CHANGED: Malformed = Malformed {
        kind: MalformedKind::Changed,
        at_units: 0,
        len_units: 0,
    };

    /// Adds `n_units` to the position. The text must be a part that starts at unit `n_units` of the
    /// whole text.
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
