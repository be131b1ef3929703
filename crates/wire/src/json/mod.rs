//! JSON (RFC 8259): the writer, and the reader in [`mod@read`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`scalar`] | one value: null, booleans, numbers with all their digits, dates, UUIDs, binary, text |
//! | [`mod@read`] | the reader: text in, events out |
//! | [`keys`] | [`KeySegments`]: the keys of an object, escaped once per statement and copied per cell |
//!
//! Scalars know no structure: rows, `json.dumps` and whoever writes objects set commas and brackets themselves. The
//! `put_` functions write into a window that was reserved once for a key and its value; the others take a sink.

pub mod keys;
pub mod read;
pub mod scalar;

pub use keys::KeySegments;
pub use scalar::{
    SCALAR_BYTES, put_bool, put_date, put_decimal, put_f32, put_f64, put_i64, put_i64_comma,
    put_null, put_time, put_timestamp, put_u64, put_u64_comma, put_uuid, put_valid_date,
    put_valid_time, put_valid_timestamp, write_base64, write_decimal, write_text,
};
