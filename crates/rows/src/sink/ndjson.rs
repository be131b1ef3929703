//! `NdjsonRows`: the NDJSON output format, one JSON object per line.

use super::objects::{Layout, ObjectRows};

/// Writes an object such as `{"id":1,"name":"a"}` and LF for each row; the output of a result
/// without rows is empty.
pub type NdjsonRows = ObjectRows<LineLayout>;

/// The text that [`NdjsonRows`] writes at the end of each row.
#[derive(Debug)]
pub enum LineLayout {}

impl Layout for LineLayout {
    const BEGIN: &'static [u8] = b"";
    const BETWEEN: &'static [u8] = b"";
    const END_ROW: &'static [u8] = b"}\n";
    const END: &'static [u8] = b"";
}
