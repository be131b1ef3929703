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
}
