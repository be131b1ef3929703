//! `NumberColumn`: a column of numbers as a plain vector, for the buffers that
//! `Cursor.fetch_columns` returns.

use onecopy_text::Tally;

use super::array::bit;
use super::builder::Builder;
use super::error::{ValueError, repeated};
use super::plan::ColumnPlan;
use super::types::DataType;
use crate::cell::Cell;

/// The values of a column. Booleans are bytes of 0 or 1; timestamps are 64-bit integers.
#[derive(Debug)]
pub enum Numbers {
    /// Booleans, as bytes of 0 or 1.
    Bool(Vec<u8>),
    /// Signed 8-bit integers.
    I8(Vec<i8>),
    /// Signed 16-bit integers.
    I16(Vec<i16>),
    /// Signed 32-bit integers.
    I32(Vec<i32>),
    /// Signed 64-bit integers, and timestamps.
    I64(Vec<i64>),
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
}

/// The reason why a value cannot be stored in a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberMisfit {
    /// The value is of a kind that the column cannot store, such as text.
    Kind,
    /// The value has the kind of the column but is not valid, for example month 13.
    Invalid,
    /// The value is outside the range of the column's type, or has a finer resolution than that
    /// type.
    Range,
    /// The allocation for the value failed.
    Memory,
}

/// A column of numbers under construction.
#[derive(Debug)]
pub struct NumberColumn(Builder);

impl NumberColumn {
    /// Creates an empty column; `None` for a type that is not a number, boolean or timestamp.
    #[must_use]
    pub fn new(data_type: &DataType) -> Option<NumberColumn> {
        let is_number = matches!(
            data_type,
            DataType::Bool
                | DataType::Int { .. }
                | DataType::Float32
                | DataType::Float64
                | DataType::Timestamp { .. }
        );
        let plan = ColumnPlan::Type(data_type.clone());
        is_number.then(|| NumberColumn(Builder::new(&plan, onecopy_text::Policy::Strict, false)))
    }

    /// Creates a column that begins with `n_nulls` NULLs. `first` is the first value that is not
    /// NULL, and the caller must append it next. The column has floats if `first` is a float or
    /// `floats` is `true`, otherwise 64-bit integers. A column of integers becomes a column of
    /// floats when a float is appended. Returns `None` if `first` is not a number.
    ///
    /// # Errors
    /// [`NumberMisfit::Memory`].
    pub fn of_first(
        first: &Cell<'_>,
        floats: bool,
        n_nulls: usize,
    ) -> Result<Option<NumberColumn>, NumberMisfit> {
        if !matches!(first, Cell::I64(_) | Cell::F64(_)) {
            return Ok(None);
        }
        let plan = ColumnPlan::FirstValue { floats };
        let mut column = NumberColumn(Builder::new(&plan, onecopy_text::Policy::Strict, false));
        (0..n_nulls).try_for_each(|_| column.put(Cell::Null))?;
        Ok(Some(column))
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`NumberMisfit`], the reason why the column cannot store the value.
    #[inline]
    pub fn put(&mut self, cell: Cell<'_>) -> Result<(), NumberMisfit> {
        match self.0.put(cell, &mut Tally::default()) {
            Ok(_) => Ok(()),
            Err(ValueError::Range | ValueError::Scale) => Err(NumberMisfit::Range),
            Err(ValueError::Invalid) => Err(NumberMisfit::Invalid),
            Err(ValueError::Memory) => Err(NumberMisfit::Memory),
            Err(_) => Err(NumberMisfit::Kind),
        }
    }

    /// Returns the current type of the column. If the column was created by
    /// [`NumberColumn::of_first`], its type may change from an integer type to a float type when a
    /// float is appended.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        self.0.data_type()
    }

    /// Returns the values, and a byte for each value, which is 1 if the value is NULL. The entry of
    /// a NULL is NaN in a column of floats, and 0 in any other column.
    ///
    /// # Errors
    /// [`NumberMisfit::Memory`].
    pub fn finish(self) -> Result<(Numbers, Vec<u8>), NumberMisfit> {
        let none = |_| NumberMisfit::Memory;
        let (mut numbers, validity, len) = self.0.into_numbers().map_err(none)?;
        let mut nulls = repeated(0, len).map_err(none)?;
        if let Some(validity) = validity {
            for (at, null) in nulls.iter_mut().enumerate() {
                *null = u8::from(!bit(&validity, at));
            }
            let is_null = |at: usize| nulls[at] != 0;
            match &mut numbers {
                Numbers::F32(v) => set_where(v, is_null, f32::NAN),
                Numbers::F64(v) => set_where(v, is_null, f64::NAN),
                _ => {}
            }
        }
        Ok((numbers, nulls))
    }
}

fn set_where<T: Copy>(values: &mut [T], is_null: impl Fn(usize) -> bool, to: T) {
    for (at, value) in values.iter_mut().enumerate() {
        if is_null(at) {
            *value = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_told_beside_the_values() {
        let mut column = NumberColumn::of_first(&Cell::I64(1), false, 2)
            .unwrap()
            .unwrap();
        for cell in [Cell::I64(1), Cell::F64(2.5), Cell::Null] {
            column.put(cell).unwrap();
        }
        assert_eq!(column.put(Cell::Bytes(b"x")), Err(NumberMisfit::Kind));
        assert_eq!(column.data_type(), DataType::Float64);
        let (numbers, nulls) = column.finish().unwrap();
        assert_eq!(nulls, [1, 1, 0, 0, 1]);
        let Numbers::F64(values) = numbers else {
            panic!("{numbers:?}")
        };
        assert_eq!(values[2..4], [1.0, 2.5]);
        assert!(values[0].is_nan() && values[4].is_nan());
    }

    #[test]
    fn booleans_are_bytes() {
        let mut column = NumberColumn::new(&DataType::Bool).unwrap();
        for cell in [Cell::Bool(true), Cell::Bool(false), Cell::Null] {
            column.put(cell).unwrap();
        }
        let (numbers, nulls) = column.finish().unwrap();
        assert!(matches!(numbers, Numbers::Bool(v) if v == [1, 0, 0]));
        assert_eq!(nulls, [0, 0, 1]);
        assert!(NumberColumn::new(&DataType::Utf8).is_none());
    }
}
