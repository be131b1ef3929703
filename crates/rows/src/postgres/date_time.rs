//! Converts dates and times from and to PostgreSQL's binary format: days and microseconds since
//! 2000-01-01.

use crate::cell::{Cell, Date, Time, Timestamp};

/// The number of days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i64 = 10_957;
/// The number of microseconds in a day.
pub(super) const DAY: i64 = 86_400_000_000;

/// Returns the date that is `days` days after 2000-01-01. The year 0 is 1 BC.
#[inline]
pub(super) fn date_of_days(days: i32) -> Date {
    Date::of_unix_days_in_any_year(i64::from(days) + DAYS_TO_2000)
        .expect("32 bits of days span about 12 million years")
}

/// Returns the number of days from 2000-01-01 to a date; `None` if the date is invalid, or the
/// number exceeds 32 bits.
pub(super) fn days_of_date(date: Date) -> Option<i32> {
    let days = date.is_in_calendar().then(|| date.to_unix_days())?;
    i32::try_from(days - DAYS_TO_2000).ok()
}

/// Returns the time of day that is `micros` microseconds after midnight, up to 24:00:00.
#[inline]
pub(super) fn time_of_micros(micros: i64) -> Time {
    let micros = micros.clamp(0, DAY) as u64;
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    Time::of_seconds(seconds as u32, micros as u32 * 1000)
}

/// Returns the number of microseconds from midnight to a time of day. A fraction of a microsecond
/// is truncated, as in Python, so that 23:59:59.999999999 does not become 24:00:00.
pub(super) fn micros_of_time(time: &Time) -> i64 {
    let seconds =
        (i64::from(time.hour) * 60 + i64::from(time.minute)) * 60 + i64::from(time.second);
    seconds * 1_000_000 + i64::from(time.nanosecond) / 1000
}

/// Returns the timestamp that is `micros` microseconds after 2000-01-01 00:00:00. `offset_minutes`
/// becomes the offset from UTC of the timestamp, and does not change its date and time.
#[inline]
pub(super) fn timestamp_of_micros(micros: i64, offset_minutes: Option<i16>) -> Timestamp {
    // 64 bits of microseconds are at most 107 million days, so the days fit in 32 bits.
    let days = micros.div_euclid(DAY) as i32;
    Timestamp {
        date: date_of_days(days),
        time: time_of_micros(micros.rem_euclid(DAY)),
        offset_minutes,
    }
}

/// Returns the number of microseconds from 2000-01-01 00:00:00 to a timestamp. A timestamp with an
/// offset is first converted to UTC. Returns `None` if the date is invalid or the number exceeds 64
/// bits.
pub(super) fn micros_of_timestamp(stamp: &Timestamp) -> Option<i64> {
    let days = i64::from(days_of_date(stamp.date)?);
    let offset = i64::from(stamp.offset_minutes.unwrap_or(0)) * 60_000_000;
    let micros = days
        .checked_mul(DAY)?
        .checked_add(micros_of_time(&stamp.time))?;
    micros.checked_sub(offset)
}

/// Returns the text of a date or timestamp outside the years 1 to 9999, or of a range with such a
/// bound, in the form in which the server writes it. Returns `None` for any other cell.
#[inline]
pub(super) fn far_text(cell: Cell<'_>) -> Option<String> {
    if !cell.has_far_date() {
        return None;
    }
    match cell {
        Cell::Date(date) => Some(with_era(&date, "")),
        Cell::Timestamp(stamp, _) => Some(timestamp_text(&stamp)),
        Cell::Range(range) => Some(String::from_utf8_lossy(range.text).into_owned()),
        _ => None,
    }
}

/// Returns a time of day as `hh:mm:ss[.ffffff]`, truncated to microseconds, without trailing zeros.
pub(super) fn time_text(time: Time) -> String {
    let fraction = format!("{:06}", time.nanosecond / 1000);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let Time {
        hour,
        minute,
        second,
        ..
    } = time;
    format!("{hour:02}:{minute:02}:{second:02}{point}{fraction}")
}

/// Returns a timestamp as the server writes it, with its offset if it has one.
pub(super) fn timestamp_text(stamp: &Timestamp) -> String {
    let zone = stamp.offset_minutes.map_or_else(String::new, |offset| {
        let (sign, n) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
        match n % 60 {
            0 => format!("{sign}{:02}", n / 60),
            minutes => format!("{sign}{:02}:{minutes:02}", n / 60),
        }
    });
    with_era(&stamp.date, &format!(" {}{zone}", time_text(stamp.time)))
}

/// Returns a date as `yyyy-mm-dd`, followed by `rest` (such as a time), and by ` BC` if the year is
/// before 1. For an infinite date, returns `infinity` or `-infinity`.
pub(super) fn with_era(date: &Date, rest: &str) -> String {
    if let Some(name) = date.infinity() {
        return name.to_owned();
    }
    let (year, era) = match date.year {
        year @ 1.. => (i64::from(year), ""),
        year => (1 - i64::from(year), " BC"),
    };
    format!("{year:04}-{:02}-{:02}{rest}{era}", date.month, date.day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn date(year: i32, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, date(2000, 1, 1)),
            (-1, date(1999, 12, 31)),
            (59, date(2000, 2, 29)),
            (-10_957, date(1970, 1, 1)),
            (-730_119, date(1, 1, 1)),
            (-730_120, date(0, 12, 31)),
            (-746_117, date(-43, 3, 15)),
            (2_921_939, date(9999, 12, 31)),
        ] {
            assert_eq!(date_of_days(days), expected);
            assert_eq!(days_of_date(expected), Some(days));
        }
        assert_eq!(days_of_date(date(2023, 2, 29)), None);
        assert_eq!(days_of_date(date(2023, 4, 31)), None);
        assert_eq!(days_of_date(date(2023, 13, 1)), None);
    }

    #[test]
    fn fractions_of_a_microsecond_are_truncated() {
        let mut stamp = date(1999, 12, 31).midnight(None);
        stamp.time = Time {
            hour: 23,
            minute: 59,
            second: 59,
            nanosecond: 999_999_999,
        };
        assert_eq!(micros_of_time(&stamp.time), DAY - 1);
        assert_eq!(micros_of_timestamp(&stamp), Some(-1));
        assert_eq!(timestamp_text(&stamp), "1999-12-31 23:59:59.999999");
    }

    #[test]
    fn far_dates_are_written_as_the_server_writes_them() {
        let stamp = |year, offset_minutes| {
            let mut stamp = date(year, 3, 15).midnight(offset_minutes);
            stamp.time.second = 1;
            stamp.time.nanosecond = 500_000_000;
            Cell::Timestamp(stamp, 6)
        };
        for (cell, expected) in [
            (Cell::Date(date(-43, 3, 15)), Some("0044-03-15 BC")),
            (Cell::Date(Date::INFINITY), Some("infinity")),
            (Cell::Date(date(1, 1, 1)), None),
            (stamp(0, None), Some("0001-03-15 00:00:01.5 BC")),
            (stamp(12_020, Some(0)), Some("12020-03-15 00:00:01.5+00")),
            (stamp(9999, None), None),
        ] {
            assert_eq!(far_text(cell).as_deref(), expected);
        }
    }

    proptest! {
        #[test]
        fn each_day_is_one_date(days in any::<i32>()) {
            let date = date_of_days(days);
            prop_assert_eq!(days_of_date(date), Some(days));
            prop_assert!(date_of_days(days.saturating_add(1)) != date || days == i32::MAX);
        }

        #[test]
        fn each_microsecond_is_one_moment(micros in any::<i64>()) {
            let stamp = timestamp_of_micros(micros, None);
            // The date of the smallest timestamps begins before the range of 64 bits.
            prop_assume!(micros > i64::MIN + DAY);
            prop_assert_eq!(micros_of_timestamp(&stamp), Some(micros));
        }
    }
}
