//! `ColumnStorage`: the values that a column of a table stores unchanged. Databases silently
//! convert some values of other types: PostgreSQL rounds a float for an integer column, and SQLite
//! stores NaN as NULL. In a copy, such a value causes an error instead.

use super::digits::DecimalDigits;
use crate::arrow::{DataType, parse_date, parse_time, parse_timestamp, type_of};
use crate::cell::{Time, Timestamp};
use crate::database::Names;
use crate::plain_text::{n_digits, parse_uuid};
use crate::schema::{Column, ColumnType};
use crate::sql::dialect::Dialect;
use crate::value::Value;

/// The reason why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The column's type stores values of another kind, for example integers instead of dates.
    Kind,
    /// The column would store a changed value: a rounded number or a shorter text.
    Change,
    /// The value is text with a NUL, which PostgreSQL cannot store.
    Nul,
    /// The value has an offset from UTC and the column's type has none, or vice versa.
    Offset,
}

/// A group of column types that store a given value in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnStorage {
    /// SQLite: a column with the affinity TEXT, which stores numbers as text.
    SqliteText,
    /// SQLite: a column with a numeric affinity, which stores the text of a number as a number.
    SqliteNumber {
        /// `true` if the column also stores an integer as a float.
        is_real: bool,
    },
    /// SQLite: a column that stores each value with the value's own type, unchanged.
    SqliteAny,
    Bool,
    Integer,
    Real,
    Double,
    /// Decimals with at most `scale` digits after the decimal point; `None` if unlimited.
    Decimal {
        scale: Option<i8>,
    },
    Text {
        /// `true` if the column is in PostgreSQL, where text cannot contain NUL.
        is_postgres: bool,
        /// The declared length of a PostgreSQL `varchar` in characters; `None` if it is unlimited
        /// or unknown. PostgreSQL silently removes excess spaces from a longer text.
        most_chars: Option<usize>,
    },
    Binary,
    Date,
    Time {
        digits: u8,
    },
    Timestamp {
        digits: u8,
        with_offset: bool,
    },
    Uuid,
    /// Any other type. Its values are sent as text, which the database parses.
    Parsed,
}

impl ColumnStorage {
    /// Returns how `column` stores values in a database with the dialect `dialect`.
    pub(super) fn new(column: &Column, dialect: Dialect, names: &Names) -> ColumnStorage {
        match column.column_type {
            ColumnType::Any => ColumnStorage::of_sqlite(column),
            ColumnType::Bool => ColumnStorage::Bool,
            ColumnType::Integer { .. } => ColumnStorage::Integer,
            ColumnType::Real => ColumnStorage::Real,
            ColumnType::Double => ColumnStorage::Double,
            ColumnType::Decimal { precision, scale } => {
                // psqlodbc describes a `numeric` without a precision as one of 28 digits.
                let is_unlimited =
                    precision == 0 || (column.type_name == "numeric" && precision == 28);
                ColumnStorage::Decimal {
                    scale: (!is_unlimited).then_some(scale),
                }
            }
            ColumnType::Text => {
                let is_postgres = dialect == Dialect::Postgres;
                // Other drivers report a size even for a `varchar` without a declared size.
                let is_limited = is_postgres
                    && names.driver == "onecopy"
                    && column.type_name == "varchar"
                    && column.size > 0;
                ColumnStorage::Text {
                    is_postgres,
                    most_chars: is_limited.then_some(column.size),
                }
            }
            ColumnType::Binary => ColumnStorage::Binary,
            ColumnType::Date => ColumnStorage::Date,
            ColumnType::Time { digits } => ColumnStorage::Time { digits },
            ColumnType::Timestamp {
                digits,
                with_offset,
            } => ColumnStorage::Timestamp {
                digits,
                with_offset,
            },
            ColumnType::Uuid => ColumnStorage::Uuid,
            _ => ColumnStorage::Parsed,
        }
    }

    /// Returns how a column of SQLite stores values. This depends on the affinity of its declared
    /// type.
    fn of_sqlite(column: &Column) -> ColumnStorage {
        match type_of(column) {
            Some(DataType::Utf8) => ColumnStorage::SqliteText,
            Some(DataType::Binary) => ColumnStorage::SqliteAny,
            None if column.type_name.is_empty() => ColumnStorage::SqliteAny,
            other => ColumnStorage::SqliteNumber {
                is_real: other == Some(DataType::Float64),
            },
        }
    }

    /// Converts a value to the type of the column, so that the database stores it unchanged.
    ///
    /// # Errors
    /// The column would store a changed value, or cannot store a value of this kind.
    pub(super) fn convert(self, value: Value) -> Result<Value, Refusal> {
        if value == Value::Null {
            return Ok(value);
        }
        match self {
            ColumnStorage::SqliteText => Ok(number_as_text(value)),
            ColumnStorage::SqliteNumber { is_real } => sqlite_number(value, is_real),
            ColumnStorage::SqliteAny => match value {
                Value::F64(f) if f.is_nan() => Err(Refusal::Change),
                Value::Decimal(_) => sqlite_number(value, false),
                value => Ok(value),
            },
            ColumnStorage::Bool => match value {
                Value::I64(n @ (0 | 1)) => Ok(Value::Bool(n == 1)),
                Value::Bool(_) | Value::Text(_) => Ok(value),
                _ => Err(Refusal::Kind),
            },
            ColumnStorage::Integer => integer(value),
            ColumnStorage::Real | ColumnStorage::Double => {
                float(&value, self == ColumnStorage::Real).map(Value::F64)
            }
            ColumnStorage::Decimal { scale } => decimal(value, scale),
            ColumnStorage::Text {
                is_postgres,
                most_chars,
            } => {
                let value = number_as_text(value);
                match &value {
                    Value::Bytes(_) => Err(Refusal::Kind),
                    Value::Text(text) if is_postgres && text.contains('\0') => Err(Refusal::Nul),
                    // PostgreSQL itself refuses a text that is too long, unless all excess
                    // characters are spaces: it removes them, which would change the value.
                    Value::Text(text)
                        if text.ends_with(' ')
                            && most_chars.is_some_and(|n| text.chars().count() > n) =>
                    {
                        Err(Refusal::Change)
                    }
                    _ => Ok(value),
                }
            }
            ColumnStorage::Binary => match value {
                Value::Bytes(_) => Ok(value),
                _ => Err(Refusal::Kind),
            },
            ColumnStorage::Date
            | ColumnStorage::Time { .. }
            | ColumnStorage::Timestamp { .. }
            | ColumnStorage::Uuid => self.temporal_or_uuid(value),
            ColumnStorage::Parsed => match value {
                Value::Bytes(_) => Err(Refusal::Kind),
                value => Ok(value),
            },
        }
    }

    /// Converts a value for a column of dates, times, timestamps or UUIDs. Text is parsed.
    fn temporal_or_uuid(self, value: Value) -> Result<Value, Refusal> {
        let value = match value {
            // Infinite dates are passed on as text: PostgreSQL accepts them, and other databases
            // refuse them.
            Value::Text(text) if matches!(text.as_str(), "infinity" | "-infinity") => {
                return Ok(Value::Text(text));
            }
            Value::Text(text) => self.parse(&text).ok_or(Refusal::Kind)?,
            value => value,
        };
        match (self, value) {
            (ColumnStorage::Uuid, Value::Uuid(uuid)) => Ok(Value::Uuid(uuid)),
            (ColumnStorage::Date, Value::Date(date)) => Ok(Value::Date(date)),
            (ColumnStorage::Date, Value::Timestamp(stamp)) => match stamp.offset_minutes {
                None if stamp.time == Time::default() => Ok(Value::Date(stamp.date)),
                _ => Err(Refusal::Change),
            },
            (ColumnStorage::Time { digits }, Value::Time(time)) => match n_digits(time) <= digits {
                true => Ok(Value::Time(time)),
                false => Err(Refusal::Change),
            },
            (ColumnStorage::Timestamp { .. }, Value::Date(date)) => {
                self.timestamp(date.midnight(None))
            }
            (ColumnStorage::Timestamp { .. }, Value::Timestamp(stamp)) => self.timestamp(stamp),
            _ => Err(Refusal::Kind),
        }
    }

    fn parse(self, text: &str) -> Option<Value> {
        let bytes = text.as_bytes();
        match self {
            ColumnStorage::Date => match parse_date(bytes) {
                Some(date) => Some(Value::Date(date)),
                None => parse_timestamp(bytes).map(Value::Timestamp),
            },
            ColumnStorage::Time { .. } => parse_time(bytes).map(Value::Time),
            ColumnStorage::Timestamp { .. } => parse_timestamp(bytes).map(Value::Timestamp),
            _ => parse_uuid(bytes).map(Value::Uuid),
        }
    }

    fn timestamp(self, stamp: Timestamp) -> Result<Value, Refusal> {
        match self {
            ColumnStorage::Timestamp { with_offset, .. }
                if with_offset != stamp.offset_minutes.is_some() =>
            {
                Err(Refusal::Offset)
            }
            ColumnStorage::Timestamp { digits, .. } if n_digits(stamp.time) > digits => {
                Err(Refusal::Change)
            }
            _ => Ok(Value::Timestamp(stamp)),
        }
    }
}

/// Converts a value for a column of SQLite with a numeric affinity. SQLite stores the text of a
/// number in such a column as a number, so text that would change is refused.
fn sqlite_number(value: Value, is_real: bool) -> Result<Value, Refusal> {
    let number = match &value {
        Value::F64(f) if f.is_nan() => return Err(Refusal::Change),
        Value::I64(_) | Value::Bool(_) if is_real => return float(&value, false).map(Value::F64),
        Value::Decimal(text) | Value::Text(text) => text,
        _ => return Ok(value),
    };
    let Some(digits) = DecimalDigits::parse(number) else {
        // SQLite would store `007` or ` 1.` as a number. Other text stays text.
        let trimmed = number.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
        let is_read = trimmed.parse::<f64>().is_ok()
            && !trimmed.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'));
        return match is_read {
            true => Err(Refusal::Change),
            false => Ok(value),
        };
    };
    if !is_real
        && digits.scale() <= 0
        && let Some(integer) = digits.plain().and_then(|text| text.parse().ok())
    {
        return Ok(Value::I64(integer));
    }
    digits.to_f64(number).map(Value::F64).ok_or(Refusal::Change)
}

/// Converts a value to an integer, for a column of integers. Refuses a value that would change.
fn integer(value: Value) -> Result<Value, Refusal> {
    let digits = match &value {
        Value::I64(_) => return Ok(value),
        Value::Bool(b) => return Ok(Value::I64(i64::from(*b))),
        Value::F64(f) if !f.is_finite() => return Err(Refusal::Change),
        Value::F64(f) => DecimalDigits::of_f64(*f),
        Value::Decimal(text) | Value::Text(text) => DecimalDigits::parse(text),
        _ => None,
    };
    let digits = digits.ok_or(Refusal::Kind)?;
    match digits.plain() {
        Some(plain) if digits.scale() <= 0 => Ok(match plain.parse() {
            Ok(n) => Value::I64(n),
            // An unsigned column may store this large integer; any other column refuses it.
            Err(_) => Value::Decimal(plain),
        }),
        _ => Err(Refusal::Change),
    }
}

/// Converts a value for a column of floats. If `is_real` is `true`, the column has 32-bit floats.
fn float(value: &Value, is_real: bool) -> Result<f64, Refusal> {
    let digits = match value {
        Value::F64(f) if !is_real || !f.is_finite() => return Ok(*f),
        Value::F64(f) => f.to_string(),
        Value::I64(n) => n.to_string(),
        Value::Decimal(text) => text.clone(),
        Value::Text(text) => match text.as_str() {
            "NaN" => return Ok(f64::NAN),
            "Infinity" => return Ok(f64::INFINITY),
            "-Infinity" => return Ok(f64::NEG_INFINITY),
            text => text.to_owned(),
        },
        Value::Bool(b) => return Ok(f64::from(u8::from(*b))),
        _ => return Err(Refusal::Kind),
    };
    let number = DecimalDigits::parse(&digits).ok_or(Refusal::Kind)?;
    let found = match (is_real, value) {
        // A 64-bit float is accepted if it equals a 32-bit float, or if its shortest notation is
        // that of a 32-bit float.
        (true, Value::F64(f)) if f64::from(*f as f32).to_bits() == f.to_bits() => Some(*f),
        (true, _) => number.to_f32(&digits).map(onecopy_wire::number::widen),
        (false, _) => number.to_f64(&digits),
    };
    found.ok_or(Refusal::Change)
}

/// Converts a value for a column of decimals with at most `scale` digits after the decimal point.
fn decimal(value: Value, scale: Option<i8>) -> Result<Value, Refusal> {
    let text = match &value {
        Value::I64(n) => n.to_string(),
        // The database accepts or refuses the value: PostgreSQL's `numeric` has NaN and infinities.
        Value::F64(f) if !f.is_finite() => return Ok(value),
        Value::F64(f) => format!("{f:e}"),
        Value::Decimal(text) => text.clone(),
        Value::Text(text) if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => {
            return Ok(value);
        }
        Value::Text(text) => text.clone(),
        _ => return Err(Refusal::Kind),
    };
    let number = DecimalDigits::parse(&text).ok_or(Refusal::Kind)?;
    if scale.is_some_and(|scale| number.scale() > i64::from(scale)) {
        return Err(Refusal::Change);
    }
    // The text is kept, so that trailing zeros are not lost: 1.50 stays 1.50.
    match text.contains(['e', 'E']) {
        false => Ok(Value::Decimal(text)),
        true => number.plain().map(Value::Decimal).ok_or(Refusal::Change),
    }
}

/// Converts a number to text, because the database could round the number if it converted it.
/// Returns other values unchanged.
fn number_as_text(value: Value) -> Value {
    Value::Text(match value {
        Value::Decimal(digits) => digits,
        Value::Bool(b) => b.to_string(),
        Value::I64(n) => n.to_string(),
        Value::F64(f) if f.is_infinite() => match f > 0.0 {
            true => "Infinity".to_owned(),
            false => "-Infinity".to_owned(),
        },
        Value::F64(f) => f.to_string(),
        value => return value,
    })
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
