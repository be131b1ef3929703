//! BSON 1.1 (<https://bsonspec.org>): the writer, and the reader.
//!
//! | module | what it holds |
//! |---|---|
//! | [`tag`] | [`Tag`]: the byte in front of each element, which says what its value is |
//! | [`frame`] | [`Frame`]: documents, texts and binary, whose lengths stand in front of them and are patched in behind |
//! | [`value`] | one value: numbers, dates, ids, text, binary, regexes, code |
//! | [`decimal128`] | [`Decimal128`]: digits to IEEE 754's decimal of 128 bits, exactly or not at all |
//! | [`decimal_text`] | and back to digits |
//! | [`mod@check`] | [`check()`]: whether bytes are BSON |
//! | [`extended`] | MongoDB's Extended JSON v2, to and from documents |
//! | [`keys`] | [`KeySegments`]: the keys of a document, made once per statement and copied per cell |
//! | [`read`] | documents as events, with every length and terminator checked |
//! | [`naive`] | the slow twins: a reader, and decimals by digits on paper |
//!
//! An element is its tag, its key and its value. Who writes it puts them in this order: a key of [`KeySegments`] or of
//! [`value::write_key`], then the value, for which `tag` and value have to agree. Values know no structure, so rows, a codec
//! of objects and a reader of JSON text share them. As with JSON the `put_` functions write into a window that was reserved
//! once for a key and its value ([`VALUE_BYTES`]); the `write_` functions take a sink.
//!
//! Text goes straight from its units into the sink, once; its length is patched in when it is known. So a document has to
//! stay in one chunk until it ends. What fails half-way leaves a part in the sink: whoever goes on takes it back.

pub mod check;
pub mod decimal128;
pub mod decimal_text;
pub mod extended;
pub mod frame;
pub mod keys;
pub mod naive;
pub mod read;
pub mod tag;
pub mod value;

pub use check::check;
pub use decimal_text::{DECIMAL_TEXT_BYTES, DecimalParts, DecimalText};
pub use decimal128::Decimal128;
pub use frame::{Frame, MOST_BYTES};
pub use keys::KeySegments;
pub use tag::Tag;
pub use value::{
    SUBTYPE_GENERIC, SUBTYPE_OLD, SUBTYPE_OLD_UUID, SUBTYPE_UUID, UUID_BYTES, VALUE_BYTES,
    put_bool, put_decimal128, put_f64, put_i32, put_i64, put_object_id, put_short, put_timestamp,
    put_uuid, write_binary, write_key, write_regex, write_text,
};
