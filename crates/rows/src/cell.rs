//! `Cell`: one value of a row, borrowed from the buffer of the driver. A source emits cells, a row
//! sink consumes them.

use onecopy_text::Units;

/// A calendar date (proleptic Gregorian), as the database returned it; it may be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year. Databases have years outside 1 to 9999; a sink may refuse them.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, 1 to 31.
    pub day: u8,
}

impl Date {
    /// PostgreSQL's date `infinity`, which is later than all other dates. No output format can
    /// represent it as a date.
    pub const INFINITY: Date = Date {
        year: i32::MAX,
        month: 1,
        day: 1,
    };
    /// PostgreSQL's date `-infinity`, which is earlier than all other dates.
    pub const MINUS_INFINITY: Date = Date {
        year: i32::MIN,
        month: 1,
        day: 1,
    };

    /// Returns `infinity` or `-infinity` if the date is infinite; otherwise `None`.
    #[must_use]
    pub fn infinity(self) -> Option<&'static str> {
        match self {
            Date::INFINITY => Some("infinity"),
            Date::MINUS_INFINITY => Some("-infinity"),
            _ => None,
        }
    }

    /// Returns the timestamp of midnight at the start of the date, with `offset_minutes` as its
    /// offset from UTC.
    #[must_use]
    pub fn midnight(self, offset_minutes: Option<i16>) -> Timestamp {
        Timestamp {
            date: self,
            time: Time::default(),
            offset_minutes,
        }
    }
}

/// A time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// The hour, 0 to 23; 24 only in PostgreSQL's `24:00:00`.
    pub hour: u8,
    /// The minute, 0 to 59.
    pub minute: u8,
    /// The second, 0 to 59; 60 in a leap second.
    pub second: u8,
    /// The fraction of the second, in nanoseconds.
    pub nanosecond: u32,
}

/// A date and a time, with or without an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The date of the timestamp.
    pub date: Date,
    /// The time of day of the timestamp.
    pub time: Time,
    /// The offset from UTC in minutes, positive to the east; `None` if the database returned the
    /// timestamp without an offset.
    pub offset_minutes: Option<i16>,
}

/// The type of the parts in which a long value is emitted: text or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKind {
    /// The parts are text: [`Cell::Text`], with the same `Units` variant for every part. A part may
    /// end inside a surrogate pair or a UTF-8 sequence; the sink must put the incomplete units
    /// before the next part.
    Text,
    /// The parts are bytes: [`Cell::Bytes`].
    Bytes,
}

/// The type of the elements of an array. The `u8` of a variant is the number of digits in the
/// fraction of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// A boolean.
    Bool,
    /// An integer of `bits` 16, 32 or 64.
    Integer {
        /// The width of a value in bits.
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
    /// Binary data, written as hexadecimal digits.
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
    /// A range, whose bounds have the contained type.
    Range(BoundType),
    /// A multirange: ranges in ascending order that neither overlap nor touch. Its bounds have the
    /// contained type.
    Multirange(BoundType),
    /// Any type without a variant of its own. An element is the text that the server sent.
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
    /// Returns the element type of an array whose elements have the same type as the bounds.
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
    /// The type of the bounds.
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
    /// A 32-bit float. It is kept apart from `F64`, because the shortest decimal text of a 32-bit
    /// float has fewer digits than the shortest text of the same value as a 64-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A decimal number or an amount of money, exact: ASCII digits with an optional sign and point,
    /// without an exponent.
    Decimal(&'a [u8]),
    /// Text in the encoding that the `Units` variant names. It was not validated.
    Text(Units<'a>),
    /// The text of a JSON value; it was not validated. JSON formats write it without quotes, as a
    /// value.
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
    /// A duration without months, exact in microseconds.
    Interval {
        /// The duration, with its sign.
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
        /// The text that the database sent, in ASCII; text formats write it unchanged.
        text: &'a [u8],
    },
    /// A UUID, in the byte order of RFC 9562.
    Uuid([u8; 16]),
}

impl<'a> Cell<'a> {
    /// Returns a JSON value, an array, a range, a duration or a time with an offset as a text cell,
    /// which contains the database's text. It serves output formats that have no type for such a
    /// value. A cell of any other kind is returned unchanged.
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
}
