//! `Value`: the value of a parameter. It is always bound, never inserted into SQL text.

use crate::cell::{Date, Time, Timestamp};
use crate::error::{Error, ErrorKind};

/// A parameter value. It owns its data, so it can outlive the call that binds it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// The SQL value NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    I64(i64),
    /// A 64-bit float.
    F64(f64),
    /// An exact decimal: ASCII digits with sign and point, without an exponent.
    Decimal(String),
    /// Unicode text.
    Text(String),
    /// Binary data.
    Bytes(Vec<u8>),
    /// A date without a time of day.
    Date(Date),
    /// A time of day, without an offset.
    Time(Time),
    /// A date and time of day, with or without an offset from UTC.
    Timestamp(Timestamp),
    /// A UUID, in the byte order of RFC 9562.
    Uuid([u8; 16]),
    /// Text, and the name of the SQL type to which the statement casts it. Without the cast, the
    /// database would infer another type.
    Cast(String, &'static str),
    /// A value, and the type that the caller declared for it instead of the value's own type. It is
    /// used for databases whose parameters have types, such as PostgreSQL.
    Declared(Box<Value>, Declared),
}

/// The type that the caller declared for a parameter, with a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The type that the caller declared.
    pub kind: DeclaredKind,
    /// The size in characters, bytes or digits that the caller declared. If the value is longer,
    /// the parameter is bound with the size of the value instead.
    pub size: usize,
    /// The number of digits after the decimal point that the caller declared for a decimal or a
    /// fraction of a second. If the value has more digits, the parameter is bound with that number
    /// instead.
    pub digits: i16,
}

/// The kinds of types that a caller can declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeclaredKind {
    /// The caller declares only a size. The type of the parameter is the type of its value.
    Sized,
    /// The caller declared a number: the value is bound as its own numeric type, and a NULL as a
    /// 64-bit integer.
    Number,
    /// The caller declared a date or time: the value is bound as its own date or time type, and a
    /// NULL as a timestamp.
    Moment,
    /// A boolean.
    Bool,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit float.
    Double,
    /// An exact decimal number.
    Decimal,
    /// Text of any length.
    Text,
    /// Binary data of any length.
    Binary,
    /// A date without a time of day.
    Date,
    /// A time of day, without an offset.
    Time,
    /// A date and time of day, without an offset.
    Timestamp,
    /// A UUID.
    Uuid,
}

/// The largest number of rows of parameters that are read from the caller before they are executed.
const BATCH_ROWS: usize = 1024;
/// The number of bytes of text and binary values after which a batch of rows of parameters ends.
const BATCH_BYTES: usize = 1 << 20;

/// An iterator over batches of rows of parameters. A batch is never empty, and it is limited to a
/// number of rows and to `BATCH_BYTES`. If the caller's iterator returns an error, the last batch
/// has the rows before the error, and [`Batches::end`] returns the error.
pub(crate) struct Batches<'r> {
    rows: &'r mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    most_rows: usize,
    end: Option<Result<(), Error>>,
}

impl<'r> Batches<'r> {
    /// Creates an iterator that combines the rows of `rows` into batches of at most `BATCH_ROWS`
    /// rows.
    pub(crate) fn new(rows: &'r mut dyn Iterator<Item = Result<Vec<Value>, Error>>) -> Batches<'r> {
        Batches::of_rows(rows, BATCH_ROWS)
    }

    /// Creates an iterator that combines the rows of `rows` into batches of at most `most_rows`
    /// rows.
    pub(crate) fn of_rows(
        rows: &'r mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
        most_rows: usize,
    ) -> Batches<'r> {
        Batches {
            rows,
            most_rows,
            end: None,
        }
    }

    /// Returns the error with which the iterator over the rows has ended, if it has ended with one.
    /// The rows before the error are still returned in batches. Therefore the caller must call this
    /// function after the last batch was executed, and before it commits the transaction.
    ///
    /// # Errors
    /// The error of the iterator over the rows.
    pub(crate) fn end(self) -> Result<(), Error> {
        self.end.unwrap_or(Ok(()))
    }
}

impl Iterator for Batches<'_> {
    type Item = Vec<Vec<Value>>;

    fn next(&mut self) -> Option<Vec<Vec<Value>>> {
        let mut batch = Vec::new();
        let mut n_bytes = 0;
        while batch.len() < self.most_rows && n_bytes < BATCH_BYTES && self.end.is_none() {
            match self.rows.next() {
                Some(Ok(row)) => {
                    n_bytes += row.iter().map(Value::len_bytes).sum::<usize>();
                    batch.push(row);
                }
                Some(Err(error)) => self.end = Some(Err(error)),
                None => self.end = Some(Ok(())),
            }
        }
        (!batch.is_empty()).then_some(batch)
    }
}

impl Value {
    /// Returns the size of a text or binary value in bytes; 0 for a value of fixed size.
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
    /// Replaces a decimal value by the number that SQLite would parse from its digits: a 64-bit
    /// integer, or the nearest double.
    pub fn round_for_sqlite(&mut self) {
        if let Value::Decimal(digits) = self
            && let Some(number) =
                exact_number(digits).or_else(|| digits.parse().ok().map(Value::F64))
        {
            *self = number;
        }
    }
}

/// Returns the SQLite number that equals this decimal exactly: a 64-bit integer, or a double;
/// `None` if no such number exists.
pub(crate) fn exact_number(digits: &str) -> Option<Value> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return whole.parse().ok().map(Value::I64);
    }
    let double: f64 = digits.parse().ok()?;
    let n_digits = fraction.len();
    // A double with n binary digits after the point has exactly n decimal digits after the point,
    // so `double * 2^n_digits` must be an integer.
    let scaled = double * 2f64.powi(i32::try_from(n_digits).ok()?);
    let is_exact = scaled.is_finite()
        && scaled.fract() == 0.0
        && format!("{double:.n_digits$}") == format!("{whole}.{fraction}");
    is_exact.then_some(Value::F64(double))
}

/// Returns the SQLite number that equals a decimal parameter exactly: the result of
/// [`exact_number`]. `index` is the parameter's index from 0, for the error message.
///
/// # Errors
/// [`ErrorKind::Data`] if no SQLite number equals the decimal.
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
