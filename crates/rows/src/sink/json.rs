//! `JsonRows`: the JSON output format, one array of objects.

use super::objects::{Layout, ObjectRows};

/// Writes one JSON array with an object for each row: `[{"id":1,"name":"a"},`, each further object
/// on a separate line, then `]`. A result without rows is `[]`.
///
/// The line end after each row costs one byte per row, and allows line-based tools to read a large
/// output. Only [`super::RowFormat::end`] writes the `]`, so a truncated array is not valid JSON.
pub type JsonRows = ObjectRows<ArrayLayout>;

/// The text that [`JsonRows`] writes before, between and after rows.
#[derive(Debug)]
pub enum ArrayLayout {}

impl Layout for ArrayLayout {
    const BEGIN: &'static [u8] = b"[";
    const BETWEEN: &'static [u8] = b",\n";
    const END_ROW: &'static [u8] = b"}";
    const END: &'static [u8] = b"]";
}
