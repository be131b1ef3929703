//! Converts dates and times to and from the integers that represent them in Arrow.

use super::error::ValueError;
use super::types::TimeUnit;
use crate::cell::{Date, Time, Timestamp};

const DAY_SECONDS: i64 = 86_400;

/// Returns the number of days from 1970-01-01 to `date`.
///
/// # Errors
/// The calendar does not contain `date`, for example because its month is 13, or `date` is
/// [`Date::OTHER_STYLE`], or infinite.
#[inline]
pub(crate) fn checked_days(date: Date) -> Result<i64, ValueError> {
    match date.is_in_calendar() {
        true if date == Date::OTHER_STYLE => Err(ValueError::DateStyle),
        true if date.infinity().is_some() => Err(ValueError::Range),
        true => Ok(date.to_unix_days()),
        false => Err(ValueError::Invalid),
    }
}

/// Converts the fraction of a second from nanoseconds to `unit`.
///
/// # Errors
/// The fraction is not a whole number of `unit`s.
#[inline]
fn fraction(nanosecond: u32, unit: TimeUnit) -> Result<i64, ValueError> {
    let each = 1_000_000_000 / unit.per_second();
    let nanosecond = i64::from(nanosecond);
    if nanosecond % each != 0 {
        return Err(ValueError::Scale);
    }
    Ok(nanosecond / each)
}

/// Returns the number of whole seconds from midnight to `time`.
///
/// # Errors
/// A field of the time is out of range, for example minute 60. Second 60 (a leap second) and
/// `24:00:00` are accepted.
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

/// Returns the time since midnight, as a number of `unit`s.
///
/// # Errors
/// The time has a finer resolution than the unit, or is `24:00:00`, which Arrow cannot represent.
#[inline]
pub(crate) fn time_of_day(time: Time, unit: TimeUnit) -> Result<i64, ValueError> {
    let seconds = seconds(time)?;
    if seconds >= DAY_SECONDS {
        return Err(ValueError::Range);
    }
    Ok(seconds * unit.per_second() + fraction(time.nanosecond, unit)?)
}

/// Returns the time since 1970-01-01 00:00, as a number of `unit`s. A timestamp with an offset is
/// converted to UTC.
///
/// # Errors
/// The timestamp has a finer resolution than the unit, or the number exceeds 64 bits.
#[inline]
pub(crate) fn since_epoch(t: Timestamp, unit: TimeUnit) -> Result<i64, ValueError> {
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

/// Returns the time of day `n` units after midnight; `None` if `n` is not within a day.
pub(crate) fn time(n: i64, unit: TimeUnit) -> Option<Time> {
    let seconds = n.div_euclid(unit.per_second());
    if !(0..DAY_SECONDS).contains(&seconds) {
        return None;
    }
    let nanosecond = n.rem_euclid(unit.per_second()) * (1_000_000_000 / unit.per_second());
    Some(Time::of_seconds(seconds as u32, nanosecond as u32))
}

/// Returns the timestamp `n` units after 1970-01-01 00:00; `None` if its year exceeds 32 bits.
pub(crate) fn timestamp(n: i64, unit: TimeUnit, is_utc: bool) -> Option<Timestamp> {
    let day_units = DAY_SECONDS * unit.per_second();
    Some(Timestamp {
        date: Date::of_unix_days_in_any_year(n.div_euclid(day_units))?,
        time: time(n.rem_euclid(day_units), unit)?,
        offset_minutes: is_utc.then_some(0),
    })
}

/// Parses a date in the form `yyyy-mm-dd`; `None` for any other text.
pub(crate) fn parse_date(text: &[u8]) -> Option<Date> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let date = Date {
        year: i32::from(number(&text[..4])?),
        month: u8::try_from(number(&text[5..7])?).ok()?,
        day: u8::try_from(number(&text[8..])?).ok()?,
    };
    date.is_in_calendar().then_some(date)
}

/// Parses a time of day in the form `hh:mm[:ss[.fffffffff]]`; `None` for any other text.
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

/// Parses a date, or a date and a time separated by a space or `T`. The text may end with `Z` or
/// with an offset of hours and minutes. Returns `None` for text in another form.
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
            assert_eq!(checked_days(parsed), Ok(n), "{text}");
            assert_eq!(Date::of_unix_days_in_any_year(n), Some(parsed));
        }
        for n in (-800_000..3_000_000).step_by(37) {
            assert_eq!(
                Date::of_unix_days_in_any_year(n).map(checked_days),
                Some(Ok(n))
            );
        }
        assert_eq!(Date::of_unix_days_in_any_year(i64::MAX), None);
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
            assert_eq!(
                since_epoch(invalid, TimeUnit::Second),
                Err(ValueError::Invalid)
            );
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
                since_epoch(invalid, TimeUnit::Nano),
                Err(ValueError::Invalid),
                "{time:?}"
            );
            assert_eq!(
                time_of_day(time, TimeUnit::Nano),
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
                since_epoch(invalid, TimeUnit::Second),
                Err(ValueError::Invalid),
                "{offset}"
            );
        }
    }

    #[test]
    fn timestamps_are_counted_in_their_unit_and_back() {
        let t = stamp("2026-11-20 13:05:00.25");
        assert_eq!(since_epoch(t, TimeUnit::Milli), Ok(1_795_179_900_250));
        assert_eq!(since_epoch(t, TimeUnit::Second), Err(ValueError::Scale));
        assert_eq!(
            timestamp(1_795_179_900_250, TimeUnit::Milli, false),
            Some(stamp("2026-11-20 13:05:00.25"))
        );
        let utc = since_epoch(stamp("2026-11-20T13:05:00+05:30"), TimeUnit::Second);
        assert_eq!(
            utc,
            since_epoch(stamp("2026-11-20T07:35:00Z"), TimeUnit::Second)
        );
        assert_eq!(
            since_epoch(stamp("9999-12-31 00:00"), TimeUnit::Nano),
            Err(ValueError::Range)
        );
        assert_eq!(
            timestamp(-1, TimeUnit::Nano, false).unwrap().time.second,
            59
        );
    }

    #[test]
    fn the_end_of_a_day_is_no_time_of_day() {
        let end = Time {
            hour: 24,
            minute: 0,
            second: 0,
            nanosecond: 0,
        };
        assert_eq!(time_of_day(end, TimeUnit::Second), Err(ValueError::Range));
        assert_eq!(
            time_of_day(parse_time(b"23:59:59.999999").unwrap(), TimeUnit::Micro),
            Ok(86_399_999_999)
        );
        assert_eq!(time(86_400, TimeUnit::Second), None);
        assert_eq!(time(-1, TimeUnit::Second), None);
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
