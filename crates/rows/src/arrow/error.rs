//! ValueError a value does not go into its column, and conversions that are exact or fail.

use std::collections::TryReserveError;

use onecopy_text::Malformed;

/// ValueError a value does not go into its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueError {
    /// It is of another kind.
    Kind,
    /// It is of the column's kind and no value of it: malformed digits, a thirteenth month.
    Invalid,
    /// It is too large, too small, or too far away.
    Range,
    /// It is finer than the column can tell.
    Scale,
    /// It is malformed text; what its position counts.
    Malformed(Malformed, &'static str),
    /// Its column would be longer than 2 GiB.
    Long,
    /// The system gives no memory for it.
    Memory,
}

impl From<TryReserveError> for ValueError {
    fn from(_: TryReserveError) -> ValueError {
        ValueError::Memory
    }
}

/// Integers that a 64-bit float holds each of lie up to here.
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

/// `n` times the same value.
pub(super) fn repeated<T: Clone>(value: T, n: usize) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(n)?;
    values.resize(n, value);
    Ok(values)
}
