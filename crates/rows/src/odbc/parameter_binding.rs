//! `ParameterBinding`: the C type, SQL type, size and bytes with which a parameter value is passed
//! to an ODBC driver.

use super::ffi::{self, GuidStruct, c, sql};
use super::quirks::{Quirks, Width};
use crate::cell::{Date, Time, Timestamp};
use crate::plain_text::{n_digits, time_text, timestamp_text, uuid_text};
use crate::value::{Declared, DeclaredKind, Value};

/// The types and sizes with which the value of a parameter is bound. If an array of values is
/// bound, they apply to each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParameterBinding {
    pub(super) c_type: i16,
    pub(super) sql_type: i16,
    /// The column size, as the parameter `ColumnSize` of `SQLBindParameter` defines it.
    pub(super) size: usize,
    pub(super) digits: i16,
    /// The number of bytes that a value occupies in the buffer.
    pub(super) bytes: usize,
    pub(super) is_null: bool,
    /// `true` if the caller declared the type of the parameter.
    pub(super) is_declared: bool,
}

const fn form(
    c_type: i16,
    sql_type: i16,
    size: usize,
    digits: i16,
    bytes: usize,
) -> ParameterBinding {
    ParameterBinding {
        c_type,
        sql_type,
        size,
        digits,
        bytes,
        is_null: false,
        is_declared: false,
    }
}

impl ParameterBinding {
    /// Returns a binding for `value` with which the driver passes the value to the database
    /// unchanged.
    pub(super) fn of(value: &Value, width: Width, quirks: &Quirks) -> ParameterBinding {
        match value {
            Value::Null => ParameterBinding {
                is_null: true,
                ..form(c::CHAR, sql::VARCHAR, 1, 0, 0)
            },
            Value::Bool(_) => form(c::BIT, sql::BIT, 1, 0, 1),
            // A 32-bit type is used if the value fits: PostgreSQL has `repeat(text, int)`, but not
            // `repeat(text, bigint)`.
            Value::I64(n) if i32::try_from(*n).is_ok() => form(c::SLONG, sql::INTEGER, 10, 0, 4),
            Value::I64(_) => form(c::SBIGINT, sql::BIGINT, 19, 0, 8),
            Value::F64(_) => form(c::DOUBLE, sql::DOUBLE, 15, 0, 8),
            Value::Decimal(digits) => decimal(digits),
            Value::Text(text) => of_text(text, width, quirks),
            Value::Cast(text, _) => ascii(text.len()),
            Value::Bytes(bytes) => of_bytes(bytes.len(), quirks),
            // A date before `Quirks::first_right_year` is bound as text, which the server converts.
            Value::Date(d) if is_early(*d, quirks) => ascii(date_text(*d).len()),
            Value::Date(_) => form(c::TYPE_DATE, sql::TYPE_DATE, 10, 0, 6),
            Value::Time(t) if has_struct(*t) => form(c::TYPE_TIME, sql::TYPE_TIME, 8, 0, 6),
            // ODBC's struct has no fraction, so the time is bound as text, which each server
            // converts.
            Value::Time(t) => ascii(time_text(*t, n_digits(*t)).len()),
            Value::Timestamp(t) if t.offset_minutes.is_none() && !is_early(t.date, quirks) => {
                timestamp(*t)
            }
            // No struct with an offset is supported by all drivers, so the timestamp is bound as
            // text.
            Value::Timestamp(t) => ascii(timestamp_text(*t, n_digits(t.time)).len()),
            Value::Uuid(_) if quirks.guid_parameters => form(c::GUID, sql::GUID, 16, 0, 16),
            Value::Uuid(_) => ascii(36),
            Value::Declared(inner, declared) => {
                ParameterBinding::of(inner, width, quirks).declared(declared, width, quirks)
            }
        }
    }

    /// Changes the binding to the type that the caller declared, with a size that is sufficient for
    /// the value.
    fn declared(mut self, declared: &Declared, width: Width, quirks: &Quirks) -> ParameterBinding {
        let text = match width {
            Width::Narrow => sql::VARCHAR,
            Width::Wide => sql::WVARCHAR,
        };
        let (sql_type, size) = match declared.kind {
            DeclaredKind::Sized => (self.sql_type, self.size),
            DeclaredKind::Number | DeclaredKind::Moment if !self.is_null => {
                (self.sql_type, self.size)
            }
            DeclaredKind::Number | DeclaredKind::Integer => (sql::BIGINT, 19),
            DeclaredKind::Moment | DeclaredKind::Timestamp => (sql::TYPE_TIMESTAMP, 26),
            DeclaredKind::Bool => (sql::BIT, 1),
            DeclaredKind::Double => (sql::DOUBLE, 15),
            DeclaredKind::Decimal => (sql::DECIMAL, self.size.min(38)),
            // A long text or binary value already has a text or binary type.
            DeclaredKind::Text if is_text(self.sql_type) && !self.is_null => {
                (self.sql_type, self.size)
            }
            DeclaredKind::Text => (text, self.size),
            DeclaredKind::Binary if is_binary(self.sql_type) => (self.sql_type, self.size),
            DeclaredKind::Binary => (sql::VARBINARY, self.size),
            DeclaredKind::Date => (sql::TYPE_DATE, 10),
            DeclaredKind::Time => (sql::TYPE_TIME, 8),
            DeclaredKind::Uuid if quirks.guid_parameters => (sql::GUID, 16),
            DeclaredKind::Uuid => (text, 36),
        };
        self.is_declared = declared.kind != DeclaredKind::Sized;
        if self.is_null {
            self.c_type = c_type_of(sql_type);
        }
        self.sql_type = sql_type;
        // The size of `(n)varchar(max)` is 0, and must stay 0.
        self.size = if size == 0 {
            0
        } else {
            size.max(declared.size)
        };
        if matches!(sql_type, sql::DECIMAL | sql::TYPE_TIMESTAMP) {
            let digits = declared.digits.max(self.digits);
            if sql_type == sql::DECIMAL {
                // The number of digits before the decimal point must not become smaller.
                let before = size.saturating_sub(usize::try_from(self.digits).unwrap_or(0));
                let needed = before + usize::try_from(digits).unwrap_or(0);
                self.size = needed.max(declared.size).clamp(1, 38);
            }
            self.digits = digits;
        } else {
            self.digits = 0;
        }
        self
    }

    /// Returns a binding that accepts the values of `self` and of `other`; `None` if no binding
    /// accepts them without a change of their meaning.
    pub(super) fn merged(self, other: ParameterBinding) -> Option<ParameterBinding> {
        let ints = [c::SLONG, c::SBIGINT];
        let is_alike = (self.c_type, self.sql_type) == (other.c_type, other.sql_type)
            // For SQL Server, size 0 means another type (`nvarchar(max)`), and a decimal keeps its
            // declared scale.
            && (self.size == 0) == (other.size == 0)
            && (self.sql_type != sql::DECIMAL || self.digits == other.digits);
        match (self, other) {
            (a, b) if b.is_null => Some(a),
            (a, b) if a.is_null => Some(b),
            (a, b) if is_alike => Some(ParameterBinding {
                size: a.size.max(b.size),
                digits: a.digits.max(b.digits),
                bytes: a.bytes.max(b.bytes),
                ..a
            }),
            (a, b) if ints.contains(&a.c_type) && ints.contains(&b.c_type) => {
                Some(form(c::SBIGINT, sql::BIGINT, 19, 0, 8))
            }
            _ => None,
        }
    }
}

/// Returns the C type with which a NULL of the SQL type `sql_type` is bound. Some drivers accept
/// only the default C type of the SQL type.
fn c_type_of(sql_type: i16) -> i16 {
    match sql_type {
        sql::BIGINT => c::SBIGINT,
        sql::DOUBLE => c::DOUBLE,
        sql::BIT => c::BIT,
        sql::WVARCHAR => c::WCHAR,
        sql::VARBINARY => c::BINARY,
        sql::TYPE_DATE => c::TYPE_DATE,
        sql::TYPE_TIME => c::TYPE_TIME,
        sql::TYPE_TIMESTAMP => c::TYPE_TIMESTAMP,
        sql::GUID => c::GUID,
        _ => c::CHAR,
    }
}

pub(super) fn is_text(sql_type: i16) -> bool {
    matches!(
        sql_type,
        sql::VARCHAR | sql::LONGVARCHAR | sql::WVARCHAR | sql::WLONGVARCHAR
    )
}

fn is_binary(sql_type: i16) -> bool {
    matches!(sql_type, sql::VARBINARY | sql::LONGVARBINARY)
}

/// Writes `value` at the start of `out`, which must have `form.bytes` bytes. Returns the length of
/// the value in bytes, or `SQL_NULL_DATA`.
pub(super) fn put(value: &Value, form: &ParameterBinding, out: &mut [u8]) -> ffi::Len {
    let mut put = |bytes: &[u8]| {
        out[..bytes.len()].copy_from_slice(bytes);
        bytes.len() as ffi::Len
    };
    match value {
        Value::Null => ffi::NULL_DATA,
        Value::Bool(b) => put(&[u8::from(*b)]),
        Value::I64(n) if form.c_type == c::SBIGINT => put(&n.to_ne_bytes()),
        Value::I64(n) => put(&(*n as i32).to_ne_bytes()),
        Value::F64(f) => put(&f.to_ne_bytes()),
        Value::Decimal(text) | Value::Cast(text, _) => put(text.as_bytes()),
        Value::Text(text) if form.c_type == c::WCHAR => {
            let mut n = 0;
            for (to, unit) in out.chunks_exact_mut(2).zip(text.encode_utf16()) {
                to.copy_from_slice(&unit.to_ne_bytes());
                n += 2;
            }
            n
        }
        Value::Text(text) => put(text.as_bytes()),
        Value::Bytes(bytes) => put(bytes),
        Value::Date(d) if form.c_type == c::CHAR => put(date_text(*d).as_bytes()),
        Value::Date(d) => put(&fields([year(*d), d.month.into(), d.day.into()])),
        Value::Time(t) if has_struct(*t) => {
            put(&fields([t.hour.into(), t.minute.into(), t.second.into()]))
        }
        Value::Time(t) => put(time_text(*t, n_digits(*t)).as_bytes()),
        Value::Timestamp(t) if form.c_type != c::CHAR => {
            let (d, time) = (t.date, t.time);
            let date: [u8; 6] = fields([year(d), d.month.into(), d.day.into()]);
            let day: [u8; 6] = fields([time.hour.into(), time.minute.into(), time.second.into()]);
            let fraction = time.nanosecond.to_ne_bytes();
            put(&[&date[..], &day, &fraction].concat())
        }
        Value::Timestamp(t) => put(timestamp_text(*t, n_digits(t.time)).as_bytes()),
        Value::Uuid(uuid) if form.c_type == c::GUID => {
            let GuidStruct {
                data1,
                data2,
                data3,
                data4,
            } = crate::odbc::column::guid(*uuid);
            let parts = [data2.to_ne_bytes(), data3.to_ne_bytes()].concat();
            put(&[&data1.to_ne_bytes()[..], &parts, &data4].concat())
        }
        Value::Uuid(uuid) => put(uuid_text(uuid).as_bytes()),
        Value::Declared(inner, _) => self::put(inner, form, out),
    }
}

/// Returns the bytes of an ODBC struct that consists of three 16-bit fields, such as
/// `SQL_DATE_STRUCT`.
fn fields(of: [u16; 3]) -> [u8; 6] {
    let mut bytes = [0; 6];
    for (to, field) in bytes.chunks_exact_mut(2).zip(of) {
        to.copy_from_slice(&field.to_ne_bytes());
    }
    bytes
}

/// Returns `true` for a date that is so early that the driver would change it.
fn is_early(date: Date, quirks: &Quirks) -> bool {
    date.year < quirks.first_right_year
}

fn date_text(d: Date) -> String {
    format!("{:04}-{:02}-{:02}", d.year, d.month, d.day)
}

/// Returns `true` if ODBC's `SQL_TIME_STRUCT`, which has no fraction of a second, can represent the
/// time.
fn has_struct(t: Time) -> bool {
    t.nanosecond == 0 && t.hour < 24
}

fn decimal(digits: &str) -> ParameterBinding {
    let n_digits = digits.bytes().filter(u8::is_ascii_digit).count().max(1);
    let scale = digits.split_once('.').map_or(0, |(_, after)| after.len());
    if n_digits > 38 {
        // The value exceeds the digits of ODBC's decimals, so it is bound as text with all its
        // digits.
        return ascii(digits.len());
    }
    let scale = i16::try_from(scale).unwrap_or(0);
    form(c::CHAR, sql::DECIMAL, n_digits, scale, digits.len())
}

fn ascii(len: usize) -> ParameterBinding {
    form(c::CHAR, sql::VARCHAR, len.max(1), 0, len)
}

fn of_text(text: &str, width: Width, quirks: &Quirks) -> ParameterBinding {
    let max = quirks.long_parameter_bytes == 0;
    let long = |n_bytes: usize| !max && n_bytes > quirks.long_parameter_bytes;
    match width {
        Width::Narrow if long(text.len()) => {
            form(c::CHAR, sql::LONGVARCHAR, text.len(), 0, text.len())
        }
        Width::Narrow => ascii(text.len()),
        Width::Wide => {
            let n_units = if text.is_ascii() {
                text.len()
            } else {
                text.encode_utf16().count()
            };
            let (sql_type, size) = if max && n_units > 4000 {
                // The type is nvarchar(max). SQL_WLONGVARCHAR would be the older type ntext, which
                // cannot be compared.
                (sql::WVARCHAR, 0)
            } else if long(2 * n_units) {
                (sql::WLONGVARCHAR, n_units)
            } else {
                (sql::WVARCHAR, n_units.max(1))
            };
            form(c::WCHAR, sql_type, size, 0, 2 * n_units)
        }
    }
}

fn of_bytes(len: usize, quirks: &Quirks) -> ParameterBinding {
    let max = quirks.long_parameter_bytes == 0;
    let (sql_type, size) = if max && len > 8000 {
        (sql::VARBINARY, 0)
    } else if !max && len > quirks.long_parameter_bytes {
        (sql::LONGVARBINARY, len)
    } else {
        (sql::VARBINARY, len.max(1))
    };
    form(c::BINARY, sql_type, size, 0, len)
}

/// Returns the year as ODBC's structs contain it: the bits of a signed 16-bit integer.
fn year(d: Date) -> u16 {
    i16::try_from(d.year).unwrap_or(i16::MAX).cast_unsigned()
}

/// Returns a binding with at least as many digits of the fraction as the value has. A driver
/// refuses (22008) a fraction with more digits than the binding declares.
fn timestamp(t: Timestamp) -> ParameterBinding {
    let digits = n_digits(t.time);
    // `yyyy-mm-dd hh:mm:ss` has 19 characters, and the decimal point is one more. The fraction has
    // at least six digits, because SQL Server derives the type datetime2(n) from the size.
    let digits = if digits == 0 { 0 } else { digits.max(6) };
    let size = if digits == 0 {
        19
    } else {
        20 + usize::from(digits)
    };
    form(
        c::TYPE_TIMESTAMP,
        sql::TYPE_TIMESTAMP,
        size,
        digits.into(),
        16,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::odbc::quirks::{UNKNOWN, known};

    /// Returns 2020-01-02 03:04:05 with a fraction and an offset.
    fn moment(nanosecond: u32, offset_minutes: Option<i16>) -> Timestamp {
        let (year, month, day) = (2020, 1, 2);
        let (hour, minute, second) = (3, 4, 5);
        Timestamp {
            date: Date { year, month, day },
            time: Time {
                hour,
                minute,
                second,
                nanosecond,
            },
            offset_minutes,
        }
    }

    #[test]
    fn timestamps_say_the_digits_they_need() {
        for (nanosecond, size, digits) in [
            (0, 19, 0),
            (500_000_000, 26, 6),
            (123_456_700, 27, 7),
            (1, 29, 9),
        ] {
            let b = timestamp(moment(nanosecond, None));
            assert_eq!((b.size, b.digits), (size, digits), "{nanosecond}");
        }
    }

    #[test]
    fn decimals_say_their_digits_and_scale() {
        let b = decimal("-12.340");
        assert_eq!((b.sql_type, b.size, b.digits), (sql::DECIMAL, 5, 3));
        let b = decimal(&"9".repeat(50));
        assert_eq!(b.sql_type, sql::VARCHAR);
    }

    #[test]
    fn offsets_and_uuids_have_their_text_form() {
        assert_eq!(
            timestamp_text(moment(120_000_000, Some(-330)), 2),
            "2020-01-02 03:04:05.12-05:30"
        );
        assert_eq!(
            uuid_text(&[0x12; 16]),
            "12121212-1212-1212-1212-121212121212"
        );
    }

    #[test]
    fn long_text_for_sql_server_is_nvarchar_max() {
        let q = known("libmsodbcsql-18.so").unwrap();
        let b = of_text(&"x".repeat(5000), Width::Wide, q);
        assert_eq!((b.sql_type, b.size), (sql::WVARCHAR, 0));
        let b = of_text(&"x".repeat(9000), Width::Wide, &UNKNOWN);
        assert_eq!((b.sql_type, b.size), (sql::WLONGVARCHAR, 9000));
    }

    #[test]
    fn columns_take_the_widest_of_their_values() {
        let of = |v: &Value| ParameterBinding::of(v, Width::Narrow, &UNKNOWN);
        let text = |s: &str| of(&Value::Text(s.to_owned()));
        let null = of(&Value::Null);
        assert_eq!(null.merged(text("abc")), Some(text("abc")));
        assert_eq!(text("abc").merged(null), Some(text("abc")));
        assert_eq!(text("a").merged(text("東京")), Some(text("東京")));
        let (small, large) = (of(&Value::I64(1)), of(&Value::I64(1 << 40)));
        assert_eq!(small.merged(large), Some(large));
        assert_eq!(large.merged(small), Some(large));
        assert_eq!(small.merged(of(&Value::F64(1.0))), None);
        assert_eq!(small.merged(text("1")), None);
        let decimal = |s: &str| of(&Value::Decimal(s.to_owned()));
        assert_eq!(
            decimal("1.25").merged(decimal("100.50")),
            Some(decimal("100.50"))
        );
        assert_eq!(decimal("1.25").merged(decimal("1.5")), None);
        let long = ParameterBinding::of(&Value::Text("x".repeat(9000)), Width::Narrow, &UNKNOWN);
        assert_eq!(text("a").merged(long), None);
    }

    #[test]
    fn told_types_never_make_a_value_shorter() {
        let declared = |value: Value, kind, size, digits| {
            let declared = Declared { kind, size, digits };
            ParameterBinding::of(
                &Value::Declared(Box::new(value), declared),
                Width::Wide,
                &UNKNOWN,
            )
        };
        let null = declared(Value::Null, DeclaredKind::Binary, 9, 0);
        assert_eq!(
            (null.c_type, null.sql_type, null.size),
            (c::BINARY, sql::VARBINARY, 9)
        );
        assert!(null.is_null && null.is_declared);
        let text = declared(Value::Text("東京".to_owned()), DeclaredKind::Text, 1, 0);
        assert_eq!(
            (text.sql_type, text.size, text.bytes),
            (sql::WVARCHAR, 2, 4)
        );
        let digits = Value::Decimal("123456.125".to_owned());
        let decimal = declared(digits.clone(), DeclaredKind::Decimal, 8, 1);
        assert_eq!((decimal.size, decimal.digits), (9, 3));
        let decimal = declared(digits, DeclaredKind::Decimal, 12, 5);
        assert_eq!((decimal.size, decimal.digits), (12, 5));
        let int = declared(Value::I64(7), DeclaredKind::Number, 0, 0);
        assert_eq!((int.c_type, int.sql_type), (c::SLONG, sql::INTEGER));
    }
}
