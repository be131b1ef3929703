//! Arrays and batches: columns of values in memory as Arrow lays it out.

use super::types::DataType;
use crate::arrow_c::Memory;

/// One column of a batch.
///
/// Source: <https://arrow.apache.org/docs/format/Columnar.html>.
#[derive(Clone, Debug)]
pub struct Array {
    /// What the values are.
    pub data_type: DataType,
    /// How many.
    pub len: usize,
    /// Values before the first, in each buffer: an array may be a part of another one.
    pub offset: usize,
    /// A bit for each value that is not NULL; none where no value is.
    pub validity: Option<Memory>,
    /// How many are NULL, where it is known.
    pub n_nulls: Option<usize>,
    /// Values, or places and then bytes, as the type has them.
    pub buffers: Vec<Memory>,
    /// The values that numbers stand for, of a dictionary.
    pub dictionary: Option<Box<Array>>,
}

/// Rows, column by column.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// How many rows.
    pub n_rows: usize,
    /// The columns, each with a value for each row.
    pub columns: Vec<Array>,
}

impl Array {
    /// Whether the value of `row` (from 0) is NULL.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        match &self.validity {
            None => matches!(self.data_type, DataType::Null),
            Some(bits) => !bit(bits.bytes(), self.offset + row),
        }
    }
}

/// The bit at `at`, from the least of the first byte on; one behind the end is not set.
#[inline]
pub(crate) fn bit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at / 8).is_some_and(|b| b >> (at % 8) & 1 != 0)
}
