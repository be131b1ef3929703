//! What to do with malformed text, and where it stands.

use std::fmt;

/// What a conversion does with malformed text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Stop with [`Malformed`] at the first malformed unit.
    #[default]
    Strict,
    /// Put U+FFFD for each maximal subpart of an ill-formed sequence (Unicode 16, section 3.9, "U+FFFD
    /// substitution of maximal subparts"), and for each lone surrogate.
    Replace,
}

/// Why text is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedKind {
    /// UTF-8: a byte that cannot start a sequence (continuation byte, 0xC0, 0xC1, 0xF5 to 0xFF).
    InvalidStartByte,
    /// UTF-8: a byte that cannot continue the sequence before it (also overlong forms and surrogates).
    InvalidContinuation,
    /// UTF-8, UTF-16: the text ends inside a sequence.
    UnexpectedEnd,
    /// UTF-16, UTF-32, UCS-2: a surrogate that is not part of a pair.
    LoneSurrogate,
    /// UTF-32: a unit above U+10FFFF.
    OutOfRange,
    /// Another thread, process or device wrote to the text while it was read. Position and length
    /// are 0. Read it from memory that nobody writes to meanwhile.
    Changed,
}

/// The first malformed sequence of a text. Position and length are in input units, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Why.
    pub kind: MalformedKind,
    /// Where the ill-formed sequence starts, in input units.
    pub at_units: usize,
    /// How many units the maximal subpart has (1 to 3).
    pub len_units: usize,
}

impl Malformed {
    /// The text changed between two reads.
    pub(crate) const CHANGED: Malformed = Malformed {
        kind: MalformedKind::Changed,
        at_units: 0,
        len_units: 0,
    };

    /// The same, in a text that starts `n_units` earlier.
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
