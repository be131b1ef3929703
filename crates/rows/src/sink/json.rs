//! One JSON array of objects.

use super::objects::{Layout, ObjectRows};

/// `[{"id":1,"name":"a"},` and each further object on a line of its own, then `]`; no rows are `[]`.
///
/// One row a line costs a byte a row and lets line tools look into a large answer. The `]` is written by
/// [`super::RowFormat::end`] alone: an array that broke off does not parse.
pub type JsonRows = ObjectRows<Array>;

/// The layout of [`JsonRows`].
#[derive(Debug)]
pub enum Array {}

impl Layout for Array {
    const BEGIN: &'static [u8] = b"[";
    const BETWEEN: &'static [u8] = b",\n";
    const END_ROW: &'static [u8] = b"}";
    const END: &'static [u8] = b"]";
}
