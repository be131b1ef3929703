//! [`Tag`]: the types of BSON values. Each element of a document begins with a byte that identifies
//! the type of its value, the tag.

/// The type of an element's value, as the byte that precedes the element's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Tag {
    /// A 64-bit float.
    Double = 0x01,
    /// A UTF-8 string with a length prefix.
    String = 0x02,
    /// An embedded document.
    Document = 0x03,
    /// An array: an embedded document whose keys are `0`, `1`, `2`…
    Array = 0x04,
    /// Bytes with a length prefix and a subtype.
    Binary = 0x05,
    /// The value `undefined`, which has no bytes; deprecated.
    Undefined = 0x06,
    /// An object id of twelve bytes.
    ObjectId = 0x07,
    /// A boolean, one byte.
    Bool = 0x08,
    /// Milliseconds since 1970 in UTC, as a 64-bit integer.
    DateTime = 0x09,
    /// The value `null`, which has no bytes.
    Null = 0x0A,
    /// A regular expression: a pattern and its options, two texts that end with NUL.
    Regex = 0x0B,
    /// A DBPointer: the name of a collection as text, and an object id; deprecated.
    DbPointer = 0x0C,
    /// JavaScript code, as text.
    Code = 0x0D,
    /// A symbol, as text; deprecated.
    Symbol = 0x0E,
    /// JavaScript code with a scope: a length, the code as text, and the scope as a document.
    CodeWithScope = 0x0F,
    /// A 32-bit integer.
    Int32 = 0x10,
    /// A MongoDB timestamp: an increment and seconds since 1970, 32 bits each.
    Timestamp = 0x11,
    /// A 64-bit integer.
    Int64 = 0x12,
    /// A decimal of 128 bits.
    Decimal128 = 0x13,
    /// The value MinKey, which has no bytes and sorts before all other values.
    MinKey = 0xFF,
    /// The value MaxKey, which has no bytes and sorts after all other values.
    MaxKey = 0x7F,
}

impl Tag {
    /// All tags, each exactly once.
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

    /// Returns the byte of the tag.
    #[inline]
    #[must_use]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Returns the tag with the byte `byte`; `None` if no tag has this byte.
    #[must_use]
    pub fn of(byte: u8) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| tag.byte() == byte)
    }
}
