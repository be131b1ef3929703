//! Parses durations (SQL intervals) in the text forms of PostgreSQL and MariaDB.

use onecopy_text::Units;

use crate::cell::Cell;

/// Converts the text of a duration to a cell. The cell is an exact interval if the duration has
/// only days and a time. The cell is the unchanged text if the duration has months or years, if its
/// microseconds exceed 64 bits, or if the server's `IntervalStyle` is not `postgres`.
pub(crate) fn cell(text: &[u8]) -> Cell<'_> {
    match parse(text) {
        Some(microseconds) => Cell::Interval { microseconds, text },
        None => Cell::Text(Units::Utf8(text)),
    }
}

const SECOND: i64 = 1_000_000;

/// The largest length in bytes of text that is parsed as an exact duration (days and a time).
const MOST_BYTES: usize = 64;

/// Parses a duration `[n day[s]] [[+-]h:mm:ss[.ffffff]]`. Returns it in microseconds; `None` for
/// any other text.
fn parse(text: &[u8]) -> Option<i64> {
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
    days.checked_mul(86_400 * SECOND)?.checked_add(time)
}

/// Parses a time `[+-]h…:mm:ss[.f…]`, whose hours may exceed 23. Returns it in microseconds; `None`
/// for any other text.
fn time_of_day(text: &str) -> Option<i64> {
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
    let micros = number(fraction)? * 10i64.pow(6 - u32::try_from(fraction.len()).ok()?);
    let minutes = number(hours)?
        .checked_mul(60)?
        .checked_add(number(minutes)?)?;
    let seconds = minutes.checked_mul(60)?.checked_add(number(seconds)?)?;
    let span = seconds.checked_mul(SECOND)?.checked_add(micros)?;
    Some(sign * span)
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
            "9999999999 days",
            "99999999999999999:00:00",
            "",
            "1 day ago",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_span_is_what_its_parts_sum_up_to(
            days in proptest::option::of(-100_000_i64..100_000),
            sign in prop_oneof![Just(""), Just("-"), Just("+")],
            (hours, minutes, seconds) in (0_i64..10_000, 0_i64..60, 0_i64..60),
            fraction in "[0-9]{0,6}",
        ) {
            let days_text = days.map_or(String::new(), |n| {
                format!("{n} day{} ", if n == 1 { "" } else { "s" })
            });
            let point = if fraction.is_empty() { "" } else { "." };
            let text = format!("{days_text}{sign}{hours:02}:{minutes:02}:{seconds:02}{point}{fraction}");
            let micros: i64 = format!("{fraction:0<6}").parse().unwrap();
            let time = ((hours * 60 + minutes) * 60 + seconds) * SECOND + micros;
            let time = if sign == "-" { -time } else { time };
            let expected = days.unwrap_or(0) * 86_400 * SECOND + time;
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
