//! Columns of numbers as plain vectors: what a buffer of Python's is made of.

use onecopy_text::Tally;

use super::array::bit;
use super::builder::Builder;
use super::error::{ValueError, repeated};
use super::plan::Plan;
use super::types::DataType;
use crate::cell::Cell;

/// The values of a column; booleans as bytes of 0 and 1, timestamps as integers.
#[derive(Debug)]
pub enum Numbers {
    /// Booleans.
    Bool(Vec<u8>),
    /// 8 bit.
    I8(Vec<i8>),
    /// 16 bit.
    I16(Vec<i16>),
    /// 32 bit.
    I32(Vec<i32>),
    /// 64 bit.
    I64(Vec<i64>),
    /// 8 bit, unsigned.
    U8(Vec<u8>),
    /// 16 bit, unsigned.
    U16(Vec<u16>),
    /// 32 bit, unsigned.
    U32(Vec<u32>),
    /// 64 bit, unsigned.
    U64(Vec<u64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
}

/// A value does not go into its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberMisfit {
    /// It is of another kind.
    Kind,
    /// It is of the column's kind and no value of it: a thirteenth month.
    Invalid,
    /// It is outside of what the column's type holds, or finer.
    Range,
    /// The system gives no memory for it.
    Memory,
}

/// A column of numbers under construction.
#[derive(Debug)]
pub struct NumberColumn(Builder);

impl NumberColumn {
    /// An empty column; `None` for a type that is no number, boolean or timestamp.
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
        let plan = Plan::Type(data_type.clone());
        is_number.then(|| NumberColumn(Builder::new(&plan, onecopy_text::Policy::Strict, false)))
    }

    /// One whose type the first value tells, integer or float, behind `n_nulls` values that are NULL; integers become floats
    /// where a float comes behind them. `None` where that value is no number.
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
        let plan = Plan::FirstValue { floats };
        let mut column = NumberColumn(Builder::new(&plan, onecopy_text::Policy::Strict, false));
        (0..n_nulls).try_for_each(|_| column.put(Cell::Null))?;
        Ok(Some(column))
    }

    /// The next value.
    ///
    /// # Errors
    /// [`NumberMisfit`].
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

    /// The type so far.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        self.0.data_type()
    }

    /// The values, and a byte for each that is 1 where it is NULL; there a float is NaN, and anything else 0.
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
