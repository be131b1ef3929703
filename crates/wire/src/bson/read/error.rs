//! [`ReadError`]: the reason why bytes are not valid BSON, and the position.

use std::fmt;

use onecopy_text::MalformedKind;

/// The reason why [`super::read`] or its event handler rejects bytes: they are not valid BSON, or
/// exceed a limit that the caller has set. The bytes must be corrected, unless the description of a
/// variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end inside the outermost document: it is truncated, or its length is wrong.
    End,
    /// The length of a document is below 5, which is the length of an empty document.
    DocumentLength,
    /// The length of a value inside a document extends past the document's end.
    Length,
    /// A value of a fixed size extends past the end of its document.
    Value,
    /// A document has no zero byte at the end that its length gives.
    NoTerminator,
    /// A zero byte ends a document before the end that its length gives.
    EarlyEnd,
    /// The length of a text is below 1, which is the length of an empty text.
    TextLength,
    /// A text has no zero byte at the end that its length gives.
    TextEnd,
    /// A key, or one of the texts of a regex, has no zero byte before the end of its document.
    OpenText,
    /// The byte before an element is not a known tag.
    Tag(u8),
    /// A boolean has this value, which is neither 0 nor 1.
    Boolean(u8),
    /// The length of a binary value is negative.
    BinaryLength,
    /// In a binary value of subtype 2, the second length is not equal to the first length minus 4.
    OldBinary,
    /// The length of code with a scope contradicts the lengths of the code and the scope.
    ScopeLength,
    /// A key of an array is not the index of its item, and [`super::ArrayKeys::Strict`] is set.
    ArrayKey,
    /// Documents and arrays are nested deeper than the limit that the caller has set. Raise the
    /// limit.
    Depth,
    /// A document is longer than the limit that the caller has set. Raise the limit.
    Size,
    /// Data follows the document. Use the function that reads several documents.
    TrailingData,
    /// A text is malformed. Choose a policy that accepts malformed text.
    Malformed(MalformedKind),
    /// A binary value of subtype 3 or 4 does not have 16 bytes.
    Uuid,
    /// The language of the caller has no value for the date. Choose a policy that accepts the date.
    DateRange,
    /// Another thread changed the bytes while they were read.
    Changed,
    /// The event handler has failed; the handler itself keeps the error.
    Events,
}

/// The reason why bytes were rejected, and the position in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The reason why the bytes were rejected.
    pub reason: Reason,
    /// The position in bytes from the start of the data.
    pub offset_bytes: usize,
}

impl ReadError {
    /// Adds `n_bytes` to the position of the error. This corrects the position if only the data
    /// after the first `n_bytes` bytes was examined.
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
