//! JSON (RFC 8259): writers of values, and the reader, [`mod@read`].
//!
//! | module | contents |
//! |---|---|
//! | [`scalar`] | writes one value: null, a boolean, number, date, UUID, binary value or text |
//! | [`value`] | writes values that are JSON text already |
//! | [`mod@read`] | the reader, which converts text to events |
//! | [`keys`] | [`KeySegments`]: the keys of an object, encoded once per statement and copied for each cell |
//!
//! The functions that write values do not write commas and brackets between values. Their callers
//! (the row sinks and `json.dumps`) write these. The `put_` functions write to a window that was
//! reserved for a key and its value. The other functions write to a sink.

pub mod keys;
pub mod read;
pub mod scalar;
pub mod value;

pub use keys::KeySegments;
pub use scalar::{
    SCALAR_BYTES, put_bool, put_date, put_decimal, put_f32, put_f64, put_i64, put_i64_comma,
    put_null, put_time, put_timestamp, put_u64, put_u64_comma, put_uuid, put_valid_date,
    put_valid_time, put_valid_timestamp, write_base64, write_decimal, write_text,
};
pub use value::write_value;
