//! Writers and parsers for the formats JSON, BSON, CSV and HTTP/1.1, which work on bytes in memory.
//! The crate contains no database access, no I/O and no `unsafe`.
//!
//! | module | contents |
//! |---|---|
//! | [`chunk_source`] | [`ChunkSource`]: the interface of a row stream, which fills chunks for a server or a file |
//! | [`json`] | the JSON writer, which escapes and converts any [`onecopy_text::Units`] in one pass; the reader |
//! | [`csv`] | the CSV writer (RFC 4180) |
//! | [`bson`] | the writer of BSON 1.1, and the reader, which emits events |
//! | [`http`] | HTTP/1.1: a strict parser of requests, a writer of response heads, the chunked coding |
//! | [`datetime64`] | times that are stored as the number of units since 1970 |
//! | [`float16`] | floats of 16 bits |
//! | [`number`], [`datetime`], [`base64`], [`inline_text`] | numbers, dates and binary data as text, for JSON and CSV |
//! | [`error`] | [`WriteError`]: the reason why a value cannot be written in a format |
#![forbid(unsafe_code)]

pub mod base64;
pub mod bson;
pub mod chunk_source;
pub mod csv;
pub mod datetime;
pub mod datetime64;
mod decimal;
pub mod error;
pub mod float16;
pub mod http;
pub mod inline_text;
pub mod json;
pub mod lock;
pub mod number;
mod segments;

pub use chunk_source::{CancelHandle, ChunkError, ChunkErrorKind, ChunkSource, Filled};
pub use decimal::is_decimal;
pub use error::{NonFinite, WriteError};
