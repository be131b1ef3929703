//! `Cell`: one value of a row, borrowed from the buffer of the driver. A source emits cells, a row
//! sink consumes them.

use onecopy_text::Units;
pub use onecopy_wire::datetime::{Date, Time, Timestamp};

/// The type of a long value that is emitted in parts: text or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKind {
    /// The parts are text: [`Cell::Text`], with the same `Units` variant for every part. A part may
    /// end inside a surrogate pair or a UTF-8 sequence; the sink must then prepend the incomplete
    /// units to the next part.
    Text,
    /// The parts are bytes: [`Cell::Bytes`].
    Bytes,
}

/// The type of the elements of an array. The `u8` in a variant is the number of digits in the
/// fraction of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// A boolean.
    Bool,
    /// An integer of 16, 32 or 64 bits.
    Integer {
        /// The number of bits of an integer of this type.
        bits: u8,
        /// `true` if the values are unsigned.
        unsigned: bool,
    },
    /// A 32-bit float.
    Real,
    /// A 64-bit float.
    Double,
    /// An exact decimal number.
    Decimal {
        /// The total number of digits; 0 if the database does not report it.
        precision: u8,
        /// The number of digits after the decimal point.
        scale: i8,
    },
    /// An amount of money with two decimals. If the format of an array element is unknown, the text
    /// that the server sent is emitted instead.
    Money,
    /// Binary data. Each element is text: `\x` and hexadecimal digits, or bytes with escapes.
    Bytes,
    /// A date without a time of day.
    Date,
    /// A time of day without an offset.
    Time(u8),
    /// A date and time of day, without an offset from UTC.
    Timestamp(u8),
    /// A date and time of day, with an offset from UTC.
    TimestampTz(u8),
    /// A time of day, with an offset from UTC.
    TimeTz(u8),
    /// A duration.
    Interval,
    /// A UUID.
    Uuid,
    /// A JSON value.
    Json,
    /// A range; the field is the type of its bounds.
    Range(BoundType),
    /// A multirange: ranges in ascending order that neither overlap nor touch. The field is the
    /// type of their bounds.
    Multirange(BoundType),
    /// Any type for which this enum has no other variant. An element is emitted as the text that
    /// the server sent.
    Text,
}

/// The type of the bounds of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundType {
    /// An integer of up to 64 bits.
    Integer,
    /// An exact decimal number.
    Decimal,
    /// A date without a time of day.
    Date,
    /// A date and time of day, without an offset from UTC.
    Timestamp,
    /// A date and time of day, with an offset from UTC.
    TimestampTz,
}

impl BoundType {
    /// Returns the [`ElementType`] with the same kind of values as these bounds.
    #[must_use]
    pub fn element(self) -> ElementType {
        match self {
            BoundType::Integer => ElementType::Integer {
                bits: 64,
                unsigned: false,
            },
            BoundType::Decimal => ElementType::Decimal {
                precision: 0,
                scale: 0,
            },
            BoundType::Date => ElementType::Date,
            BoundType::Timestamp => ElementType::Timestamp(6),
            BoundType::TimestampTz => ElementType::TimestampTz(6),
        }
    }
}

/// A range or multirange in PostgreSQL's text form: [`RangeText::parse`] reads its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeText<'a> {
    /// The text, such as `[1,5)` or `{[1,5),[7,9)}`, as the database sent it. It was not validated.
    pub text: &'a [u8],
    /// The type of the range's bounds.
    pub bound: BoundType,
    /// `true` if `text` is a multirange, `false` if it is one range.
    pub is_multi: bool,
}

/// An array in PostgreSQL's text form, in UTF-8: [`ArrayText::visit`] reads its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayText<'a> {
    /// The text, `{1,NULL,"a b"}`, as the database sent it. It was not validated.
    pub text: &'a [u8],
    /// The type of the array's elements.
    pub element: ElementType,
    /// `true` if dates, timestamps and ranges that Python cannot represent are passed to the visitor
    /// as text (`connect(datetime_range="text")`).
    pub far_dates_as_text: bool,
}

/// A borrowed view of one value, in the driver's buffer and encoding. Creating it copies nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell<'a> {
    /// SQL NULL.
    Null,
    /// A boolean or a bit.
    Bool(bool),
    /// An integer of up to 64 bits.
    I64(i64),
    /// An unsigned 64-bit integer above `i64::MAX` (MariaDB `bigint unsigned`). Smaller unsigned
    /// integers are emitted as `I64`.
    U64(u64),
    /// A 32-bit float. It is not converted to `F64`, because the shortest decimal text of a 32-bit
    /// float has fewer digits than the shortest text of the same value as a 64-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A decimal number or an amount of money, exact: ASCII digits with an optional sign and point,
    /// without an exponent.
    Decimal(&'a [u8]),
    /// Text in the encoding that the `Units` variant names. It was not validated.
    Text(Units<'a>),
    /// The text of a JSON value; it was not validated. The JSON output formats write this text as a
    /// JSON value, not as a quoted string.
    Json(Units<'a>),
    /// An array, in the text form of PostgreSQL.
    Array(ArrayText<'a>),
    /// A range or multirange, in the text form of PostgreSQL; [`RangeText::parse`] returns its
    /// bounds.
    Range(RangeText<'a>),
    /// Binary data.
    Bytes(&'a [u8]),
    /// A date without a time of day.
    Date(Date),
    /// A time of day, and the number of digits (0 to 9) of the fraction that the column stores.
    Time(Time, u8),
    /// A timestamp, and the number of digits (0 to 9) of the fraction that the column stores.
    Timestamp(Timestamp, u8),
    /// A duration without months, exact in microseconds: the sum of `days` and `microseconds`.
    Interval {
        /// The number of whole days in the duration, rounded down: from -999,999,999 to
        /// 999,999,999, as in Python's `timedelta`.
        days: i32,
        /// The remaining microseconds: 0 or more, and less than a day.
        microseconds: i64,
        /// The text that the database sent, in ASCII; text formats write it unchanged.
        text: &'a [u8],
    },
    /// A time of day with an offset from UTC.
    TimeTz {
        /// The time of day, without the offset.
        time: Time,
        /// The offset from UTC in seconds, positive to the east.
        offset_seconds: i32,
        /// The text that the database sent, in ASCII. Output formats that are text write it
        /// unchanged.
        text: &'a [u8],
    },
    /// A UUID, in the byte order of RFC 9562.
    Uuid([u8; 16]),
}

impl<'a> Cell<'a> {
    /// Converts a JSON value, an array, a range, a duration or a time with an offset to a text
    /// cell, which contains the text that the database sent. Output formats that have no type for
    /// such values call this function. Any other cell is returned unchanged.
    #[inline]
    #[must_use]
    pub fn or_text(self) -> Cell<'a> {
        let text = match self {
            Cell::Json(units) => return Cell::Text(units),
            Cell::Array(ArrayText { text, .. })
            | Cell::Range(RangeText { text, .. })
            | Cell::Interval { text, .. }
            | Cell::TimeTz { text, .. } => text,
            cell => return cell,
        };
        Cell::Text(Units::Utf8(text))
    }

    /// Returns `true` for a date or timestamp outside the years 1 to 9999, and for a range with such
    /// a bound. Infinite dates and timestamps are outside.
    #[inline]
    pub(crate) fn has_far_date(&self) -> bool {
        let year = match self {
            Cell::Date(date) => date.year,
            Cell::Timestamp(stamp, _) => stamp.date.year,
            Cell::Range(range) => return range.has_far_bound(),
            _ => return false,
        };
        !(1..=9999).contains(&year)
    }
}
