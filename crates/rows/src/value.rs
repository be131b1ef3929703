//! Parameter values: bound, never pasted into SQL.

use crate::cell::{Date, Time, Timestamp};

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
            Value::Decimal(text) | Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }
}
