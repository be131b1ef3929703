//! Dates and times in PostgreSQL's binary form: days and microseconds since 2000-01-01.

use crate::cell::{Date, Time, Timestamp};

/// Days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i64 = 10_957;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;
/// Microseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000;

/// The date of a day counted from 2000-01-01; the year 0 is 1 BC.
#[inline]
pub(super) fn date_of_days(days: i32) -> Date {
    // Years that begin in March, in cycles of 400 years: the leap day is the last of its year.
    let days = i64::from(days) + DAYS_TO_2000 + DAYS_TO_1970;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097) as u32);
    let year_of_cycle = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    Date {
        // A date of 32 bits of days is within 6 million years.
        year: (cycle * 400) as i32 + year_of_cycle as i32 + next,
        month: month as u8,
        day: day as u8,
    }
}

/// The day of a date, counted from 2000-01-01; `None` for what is no date, or beyond 32 bits.
pub(super) fn days_of_date(date: &Date) -> Option<i32> {
    if !(1..=12).contains(&date.month) || !(1..=31).contains(&date.day) {
        return None;
    }
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_cycle = year * 365 + year / 4 - year / 100 + day_of_year;
    let days = cycle * 146_097 + day_of_cycle - DAYS_TO_1970 - DAYS_TO_2000;
    let days = i32::try_from(days).ok()?;
    // 31 April is 1 May, and therefore no date.
    (date_of_days(days) == *date).then_some(days)
}

/// The time of day of so many microseconds since midnight, up to 24:00:00.
#[inline]
pub(super) fn time_of_micros(micros: i64) -> Time {
    let micros = micros.clamp(0, DAY) as u64;
    let seconds = (micros / 1_000_000) as u32;
    Time {
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        nanosecond: (micros % 1_000_000) as u32 * 1000,
    }
}

/// The microseconds of a time of day; a fraction below them is rounded.
pub(super) fn micros_of_time(time: &Time) -> i64 {
    let seconds =
        (i64::from(time.hour) * 60 + i64::from(time.minute)) * 60 + i64::from(time.second);
    seconds * 1_000_000 + (i64::from(time.nanosecond) + 500) / 1000
}

/// The moment of so many microseconds since 2000-01-01 00:00:00.
#[inline]
pub(super) fn timestamp_of_micros(micros: i64, offset_minutes: Option<i16>) -> Timestamp {
    // 64 bits of microseconds are 107 million days at most.
    let days = micros.div_euclid(DAY) as i32;
    Timestamp {
        date: date_of_days(days),
        time: time_of_micros(micros.rem_euclid(DAY)),
        offset_minutes,
    }
}

/// The microseconds of a moment, in UTC if it has an offset; `None` beyond 64 bits.
pub(super) fn micros_of_timestamp(stamp: &Timestamp) -> Option<i64> {
    let days = i64::from(days_of_date(&stamp.date)?);
    let offset = i64::from(stamp.offset_minutes.unwrap_or(0)) * 60_000_000;
    let micros = days
        .checked_mul(DAY)?
        .checked_add(micros_of_time(&stamp.time))?;
    micros.checked_sub(offset)
}

/// A timestamp with an offset in PostgreSQL's ISO style (`2024-02-29 12:00:00.5+01`, `…+05:30`);
/// `None` for another style, for infinity, for years before Christ and for offsets with seconds.
pub(super) fn parse_timestamptz(text: &[u8]) -> Option<Timestamp> {
    fn number(digits: &[u8]) -> Option<u32> {
        let is_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let add = |n: u32, d: &u8| n * 10 + u32::from(d - b'0');
        (is_digits && digits.len() <= 9).then(|| digits.iter().fold(0, add))
    }
    let split = text.iter().position(|b| *b == b' ')?;
    let (date, rest) = (&text[..split], text.get(split + 1..)?);
    let mut parts = date.split(|b| *b == b'-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let sign = rest.iter().position(|b| matches!(b, b'+' | b'-'))?;
    let (time, zone) = rest.split_at(sign);
    let (clock, fraction) = match time.iter().position(|b| *b == b'.') {
        Some(at) => (&time[..at], &time[at + 1..]),
        None => (time, &b""[..]),
    };
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return None;
    };
    let nanosecond = match fraction.len() {
        0 => 0,
        n @ 1..=9 => number(fraction)? * 10u32.pow(9 - u32::try_from(n).ok()?),
        _ => return None,
    };
    let (hours, minutes) = match zone[1..] {
        [a, b] => (number(&[a, b])?, 0),
        [a, b, b':', c, d] => (number(&[a, b])?, number(&[c, d])?),
        _ => return None,
    };
    let offset = i16::try_from(hours * 60 + minutes).ok()?;
    let two = |a, b| number(&[a, b]).and_then(|n| u8::try_from(n).ok());
    (parts.next().is_none() && year.len() >= 4).then_some(Timestamp {
        date: Date {
            year: i32::try_from(number(year)?).ok()?,
            month: u8::try_from(number(month)?).ok()?,
            day: u8::try_from(number(day)?).ok()?,
        },
        time: Time {
            hour: two(h1, h2)?,
            minute: two(m1, m2)?,
            second: two(s1, s2)?,
            nanosecond,
        },
        offset_minutes: Some(if zone[0] == b'-' { -offset } else { offset }),
    })
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
            assert_eq!(days_of_date(&expected), Some(days));
        }
        assert_eq!(days_of_date(&date(2023, 2, 29)), None);
        assert_eq!(days_of_date(&date(2023, 4, 31)), None);
        assert_eq!(days_of_date(&date(2023, 13, 1)), None);
    }

    #[test]
    fn timestamps_with_an_offset_are_read_from_iso_style() {
        let of = |text: &str| parse_timestamptz(text.as_bytes());
        let time = Time {
            hour: 12,
            minute: 34,
            second: 56,
            nanosecond: 780_000_000,
        };
        let expected = Timestamp {
            date: date(2024, 2, 29),
            time,
            offset_minutes: Some(-210),
        };
        assert_eq!(of("2024-02-29 12:34:56.78-03:30"), Some(expected));
        assert_eq!(
            of("2024-02-29 12:34:56+01").unwrap().offset_minutes,
            Some(60)
        );
        for text in [
            "infinity",
            "-infinity",
            "0044-03-15 00:00:00+00 BC",
            "1890-01-01 00:00:00+00:53:28",
            "29/02/2024 12:34:56 CET",
            "2024-02-29",
            "2024-02-29 12:34:56",
            "",
            "2024-02-29 1:2:3+00",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_day_is_one_date(days in any::<i32>()) {
            let date = date_of_days(days);
            prop_assert_eq!(days_of_date(&date), Some(days));
            prop_assert!(date_of_days(days.saturating_add(1)) != date || days == i32::MAX);
        }

        #[test]
        fn each_microsecond_is_one_moment(micros in any::<i64>()) {
            let stamp = timestamp_of_micros(micros, None);
            // The first day of 64 bits begins before them.
            prop_assume!(micros > i64::MIN + DAY);
            prop_assert_eq!(micros_of_timestamp(&stamp), Some(micros));
        }

        #[test]
        fn any_text_is_a_timestamp_or_none(text in "[-0-9:+. BC]{0,40}") {
            let _ = parse_timestamptz(text.as_bytes());
        }
    }
}
