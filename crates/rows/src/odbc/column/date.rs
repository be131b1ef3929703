//! `DateStruct`: the column kind (the bound buffer, and its conversion to a [`Cell`]) for dates.
//! `Today`: the current date. It serves to detect that a driver has returned the current date
//! instead of a date that it cannot parse.

use std::time::{SystemTime, UNIX_EPOCH};

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::{Cell, Date};
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// A date, bound as `SQL_DATE_STRUCT`: year (signed), month and day, 16 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateStruct {
    /// `true` if the driver returns the current date instead of a date that it cannot parse.
    pub(super) filled: bool,
}

impl DateStruct {
    pub(crate) fn plan(filled: bool) -> ColumnBinding<Self> {
        (
            DateStruct { filled },
            Spec::fixed(c::TYPE_DATE, 6),
            ColumnType::Date,
        )
    }

    /// Returns the date as a cell. MariaDB's `0000-00-00` is not a date, and is returned as NULL,
    /// as MariaDB's own clients do. A date in which only the month or day is zero is passed to the
    /// sink, which refuses it. If it were returned as NULL instead, its year would be lost without
    /// an error.
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        date(raw).map_or(Cell::Null, Cell::Date)
    }
}

/// The month and the day of yesterday, today and tomorrow in UTC. One of them is the current date
/// in any time zone, also around midnight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Today([(u16, u16); 3]);

impl Today {
    /// Reads the current date from the system's clock.
    pub(crate) fn now() -> Today {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        let day = i64::try_from(seconds / 86_400).unwrap_or(0);
        Today([day - 1, day, day + 1].map(month_and_day))
    }

    #[inline]
    pub(super) fn is_about(&self, month: u16, day: u16) -> bool {
        self.0.contains(&(month, day))
    }
}

/// Returns the month and the day of the date that is `day` days after 1970-01-01.
fn month_and_day(day: i64) -> (u16, u16) {
    Date::of_unix_days_in_any_year(day).map_or((0, 0), |d| (d.month.into(), d.day.into()))
}

/// Returns the 16-bit field at byte `at` of an ODBC struct. A value above 255 becomes 255, which
/// every sink rejects as invalid.
#[inline]
pub(super) fn field(raw: Raw<'_>, at: usize) -> u8 {
    u8::try_from(raw.u16(at)).unwrap_or(u8::MAX)
}

/// Returns the date in an ODBC struct that begins with a date. Returns `None` for the date
/// 0000-00-00.
#[inline]
pub(super) fn date(raw: Raw<'_>) -> Option<Date> {
    let date = Date {
        year: i32::from(i16::from_ne_bytes(raw.array(0))),
        month: field(raw, 2),
        day: field(raw, 4),
    };
    (date.month != 0 || date.day != 0 || date.year != 0).then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_beyond_a_byte_make_no_other_date() {
        let mut bytes = [0; 6];
        bytes[..2].copy_from_slice(&2026_i16.to_ne_bytes());
        bytes[2..4].copy_from_slice(&(256 + 1_u16).to_ne_bytes());
        bytes[4..].copy_from_slice(&1_u16.to_ne_bytes());
        let date = date(Raw::new(&bytes)).unwrap();
        assert_eq!((date.month, date.day), (u8::MAX, 1));
    }

    #[test]
    fn months_and_days_are_counted_from_1970() {
        for (day, expected) in [
            (0, (1, 1)),
            (-1, (12, 31)),
            (59, (3, 1)),
            (11_016, (2, 29)),
            (19_782, (2, 29)),
            (20_777, (11, 20)),
        ] {
            assert_eq!(month_and_day(day), expected, "{day}");
        }
    }
}
