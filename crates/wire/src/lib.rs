//! Text in, bytes out, and back: the formats on the wire. No databases, no sockets, no `unsafe`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`chunk_source`] | [`ChunkSource`]: "fill the next chunk"; what a row stream is and what the server pumps |
//! | [`json`] | the JSON writer: escaping and UTF-8 in one go, from any [`onecopy_text::Units`] |
//! | [`csv`] | the CSV writer (RFC 4180) |
//! | [`bson`] | BSON (1.1): the writer, lengths patched in, decimals exact or refused; the reader, by events |
//! | [`http`] | the strict HTTP/1.1 request head, response heads, the chunked coding |
//! | [`datetime64`] | moments as counts of a unit of time since 1970 |
//! | [`half`] | floats of 16 bits |
//! | [`number`], [`datetime`], [`base64`], [`short`] | numbers, dates and binary as text, shared by JSON and CSV |
//! | [`error`] | [`WriteError`]: why a value has no form in a format |
#![forbid(unsafe_code)]

pub mod base64;
pub mod bson;
pub mod chunk_source;
pub mod csv;
pub mod datetime;
pub mod datetime64;
mod decimal;
pub mod error;
pub mod half;
pub mod http;
pub mod json;
pub mod number;
mod segments;
pub mod short;

pub use chunk_source::{CancelHandle, ChunkError, ChunkErrorKind, ChunkSource, Filled};
pub use decimal::is_decimal;
pub use error::{NonFinite, WriteError};
