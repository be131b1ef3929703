//! [`FromJsonError`]: the reason why a text is not valid Extended JSON, and the position.

use std::fmt;

use onecopy_text::SinkFull;

use crate::error::WriteError;
use crate::json::read;

/// The reason why [`super::from_json()`] cannot convert a text to a document. The text must be
/// corrected, unless the description of a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not valid JSON, or exceeds a limit set by the caller.
    Json(read::Reason),
    /// The value is not an object, and therefore not a document.
    NotADocument,
    /// A type wrapper (`{"$oid": …}`) has contents that its type does not permit. The reported
    /// position is that of the wrapper's value, or the end of the wrapper's object.
    Wrapper {
        /// The key of the wrapper, such as `$oid`.
        key: &'static str,
        /// The contents that the wrapper requires, as a phrase.
        expected: &'static str,
    },
    /// The object has this key of a type wrapper, and another key that the wrapper does not permit.
    ExtraKey(&'static str),
    /// A key, or a part of a regular expression, contains NUL, which would end the text in BSON.
    Nul,
    /// The document would be longer than this number of bytes, which is `max_bytes`. Raise that
    /// limit.
    TooLong(usize),
    /// The sink is full, or memory is exhausted.
    SinkFull(SinkFull),
}

/// The reason why a text was not converted, with the position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromJsonError {
    /// The reason why the text was not converted.
    pub reason: Reason,
    /// The position of the error in units of the text, from 0.
    pub at_units: usize,
}

impl FromJsonError {
    /// Returns `true` if the text ends too early: with more text, the document could be valid.
    #[must_use]
    pub fn is_at_end(&self, len_units: usize) -> bool {
        match self.reason {
            Reason::Json(read::Reason::End | read::Reason::OpenString) => true,
            Reason::Json(_) => self.at_units >= len_units,
            _ => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Json(reason) => reason.fmt(f),
            Reason::NotADocument => f.write_str("a document must be an object"),
            Reason::Wrapper { key, expected } => write!(f, "`{key}` must be {expected}"),
            Reason::ExtraKey(key) => write!(f, "an extra key next to `{key}`"),
            Reason::Nul => {
                f.write_str("NUL in a key or a regular expression, which it would end in BSON")
            }
            Reason::TooLong(most_bytes) => write!(
                f,
                "the document would be longer than {most_bytes} bytes; see `max_bytes=`"
            ),
            Reason::SinkFull(e) => e.fmt(f),
        }
    }
}

impl fmt::Display for FromJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at unit {}", self.reason, self.at_units)
    }
}

impl std::error::Error for FromJsonError {}

impl From<SinkFull> for Reason {
    fn from(e: SinkFull) -> Self {
        Reason::SinkFull(e)
    }
}

impl From<WriteError> for Reason {
    /// Converts the errors that a BSON writer can return for well-formed text.
    fn from(e: WriteError) -> Self {
        match e {
            WriteError::SinkFull(e) => Reason::SinkFull(e),
            WriteError::TooLong(most_bytes) => Reason::TooLong(most_bytes),
            _ => Reason::Nul,
        }
    }
}
