//! Dates.

use std::time::{SystemTime, UNIX_EPOCH};

use super::spec::{Plan, Raw, Spec};
use crate::cell::{self, Cell};
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// `SQL_DATE_STRUCT`: year (signed), month, day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// The driver fills what it cannot read with today's date.
    pub(super) filled: bool,
}

impl Date {
    pub(crate) fn plan(filled: bool) -> Plan<Self> {
        (
            Date { filled },
            Spec::fixed(c::TYPE_DATE, 6),
            ColumnType::Date,
        )
    }

    /// MariaDB's `0000-00-00` is no date: NULL, as the driver and its native clients give it. A zero month or day alone is
    /// left to the sink, which refuses it: the year is not to be lost.
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        date(raw).map_or(Cell::Null, Cell::Date)
    }
}

/// Month and day of yesterday, today and tomorrow (UTC): today's date in any time zone, around midnight as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Today([(u16, u16); 3]);

impl Today {
    /// By the system's clock.
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

/// Month and day of a day counted from 1970-01-01 (after Howard Hinnant, "chrono-compatible low-level date algorithms").
fn month_and_day(day: i64) -> (u16, u16) {
    let day_of_era = (day + 719_468).rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (month as u16, day as u16)
}

/// A field of a struct at `at`; one that does not fit is 255, which no sink accepts.
#[inline]
pub(super) fn field(raw: Raw<'_>, at: usize) -> u8 {
    u8::try_from(raw.u16(at)).unwrap_or(u8::MAX)
}

/// The date at the start of any of ODBC's structs; `None` where all of it is zero.
#[inline]
pub(super) fn date(raw: Raw<'_>) -> Option<cell::Date> {
    let date = cell::Date {
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
