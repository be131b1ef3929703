//! Parameter values: bound, never pasted into SQL.

use crate::cell::{Date, Time, Timestamp};
use crate::error::{Error, ErrorKind};

/// One parameter of a statement, owned: it outlives the call that bound it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// SQL NULL.
    Null,
    /// Boolean.
    Bool(bool),
    /// Integer.
    I64(i64),
    /// 64-bit float.
    F64(f64),
    /// Exact decimal as ASCII digits (sign, digits, point; no exponent).
    Decimal(String),
    /// Text.
    Text(String),
    /// Binary.
    Bytes(Vec<u8>),
    /// Date.
    Date(Date),
    /// Time of day.
    Time(Time),
    /// Timestamp with or without offset.
    Timestamp(Timestamp),
    /// UUID in RFC 9562 byte order.
    Uuid([u8; 16]),
    /// Text, and the SQL type that the statement casts it to where the database would infer another.
    Cast(String, &'static str),
    /// A value that is told as another type than its own, where the database has types of parameters.
    Declared(Box<Value>, Declared),
}

/// The type that a parameter is told as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its kind.
    pub kind: DeclaredKind,
    /// Characters, bytes or digits at least; 0 leaves it to the value.
    pub size: usize,
    /// Digits behind the point, or of a fraction of a second, at least.
    pub digits: i16,
}

/// Kinds of types that a parameter can be told as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeclaredKind {
    /// Whatever the value is; only its size is told.
    Sized,
    /// A number of the value's own type, NULL as a 64-bit integer.
    Number,
    /// A date or time of the value's own type, NULL as a timestamp.
    Moment,
    /// Boolean.
    Bool,
    /// 64-bit integer.
    Integer,
    /// 64-bit float.
    Double,
    /// Exact decimal.
    Decimal,
    /// Text.
    Text,
    /// Binary.
    Binary,
    /// Date.
    Date,
    /// Time of day.
    Time,
    /// Timestamp.
    Timestamp,
    /// UUID.
    Uuid,
}

/// Rows of parameters that are made ahead of their execution, at most.
const BATCH_ROWS: usize = 1024;
/// And so many that their text and binary values take about this much.
const BATCH_BYTES: usize = 1 << 20;

/// The next rows: as many as are worth a call, and no more than a bounded amount of memory; none at the end.
pub(crate) fn batch(rows: &mut dyn Iterator<Item = Vec<Value>>) -> Vec<Vec<Value>> {
    let mut batch = Vec::new();
    let mut n_bytes = 0;
    while batch.len() < BATCH_ROWS && n_bytes < BATCH_BYTES {
        let Some(row) = rows.next() else { break };
        n_bytes += row.iter().map(Value::len_bytes).sum::<usize>();
        batch.push(row);
    }
    batch
}

impl Value {
    /// Bytes of its text or binary value; 0 for what has a fixed size.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self {
            Value::Decimal(text) | Value::Text(text) | Value::Cast(text, _) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

impl Value {
    /// Replaces a decimal by the number that SQLite reads its digits as in a statement: an integer
    /// of 64 bits, or the nearest double.
    pub fn round_for_sqlite(&mut self) {
        if let Value::Decimal(digits) = self
            && let Some(number) =
                exact_number(digits).or_else(|| digits.parse().ok().map(Value::F64))
        {
            *self = number;
        }
    }
}

/// The number of SQLite that is exactly this decimal: an integer of 64 bits, or a double.
pub(crate) fn exact_number(digits: &str) -> Option<Value> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return whole.parse().ok().map(Value::I64);
    }
    let double: f64 = digits.parse().ok()?;
    let n_digits = fraction.len();
    // A double with as many bits after the point has no more decimal digits after it.
    let scaled = double * 2f64.powi(i32::try_from(n_digits).ok()?);
    let is_exact = scaled.is_finite()
        && scaled.fract() == 0.0
        && format!("{double:.n_digits$}") == format!("{whole}.{fraction}");
    is_exact.then_some(Value::F64(double))
}

/// As [`exact_number`], for the parameter of `index` (from 0).
///
/// # Errors
/// [`ErrorKind::Data`] where SQLite has no such number.
pub(crate) fn sqlite_number(digits: &str, index: usize) -> Result<Value, Error> {
    exact_number(digits).ok_or_else(|| {
        Error::new(
            ErrorKind::Data,
            format!(
                "parameter {} is `{digits}`, which SQLite has no exact number for\n\
                 Pass it as text or as a float.",
                index + 1
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_numbers_or_none() {
        for (digits, number) in [
            ("3", Some(Value::I64(3))),
            ("-3.00", Some(Value::I64(-3))),
            ("9223372036854775807", Some(Value::I64(i64::MAX))),
            ("9223372036854775808", None),
            ("0.5", Some(Value::F64(0.5))),
            ("-12345.0625", Some(Value::F64(-12345.0625))),
            ("0.1", None),
            (
                "0.1000000000000000055511151231257827021181583404541015625",
                Some(Value::F64(0.1)),
            ),
            ("9007199254740993.5", None),
            ("123456789012345678901234567890.5", None),
        ] {
            assert_eq!(exact_number(digits), number, "{digits}");
        }
    }
}
