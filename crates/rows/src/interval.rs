//! Parses durations (SQL intervals) in the text forms of PostgreSQL and MariaDB.

use onecopy_text::Units;

use crate::cell::Cell;

/// Converts the text of a duration to a cell. The cell is an exact interval if the duration has
/// only days and a time. The cell is the unchanged text if the duration has months or years, if it
/// has more than [`MOST_DAYS`] days, or if the server's `IntervalStyle` is not `postgres`.
pub(crate) fn cell(text: &[u8]) -> Cell<'_> {
    let exact = parse(text).map(|span| (span.div_euclid(DAY), span.rem_euclid(DAY)));
    match exact {
        Some((days, rest)) if days.abs() <= MOST_DAYS => Cell::Interval {
            // Neither number is truncated: a day is less than 2^37 microseconds.
            days: days as i32,
            microseconds: rest as i64,
            text,
        },
        _ => Cell::Text(Units::Utf8(text)),
    }
}

const SECOND: i128 = 1_000_000;
const DAY: i128 = 86_400 * SECOND;

/// The largest number of days of Python's `timedelta`.
const MOST_DAYS: i128 = 999_999_999;

/// The largest length in bytes of text that is parsed as an exact duration (days and a time).
const MOST_BYTES: usize = 64;

/// Parses a duration of the form `[n day[s]] [[+-]h:mm:ss[.ffffff]]`. Returns the duration in
/// microseconds; `None` for text of any other form.
fn parse(text: &[u8]) -> Option<i128> {
    // The text is copied, because a driver may write to it. A text longer than the copy is not an
    // exact interval.
    let mut copy = [0; MOST_BYTES];
    let copy = copy.get_mut(..text.len())?;
    copy.copy_from_slice(text);
    let text = std::str::from_utf8(copy).ok()?;
    let mut words = text.split(' ');
    let first = words.next()?;
    let (days, time) = match (words.next(), words.next(), words.next()) {
        (None, ..) => (0, Some(first)),
        (Some("day" | "days"), time, None) => (number(first)?, time),
        _ => return None,
    };
    let time = time.map_or(Some(0), time_of_day)?;
    Some(i128::from(days) * DAY + time)
}

/// Parses a time `[+-]h…:mm:ss[.f…]`, whose hours may exceed 23. Returns it in microseconds; `None`
/// for any other text.
fn time_of_day(text: &str) -> Option<i128> {
    let (sign, text) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = text.split(':');
    let (hours, minutes, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let is_fit = [hours, minutes, seconds, fraction]
        .into_iter()
        .all(all_digits)
        && parts.next().is_none()
        && minutes.len() == 2
        && seconds.len() == 2
        && fraction.len() <= 6;
    if !is_fit {
        return None;
    }
    // Products of numbers of 64 bits with these factors do not exceed 128 bits.
    let wide = |text| number(text).map(i128::from);
    let micros = wide(fraction)? * 10i128.pow(6 - u32::try_from(fraction.len()).ok()?);
    let seconds = (wide(hours)? * 60 + wide(minutes)?) * 60 + wide(seconds)?;
    Some(sign * (seconds * SECOND + micros))
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_of_days_and_time_are_exact() {
        for (text, expected) in [
            ("00:00:00", 0),
            ("02:03:04.5", 7_384_500_000),
            ("-00:00:00.000001", -1),
            ("1 day", 86_400_000_000),
            ("-1 days +02:03:04", -79_016_000_000),
            ("-3 days", -259_200_000_000),
            ("838:59:59", 3_020_399_000_000),
            ("100000000:00:00", 360_000_000_000_000_000),
            ("200000000 days", 200_000_000 * DAY),
            (
                "2147483647 days 2562047788:00:54.775807",
                2_147_483_647 * DAY + i128::from(i64::MAX),
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_exact_or_not_in_this_style_is_text() {
        for text in [
            "1 mon",
            "1 year 2 mons 3 days 04:05:06",
            "P1DT2H",
            "@ 1 day 2 hours",
            "3 4:05:06",
            "1:2:3",
            "00:00:00.1234567",
            "9999999999999999999 days",
            "9999999999999999999:00:00",
            "",
            "1 day ago",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_span_has_at_most_the_days_of_a_timedelta() {
        let of = |text| match cell(text) {
            Cell::Interval {
                days, microseconds, ..
            } => Some((days, microseconds)),
            _ => None,
        };
        let last = i64::try_from(DAY - 1).unwrap();
        for (text, expected) in [
            (&b"-00:00:00.000001"[..], Some((-1, last))),
            (
                b"200000000 days 01:00:00",
                Some((200_000_000, 3_600_000_000)),
            ),
            (b"999999999 days 23:59:59.999999", Some((999_999_999, last))),
            (b"-999999999 days", Some((-999_999_999, 0))),
            (b"1000000000 days", None),
            (b"-999999999 days -00:00:00.000001", None),
        ] {
            assert_eq!(of(text), expected, "{}", text.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn a_span_is_what_its_parts_sum_up_to(
            days in proptest::option::of(-1_000_000_000_i128..1_000_000_000),
            sign in prop_oneof![Just(""), Just("-"), Just("+")],
            (hours, minutes, seconds) in (0_i128..10_000, 0_i128..60, 0_i128..60),
            fraction in "[0-9]{0,6}",
        ) {
            let days_text = days.map_or(String::new(), |n| {
                format!("{n} day{} ", if n == 1 { "" } else { "s" })
            });
            let point = if fraction.is_empty() { "" } else { "." };
            let text = format!("{days_text}{sign}{hours:02}:{minutes:02}:{seconds:02}{point}{fraction}");
            let micros: i128 = format!("{fraction:0<6}").parse().unwrap();
            let time = ((hours * 60 + minutes) * 60 + seconds) * SECOND + micros;
            let time = if sign == "-" { -time } else { time };
            let expected = days.unwrap_or(0) * DAY + time;
            prop_assert_eq!(parse(text.as_bytes()), Some(expected), "{}", text);
        }

        #[test]
        fn any_text_is_a_span_or_stays_as_it_is(
            text in prop_oneof![
                "[-+:. 0-9adys]{0,30}",
                "[-+]?[0-9]{1,20}( days?)?( [-+]?[0-9]{1,20}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,7})?)?",
                any::<String>(),
            ],
        ) {
            match cell(text.as_bytes()) {
                Cell::Interval { text: same, .. } => prop_assert_eq!(same, text.as_bytes()),
                other => prop_assert_eq!(other, Cell::Text(Units::Utf8(text.as_bytes()))),
            }
        }
    }
}
