//! `Builder`: one column of a batch under construction. Each cell is converted once, directly into
//! the buffer that the consumer receives.

use onecopy_text::{Policy, Tally, Units};

use super::array::Array;
use super::bits::{Bits, Nulls};
use super::date_time;
use super::decimal::{self, Int256};
use super::error::{ValueError, exact_f32, exact_f64};
use super::lists::Lists;
use super::plan::ColumnPlan;
use super::text::Strings;
use super::types::{DataType, TimeUnit};
use crate::arrow_c::Memory;
use crate::cell::Cell;
use crate::plain_text::{parse_uuid, plain_text};

/// The smallest number of values for which a column reserves memory when it has to grow.
const LEAST_RESERVED: usize = 1024;

/// The values of a column. The variants are in the order of the variants of [`DataType`].
#[derive(Debug)]
pub(super) enum Values {
    /// All values so far are NULL, and the first value that is not NULL will decide the type. If
    /// `floats` is `true` and that value is a number, the type becomes a float type.
    Undecided {
        floats: bool,
    },
    Null,
    Bool(Bits),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    /// Decimals of unknown scale. They are stored as text until the first batch is full. Then the
    /// values of this batch determine the scale of the column.
    Digits(Strings<i64>),
    Decimal(Vec<i128>, u8, i8),
    WideDecimal(Vec<Int256>, u8, i8),
    Utf8(Strings<i32>),
    LargeUtf8(Strings<i64>),
    Binary(Strings<i32>),
    LargeBinary(Strings<i64>),
    Uuid(Vec<[u8; 16]>),
    Date(Vec<i32>),
    ShortTime(Vec<i32>, TimeUnit),
    LongTime(Vec<i64>, TimeUnit),
    Timestamp(Vec<i64>, TimeUnit, Option<String>),
    List(Box<Lists>),
}

/// One column of a batch under construction: its values so far, and its type.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(super) values: Values,
    pub(super) nulls: Nulls,
    pub(super) len: usize,
    /// The number of values for which memory is currently reserved.
    reserved: usize,
    pub(super) policy: Policy,
    /// `true` while the type of the column may still change, for example from an integer to a float
    /// type. This is the case until the first batch is full, if the values decide the type.
    pub(super) is_open: bool,
    /// `true` if the caller requested the type. A text column then also accepts values that are not
    /// text, and converts them to text.
    pub(super) was_requested: bool,
}

impl Builder {
    /// Creates an empty column whose type is chosen according to `plan`.
    pub(crate) fn new(plan: &ColumnPlan, policy: Policy, was_requested: bool) -> Builder {
        let values = match plan {
            ColumnPlan::Type(DataType::List(item)) => {
                let items = ColumnPlan::Type(DataType::clone(item));
                Values::List(Box::new(Lists::new(&items, policy, was_requested)))
            }
            ColumnPlan::Type(data_type) => values_of(data_type),
            ColumnPlan::List(items) => {
                Values::List(Box::new(Lists::new(items, policy, was_requested)))
            }
            ColumnPlan::FirstValue { floats } => Values::Undecided { floats: *floats },
            ColumnPlan::Digits => Values::Digits(Strings::new()),
        };
        Builder {
            values,
            nulls: Nulls::default(),
            len: 0,
            reserved: 0,
            policy,
            is_open: plan.is_open(),
            was_requested,
        }
    }

    /// Creates an empty builder that has this column's current type.
    pub(crate) fn same_again(&self) -> Builder {
        let mut made = Builder::new(&self.plan(), self.policy, self.was_requested);
        made.is_open = self.is_open;
        made
    }

    /// Returns a plan for a new column that has the current type of this column. If that type is
    /// not decided yet, the values of the new column will decide it.
    pub(super) fn plan(&self) -> ColumnPlan {
        match &self.values {
            Values::Undecided { floats } => ColumnPlan::FirstValue { floats: *floats },
            Values::Digits(_) => ColumnPlan::Digits,
            Values::List(lists) => ColumnPlan::List(Box::new(lists.items().plan())),
            _ => ColumnPlan::Type(self.data_type()),
        }
    }

    /// Returns `true` while the values of the first batch may still change the column's type.
    pub(crate) fn is_undecided(&self) -> bool {
        self.is_open
    }

    /// Appends a value, and returns approximately how many bytes it occupies. The function is
    /// always inlined. In a loop over cells of the same variant, the compiler can then remove the
    /// code for the other variants.
    #[inline(always)]
    pub(crate) fn put(&mut self, cell: Cell<'_>, tally: &mut Tally) -> Result<usize, ValueError> {
        self.make_capacity()?;
        if let Cell::Null = cell {
            self.put_null()?;
            return Ok(8);
        }
        let n = self.put_value(cell, tally)?;
        self.count_value();
        Ok(n)
    }

    /// Reserves memory for at least one more value.
    #[inline(always)]
    pub(super) fn make_capacity(&mut self) -> Result<(), ValueError> {
        match self.len >= self.reserved {
            true => self.reserve(self.len.max(LEAST_RESERVED)),
            false => Ok(()),
        }
    }

    /// Counts the value that was just appended to `values`, and records that it is not NULL.
    #[inline(always)]
    pub(super) fn count_value(&mut self) {
        self.nulls.push_valid();
        self.len += 1;
    }

    /// Reserves memory for `n_values` more values; returns an error if the allocation fails.
    #[cold]
    pub(super) fn reserve(&mut self, n_values: usize) -> Result<(), ValueError> {
        let reserved = match &mut self.values {
            Values::Undecided { .. } | Values::Null => Ok(()),
            Values::Bool(bits) => bits.reserve(n_values),
            Values::I8(v) => v.try_reserve(n_values),
            Values::I16(v) => v.try_reserve(n_values),
            Values::I32(v) | Values::Date(v) | Values::ShortTime(v, _) => v.try_reserve(n_values),
            Values::I64(v) | Values::LongTime(v, _) | Values::Timestamp(v, ..) => {
                v.try_reserve(n_values)
            }
            Values::U8(v) => v.try_reserve(n_values),
            Values::U16(v) => v.try_reserve(n_values),
            Values::U32(v) => v.try_reserve(n_values),
            Values::U64(v) => v.try_reserve(n_values),
            Values::F32(v) => v.try_reserve(n_values),
            Values::F64(v) => v.try_reserve(n_values),
            Values::Decimal(v, ..) => v.try_reserve(n_values),
            Values::WideDecimal(v, ..) => v.try_reserve(n_values),
            Values::Utf8(v) | Values::Binary(v) => v.reserve(n_values),
            Values::Digits(v) | Values::LargeUtf8(v) | Values::LargeBinary(v) => {
                v.reserve(n_values)
            }
            Values::Uuid(v) => v.try_reserve(n_values),
            Values::List(v) => v.reserve(n_values),
        };
        reserved.and_then(|()| self.nulls.reserve(n_values))?;
        self.reserved = self.len.saturating_add(n_values);
        Ok(())
    }

    /// Appends a NULL. The caller must have reserved memory for the value.
    #[inline(never)]
    pub(super) fn put_null(&mut self) -> Result<(), ValueError> {
        self.nulls.push_null(self.len, self.reserved)?;
        self.len += 1;
        match &mut self.values {
            Values::Undecided { .. } | Values::Null => {}
            Values::Bool(bits) => bits.push(false),
            Values::I8(v) => v.push(0),
            Values::I16(v) => v.push(0),
            Values::I32(v) | Values::Date(v) | Values::ShortTime(v, _) => v.push(0),
            Values::I64(v) | Values::LongTime(v, _) | Values::Timestamp(v, ..) => v.push(0),
            Values::U8(v) => v.push(0),
            Values::U16(v) => v.push(0),
            Values::U32(v) => v.push(0),
            Values::U64(v) => v.push(0),
            Values::F32(v) => v.push(0.0),
            Values::F64(v) => v.push(0.0),
            Values::Decimal(v, ..) => v.push(0),
            Values::WideDecimal(v, ..) => v.push([0; 4]),
            Values::Utf8(v) | Values::Binary(v) => v.put_nothing(),
            Values::Digits(v) | Values::LargeUtf8(v) | Values::LargeBinary(v) => v.put_nothing(),
            Values::Uuid(v) => v.push([0; 16]),
            Values::List(v) => v.put_nothing(),
        }
        Ok(())
    }

    #[inline(always)]
    fn put_value(&mut self, cell: Cell<'_>, tally: &mut Tally) -> Result<usize, ValueError> {
        let policy = self.policy;
        match (&mut self.values, cell) {
            (Values::I64(v), Cell::I64(n)) => v.push(n),
            (Values::F64(v), Cell::F64(n)) => v.push(n),
            (Values::Utf8(v), Cell::Text(units)) => return v.put_text(units, policy, tally),
            (Values::Decimal(v, precision, scale), Cell::Decimal(digits)) => {
                v.push(decimal::to_i128(digits, *precision, *scale)?);
                tally.converted(digits.len());
                return Ok(16);
            }
            (Values::Timestamp(v, unit, zone), Cell::Timestamp(t, _)) => {
                if zone.is_some() != t.offset_minutes.is_some() {
                    return Err(ValueError::Kind);
                }
                v.push(date_time::since_epoch(t, *unit)?);
            }
            (Values::I32(v), Cell::I64(n)) => v.push(narrow(n)?),
            _ => return self.put_rare(cell, tally),
        }
        Ok(8)
    }

    /// Appends a value that the fast path of [`Builder::put`] does not handle: a value of a rare
    /// kind, or a value that decides or changes the column's type.
    #[inline(never)]
    fn put_rare(&mut self, cell: Cell<'_>, tally: &mut Tally) -> Result<usize, ValueError> {
        let (policy, was_requested) = (self.policy, self.was_requested);
        match (&mut self.values, cell) {
            (Values::Undecided { .. }, cell) => {
                let cell = cell.or_text();
                self.decide(&cell)?;
                return self.put_value(cell, tally);
            }
            (Values::I64(_), Cell::F64(_)) if self.is_open => {
                self.widen()?;
                return self.put_value(cell, tally);
            }
            (Values::Bool(v), Cell::Bool(b)) => v.push(b),
            (Values::Bool(v), Cell::I64(n @ (0 | 1))) => v.push(n == 1),
            (Values::I8(v), Cell::I64(n)) => v.push(narrow(n)?),
            (Values::I16(v), Cell::I64(n)) => v.push(narrow(n)?),
            (Values::U8(v), Cell::I64(n)) => v.push(narrow(n)?),
            (Values::U16(v), Cell::I64(n)) => v.push(narrow(n)?),
            (Values::U32(v), Cell::I64(n)) => v.push(narrow(n)?),
            (Values::U64(v), Cell::I64(n)) => v.push(narrow(n)?),
            (Values::U64(v), Cell::U64(n)) => v.push(n),
            (Values::I64(v), Cell::Bool(b)) => v.push(i64::from(b)),
            (Values::I8(_) | Values::I16(_) | Values::I32(_) | Values::I64(_), Cell::U64(_)) => {
                return Err(ValueError::Range);
            }
            (Values::F32(v), Cell::F32(n)) => v.push(n),
            (Values::F32(v), Cell::F64(n)) => v.push(exact_f32(n)?),
            // The 32-bit float is converted through its shortest decimal text, as in `fetchall`.
            (Values::F64(v), Cell::F32(n)) => v.push(onecopy_wire::number::widen(n)),
            (Values::F64(v), Cell::I64(n)) => v.push(exact_f64(n)?),
            // The caller requested a float type for decimals, so digits may be lost.
            (Values::F64(v), Cell::Decimal(digits)) if was_requested => {
                let digits = std::str::from_utf8(digits).map_err(|_| ValueError::Invalid)?;
                v.push(digits.parse().map_err(|_| ValueError::Invalid)?);
            }
            (Values::Digits(v), Cell::Decimal(digits)) => {
                decimal::size(digits).ok_or_else(|| decimal::without_digits(digits))?;
                tally.converted(digits.len());
                return v.put_bytes(digits);
            }
            (Values::WideDecimal(v, precision, scale), Cell::Decimal(digits)) => {
                v.push(decimal::to_wide(digits, *precision, *scale)?);
                tally.converted(digits.len());
            }
            (
                Values::Decimal(..) | Values::WideDecimal(..) | Values::Digits(_),
                Cell::I64(_) | Cell::U64(_) | Cell::Text(Units::Utf8(_)),
            ) => {
                let digits = plain_text(cell).ok_or(ValueError::Kind)?;
                return self.put_value(Cell::Decimal(digits.as_bytes()), tally);
            }
            (Values::LargeUtf8(v), Cell::Text(units)) => return v.put_text(units, policy, tally),
            (Values::List(v), Cell::Array(array)) => return v.put(array, tally),
            (_, Cell::Json(_) | Cell::Array(_) | Cell::Range(_))
            | (
                Values::Utf8(_) | Values::LargeUtf8(_),
                Cell::Interval { .. } | Cell::TimeTz { .. },
            ) => return self.put_value(cell.or_text(), tally),
            (Values::Binary(v), Cell::Bytes(bytes)) => return v.put_bytes(bytes),
            (Values::LargeBinary(v), Cell::Bytes(bytes)) => return v.put_bytes(bytes),
            (Values::Uuid(v), Cell::Uuid(uuid)) => v.push(uuid),
            (Values::Uuid(v), Cell::Text(Units::Utf8(text))) => {
                v.push(parse_uuid(text).ok_or(ValueError::Kind)?);
            }
            (Values::Date(v), Cell::Date(date)) => v.push(narrow(date_time::checked_days(date)?)?),
            (Values::ShortTime(v, unit), Cell::Time(time, _)) => {
                v.push(narrow(date_time::time_of_day(time, *unit)?)?);
            }
            (Values::LongTime(v, unit), Cell::Time(time, _)) => {
                v.push(date_time::time_of_day(time, *unit)?);
            }
            (Values::Timestamp(v, unit, None), Cell::Date(date)) => {
                v.push(date_time::since_epoch(date.midnight(None), *unit)?);
            }
            (
                Values::Date(_)
                | Values::ShortTime(..)
                | Values::LongTime(..)
                | Values::Timestamp(..),
                Cell::Text(Units::Utf8(text)),
            ) => return self.put_moment(text, tally),
            (Values::Utf8(_) | Values::LargeUtf8(_), cell) if was_requested => {
                let text = plain_text(cell).ok_or(match cell {
                    Cell::Date(_) | Cell::Timestamp(..) => ValueError::DateStyle,
                    _ => ValueError::Kind,
                })?;
                return self.put_value(Cell::Text(Units::Utf8(text.as_bytes())), tally);
            }
            _ => return Err(ValueError::Kind),
        }
        Ok(8)
    }

    /// Parses a date or time from text in ISO 8601, as SQLite stores it, and appends it.
    fn put_moment(&mut self, text: &[u8], tally: &mut Tally) -> Result<usize, ValueError> {
        let cell = match &self.values {
            Values::Date(_) => date_time::parse_date(text).map(Cell::Date),
            Values::Timestamp(..) => {
                date_time::parse_timestamp(text).map(|t| Cell::Timestamp(t, 9))
            }
            _ => date_time::parse_time(text).map(|t| Cell::Time(t, 9)),
        };
        tally.converted(text.len());
        self.put_value(cell.ok_or(ValueError::Kind)?, tally)
    }

    /// Returns the Arrow type of the column, which is final after [`Builder::settle`].
    pub(crate) fn data_type(&self) -> DataType {
        match &self.values {
            Values::Undecided { .. } | Values::Null => DataType::Null,
            Values::Bool(_) => DataType::Bool,
            Values::I8(_) => DataType::int(8),
            Values::I16(_) => DataType::int(16),
            Values::I32(_) => DataType::int(32),
            Values::I64(_) => DataType::int(64),
            Values::U8(_) => DataType::uint(8),
            Values::U16(_) => DataType::uint(16),
            Values::U32(_) => DataType::uint(32),
            Values::U64(_) => DataType::uint(64),
            Values::F32(_) => DataType::Float32,
            Values::F64(_) => DataType::Float64,
            Values::Decimal(_, precision, scale) => DataType::Decimal {
                bits: 128,
                precision: *precision,
                scale: *scale,
            },
            Values::WideDecimal(_, precision, scale) => DataType::Decimal {
                bits: 256,
                precision: *precision,
                scale: *scale,
            },
            Values::Utf8(_) => DataType::Utf8,
            Values::Digits(_) | Values::LargeUtf8(_) => DataType::LargeUtf8,
            Values::Binary(_) => DataType::Binary,
            Values::LargeBinary(_) => DataType::LargeBinary,
            Values::Uuid(_) => DataType::Uuid,
            Values::Date(_) => DataType::Date32,
            Values::ShortTime(_, unit) | Values::LongTime(_, unit) => DataType::Time(*unit),
            Values::Timestamp(_, unit, zone) => DataType::Timestamp {
                unit: *unit,
                zone: zone.clone(),
            },
            Values::List(v) => DataType::List(Box::new(v.items().data_type())),
        }
    }

    /// Returns the values so far as an array. The builder is then empty and has the same type.
    ///
    /// # Errors
    /// The index (from 0) of the first value that is malformed text or that the decided type cannot
    /// store, and the error.
    pub(crate) fn take(&mut self) -> Result<Array, (usize, ValueError)> {
        self.settle()?;
        let malformed = match &self.values {
            Values::Utf8(v) => v.malformed(),
            Values::LargeUtf8(v) => v.malformed(),
            _ => None,
        };
        if let Some(malformed) = malformed {
            return Err(malformed);
        }
        let data_type = self.data_type();
        let items = match &mut self.values {
            Values::List(v) => Some(Box::new(v.take_items()?)),
            _ => None,
        };
        let buffers = match &mut self.values {
            Values::Undecided { .. } | Values::Null => Vec::new(),
            Values::Bool(bits) => vec![Memory::of(std::mem::take(bits).into_bytes())],
            Values::I8(v) => memory(v),
            Values::I16(v) => memory(v),
            Values::I32(v) | Values::Date(v) | Values::ShortTime(v, _) => memory(v),
            Values::I64(v) | Values::LongTime(v, _) | Values::Timestamp(v, ..) => memory(v),
            Values::U8(v) => memory(v),
            Values::U16(v) => memory(v),
            Values::U32(v) => memory(v),
            Values::U64(v) => memory(v),
            Values::F32(v) => memory(v),
            Values::F64(v) => memory(v),
            Values::Decimal(v, ..) => memory(v),
            Values::WideDecimal(v, ..) => memory(v),
            Values::Utf8(v) | Values::Binary(v) => v.take(),
            Values::Digits(v) | Values::LargeUtf8(v) | Values::LargeBinary(v) => v.take(),
            Values::Uuid(v) => memory(v),
            Values::List(v) => vec![v.take_ends()],
        };
        self.reserved = 0;
        let is_null = data_type == DataType::Null;
        let (validity, n_nulls) = self.nulls.take();
        Ok(Array {
            data_type,
            len: std::mem::take(&mut self.len),
            offset: 0,
            validity: validity.filter(|_| !is_null).map(Memory::of),
            n_nulls: Some(n_nulls),
            buffers,
            dictionary: None,
            items,
        })
    }
}

fn values_of(data_type: &DataType) -> Values {
    match data_type {
        DataType::Null => Values::Null,
        DataType::Bool => Values::Bool(Bits::default()),
        DataType::Int { bits, unsigned } => match (bits, unsigned) {
            (8, false) => Values::I8(Vec::new()),
            (16, false) => Values::I16(Vec::new()),
            (32, false) => Values::I32(Vec::new()),
            (_, false) => Values::I64(Vec::new()),
            (8, true) => Values::U8(Vec::new()),
            (16, true) => Values::U16(Vec::new()),
            (32, true) => Values::U32(Vec::new()),
            (_, true) => Values::U64(Vec::new()),
        },
        DataType::Float32 => Values::F32(Vec::new()),
        DataType::Float64 => Values::F64(Vec::new()),
        DataType::Decimal {
            bits,
            precision,
            scale,
        } => match bits {
            256 => Values::WideDecimal(Vec::new(), *precision, *scale),
            _ => Values::Decimal(Vec::new(), *precision, *scale),
        },
        DataType::Utf8 => Values::Utf8(Strings::new()),
        DataType::Binary => Values::Binary(Strings::new()),
        DataType::LargeBinary => Values::LargeBinary(Strings::new()),
        DataType::Uuid => Values::Uuid(Vec::new()),
        DataType::Date32 => Values::Date(Vec::new()),
        DataType::Time(unit @ (TimeUnit::Second | TimeUnit::Milli)) => {
            Values::ShortTime(Vec::new(), *unit)
        }
        DataType::Time(unit) => Values::LongTime(Vec::new(), *unit),
        DataType::Timestamp { unit, zone } => Values::Timestamp(Vec::new(), *unit, zone.clone()),
        // `is_made` refused the types that are only imported.
        _ => Values::LargeUtf8(Strings::new()),
    }
}

/// Moves `values` into a buffer that several arrays can share. Afterwards `values` is empty, with
/// reserved memory for the same number of values.
fn memory<T: crate::arrow_c::Plain>(values: &mut Vec<T>) -> Vec<Memory> {
    let mut next = Vec::new();
    let _ = next.try_reserve_exact(values.len());
    vec![Memory::of(std::mem::replace(values, next))]
}

#[inline]
fn narrow<T: TryFrom<i64>>(n: i64) -> Result<T, ValueError> {
    T::try_from(n).map_err(|_| ValueError::Range)
}
