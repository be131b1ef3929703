//! BSON 1.1 (<https://bsonspec.org>): the writer ([`Frame`], [`value`]), the reader ([`read`]), and
//! Extended JSON ([`extended`]).
//!
//! | module | contents |
//! |---|---|
//! | [`tag`] | [`Tag`]: the byte before each element, which is the type of its value |
//! | [`frame`] | [`Frame`]: writes documents, texts and binary values, and then their length prefix |
//! | [`value`] | writes one value: a number, date, object id, text, binary value, regular expression or code |
//! | [`decimal128`] | [`Decimal128`]: decimals of 128 bits (IEEE 754), made from digits without rounding |
//! | [`decimal_text`] | [`DecimalText`]: decimals of 128 bits as text |
//! | [`mod@check`] | [`check()`]: validation of BSON bytes |
//! | [`extended`] | conversions between documents and MongoDB's Extended JSON v2 |
//! | [`keys`] | [`KeySegments`]: the keys of a document, encoded once per statement and copied for each cell |
//! | [`read`] | the reader, which converts a document to events and validates every length and terminator |
//! | [`naive`] | the reference implementations: a reader, and decimals by long arithmetic |
//!
//! An element is a tag, a key and a value, which are written in this order. [`KeySegments`] or
//! [`value::write_key`] writes the tag and the key, and a function in [`value`] writes the value.
//! The caller must write a value of the type that the tag names. The functions in [`value`] do not
//! depend on the structure of a document. Therefore the encoders of rows, of Python objects and of
//! JSON text all use them. As in [`crate::json`], the `put_` functions write to a window that was
//! reserved for a key and its value ([`VALUE_BYTES`]), and the `write_` functions write to a sink.
//!
//! Text is converted once, directly from its units to the sink, and its length is written
//! afterwards. Therefore a document must stay in one chunk until it ends. After an error, the sink
//! contains an incomplete value. A caller that continues must first truncate the sink.

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
