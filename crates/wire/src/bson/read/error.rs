//! What is wrong with bytes that are no BSON, and where.

use std::fmt;

use onecopy_text::MalformedKind;

/// Why bytes are not BSON, or not for who reads them. From [`super::read`] and from whom it tells; what to do about it is to
/// mend the bytes, but where a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end inside the outermost document: it was cut off, or its length is wrong.
    End,
    /// A document says that it is shorter than any can be.
    DocumentLength,
    /// The length of what stands inside a document reaches past the end of that.
    Length,
    /// A value of a fixed size reaches past the end of its document.
    Value,
    /// No zero byte stands where a document ends by its length.
    NoTerminator,
    /// A zero byte stands in place of an element, before the document ends by its length.
    EarlyEnd,
    /// A text says that it is shorter than any can be.
    TextLength,
    /// No zero byte stands where a text ends by its length.
    TextEnd,
    /// A key, or one of the texts of a regex, has no zero byte before its document ends.
    OpenText,
    /// No type has this tag.
    Tag(u8),
    /// A boolean is neither 0 nor 1.
    Boolean(u8),
    /// A binary says that it is shorter than nothing.
    BinaryLength,
    /// The second length of a binary of subtype 2 does not agree with the first.
    OldBinary,
    /// The length of code with a scope does not agree with those of its code and its scope.
    ScopeLength,
    /// A key of an array is not the number of its item, and this is refused.
    ArrayKey,
    /// Documents and arrays stand deeper in each other than is allowed. Raise the limit.
    Depth,
    /// A document is longer than is allowed. Raise the limit.
    Size,
    /// Something stands behind the document. Ask for all of them to take it.
    Behind,
    /// A text is malformed. Ask for another policy to take it.
    Malformed(MalformedKind),
    /// A binary of a UUID's subtype, 3 or 4, has not 16 bytes.
    Uuid,
    /// A date that its reader has no value for. Ask for another policy to take it.
    DateRange,
    /// The bytes were changed while they were read.
    Changed,
    /// The reader of the events has an error of its own, which it keeps.
    Events,
}

/// What is wrong, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Why.
    pub reason: Reason,
    /// Where, in bytes from the start of what was read.
    pub offset_bytes: usize,
}

impl ReadError {
    /// The same, of bytes with others before them.
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
            Reason::NoTerminator => "no zero byte stands at the end of the document",
            Reason::EarlyEnd => "the document ends before its length says",
            Reason::TextLength => "the length of a text is below 1",
            Reason::TextEnd => "no zero byte stands at the end of the text",
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
            Reason::Size => "a document too long; see `max_size=`",
            Reason::Behind => "something stands behind the document",
            Reason::Malformed(kind) => {
                return write!(f, "malformed text: {kind}; see `on_invalid_utf8=`");
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
