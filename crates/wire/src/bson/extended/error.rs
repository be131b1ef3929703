//! [`FromJsonError`]: the reason why a text is not valid Extended JSON, and the position of the
//! error.

use std::fmt;

use onecopy_text::SinkFull;

use crate::error::WriteError;
use crate::json::read;

/// The reason why [`super::from_json()`] cannot convert a text to a document. To avoid the error,
/// correct the text, unless the description of a variant names another remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not valid JSON, or exceeds a limit set by the caller.
    Json(read::Reason),
    /// The value is not an object, and therefore not a document.
    NotADocument,
    /// The contents of a type wrapper (such as `{"$oid": …}`) are not valid for its type. The
    /// reported position is the start of the wrapper's value, or the end of the wrapper's object.
    Wrapper {
        /// The key of the wrapper, such as `$oid`.
        key: &'static str,
        /// A phrase that describes the contents that the wrapper requires.
        expected: &'static str,
    },
    /// A JSON object is a type wrapper, because it has this key, but it also has a key that this
    /// kind of type wrapper does not permit.
    ExtraKey(&'static str),
    /// A key or a part of a regular expression contains NUL, which would end the string in BSON.
    Nul,
    /// The document would be longer than this number of bytes, the limit `max_bytes` of the
    /// options. A higher limit avoids this error.
    TooLong(usize),
    /// The sink is full, or no more memory is available.
    SinkFull(SinkFull),
}

/// The error of a conversion from text: its reason, and its position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromJsonError {
    /// The reason why the text cannot be converted.
    pub reason: Reason,
    /// The position of the error in the text, as an index (from 0) of code units.
    pub at_units: usize,
}

impl FromJsonError {
    /// Returns `true` if the text is incomplete: with more text, it could become a valid document.
    /// `len_units` is the length of the text.
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
    /// Converts an error of a BSON writer. The text that is written is always well-formed, so only
    /// the errors for a full sink, a too long document and a NUL in a key are possible.
    fn from(e: WriteError) -> Self {
        match e {
            WriteError::SinkFull(e) => Reason::SinkFull(e),
            WriteError::TooLong(most_bytes) => Reason::TooLong(most_bytes),
            _ => Reason::Nul,
        }
    }
}
