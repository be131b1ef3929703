//! `ValueError`: the reason why a value cannot be stored in an Arrow column. The module also
//! contains functions that convert a number to a float. They return an error if the float would not
//! be equal to the number.

use std::collections::TryReserveError;

use onecopy_text::Malformed;

/// The reason why a value cannot be stored in an Arrow column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueError {
    /// The value is of a kind that the column's type cannot store, for example text in a column of
    /// numbers.
    Kind,
    /// The value is of the right kind but not valid, for example malformed digits or month 13.
    Invalid,
    /// The value is [`crate::cell::Date::OTHER_STYLE`], a date whose text cannot be read.
    DateStyle,
    /// The value is outside the range of the column's type.
    Range,
    /// The value has more digits after the decimal point, or more digits in the fraction of a
    /// second, than the column's type can store.
    Scale,
    /// The value is malformed text. The second field is the unit in which the position of the error
    /// is counted: `byte`, `16-bit unit` or `32-bit unit`.
    Malformed(Malformed, &'static str),
    /// The value is an array whose number of dimensions differs from that of the column's list
    /// type.
    Dimensions,
    /// The text of the column would exceed 2 GiB, the limit of 32-bit offsets.
    Long,
    /// The allocation for the value failed.
    Memory,
}

impl From<TryReserveError> for ValueError {
    fn from(_: TryReserveError) -> ValueError {
        ValueError::Memory
    }
}

/// The largest integer up to which a 64-bit float represents every integer exactly.
const EXACT_FLOAT: i64 = 1 << 53;

pub(super) fn exact_f64(n: i64) -> Result<f64, ValueError> {
    if (-EXACT_FLOAT..=EXACT_FLOAT).contains(&n) {
        Ok(n as f64)
    } else {
        Err(ValueError::Scale)
    }
}

pub(super) fn exact_f32(n: f64) -> Result<f32, ValueError> {
    let narrow = n as f32;
    if n.is_nan() || f64::from(narrow) == n {
        Ok(narrow)
    } else {
        Err(ValueError::Scale)
    }
}

/// Returns a vector of `n` copies of `value`; an error if the allocation fails.
pub(super) fn repeated<T: Clone>(value: T, n: usize) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(n)?;
    values.resize(n, value);
    Ok(values)
}
