//! Row sinks that write JSON, NDJSON, CSV and BSON: each cell converted once, into the outgoing chunk.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@format`] | [`RowFormat`]: what a format is: how it writes a cell, a row, its beginning and its end |
//! | [`byte_rows`] | [`ByteRows`]: any format as a [`crate::RowSink`] over one chunk, which says when it has enough |
//! | [`objects`] | [`objects::ObjectRows`]: rows as JSON objects, in any layout |
//! | [`json`] | [`JsonRows`]: one array of objects |
//! | [`ndjson`] | [`NdjsonRows`]: one object a line |
//! | [`csv`] | [`CsvRows`]: RFC 4180 with a header line |
//! | [`bson`] | [`BsonRows`]: one BSON document a row |
//!
//! A new format is one file here, one arm in `row_stream::chunks` and one in [`crate::connect::Format`].

pub mod bson;
pub mod byte_rows;
pub mod csv;
pub mod format;
pub mod json;
mod long;
pub mod ndjson;
pub mod objects;

pub use bson::{BsonOptions, BsonRows};
pub use byte_rows::{ByteRows, SinkError, Turn};
pub use csv::CsvRows;
pub use format::RowFormat;
pub use json::JsonRows;
pub use ndjson::NdjsonRows;
