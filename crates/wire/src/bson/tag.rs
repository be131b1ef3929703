//! What an element's value is.

/// The byte in front of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Tag {
    /// A 64-bit float.
    Double = 0x01,
    /// Text in UTF-8, with its length.
    String = 0x02,
    /// A document inside this one.
    Document = 0x03,
    /// A document whose keys are `0`, `1`, `2`…
    Array = 0x04,
    /// Bytes, with their length and a subtype.
    Binary = 0x05,
    /// Nothing; deprecated.
    Undefined = 0x06,
    /// Twelve bytes.
    ObjectId = 0x07,
    /// `false` or `true`, one byte.
    Bool = 0x08,
    /// Milliseconds since 1970 in UTC, as a 64-bit integer.
    DateTime = 0x09,
    /// Nothing.
    Null = 0x0A,
    /// A pattern and its options, two texts that end with NUL.
    Regex = 0x0B,
    /// Text and an object id; deprecated.
    DbPointer = 0x0C,
    /// JavaScript, as text.
    Code = 0x0D,
    /// Text; deprecated.
    Symbol = 0x0E,
    /// A length, JavaScript as text, and a document.
    CodeWithScope = 0x0F,
    /// A 32-bit integer.
    Int32 = 0x10,
    /// An increment and seconds since 1970, 32 bits each: MongoDB's own.
    Timestamp = 0x11,
    /// A 64-bit integer.
    Int64 = 0x12,
    /// A decimal of 128 bits.
    Decimal128 = 0x13,
    /// Less than all other values; nothing follows.
    MinKey = 0xFF,
    /// More than all other values; nothing follows.
    MaxKey = 0x7F,
}

impl Tag {
    /// All of them.
    pub const ALL: [Tag; 21] = [
        Tag::Double,
        Tag::String,
        Tag::Document,
        Tag::Array,
        Tag::Binary,
        Tag::Undefined,
        Tag::ObjectId,
        Tag::Bool,
        Tag::DateTime,
        Tag::Null,
        Tag::Regex,
        Tag::DbPointer,
        Tag::Code,
        Tag::Symbol,
        Tag::CodeWithScope,
        Tag::Int32,
        Tag::Timestamp,
        Tag::Int64,
        Tag::Decimal128,
        Tag::MinKey,
        Tag::MaxKey,
    ];

    /// The byte.
    #[inline]
    #[must_use]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The tag of this byte.
    #[must_use]
    pub fn of(byte: u8) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| tag.byte() == byte)
    }
}
