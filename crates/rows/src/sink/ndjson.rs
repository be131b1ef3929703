//! One JSON object a line.

use super::objects::{Layout, ObjectRows};

/// `{"id":1,"name":"a"}` and LF, for each row; no rows are no bytes.
pub type NdjsonRows = ObjectRows<Lines>;

/// The layout of [`NdjsonRows`].
#[derive(Debug)]
pub enum Lines {}

impl Layout for Lines {
    const BEGIN: &'static [u8] = b"";
    const BETWEEN: &'static [u8] = b"";
    const END_ROW: &'static [u8] = b"}\n";
    const END: &'static [u8] = b"";
}
