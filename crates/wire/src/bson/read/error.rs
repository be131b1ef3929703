//! [`ReadError`]: the reason why bytes are not valid BSON, and the position of the error.

use std::fmt;

use onecopy_text::MalformedKind;

/// The reason why [`super::read`] or its event handler rejects bytes. The bytes are not valid BSON,
/// or exceed a limit that the caller has set. To avoid the error, correct the bytes, unless the
/// description of a variant names another remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end inside the outermost document. The document is truncated, or its length prefix
    /// is wrong.
    End,
    /// The length prefix of a document is below 5, the length of an empty document.
    DocumentLength,
    /// According to its length prefix, a value extends past the end of the document that contains
    /// it.
    Length,
    /// A value of a fixed size extends past the end of its document.
    Value,
    /// The last byte of a document, according to its length prefix, is not zero.
    NoTerminator,
    /// A zero byte is at the position of a tag. It would end the document before the end that is
    /// given by the document's length prefix.
    EarlyEnd,
    /// The length prefix of a text is below 1, the length of an empty text with its NUL.
    TextLength,
    /// The last byte of a text, according to its length prefix, is not zero.
    TextEnd,
    /// A text that must end with a zero byte has no zero byte before the end of its document. Such
    /// texts are keys, and the pattern and the options of a regular expression.
    OpenText,
    /// The tag byte of an element has this value, which BSON 1.1 does not define.
    Tag(u8),
    /// The byte of a boolean has this value, which is neither 0 nor 1.
    Boolean(u8),
    /// The length of a binary value is negative.
    BinaryLength,
    /// In a binary value of subtype 2, the inner length is not equal to the outer length minus 4.
    OldBinary,
    /// The length prefix of a value of type "code with scope" contradicts the lengths of its code
    /// and its scope.
    ScopeLength,
    /// A key of an array is not the index of its item, and [`super::ArrayKeys::Strict`] is set.
    ArrayKey,
    /// Documents and arrays are nested deeper than the limit that the caller has set. Raise the
    /// limit.
    Depth,
    /// A document is longer than the limit that the caller has set. Raise the limit.
    Size,
    /// Bytes follow the document. To read several documents, use a function for sequences of
    /// documents.
    TrailingData,
    /// A text is not valid UTF-8. A policy that accepts malformed text avoids this error.
    Malformed(MalformedKind),
    /// A binary value of subtype 3 or 4 does not have 16 bytes.
    Uuid,
    /// The caller's language (such as Python, whose `datetime` ends at the year 9999) cannot
    /// represent the date. To avoid the error, select a policy that accepts such dates.
    DateRange,
    /// Another thread changed the bytes while they were read.
    Changed,
    /// The event handler has failed, and has stored its own error.
    Events,
}

/// The error of reading BSON: its reason, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The reason why the bytes were rejected.
    pub reason: Reason,
    /// The position of the error, as an index of a byte in the data.
    pub offset_bytes: usize,
}

impl ReadError {
    /// Adds `n_bytes` to the position of the error. This is for a caller that has passed the data
    /// to the reader without its first `n_bytes` bytes.
    #[must_use]
    pub fn later_by(self, n_bytes: usize) -> ReadError {
        ReadError {
            offset_bytes: self.offset_bytes + n_bytes,
            ..self
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::End => "the data ends inside the document",
            Reason::DocumentLength => "the length of a document is below 5",
            Reason::Length => "a length reaches past the end of the document",
            Reason::Value => "a value reaches past the end of the document",
            Reason::NoTerminator => "no zero byte at the end of the document",
            Reason::EarlyEnd => "the document ends before its declared length",
            Reason::TextLength => "the length of a text is below 1",
            Reason::TextEnd => "no zero byte at the end of the text",
            Reason::OpenText => "a key or pattern has no zero byte at its end",
            Reason::Tag(tag) => return write!(f, "no type has the tag 0x{tag:02x}"),
            Reason::Boolean(byte) => {
                return write!(f, "a boolean is 0x{byte:02x}, neither 0 nor 1");
            }
            Reason::BinaryLength => "the length of a binary is below 0",
            Reason::OldBinary => "the two lengths of a binary of subtype 2 do not agree",
            Reason::ScopeLength => "the lengths of code with a scope do not agree",
            Reason::ArrayKey => "a key of an array is not its index; see `array_keys=`",
            Reason::Depth => "documents nested too deep; see `max_depth=`",
            Reason::Size => "a document too long; see `max_bytes=`",
            Reason::TrailingData => "trailing data after the document",
            Reason::Malformed(kind) => {
                return write!(f, "malformed text: {kind}; see `errors=`");
            }
            Reason::Uuid => "a UUID has not 16 bytes",
            Reason::DateRange => "a date outside of the years 1 to 9999; see `datetime_range=`",
            Reason::Changed => "the data was changed while it was read",
            Reason::Events => "the reader of the events failed",
        })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.offset_bytes)
    }
}

impl std::error::Error for ReadError {}
