//! Dates and times to and from the integers that Arrow counts them in.

use super::error::ValueError;
use super::types::Unit;
use crate::cell::{Date, Time, Timestamp};

const DAY_SECONDS: i64 = 86_400;

/// Days since 1970-01-01, in the proleptic Gregorian calendar (after Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
#[inline]
pub(crate) fn days(date: Date) -> i64 {
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// As [`days`], of a date that may come from anywhere.
///
/// # Errors
/// The calendar does not have it.
#[inline]
pub(crate) fn checked_days(date: Date) -> Result<i64, ValueError> {
    const DAYS: [u8; 13] = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let year = date.year;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let in_month = DAYS.get(usize::from(date.month)).copied().unwrap_or(0);
    let last = in_month + u8::from(date.month == 2 && is_leap);
    match date.day.wrapping_sub(1) < last {
        true => Ok(days(date)),
        false => Err(ValueError::Invalid),
    }
}

/// The date of a day counted from 1970-01-01; `None` where the year is beyond 32 bits.
pub(crate) fn date(days: i64) -> Option<Date> {
    let days = days.checked_add(719_468)?;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Some(Date {
        year: i32::try_from(year).ok()?,
        month: month as u8,
        day: (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8,
    })
}

/// A second's fraction in `unit`.
///
/// # Errors
/// It is finer than the unit.
#[inline]
fn fraction(nanosecond: u32, unit: Unit) -> Result<i64, ValueError> {
    let each = 1_000_000_000 / unit.per_second();
    let nanosecond = i64::from(nanosecond);
    if nanosecond % each != 0 {
        return Err(ValueError::Scale);
    }
    Ok(nanosecond / each)
}

/// Seconds since midnight.
///
/// # Errors
/// It is no time: a leap second and `24:00:00` are.
#[inline]
fn seconds(time: Time) -> Result<i64, ValueError> {
    let is_time = time.minute < 60 && time.second <= 60 && time.nanosecond < 1_000_000_000;
    let seconds =
        i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second);
    match is_time && seconds <= DAY_SECONDS {
        true => Ok(seconds),
        false => Err(ValueError::Invalid),
    }
}

/// A time of day since midnight.
///
/// # Errors
/// It is finer than the unit, or the day's end (`24:00:00`), which Arrow does not have.
#[inline]
pub(crate) fn time_of_day(time: Time, unit: Unit) -> Result<i64, ValueError> {
    let seconds = seconds(time)?;
    if seconds >= DAY_SECONDS {
        return Err(ValueError::Range);
    }
    Ok(seconds * unit.per_second() + fraction(time.nanosecond, unit)?)
}

/// A timestamp since 1970-01-01 00:00; one with an offset in UTC.
///
/// # Errors
/// It is finer than the unit, or too far away for it.
#[inline]
pub(crate) fn since_epoch(t: Timestamp, unit: Unit) -> Result<i64, ValueError> {
    let offset = i64::from(t.offset_minutes.unwrap_or(0)) * 60;
    if offset.abs() >= DAY_SECONDS {
        return Err(ValueError::Invalid);
    }
    let at = checked_days(t.date)? * DAY_SECONDS + seconds(t.time)? - offset;
    let fraction = fraction(t.time.nanosecond, unit)?;
    at.checked_mul(unit.per_second())
        .and_then(|at| at.checked_add(fraction))
        .ok_or(ValueError::Range)
}

/// The time of day `n` units after midnight; `None` where it is none.
pub(crate) fn time(n: i64, unit: Unit) -> Option<Time> {
    let seconds = n.div_euclid(unit.per_second());
    if !(0..DAY_SECONDS).contains(&seconds) {
        return None;
    }
    Some(Time {
        hour: (seconds / 3600) as u8,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        nanosecond: (n.rem_euclid(unit.per_second()) * (1_000_000_000 / unit.per_second())) as u32,
    })
}

/// The timestamp `n` units after 1970-01-01 00:00; `None` where its year is beyond 32 bits.
pub(crate) fn timestamp(n: i64, unit: Unit, is_utc: bool) -> Option<Timestamp> {
    let day_units = DAY_SECONDS * unit.per_second();
    Some(Timestamp {
        date: date(n.div_euclid(day_units))?,
        time: time(n.rem_euclid(day_units), unit)?,
        offset_minutes: is_utc.then_some(0),
    })
}

/// `yyyy-mm-dd`; `None` of anything else.
pub(crate) fn parse_date(text: &[u8]) -> Option<Date> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let date = Date {
        year: i32::from(number(&text[..4])?),
        month: u8::try_from(number(&text[5..7])?).ok()?,
        day: u8::try_from(number(&text[8..])?).ok()?,
    };
    // One that the calendar does not have comes back as another.
    ((1..=12).contains(&date.month) && self::date(days(date)) == Some(date)).then_some(date)
}

/// `hh:mm[:ss[.fffffffff]]`; `None` of anything else.
pub(crate) fn parse_time(text: &[u8]) -> Option<Time> {
    let (whole, digits) = match text.iter().position(|b| *b == b'.') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let second = match whole.len() {
        5 if digits.is_empty() => 0,
        8 if whole[5] == b':' => number(&whole[6..])?,
        _ => return None,
    };
    if whole[2] != b':' || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let nanosecond = (0..9).fold(0, |n, i| {
        n * 10 + u32::from(digits.get(i).map_or(0, |d| d - b'0'))
    });
    let (hour, minute) = (number(&whole[..2])?, number(&whole[3..5])?);
    (hour < 24 && minute < 60 && second < 60).then_some(Time {
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        nanosecond,
    })
}

/// A date, or a date and a time with a space or `T` between, with `Z` or an offset of hours and minutes behind or nothing.
pub(crate) fn parse_timestamp(text: &[u8]) -> Option<Timestamp> {
    let date = parse_date(text.get(..10)?)?;
    let (time, offset_minutes) = match &text[10..] {
        [] => (&b"00:00"[..], None),
        [b' ' | b'T', rest @ ..] => split_offset(rest)?,
        _ => return None,
    };
    Some(Timestamp {
        date,
        time: parse_time(time)?,
        offset_minutes,
    })
}

fn split_offset(text: &[u8]) -> Option<(&[u8], Option<i16>)> {
    if let [rest @ .., b'Z'] = text {
        return Some((rest, Some(0)));
    }
    let Some(at) = text.iter().position(|b| matches!(b, b'+' | b'-')) else {
        return Some((text, None));
    };
    let (hours, minutes) = match &text[at + 1..] {
        [a, b] => (number(&[*a, *b])?, 0),
        [a, b, b':', c, d] | [a, b, c, d] => (number(&[*a, *b])?, number(&[*c, *d])?),
        _ => return None,
    };
    if hours > 15 || minutes > 59 {
        return None;
    }
    let offset = i16::try_from(hours * 60 + minutes).ok()?;
    let offset = if text[at] == b'-' { -offset } else { offset };
    Some((&text[..at], Some(offset)))
}

fn number(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |n, d| {
        d.is_ascii_digit().then(|| n * 10 + u16::from(d - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(text: &str) -> Timestamp {
        parse_timestamp(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn days_are_counted_from_1970_and_back() {
        for (text, n) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            let parsed = parse_date(text.as_bytes()).unwrap();
            assert_eq!(days(parsed), n, "{text}");
            assert_eq!(date(n), Some(parsed));
        }
        for n in (-800_000..3_000_000).step_by(37) {
            assert_eq!(days(date(n).unwrap()), n);
        }
        assert_eq!(date(i64::MAX), None);
    }

    #[test]
    fn dates_and_times_that_do_not_exist_are_refused() {
        let t = stamp("2026-11-25 01:02:03");
        for (month, day) in [
            (0, 1),
            (13, 1),
            (255, 1),
            (1, 0),
            (1, 32),
            (2, 29),
            (4, 31),
            (1, 255),
        ] {
            let date = Date {
                year: 2026,
                month,
                day,
            };
            assert_eq!(
                checked_days(date),
                Err(ValueError::Invalid),
                "{month}-{day}"
            );
            let invalid = Timestamp { date, ..t };
            assert_eq!(since_epoch(invalid, Unit::Second), Err(ValueError::Invalid));
        }
        for (year, is_leap) in [(2024, true), (1900, false), (2000, true), (-4, true)] {
            let date = Date {
                year,
                month: 2,
                day: 29,
            };
            assert_eq!(checked_days(date).is_ok(), is_leap, "{year}");
        }
        for (hour, minute, second, nanosecond) in [
            (25, 0, 0, 0),
            (255, 0, 0, 0),
            (1, 60, 0, 0),
            (1, 0, 61, 0),
            (1, 0, 0, 1_000_000_000),
        ] {
            let time = Time {
                hour,
                minute,
                second,
                nanosecond,
            };
            let invalid = Timestamp { time, ..t };
            assert_eq!(
                since_epoch(invalid, Unit::Nano),
                Err(ValueError::Invalid),
                "{time:?}"
            );
            assert_eq!(
                time_of_day(time, Unit::Nano),
                Err(ValueError::Invalid),
                "{time:?}"
            );
        }
        for offset in [1440, -1440, i16::MAX, i16::MIN] {
            let invalid = Timestamp {
                offset_minutes: Some(offset),
                ..t
            };
            assert_eq!(
                since_epoch(invalid, Unit::Second),
                Err(ValueError::Invalid),
                "{offset}"
            );
        }
    }

    #[test]
    fn timestamps_are_counted_in_their_unit_and_back() {
        let t = stamp("2026-11-20 13:05:00.25");
        assert_eq!(since_epoch(t, Unit::Milli), Ok(1_795_179_900_250));
        assert_eq!(since_epoch(t, Unit::Second), Err(ValueError::Scale));
        assert_eq!(
            timestamp(1_795_179_900_250, Unit::Milli, false),
            Some(stamp("2026-11-20 13:05:00.25"))
        );
        let utc = since_epoch(stamp("2026-11-20T13:05:00+05:30"), Unit::Second);
        assert_eq!(
            utc,
            since_epoch(stamp("2026-11-20T07:35:00Z"), Unit::Second)
        );
        assert_eq!(
            since_epoch(stamp("9999-12-31 00:00"), Unit::Nano),
            Err(ValueError::Range)
        );
        assert_eq!(timestamp(-1, Unit::Nano, false).unwrap().time.second, 59);
    }

    #[test]
    fn the_end_of_a_day_is_no_time_of_day() {
        let end = Time {
            hour: 24,
            minute: 0,
            second: 0,
            nanosecond: 0,
        };
        assert_eq!(time_of_day(end, Unit::Second), Err(ValueError::Range));
        assert_eq!(
            time_of_day(parse_time(b"23:59:59.999999").unwrap(), Unit::Micro),
            Ok(86_399_999_999)
        );
        assert_eq!(time(86_400, Unit::Second), None);
        assert_eq!(time(-1, Unit::Second), None);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "2026-02-30",
            "2026-13-01",
            "2026-1-01",
            "20261-01-01",
            "",
            "2026-11-20x",
            "2026-11-20 24:00",
            "2026-11-20 1:00",
            "2026-11-20 01:00+1",
            "2026-11-20 01:00:00.1234567890",
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), None, "{text}");
        }
    }
}
