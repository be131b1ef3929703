//! [`Policy`], which specifies how malformed text is handled, and [`Malformed`], the error that
//! reports its position.

use std::fmt;

/// The handling of malformed text by a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Stop with the error [`Malformed`] at the first malformed sequence.
    #[default]
    Strict,
    /// Write U+FFFD for each maximal subpart of an ill-formed sequence (Unicode 16, section 3.9,
    /// "U+FFFD substitution of maximal subparts"), and for each lone surrogate.
    Replace,
}

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
    /// Another thread, a process or a device wrote to the text during the conversion. Position and
    /// length are 0. The caller must convert from memory that nothing writes to.
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
    /// The error for a text that was changed between two reads of it.
    pub(crate) const CHANGED: Malformed = Malformed {
        kind: MalformedKind::Changed,
        at_units: 0,
        len_units: 0,
    };

    /// Adds `n_units` to the position of the error. This corrects the position if only the part of
    /// a text after its first `n_units` units was examined.
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
