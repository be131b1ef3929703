//! `TimeText` and `SsTime`: the column kinds for times of day. A column kind determines the ODBC
//! buffer of a column, and the conversion of the buffer to a `Cell`. `TimeText` binds times as
//! text, because `SQL_TIME_STRUCT` has no fraction of a second. `SsTime` is for the type `time(n)`
//! of SQL Server, which has its own C struct.

use onecopy_text::Units;

use super::date::field;
use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::{Cell, Time};
use crate::interval;
use crate::odbc::ffi::c;
use crate::odbc::quirks::Quirks;
use crate::schema::ColumnType;
use crate::sql::dialect::Dialect;

/// A time of day, bound as ASCII text of the form `hh:mm:ss[.fffffffff]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeText {
    digits: u8,
    /// `true` if a value of the type `time` can be a signed duration of up to 838 hours (MariaDB).
    spans: bool,
}

/// A time of SQL Server, bound as `SQL_SS_TIME2_STRUCT`: hour, minute, second (16 bits each), two
/// unused bytes, nanoseconds (32 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SsTime {
    digits: u8,
}

impl TimeText {
    pub(crate) fn plan(digits: u8, dialect: Dialect) -> ColumnBinding<Self> {
        let spans = dialect == Dialect::MySql;
        (
            TimeText { digits, spans },
            Spec::digits(32),
            ColumnType::Time { digits },
        )
    }

    /// Returns the time as a cell. A value that is not a time of day is returned as a duration for
    /// MariaDB, and as text for other databases.
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        match parse(raw.bytes()) {
            Some((time, digits)) if time.hour < 24 || !self.spans => {
                Cell::Time(time, digits.max(self.digits))
            }
            _ if self.spans => interval::cell(raw.bytes()),
            _ => Cell::Text(Units::Utf8(raw.bytes())),
        }
    }
}

impl SsTime {
    pub(crate) fn plan(digits: u8, quirks: &Quirks) -> ColumnBinding<Self> {
        let c_type = if quirks.ss_as_binary {
            c::BINARY
        } else {
            c::SS_TIME2
        };
        (
            SsTime { digits },
            Spec::fixed(c_type, 12),
            ColumnType::Time { digits },
        )
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Time(time(raw, 0, 8), self.digits)
    }
}

/// Reads a time from an ODBC struct: hour, minute and second from byte `at` on, and the fraction in
/// nanoseconds at byte `fraction_at`.
#[inline]
pub(super) fn time(raw: Raw<'_>, at: usize, fraction_at: usize) -> Time {
    Time {
        hour: field(raw, at),
        minute: field(raw, at + 2),
        second: field(raw, at + 4),
        nanosecond: u32::from_ne_bytes(raw.array(fraction_at)),
    }
}

/// Parses a time of day; returns the time and the number of digits of its fraction, or `None` for
/// text in another form.
pub(super) fn parse(text: &[u8]) -> Option<(Time, u8)> {
    let two = |at: usize| match text.get(at..at + 2) {
        Some([a @ b'0'..=b'9', b @ b'0'..=b'9']) => Some((a - b'0') * 10 + (b - b'0')),
        _ => None,
    };
    let colon = |at: usize| (text.get(at) == Some(&b':')).then_some(());
    let (hour, minute, second) = (two(0)?, two(3)?, two(6)?);
    colon(2)?;
    colon(5)?;
    let mut nanosecond = 0;
    let mut digits = 0;
    match text.get(8) {
        None => {}
        Some(b'.') => {
            let fraction = &text[9..];
            if fraction.len() > 9 || !fraction.iter().all(u8::is_ascii_digit) {
                return None;
            }
            for at in 0..9 {
                nanosecond = nanosecond * 10 + u32::from(fraction.get(at).map_or(0, |d| d - b'0'));
            }
            digits = fraction.len() as u8;
        }
        Some(_) => return None,
    }
    let whole_day = hour == 24 && minute == 0 && second == 0 && nanosecond == 0;
    (whole_day || (hour < 24 && minute < 60 && second < 61)).then_some((
        Time {
            hour,
            minute,
            second,
            nanosecond,
        },
        digits,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_fraction() {
        let (time, digits) = parse(b"01:02:03.123456").unwrap();
        assert_eq!(
            (time.hour, time.minute, time.second, time.nanosecond, digits),
            (1, 2, 3, 123_456_000, 6)
        );
        assert_eq!(parse(b"24:00:00").unwrap().0.hour, 24);
    }

    #[test]
    fn what_is_no_time_of_day_is_given_as_text() {
        for text in [
            "-12:34:56",
            "300:00:01.5",
            "25:00:00",
            "12:61:00",
            "12:00",
            "12:00:00+05",
        ] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
    }
}
