//! Conversion between RFC 3339 text and instants, which are milliseconds since 1970 in UTC.

use onecopy_text::Put;

use crate::datetime::{Date, Time, Timestamp};

/// The number of bytes that must be reserved in a sink before [`put`] is called.
pub const INSTANT_BYTES: usize = 32;

const MS_PER_DAY: u64 = 86_400_000;

/// The first instant of the year 10,000, in milliseconds since 1970.
const TEN_THOUSAND: u64 = 253_402_300_800_000;

/// Returns `true` if Extended JSON can write the instant as RFC 3339 text: its year is 1970 to
/// 9999.
#[inline(always)]
#[must_use]
pub fn has_text(unix_ms: i64) -> bool {
    (unix_ms as u64) < TEN_THOUSAND
}

/// Writes the instant in the format `2012-12-24T12:15:30.501Z`. If the milliseconds are 0, the
/// fraction `.501` is omitted.
///
/// # Panics
/// Panics if [`has_text`] is `false` for the instant, or if the window has too little space. Either
/// is a bug in the caller.
#[inline]
pub fn put<P: Put>(unix_ms: i64, window: &mut P) {
    assert!(has_text(unix_ms), "outside of the years 1970 to 9999");
    let unix_ms = unix_ms as u64;
    let (days, ms) = (unix_ms / MS_PER_DAY, (unix_ms % MS_PER_DAY) as u32);
    let date = Date::of_unix_days(days as i64).expect("its year is up to 9999");
    let year = date.year as u32;
    let (second, fraction) = (ms / 1000, ms % 1000);
    let (minute, second) = (second / 60, second % 60);
    let (hour, minute) = (minute / 60, minute % 60);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    put_two(&mut text, 0, year / 100);
    put_two(&mut text, 2, year % 100);
    put_two(&mut text, 5, date.month.into());
    put_two(&mut text, 8, date.day.into());
    put_two(&mut text, 11, hour);
    put_two(&mut text, 14, minute);
    put_two(&mut text, 17, second);
    if fraction == 0 {
        text[19] = b'Z';
        window.put_short(&text, 20);
    } else {
        text[20] += (fraction / 100) as u8;
        put_two(&mut text, 21, fraction % 100);
        window.put_short(&text, 24);
    }
}

#[inline(always)]
fn put_two(text: &mut [u8; 24], at: usize, value: u32) {
    text[at] = b'0' + (value / 10) as u8;
    text[at + 1] = b'0' + (value % 10) as u8;
}

/// Parses a text of the format `YYYY-MM-DDTHH:MM:SS[.fraction][Z|±HH[:]MM|±HH]` and returns the
/// milliseconds since 1970. The fraction is rounded down to milliseconds. A text without an offset
/// is interpreted as UTC. Returns `None` for a text of another format.
#[must_use]
pub fn parse(text: &[u8]) -> Option<i64> {
    let (head, rest) = text.split_first_chunk::<19>()?;
    let [
        _,
        _,
        _,
        _,
        b'-',
        _,
        _,
        b'-',
        _,
        _,
        b'T' | b't' | b' ',
        _,
        _,
        b':',
        _,
        _,
        b':',
        _,
        _,
    ] = head
    else {
        return None;
    };
    let two = |text: &[u8], at: usize| match text.get(at..at + 2)? {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some((a - b'0') * 10 + (b - b'0')),
        _ => None,
    };
    let date = Date {
        year: i32::from(two(head, 0)?) * 100 + i32::from(two(head, 2)?),
        month: two(head, 5)?,
        day: two(head, 8)?,
    };
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(rest.iter().take_while(|b| b.is_ascii_digit()).count()),
        rest => (&b"0"[..], rest),
    };
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let nanosecond = fraction.iter().fold(0, |n, d| n * 10 + u32::from(d - b'0'));
    let sign_of = |sign: u8| if sign == b'-' { -1 } else { 1 };
    let minutes = |hour: u8, minute: u8| match (hour, minute) {
        (0..24, 0..60) => Some(i16::from(hour) * 60 + i16::from(minute)),
        _ => None,
    };
    let offset = match *rest {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _] => sign_of(sign) * minutes(two(rest, 1)?, 0)?,
        [sign @ (b'+' | b'-'), _, _, _, _] => {
            sign_of(sign) * minutes(two(rest, 1)?, two(rest, 3)?)?
        }
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            sign_of(sign) * minutes(two(rest, 1)?, two(rest, 4)?)?
        }
        _ => return None,
    };
    let stamp = Timestamp {
        date,
        time: Time {
            hour: two(head, 11)?,
            minute: two(head, 14)?,
            second: two(head, 17)?,
            nanosecond: nanosecond * 10_u32.pow(9 - fraction.len() as u32),
        },
        offset_minutes: Some(offset),
    };
    stamp.to_unix_ms().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onecopy_text::ByteSink;

    fn text(unix_ms: i64) -> String {
        let mut out = Vec::new();
        put(unix_ms, &mut out.window(INSTANT_BYTES).expect("memory"));
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn each_day_from_1970_to_9999_has_its_text_and_is_read_again() {
        let mut n_days = 0;
        for day in 0..(TEN_THOUSAND / MS_PER_DAY) as i64 {
            let unix_ms = day * MS_PER_DAY as i64 + day * 7919 % MS_PER_DAY as i64;
            let written = text(unix_ms);
            assert_eq!(parse(written.as_bytes()), Some(unix_ms), "{written}");
            n_days += 1;
        }
        assert_eq!(n_days, 2_932_897);
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(1_356_351_330_001), "2012-12-24T12:15:30.001Z");
        assert_eq!(text(TEN_THOUSAND as i64 - 1), "9999-12-31T23:59:59.999Z");
        assert!(!has_text(-1) && !has_text(TEN_THOUSAND as i64) && !has_text(i64::MIN));
    }

    #[test]
    fn offsets_and_fractions_are_read_in_all_their_forms() {
        let noon = Some(1_709_208_309_120);
        for good in [
            "2024-02-29T12:05:09.12Z",
            "2024-02-29T12:05:09.12",
            "2024-02-29t12:05:09.120999999z",
            "2024-02-29 13:05:09.12+01",
            "2024-02-29T13:35:09.12+0130",
            "2024-02-29T08:35:09.12-03:30",
        ] {
            assert_eq!(parse(good.as_bytes()), noon, "{good}");
        }
        // Before 1970, fractions are also rounded towards the past.
        assert_eq!(parse(b"1969-12-31T23:59:59.9999Z"), Some(-1));
        for bad in [
            "",
            "2024-02-29",
            "2024-02-30T12:05:09Z",
            "2024-02-29T25:05:09Z",
            "2024-02-29T12:05:09.Z",
            "2024-02-29T12:05:09.1234567890Z",
            "2024-02-29T12:05:09+1:00",
            "2024-02-29T12:05:09+24:00",
            "2024-02-29T12:05:09+00:60",
            "2024-02-29T12:05:09ZZ",
            "2024-02-29T12:05Z",
            "2024_02-29T12:05:09Z",
            "+024-02-29T12:05:09Z",
            "2024-02-29T12:05:09 Z",
            "12024-02-29T12:05:09Z",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
