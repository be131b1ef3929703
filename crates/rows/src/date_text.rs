//! Parses dates and times in the text form that PostgreSQL writes with the setting `DateStyle =
//! ISO`.

use crate::cell::{Cell, Date, Time, Timestamp};

fn number(digits: &[u8]) -> Option<u32> {
    let is_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let add = |n: u32, d: &u8| n * 10 + u32::from(d - b'0');
    (is_digits && digits.len() <= 9).then(|| digits.iter().fold(0, add))
}

fn two(a: u8, b: u8) -> Option<u8> {
    number(&[a, b]).and_then(|n| u8::try_from(n).ok())
}

/// Returns the text without the suffix ` BC`, and `true` if it had that suffix.
fn without_era(text: &[u8]) -> (&[u8], bool) {
    text.strip_suffix(b" BC")
        .map_or((text, false), |text| (text, true))
}

/// Parses a date `yyyy-mm-dd` with a year of at least four digits, optionally followed by ` BC`.
/// Returns `None` for any other text.
pub(crate) fn date(text: &[u8]) -> Option<Date> {
    let (text, is_before_christ) = without_era(text);
    date_of(text, is_before_christ)
}

fn date_of(text: &[u8], is_before_christ: bool) -> Option<Date> {
    let mut parts = text.split(|b| *b == b'-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let n_year = i32::try_from(number(year)?).ok()?;
    (parts.next().is_none() && year.len() >= 4).then_some(Date {
        year: if is_before_christ { 1 - n_year } else { n_year },
        month: u8::try_from(number(month)?).ok()?,
        day: u8::try_from(number(day)?).ok()?,
    })
}

/// Parses a time of day `hh:mm:ss[.f…]` with up to nine digits of fraction. Returns `None` for any
/// other text.
pub(crate) fn time(text: &[u8]) -> Option<Time> {
    let (clock, fraction) = match text.iter().position(|b| *b == b'.') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return None;
    };
    let nanosecond = match fraction.len() {
        0 => 0,
        n @ 1..=9 => number(fraction)? * 10u32.pow(9 - u32::try_from(n).ok()?),
        _ => return None,
    };
    Some(Time {
        hour: two(h1, h2)?,
        minute: two(m1, m2)?,
        second: two(s1, s2)?,
        nanosecond,
    })
}

/// Parses a timestamp `yyyy-mm-dd hh:mm:ss[.f…]` without an offset from UTC, optionally followed by
/// ` BC`. Returns `None` for any other text.
pub(crate) fn timestamp(text: &[u8]) -> Option<Timestamp> {
    let (text, is_before_christ) = without_era(text);
    let split = text.iter().position(|b| *b == b' ')?;
    Some(Timestamp {
        date: date_of(&text[..split], is_before_christ)?,
        time: time(&text[split + 1..])?,
        offset_minutes: None,
    })
}

/// Parses a timestamp with an offset from UTC in PostgreSQL's ISO style, such as `2024-02-29
/// 12:00:00.5+01` or `…+00:53:28`. A timestamp whose offset has seconds is converted to UTC. Returns
/// `None` for another style, and for `infinity`.
pub(crate) fn timestamp_with_offset(text: &[u8]) -> Option<Timestamp> {
    let (text, is_before_christ) = without_era(text);
    let split = text.iter().position(|b| *b == b' ')?;
    let (clock, offset_seconds) = split_offset(&text[split + 1..])?;
    let date = date_of(&text[..split], is_before_christ)?;
    Timestamp::with_offset(date, time(clock)?, i64::from(offset_seconds) * 1_000_000)
}

/// Parses a time of day with an offset from UTC, such as `12:00:00.5+01` or `…+05:30:15`. Returns
/// `None` for any other text.
pub(crate) fn time_with_offset(text: &[u8]) -> Option<Cell<'_>> {
    let (clock, offset_seconds) = split_offset(text)?;
    Some(Cell::TimeTz {
        time: time(clock)?,
        offset_seconds,
        text,
    })
}

/// Splits a time of day from its offset from UTC (`+hh[:mm[:ss]]` or `-hh[:mm[:ss]]`). Returns the
/// text before the offset, and the offset in seconds; `None` if the text has no valid offset.
fn split_offset(text: &[u8]) -> Option<(&[u8], i32)> {
    let sign = text.iter().position(|b| matches!(b, b'+' | b'-'))?;
    let (clock, zone) = text.split_at(sign);
    let (hours, minutes, seconds) = match zone[1..] {
        [a, b] => (two(a, b)?, 0, 0),
        [a, b, b':', c, d] => (two(a, b)?, two(c, d)?, 0),
        [a, b, b':', c, d, b':', e, f] => (two(a, b)?, two(c, d)?, two(e, f)?),
        _ => return None,
    };
    let offset = (i32::from(hours) * 60 + i32::from(minutes)) * 60 + i32::from(seconds);
    Some((clock, if zone[0] == b'-' { -offset } else { offset }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_read_in_iso_style() {
        let stamp = timestamp(b"0044-03-15 01:02:03.5 BC").unwrap();
        assert_eq!((stamp.date.year, stamp.time.nanosecond), (-43, 500_000_000));
        assert_eq!(date(b"12020-03-04").unwrap().year, 12_020);
        assert_eq!(date(b"03/04/2020"), None);
        let offset = |text: &str| match time_with_offset(text.as_bytes()) {
            Some(Cell::TimeTz { offset_seconds, .. }) => Some(offset_seconds),
            _ => None,
        };
        for (text, seconds) in [
            ("12:34:56+00", Some(0)),
            ("12:34:56.5-03:30", Some(-12_600)),
            ("24:00:00+01:02:03", Some(3723)),
            ("12:34:56", None),
            ("12:34:56+1", None),
            ("1:2:3+01", None),
        ] {
            assert_eq!(offset(text), seconds, "{text}");
        }
        let of = |text: &str| timestamp_with_offset(text.as_bytes());
        assert_eq!(
            of("2024-02-29 12:34:56.78-03:30").unwrap().offset_minutes,
            Some(-210)
        );
        assert_eq!(
            of("2024-02-29 12:34:56+01").unwrap().offset_minutes,
            Some(60)
        );
        for (text, in_utc) in [
            ("1890-01-01 00:53:28+00:53:28", "1890-01-01 00:00:00+00"),
            ("1890-01-01 00:00:00+00:53:28", "1889-12-31 23:06:32+00"),
            (
                "1883-11-18 12:00:00.25-04:56:02",
                "1883-11-18 16:56:02.25+00",
            ),
            ("0001-12-31 19:03:58-04:56:02 BC", "0001-01-01 00:00:00+00"),
            ("0001-01-01 00:00:00+00:53:28", "0001-12-31 23:06:32+00 BC"),
        ] {
            assert_eq!(of(text), of(in_utc), "{text}");
            assert!(of(text).is_some(), "{text}");
        }
        for text in [
            "infinity",
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
        fn any_text_is_a_timestamp_or_refused(text in "[-+0-9: .BC]{0,40}") {
            let _ = timestamp_with_offset(text.as_bytes());
        }
    }
}
