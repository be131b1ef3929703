//! Decides the type of a column from its values, for databases without column types (SQLite): from
//! the first value, then from all values of the first batch.

use std::collections::TryReserveError;

use onecopy_text::Tally;

use super::array::bit;
use super::builder::{Builder, Values};
use super::decimal;
use super::error::{ValueError, exact_f64, repeated};
use super::number_column::Numbers;
use super::plan::ColumnPlan;
use super::types::DataType;
use crate::cell::Cell;

impl Builder {
    /// Sets the type of the column to the type of `first`, the first value that is not NULL.
    pub(super) fn decide(&mut self, first: &Cell<'_>) -> Result<(), ValueError> {
        let Values::Undecided { floats } = self.values else {
            return Ok(());
        };
        if !self.is_open {
            return Err(ValueError::Kind);
        }
        let data_type = match first {
            Cell::I64(_) | Cell::F64(_) if floats => DataType::Float64,
            Cell::I64(_) => DataType::int(64),
            Cell::F64(_) => DataType::Float64,
            Cell::Text(_) => DataType::Utf8,
            Cell::Bytes(_) => DataType::Binary,
            _ => return Err(ValueError::Kind),
        };
        let n_nulls = self.len;
        let plan = ColumnPlan::Type(data_type);
        *self = Builder::new(&plan, self.policy, self.was_requested);
        self.is_open = true;
        self.reserve(n_nulls.saturating_add(1))?;
        (0..n_nulls).try_for_each(|_| self.put_null())
    }

    /// Converts the column from integers to floats. Returns an error if a float cannot represent
    /// one of the integers exactly.
    pub(super) fn widen(&mut self) -> Result<(), ValueError> {
        if let Values::I64(integers) = &self.values {
            let mut floats = Vec::new();
            // The next value, a float, is appended after the conversion.
            floats.try_reserve(integers.len() + 1)?;
            for n in integers {
                floats.push(exact_f64(*n)?);
            }
            self.values = Values::F64(floats);
            self.reserve(1)?;
        }
        Ok(())
    }

    /// Determines the type of the column, if it is still undecided. This function is called when
    /// the first batch is full.
    pub(crate) fn settle(&mut self) -> Result<(), (usize, ValueError)> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        match &mut self.values {
            Values::Undecided { .. } => self.values = Values::Null,
            Values::Digits(digits) => {
                let sizes = digits.iter().filter_map(decimal::size);
                let (whole, scale) = sizes.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
                // The precision is larger than this batch needs, because later batches have the
                // same type and may contain larger values.
                let fits = |most: usize| whole + scale <= most && scale <= 127;
                let precision = if fits(38) { 38 } else { 76 };
                let data_type = match fits(precision) {
                    true => DataType::Decimal {
                        bits: if precision == 38 { 128 } else { 256 },
                        precision: precision as u8,
                        scale: scale as i8,
                    },
                    false => DataType::Utf8,
                };
                let plan = ColumnPlan::Type(data_type);
                let mut made = Builder::new(&plan, self.policy, true);
                for (row, digits) in digits.iter().enumerate() {
                    let cell = match digits {
                        [] => Cell::Null,
                        digits => Cell::Decimal(digits),
                    };
                    // The largest numbers of digits were recorded when the values were appended, so
                    // the value fits.
                    made.put(cell, &mut Tally::default())
                        .map_err(|why| (row, why))?;
                }
                *self = made;
            }
            Values::List(lists) => lists.settle()?,
            _ => {}
        }
        Ok(())
    }

    /// Returns the values of a column of numbers, its validity bitmap (`None` if no value is NULL),
    /// and the number of values.
    pub(crate) fn into_numbers(
        mut self,
    ) -> Result<(Numbers, Option<Vec<u8>>, usize), TryReserveError> {
        let numbers = match self.values {
            Values::Bool(bits) => {
                let bits = bits.into_bytes();
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(self.len)?;
                bytes.extend((0..self.len).map(|at| u8::from(bit(&bits, at))));
                Numbers::Bool(bytes)
            }
            Values::I8(v) => Numbers::I8(v),
            Values::I16(v) => Numbers::I16(v),
            Values::I32(v) => Numbers::I32(v),
            Values::I64(v) | Values::Timestamp(v, ..) => Numbers::I64(v),
            Values::U8(v) => Numbers::U8(v),
            Values::U16(v) => Numbers::U16(v),
            Values::U32(v) => Numbers::U32(v),
            Values::U64(v) => Numbers::U64(v),
            Values::F32(v) => Numbers::F32(v),
            Values::F64(v) => Numbers::F64(v),
            // All values are NULL, or the caller did not request numbers.
            _ => Numbers::F64(repeated(f64::NAN, self.len)?),
        };
        Ok((numbers, self.nulls.take().0, self.len))
    }
}
