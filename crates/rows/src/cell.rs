//! One value of a row, borrowed from the driver's buffer.

use onecopy_text::Units;

/// A calendar date as the database gave it (proleptic Gregorian).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Year; databases know years outside 1 to 9999, a sink may not.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// A time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// 0 to 23 (24:00:00 is possible in PostgreSQL).
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59, 60 in a leap second.
    pub second: u8,
    /// Fraction of the second, in nanoseconds.
    pub nanosecond: u32,
}

/// A date and a time, with or without an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The date.
    pub date: Date,
    /// The time of day.
    pub time: Time,
    /// Offset from UTC in minutes, east positive; `None` where the column has none.
    pub offset_minutes: Option<i16>,
}

/// What the parts of a long value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKind {
    /// Parts are text: [`Cell::Text`] with the same `Units` variant for every part. A part may end inside a surrogate
    /// pair or a UTF-8 sequence; who converts it carries the rest over to the next part.
    Text,
    /// Parts are bytes: [`Cell::Bytes`].
    Bytes,
}

/// A borrowed view of one value, in the driver's own buffer and encoding. Nothing is copied to make it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell<'a> {
    /// SQL NULL.
    Null,
    /// A boolean or a bit.
    Bool(bool),
    /// An integer to 64 bit.
    I64(i64),
    /// An unsigned integer above `i64::MAX` (MariaDB `bigint unsigned`).
    U64(u64),
    /// A 32-bit float: its shortest decimal form is shorter than that of the same value as 64 bit.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A decimal or money, as ASCII digits with an optional sign and point, no exponent: exact.
    Decimal(&'a [u8]),
    /// Text, by claim in the encoding of its `Units`, not validated.
    Text(Units<'a>),
    /// Binary.
    Bytes(&'a [u8]),
    /// A date.
    Date(Date),
    /// A time of day; `digits` of the fraction are stored (0 to 9).
    Time(Time, u8),
    /// A timestamp; `digits` of the fraction are stored (0 to 9).
    Timestamp(Timestamp, u8),
    /// A span of time without months, exact in microseconds.
    Interval {
        /// How long, with its sign.
        microseconds: i64,
        /// As the database wrote it, in ASCII: what text formats write.
        text: &'a [u8],
    },
    /// A UUID, in RFC 9562 byte order.
    Uuid([u8; 16]),
}
