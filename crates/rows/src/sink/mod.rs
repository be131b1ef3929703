//! The output formats JSON, NDJSON, CSV and BSON. Each cell is converted once, directly into the
//! chunk to send.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@format`] | [`RowFormat`]: the trait of a format, which writes cells, rows, the beginning and the end of the output |
//! | [`byte_rows`] | [`ByteRows`]: any format as a [`crate::RowSink`] over one chunk, which reports when it is full |
//! | [`objects`] | [`objects::ObjectRows`]: rows as JSON objects, in any layout |
//! | [`json`] | [`JsonRows`]: one array of objects |
//! | [`ndjson`] | [`NdjsonRows`]: one object per line |
//! | [`csv`] | [`CsvRows`]: RFC 4180 with a header line |
//! | [`bson`] | [`BsonRows`]: one BSON document per row |
//!
//! To add a format, add a file to this directory, an arm to `row_stream::chunks_with` and a variant
//! to [`crate::row_stream::Format`].

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
