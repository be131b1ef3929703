//! `Array` and `Batch`: columns of values in the memory layout of Arrow. `ArrowRows` creates them,
//! and [`crate::arrow_c`] exports and imports them.

use super::types::DataType;
use crate::arrow_c::Memory;

/// The values of one column of a batch.
///
/// Source: <https://arrow.apache.org/docs/format/Columnar.html>.
#[derive(Clone, Debug)]
pub struct Array {
    /// The Arrow type of the values.
    pub data_type: DataType,
    /// The number of values in the array.
    pub len: usize,
    /// The index, in each buffer, of the first value of this array. It is not 0 if the array is a
    /// slice of a larger array.
    pub offset: usize,
    /// A bitmap with a bit per value, set if the value is not NULL; `None` if no value is NULL.
    pub validity: Option<Memory>,
    /// The number of values that are NULL; `None` if the number is unknown.
    pub n_nulls: Option<usize>,
    /// The buffers of the array. A type whose values have a fixed size has one buffer of values.
    /// Text and binary types have a buffer of offsets and a buffer of bytes; in the view layout, a
    /// buffer of views and any number of buffers of bytes. A list type has a buffer of offsets.
    pub buffers: Vec<Memory>,
    /// For a dictionary type, the values to which the indices in `buffers` refer; otherwise `None`.
    pub dictionary: Option<Box<Array>>,
    /// For a list type, the elements of all lists one after the other; `None` for other types. The
    /// offsets in `buffers` are the indices at which each list begins and ends.
    pub items: Option<Box<Array>>,
}

/// Consecutive rows of a result, stored as one [`Array`] per column.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The number of rows in the batch.
    pub n_rows: usize,
    /// The columns of the batch, each with one value per row.
    pub columns: Vec<Array>,
}

impl Array {
    /// Returns `true` if the value of `row` (from 0) is NULL.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        match &self.validity {
            None => matches!(self.data_type, DataType::Null),
            Some(bits) => !bit(bits.bytes(), self.offset + row),
        }
    }
}

impl Batch {
    /// Returns the total size in bytes of the values of all columns.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        fn of(array: &Array) -> u64 {
            let buffers = array.validity.iter().chain(&array.buffers);
            let inner = array.dictionary.iter().chain(&array.items);
            let n_bytes: usize = buffers.map(|memory| memory.bytes().len()).sum();
            n_bytes as u64 + inner.map(|array| of(array)).sum::<u64>()
        }
        self.columns.iter().map(of).sum()
    }
}

/// Returns bit `at` of a bitmap, counted from the least significant bit of the first byte; `false`
/// if `at` is past the end of the bitmap.
#[inline]
pub(crate) fn bit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at / 8).is_some_and(|b| b >> (at % 8) & 1 != 0)
}
