//! The tags of BSON elements as constants of type `u8`, so that `match` patterns can use them.

use crate::bson::Tag;

macro_rules! tags {
    ($($name:ident: $tag:ident,)*) => {$(
        pub(super) const $name: u8 = Tag::$tag.byte();
    )*};
}

tags! {
    DOUBLE: Double,
    STRING: String,
    DOCUMENT: Document,
    ARRAY: Array,
    BINARY: Binary,
    UNDEFINED: Undefined,
    OBJECT_ID: ObjectId,
    BOOL: Bool,
    DATE_TIME: DateTime,
    NULL: Null,
    REGEX: Regex,
    DB_POINTER: DbPointer,
    CODE: Code,
    SYMBOL: Symbol,
    CODE_WITH_SCOPE: CodeWithScope,
    INT32: Int32,
    TIMESTAMP: Timestamp,
    INT64: Int64,
    DECIMAL128: Decimal128,
    MIN_KEY: MinKey,
    MAX_KEY: MaxKey,
}
