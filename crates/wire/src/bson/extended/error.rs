//! Why a text is no Extended JSON, and where.

use std::fmt;

use onecopy_text::SinkFull;

use crate::error::WriteError;
use crate::json::read;

/// Why a text does not become a document. From [`super::from_json()`] alone; mend the text, but where a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is no JSON, or not for who reads it.
    Json(read::Reason),
    /// A document was to come, which is an object, and another value stands there.
    NotADocument,
    /// A type wrapper (`{"$oid": …}`) has something in it that its type does not have. Told where its value stands, or where its
    /// object ends.
    Wrapper {
        /// Its key.
        key: &'static str,
        /// What belongs there.
        wants: &'static str,
    },
    /// Beside the key of a type wrapper stands another one, which the type does not have.
    Beside(&'static str),
    /// A key, or a part of a regular expression, holds NUL, which ends it in BSON.
    Nul,
    /// The document would be longer than this, in bytes. Allow longer ones (`max_size`).
    TooLong(usize),
    /// There is no memory for it, or no room.
    SinkFull(SinkFull),
}

/// What is wrong, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromJsonError {
    /// Why.
    pub reason: Reason,
    /// Where, in units of the text, from 0.
    pub at_units: usize,
}

impl FromJsonError {
    /// Whether more text could make it good: what is wrong is its end.
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
            Reason::NotADocument => {
                f.write_str("a document is an object, and another value stands here")
            }
            Reason::Wrapper { key, wants } => write!(f, "`{key}` wants {wants}"),
            Reason::Beside(key) => write!(f, "a key beside `{key}` that its type does not have"),
            Reason::Nul => {
                f.write_str("NUL in a key or a regular expression, which it would end in BSON")
            }
            Reason::TooLong(most_bytes) => write!(
                f,
                "the document would be longer than {most_bytes} bytes; see `max_size=`"
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
    /// Of the errors that a writer of BSON has where its text is well-formed.
    fn from(e: WriteError) -> Self {
        match e {
            WriteError::SinkFull(e) => Reason::SinkFull(e),
            WriteError::TooLong(most_bytes) => Reason::TooLong(most_bytes),
            _ => Reason::Nul,
        }
    }
}
