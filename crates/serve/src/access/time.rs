//! [`rfc3339`] and [`SecondText`] format the times of log lines as text, in UTC.

use std::io::Write;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A calendar date and a time of day, with a resolution of one second.
struct Calendar {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Calendar {
    /// Converts seconds since 1970 to a date and a time of day in UTC.
    fn of(seconds: u64) -> Calendar {
        let (day, second) = (seconds / 86_400, seconds % 86_400);
        // Days are counted from 1 March of the year 0, so that a leap day is the last day of its
        // year. An era is a period of 400 years, after which the calendar repeats.
        let day = day + 719_468;
        let (era, of_era) = (day / 146_097, day % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        Calendar {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

/// Formats a time as RFC 3339 in UTC, such as `2025-01-31T23:59:59.005Z`. The time is given as
/// whole seconds since 1970 and additional milliseconds.
#[must_use]
pub fn rfc3339(seconds: u64, millis: u32) -> String {
    let mut text = Vec::new();
    put_rfc3339_second(&mut text, seconds);
    let text = String::from_utf8_lossy(&text);
    format!("{text}.{millis:03}Z")
}

/// Appends the time `seconds`, given in seconds since 1970, in the form `2025-01-31T23:59:59`.
fn put_rfc3339_second(out: &mut Vec<u8>, seconds: u64) {
    let c = Calendar::of(seconds);
    let _ = write!(
        out,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        c.year, c.month, c.day, c.hour, c.minute, c.second
    );
}

/// A cache of the text for the second in which the last log line was written. The text is formatted
/// again only if the next line belongs to a different second.
#[derive(Default)]
pub(super) struct SecondText {
    /// The text of the cached second in the Common Log Format, and before it the number of this
    /// second (since 1970) plus one. The number is 0 if no text is cached.
    common: (u64, Vec<u8>),
    rfc3339: (u64, Vec<u8>),
}

impl SecondText {
    /// Returns the time `seconds` (since 1970) in the Common Log Format, such as
    /// `31/Jan/2025:23:59:59 +0000`.
    pub(super) fn common(&mut self, seconds: u64) -> &[u8] {
        let (of, text) = &mut self.common;
        if *of != seconds + 1 {
            *of = seconds + 1;
            text.clear();
            let c = Calendar::of(seconds);
            let month = MONTHS[c.month as usize - 1];
            let _ = write!(
                text,
                "{:02}/{month}/{:04}:{:02}:{:02}:{:02} +0000",
                c.day, c.year, c.hour, c.minute, c.second
            );
        }
        text
    }

    /// Returns the time `seconds` (since 1970) in the form `2025-01-31T23:59:59`, to which the
    /// caller appends milliseconds and the time zone.
    pub(super) fn rfc3339(&mut self, seconds: u64) -> &[u8] {
        let (of, text) = &mut self.rfc3339;
        if *of != seconds + 1 {
            *of = seconds + 1;
            text.clear();
            put_rfc3339_second(text, seconds);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_calendar_times() {
        let mut texts = SecondText::default();
        for (seconds, expected, common) in [
            (0, "1970-01-01T00:00:00.005Z", "01/Jan/1970:00:00:00 +0000"),
            (
                951_782_400,
                "2000-02-29T00:00:00.005Z",
                "29/Feb/2000:00:00:00 +0000",
            ),
            (
                1_709_251_199,
                "2024-02-29T23:59:59.005Z",
                "29/Feb/2024:23:59:59 +0000",
            ),
            (
                1_735_689_600,
                "2025-01-01T00:00:00.005Z",
                "01/Jan/2025:00:00:00 +0000",
            ),
            (
                1_767_225_599,
                "2025-12-31T23:59:59.005Z",
                "31/Dec/2025:23:59:59 +0000",
            ),
        ] {
            assert_eq!(rfc3339(seconds, 5), expected);
            for _ in 0..2 {
                assert_eq!(texts.common(seconds), common.as_bytes());
                assert_eq!(texts.rfc3339(seconds), &expected.as_bytes()[..19]);
            }
        }
    }
}
