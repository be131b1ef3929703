//! Rows with every kind of cell as BSON, with long values in parts and chunks of any size.
//!
//! A reference reader must find the same values. Decimals of 128 bits are compared with decimal
//! arithmetic on texts. A document never exceeds the length limit.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use onecopy_rows::sink::bson::{BsonOptions, BsonRows, DateTimes, Decimals};
use onecopy_rows::sink::RowFormat;
use onecopy_rows::{Cell, Column, ColumnType, Date, LongKind, Schema, Time, Timestamp};
use onecopy_text::{ByteSink, Policy, Units};
use onecopy_wire::bson::naive::{self, Value};
use onecopy_wire::WriteError;

#[derive(Arbitrary, Debug)]
enum Item<'a> {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Decimal(&'a str),
    Digits { negative: bool, digits: u128, zeros: u8, point: u8, exponent: i16 },
    Text(&'a str),
    Utf8(&'a [u8]),
    Utf16(Vec<u16>),
    Latin1(&'a [u8]),
    Utf32(Vec<u32>),
    Bytes(&'a [u8]),
    Moment { year: i16, month: u8, day: u8, second: u32, nanosecond: u32, offset: Option<i16> },
    Uuid([u8; 16]),
    LongUtf8(Vec<&'a [u8]>),
    LongUtf16(Vec<Vec<u16>>),
    LongBytes(Vec<&'a [u8]>),
}

#[derive(Arbitrary, Debug)]
struct Table<'a> {
    names: [&'a str; 3],
    most_bytes: u16,
    items: Vec<Item<'a>>,
}

fuzz_target!(|table: Table<'_>| {
    let columns = table.names.iter().enumerate().map(|(i, name)| Column {
        name: format!("{name}{i}"),
        column_type: ColumnType::Any,
        size: 0,
        nullable: None,
        type_name: String::new(),
    });
    let schema = Schema::new(columns.collect());
    let max_bytes = 5 + usize::from(table.most_bytes);
    let options = BsonOptions { decimals: Decimals::Decimal128, datetimes: DateTimes::DateTime, max_bytes };
    let format = BsonRows::new(&schema, options, Policy::Replace);
    let has_nul = schema.columns.iter().any(|c| c.name.contains('\0'));
    assert_eq!(format.is_err(), has_nul);
    let Ok(mut format) = format else { return };

    let (mut out, mut expected) = (Vec::new(), Vec::new());
    format.begin(&mut out).expect("memory");
    for row in table.items.chunks_exact(3) {
        let mark = out.mark();
        let start = out.len();
        match write(row, &mut format, &mut out) {
            Ok(()) => {
                assert!(out.len() - start <= max_bytes);
                let values = row.iter().map(|item| item.value().expect("it was written"));
                let names = schema.columns.iter().map(|c| c.name.clone());
                expected.push(names.zip(values).collect::<Vec<_>>());
            }
            Err(error) => {
                out.rewind(mark);
                match error {
                    WriteError::TooLong(n) => {
                        assert_eq!(n, max_bytes);
                        let values: Option<Vec<Value>> = row.iter().map(Item::value).collect();
                        let keys = schema.columns.iter().map(|c| 2 + c.name.len()).sum::<usize>();
                        assert!(values.is_none_or(|v| 5 + keys + v.iter().map(size).sum::<usize>() > n));
                    }
                    WriteError::DecimalTooLong | WriteError::NotADecimal | WriteError::NotADate | WriteError::YearOutOfRange(_) =>
                        assert!(row.iter().any(|item| item.value().is_none()), "{error}: {row:?}"),
                    error => panic!("{error}"),
                }
            }
        }
    }
    format.end(&mut out).expect("memory");
    assert_eq!(naive::documents(&out).expect("documents"), expected);
});

fn write(row: &[Item<'_>], format: &mut BsonRows, out: &mut Vec<u8>) -> Result<(), WriteError> {
    format.begin_row(false, out)?;
    for (column, item) in row.iter().enumerate() {
        item.put(column, format, out)?;
    }
    format.end_row(out)
}

impl Item<'_> {
    fn put(&self, column: usize, format: &mut BsonRows, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let digits = self.digits();
        let cell = match self {
            Item::Null => Cell::Null,
            Item::Bool(b) => Cell::Bool(*b),
            Item::I64(n) => Cell::I64(*n),
            Item::U64(n) => Cell::U64(*n),
            Item::F64(f) => Cell::F64(*f),
            Item::Decimal(_) | Item::Digits { .. } => Cell::Decimal(digits.as_bytes()),
            Item::Text(s) => Cell::Text(Units::Utf8(s.as_bytes())),
            Item::Utf8(u) => Cell::Text(Units::Utf8(u)),
            Item::Utf16(u) => Cell::Text(Units::Utf16(u)),
            Item::Latin1(u) => Cell::Text(Units::Latin1(u)),
            Item::Utf32(u) => Cell::Text(Units::Utf32(u)),
            Item::Bytes(b) => Cell::Bytes(b),
            Item::Moment { .. } => Cell::Timestamp(self.moment(), 6),
            Item::Uuid(u) => Cell::Uuid(*u),
            Item::LongUtf8(parts) => {
                let parts = parts.iter().map(|p| Cell::Text(Units::Utf8(p)));
                return long(LongKind::Text, parts, column, format, out);
            }
            Item::LongUtf16(parts) => {
                let parts = parts.iter().map(|p| Cell::Text(Units::Utf16(p)));
                return long(LongKind::Text, parts, column, format, out);
            }
            Item::LongBytes(parts) => {
                return long(LongKind::Bytes, parts.iter().map(|p| Cell::Bytes(p)), column, format, out);
            }
        };
        format.cell(column, cell, out)
    }

    /// Returns the value that the reader must find; `None` if the writer must refuse the value.
    fn value(&self) -> Option<Value> {
        let whole = |n: i64| i32::try_from(n).map_or(Value::Int64(n), Value::Int32);
        let decimal = |text: &str| naive::decimal128(text).map(Value::Decimal128);
        let text = |text: String| Some(Value::String(text));
        let utf8 = |bytes: &[u8]| Some(Value::String(String::from_utf8_lossy(bytes).into_owned()));
        match self {
            Item::Null => Some(Value::Null),
            Item::Bool(b) => Some(Value::Bool(*b)),
            Item::I64(n) => Some(whole(*n)),
            Item::U64(n) => i64::try_from(*n).map_or_else(|_| decimal(&n.to_string()), |n| Some(whole(n))),
            Item::F64(f) => Some(Value::Double(f.to_bits())),
            Item::Decimal(_) | Item::Digits { .. } => {
                let digits = self.digits();
                match special(&digits) {
                    Some(bytes) => Some(Value::Decimal128(bytes)),
                    None => decimal(&digits),
                }
            }
            Item::Text(s) => text((*s).to_owned()),
            Item::Utf8(u) => utf8(u),
            Item::Utf16(u) => text(String::from_utf16_lossy(u)),
            Item::Latin1(u) => text(u.iter().map(|b| char::from(*b)).collect()),
            Item::Utf32(u) => text(u.iter().map(|c| char::from_u32(*c).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()),
            Item::Bytes(b) => Some(Value::Binary(0, b.to_vec())),
            Item::Moment { .. } => moment_ms(&self.moment()).map(Value::DateTime),
            Item::Uuid(u) => Some(Value::Binary(4, u.to_vec())),
            Item::LongUtf8(parts) => utf8(&parts.concat()),
            Item::LongUtf16(parts) => text(String::from_utf16_lossy(&parts.concat())),
            Item::LongBytes(parts) => Some(Value::Binary(0, parts.concat())),
        }
    }

    /// Returns a decimal as text.
    fn digits(&self) -> String {
        match self {
            Item::Decimal(text) => (*text).to_owned(),
            Item::Digits { negative, digits, zeros, point, exponent } => {
                let mut text = digits.to_string() + &"0".repeat(usize::from(*zeros % 48));
                text.insert(usize::from(*point) % (text.len() + 1), '.');
                format!("{}{text}e{exponent}", if *negative { "-" } else { "" })
            }
            _ => String::new(),
        }
    }

    fn moment(&self) -> Timestamp {
        let Item::Moment { year, month, day, second, nanosecond, offset } = *self else {
            unreachable!("called only for datetimes")
        };
        let second = second % 86_401;
        Timestamp {
            date: Date { year: year.into(), month: month % 14, day: day % 33 },
            time: Time {
                hour: (second / 3600) as u8,
                minute: (second / 60 % 60) as u8,
                second: (second % 60) as u8,
                nanosecond: nanosecond % 1_000_000_001,
            },
            offset_minutes: offset.map(|o| o % 1500),
        }
    }
}

/// Returns the number of bytes of an encoded value.
fn size(value: &Value) -> usize {
    match value {
        Value::String(s) => 5 + s.len(),
        Value::Binary(_, b) => 5 + b.len(),
        Value::Bool(_) => 1,
        Value::Int32(_) => 4,
        Value::Double(_) | Value::Int64(_) | Value::DateTime(_) => 8,
        Value::Decimal128(_) => 16,
        _ => 0,
    }
}

/// Returns the decimal128 of NaN or an infinity, whose names have several forms; `None` for other
/// texts.
fn special(text: &str) -> Option<[u8; 16]> {
    let (negative, name) = match text.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let high = match name.to_ascii_lowercase().as_str() {
        "nan" => 0x7C,
        "infinity" | "inf" => if negative { 0xF8 } else { 0x78 },
        _ => return None,
    };
    let mut bytes = [0; 16];
    bytes[15] = high;
    Some(bytes)
}

/// Returns the milliseconds since 1970, computed by counting years and months; `None` if the
/// timestamp is invalid.
fn moment_ms(stamp: &Timestamp) -> Option<i64> {
    let Timestamp { date, time, offset_minutes } = stamp;
    let is_leap = |y: i32| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    let days_of = |y: i32| if is_leap(y) { 366 } else { 365 };
    let months = [31, if is_leap(date.year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let offset = i64::from(offset_minutes.unwrap_or(0));
    let of_month = *months.get(usize::from(date.month.checked_sub(1)?))?;
    let is_late = time.hour == 24 && (time.minute, time.second, time.nanosecond) != (0, 0, 0);
    if !(0..=9999).contains(&date.year)
        || date.day == 0
        || i64::from(date.day) > of_month
        || time.nanosecond > 999_999_999
        || is_late
        || offset.abs() >= 1440
    {
        return None;
    }
    let years: i64 = if date.year >= 1970 {
        (1970..date.year).map(days_of).sum()
    } else {
        -(date.year..1970).map(days_of).sum::<i64>()
    };
    let days = years + months[..usize::from(date.month) - 1].iter().sum::<i64>() + i64::from(date.day) - 1;
    let minutes = (days * 24 + i64::from(time.hour)) * 60 + i64::from(time.minute) - offset;
    Some((minutes * 60 + i64::from(time.second)) * 1000 + i64::from(time.nanosecond / 1_000_000))
}

fn long<'a>(
    kind: LongKind,
    parts: impl Iterator<Item = Cell<'a>>,
    column: usize,
    format: &mut BsonRows,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    format.long_begin(column, kind, out)?;
    for part in parts {
        format.long_part(part, out)?;
    }
    format.long_end(out)
}
