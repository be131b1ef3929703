//! Parameter values to buffers that a driver reads: bound, never pasted.

use std::ffi::c_void;

use super::connection::Shared;
use super::ffi::{self, GuidStruct, Handle, c, sql};
use super::quirks::{Quirks, Width};
use crate::cell::{Date, Time, Timestamp};
use crate::value::Value;

/// One value as a driver reads it.
struct Bound {
    c_type: i16,
    sql_type: i16,
    /// Column size.
    size: usize,
    digits: i16,
    data: Data,
}

enum Data {
    Null,
    I32(i32),
    I64(i64),
    F64(f64),
    Bit(u8),
    Bytes(Vec<u8>),
    Wide(Vec<u16>),
    Date(ffi::DateStruct),
    Time(ffi::TimeStruct),
    Timestamp(ffi::TimestampStruct),
    Guid(GuidStruct),
}

/// The values of one execution, alive until the driver has read them.
pub(crate) struct Parameters {
    bound: Vec<Bound>,
    /// Boxed: the driver keeps pointers to them.
    indicators: Box<[ffi::Len]>,
}

impl Parameters {
    /// Buffers for `values`.
    pub(crate) fn new(values: &[Value], shared: &Shared) -> Parameters {
        let bound: Vec<Bound> = values
            .iter()
            .map(|v| bind(v, shared.width, shared.quirks))
            .collect();
        let indicators = bound.iter().map(|b| b.data.indicator()).collect();
        Parameters { bound, indicators }
    }

    /// Binds all of them to `statement`; returns the number (from 0) of the one that the driver refuses.
    ///
    /// # Safety
    /// `statement` is alive, and `self` outlives its next execution or `SQLFreeStmt(SQL_RESET_PARAMS)`.
    pub(crate) unsafe fn bind_to(
        &mut self,
        statement: Handle,
        shared: &Shared,
    ) -> Result<(), usize> {
        for (index, bound) in self.bound.iter_mut().enumerate() {
            let number = u16::try_from(index + 1).map_err(|_| index)?;
            if matches!(bound.data, Data::Null) && shared.quirks.describe_null {
                // SAFETY: the caller vouches for the statement.
                unsafe { describe(bound, statement, number, shared) };
            }
            let (data, len) = bound.data.pointer();
            // SAFETY: the data and the indicator live in `self`, which the caller keeps alive.
            let rc = unsafe {
                (shared.manager.call.bind_parameter)(
                    statement,
                    number,
                    ffi::PARAM_INPUT,
                    bound.c_type,
                    bound.sql_type,
                    bound.size,
                    bound.digits,
                    data,
                    len,
                    &raw mut self.indicators[index],
                )
            };
            if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
                return Err(index);
            }
        }
        Ok(())
    }
}

/// Takes a NULL's type from the server, where it tells.
///
/// # Safety
/// `statement` is alive and prepared.
unsafe fn describe(bound: &mut Bound, statement: Handle, number: u16, shared: &Shared) {
    let (mut sql_type, mut digits, mut nullable) = (0i16, 0i16, 0i16);
    let mut size: ffi::ULen = 0;
    // SAFETY: the caller vouches for the statement; the out pointers are live locals.
    let rc = unsafe {
        (shared.manager.call.describe_param)(
            statement,
            number,
            &raw mut sql_type,
            &raw mut size,
            &raw mut digits,
            &raw mut nullable,
        )
    };
    if rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO {
        (bound.sql_type, bound.size, bound.digits) = (sql_type, size, digits);
    }
}

impl Data {
    fn indicator(&self) -> ffi::Len {
        let len = match self {
            Data::Null => return ffi::NULL_DATA,
            Data::I32(_) => 4,
            Data::I64(_) | Data::F64(_) => 8,
            Data::Bit(_) => 1,
            Data::Bytes(b) => b.len(),
            Data::Wide(u) => u.len() * 2,
            Data::Date(_) | Data::Time(_) => 6,
            Data::Timestamp(_) | Data::Guid(_) => 16,
        };
        isize::try_from(len).unwrap_or(isize::MAX)
    }

    fn pointer(&mut self) -> (*mut c_void, ffi::Len) {
        let len = self.indicator().max(0);
        let pointer: *mut c_void = match self {
            Data::Null => std::ptr::null_mut(),
            Data::I32(v) => (&raw mut *v).cast(),
            Data::I64(v) => (&raw mut *v).cast(),
            Data::F64(v) => (&raw mut *v).cast(),
            Data::Bit(v) => (&raw mut *v).cast(),
            Data::Bytes(v) => v.as_mut_ptr().cast(),
            Data::Wide(v) => v.as_mut_ptr().cast(),
            Data::Date(v) => (&raw mut *v).cast(),
            Data::Time(v) => (&raw mut *v).cast(),
            Data::Timestamp(v) => (&raw mut *v).cast(),
            Data::Guid(v) => (&raw mut *v).cast(),
        };
        (pointer, len)
    }
}

fn fixed(c_type: i16, sql_type: i16, size: usize, digits: i16, data: Data) -> Bound {
    Bound {
        c_type,
        sql_type,
        size,
        digits,
        data,
    }
}

fn bind(value: &Value, width: Width, quirks: &Quirks) -> Bound {
    match value {
        Value::Null => fixed(c::CHAR, sql::VARCHAR, 1, 0, Data::Null),
        Value::Bool(b) => fixed(c::BIT, sql::BIT, 1, 0, Data::Bit(u8::from(*b))),
        // The smaller type where it does: PostgreSQL has `repeat(text, int)`, not `repeat(text, bigint)`.
        Value::I64(n) => match i32::try_from(*n) {
            Ok(n) => fixed(c::SLONG, sql::INTEGER, 10, 0, Data::I32(n)),
            Err(_) => fixed(c::SBIGINT, sql::BIGINT, 19, 0, Data::I64(*n)),
        },
        Value::F64(f) => fixed(c::DOUBLE, sql::DOUBLE, 15, 0, Data::F64(*f)),
        Value::Decimal(digits) => decimal(digits),
        Value::Text(text) => text_parameter(text, width, quirks),
        Value::Bytes(bytes) => binary(bytes, quirks),
        Value::Date(d) => fixed(c::TYPE_DATE, sql::TYPE_DATE, 10, 0, Data::Date(date(*d))),
        Value::Time(t) if t.nanosecond == 0 && t.hour < 24 => fixed(
            c::TYPE_TIME,
            sql::TYPE_TIME,
            8,
            0,
            Data::Time(ffi::TimeStruct {
                hour: t.hour.into(),
                minute: t.minute.into(),
                second: t.second.into(),
            }),
        ),
        // ODBC's struct has no fraction: as text, which each server turns into a time.
        Value::Time(t) => ascii(&time_text(*t)),
        Value::Timestamp(t) if t.offset_minutes.is_none() => timestamp(*t),
        // Nor is there a struct with an offset that drivers share.
        Value::Timestamp(t) => ascii(&timestamp_text(*t)),
        Value::Uuid(uuid) if quirks.guid_parameters => {
            let guid = crate::column::guid(*uuid);
            fixed(c::GUID, sql::GUID, 16, 0, Data::Guid(guid))
        }
        Value::Uuid(uuid) => ascii(&uuid_text(*uuid)),
    }
}

fn decimal(digits: &str) -> Bound {
    let n_digits = digits.bytes().filter(u8::is_ascii_digit).count().max(1);
    let scale = digits.split_once('.').map_or(0, |(_, after)| after.len());
    if n_digits > 38 {
        // More than ODBC's decimal can say: as text, every digit.
        return ascii(digits);
    }
    fixed(
        c::CHAR,
        sql::DECIMAL,
        n_digits,
        i16::try_from(scale).unwrap_or(0),
        Data::Bytes(digits.as_bytes().to_vec()),
    )
}

fn ascii(text: &str) -> Bound {
    let size = text.len().max(1);
    fixed(
        c::CHAR,
        sql::VARCHAR,
        size,
        0,
        Data::Bytes(text.as_bytes().to_vec()),
    )
}

fn text_parameter(text: &str, width: Width, quirks: &Quirks) -> Bound {
    let long = text.len() > quirks.long_parameter_bytes;
    let max = quirks.long_parameter_bytes == 0;
    match width {
        Width::Narrow => {
            let (sql_type, size) = if long && !max {
                (sql::LONGVARCHAR, text.len())
            } else {
                (sql::VARCHAR, text.len().max(1))
            };
            fixed(
                c::CHAR,
                sql_type,
                size,
                0,
                Data::Bytes(text.as_bytes().to_vec()),
            )
        }
        Width::Wide => {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (sql_type, size) = if max && units.len() > 4000 {
                // nvarchar(max): SQL_WLONGVARCHAR would be the old ntext, which compares with nothing.
                (sql::WVARCHAR, 0)
            } else if long && !max {
                (sql::WLONGVARCHAR, units.len())
            } else {
                (sql::WVARCHAR, units.len().max(1))
            };
            fixed(c::WCHAR, sql_type, size, 0, Data::Wide(units))
        }
    }
}

fn binary(bytes: &[u8], quirks: &Quirks) -> Bound {
    let max = quirks.long_parameter_bytes == 0;
    let (sql_type, size) = if max && bytes.len() > 8000 {
        (sql::VARBINARY, 0)
    } else if !max && bytes.len() > quirks.long_parameter_bytes {
        (sql::LONGVARBINARY, bytes.len())
    } else {
        (sql::VARBINARY, bytes.len().max(1))
    };
    fixed(c::BINARY, sql_type, size, 0, Data::Bytes(bytes.to_vec()))
}

fn date(d: Date) -> ffi::DateStruct {
    ffi::DateStruct {
        year: i16::try_from(d.year).unwrap_or(i16::MAX),
        month: d.month.into(),
        day: d.day.into(),
    }
}

/// With as many digits of fraction as the value needs: a driver refuses (22008) a fraction finer than it was told.
fn timestamp(t: Timestamp) -> Bound {
    let d = date(t.date);
    let fraction = t.time.nanosecond;
    let digits = (0..9)
        .find(|n| fraction.is_multiple_of(10u32.pow(9 - n)))
        .unwrap_or(9);
    // `yyyy-mm-dd hh:mm:ss` is 19, the point one more. Six digits at least: SQL Server takes the size for datetime2's.
    let digits = if digits == 0 { 0 } else { digits.max(6) };
    let size = if digits == 0 {
        19
    } else {
        20 + digits as usize
    };
    let value = ffi::TimestampStruct {
        year: d.year,
        month: d.month,
        day: d.day,
        hour: t.time.hour.into(),
        minute: t.time.minute.into(),
        second: t.time.second.into(),
        fraction,
    };
    fixed(
        c::TYPE_TIMESTAMP,
        sql::TYPE_TIMESTAMP,
        size,
        i16::try_from(digits).unwrap_or(9),
        Data::Timestamp(value),
    )
}

fn time_text(t: Time) -> String {
    let mut text = format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    if t.nanosecond != 0 {
        let fraction = format!("{:09}", t.nanosecond);
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    text
}

fn timestamp_text(t: Timestamp) -> String {
    let Date { year, month, day } = t.date;
    let offset = t.offset_minutes.unwrap_or(0);
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
    format!(
        "{year:04}-{month:02}-{day:02} {}{sign}{hours:02}:{minutes:02}",
        time_text(t.time)
    )
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::odbc::quirks::{UNKNOWN, known};

    #[test]
    fn timestamps_say_the_digits_they_need() {
        for (nanosecond, size, digits) in [
            (0, 19, 0),
            (500_000_000, 26, 6),
            (123_456_700, 27, 7),
            (1, 29, 9),
        ] {
            let t = Timestamp {
                date: Date {
                    year: 2020,
                    month: 1,
                    day: 2,
                },
                time: Time {
                    hour: 3,
                    minute: 4,
                    second: 5,
                    nanosecond,
                },
                offset_minutes: None,
            };
            let b = timestamp(t);
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
        let t = Timestamp {
            date: Date {
                year: 2020,
                month: 1,
                day: 2,
            },
            time: Time {
                hour: 3,
                minute: 4,
                second: 5,
                nanosecond: 120_000_000,
            },
            offset_minutes: Some(-330),
        };
        assert_eq!(timestamp_text(t), "2020-01-02 03:04:05.12-05:30");
        assert_eq!(
            uuid_text([0x12; 16]),
            "12121212-1212-1212-1212-121212121212"
        );
    }

    #[test]
    fn long_text_for_sql_server_is_nvarchar_max() {
        let q = known("libmsodbcsql-18.so").unwrap();
        let b = text_parameter(&"x".repeat(5000), Width::Wide, q);
        assert_eq!((b.sql_type, b.size), (sql::WVARCHAR, 0));
        let b = text_parameter(&"x".repeat(9000), Width::Wide, &UNKNOWN);
        assert_eq!((b.sql_type, b.size), (sql::WLONGVARCHAR, 9000));
    }
}
