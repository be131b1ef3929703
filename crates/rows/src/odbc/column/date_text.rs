//! `DateText` and `TimestampText`: the column kinds (the bound buffer, and its conversion to a
//! [`Cell`]) for dates and timestamps that are bound as text, because the driver would return zero
//! dates as NULL.
//!
//! MariaDB and MySQL can store `0000-00-00`, and dates with a zero month or day. Their driver
//! returns `0000-00-00` as NULL.

use onecopy_text::Units;

use super::spec::{Raw, Spec};
use super::time;
use crate::cell::{Cell, Date, Timestamp};
use crate::database::ZeroDates;

/// The column kind for dates that are bound as text of the form `yyyy-mm-dd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateText {
    as_text: bool,
}

/// A timestamp, bound as text of the form `yyyy-mm-dd hh:mm:ss[.ffffff]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampText {
    as_text: bool,
    digits: u8,
}

impl DateText {
    /// Returns the column kind and its binding. Returns `None` if the option for zero dates is
    /// `Null`, because no binding as text is needed then.
    pub(super) fn plan(zero_dates: ZeroDates) -> Option<(Self, Spec)> {
        let as_text = zero_dates == ZeroDates::Text;
        (zero_dates != ZeroDates::Null).then(|| (DateText { as_text }, Spec::digits(16)))
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        match date(raw.bytes()) {
            Some(date) if !self.as_text || is_whole(date) => Cell::Date(date),
            _ => Cell::Text(Units::Utf8(raw.bytes())),
        }
    }
}

impl TimestampText {
    /// Returns the column kind and its binding, for timestamps with `digits` digits of fraction.
    /// Returns `None` if the option for zero dates is `Null`, because no binding as text is needed
    /// then.
    pub(super) fn plan(zero_dates: ZeroDates, digits: u8) -> Option<(Self, Spec)> {
        let as_text = zero_dates == ZeroDates::Text;
        let kind = TimestampText { as_text, digits };
        (zero_dates != ZeroDates::Null).then(|| (kind, Spec::digits(40)))
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        match timestamp(raw.bytes()) {
            Some(t) if !self.as_text || is_whole(t.date) => Cell::Timestamp(t, self.digits),
            _ => Cell::Text(Units::Utf8(raw.bytes())),
        }
    }
}

/// Returns `true` if neither the month nor the day is zero. Sinks reject any other date.
fn is_whole(date: Date) -> bool {
    date.month != 0 && date.day != 0
}

fn date(text: &[u8]) -> Option<Date> {
    let number = |range: std::ops::Range<usize>| {
        text.get(range)?.iter().try_fold(0u16, |n, digit| {
            digit
                .is_ascii_digit()
                .then(|| n * 10 + u16::from(digit - b'0'))
        })
    };
    let dashes = text.len() == 10 && text[4] == b'-' && text[7] == b'-';
    dashes.then_some(())?;
    Some(Date {
        year: i32::from(number(0..4)?),
        month: u8::try_from(number(5..7)?).ok()?,
        day: u8::try_from(number(8..10)?).ok()?,
    })
}

fn timestamp(text: &[u8]) -> Option<Timestamp> {
    let (day, rest) = text.split_at_checked(10)?;
    let (time, _) = time::parse(rest.strip_prefix(b" ")?)?;
    Some(Timestamp {
        date: date(day)?,
        time,
        offset_minutes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_zeros_are_text_or_left_to_be_refused() {
        for (text, is_date) in [
            ("2026-11-20", true),
            ("0001-01-01", true),
            ("0000-00-00", false),
            ("2026-00-00", false),
            ("2026-11-00", false),
        ] {
            let raw = Raw::new(text.as_bytes());
            let cell = DateText { as_text: true }.cell(raw);
            assert_eq!(matches!(cell, Cell::Date(_)), is_date, "{text}");
            let cell = DateText { as_text: false }.cell(raw);
            assert!(matches!(cell, Cell::Date(_)), "{text}");
        }
    }

    #[test]
    fn timestamps_keep_their_fraction() {
        let kind = TimestampText {
            as_text: true,
            digits: 6,
        };
        let Cell::Timestamp(t, 6) = kind.cell(Raw::new(b"2026-11-20 01:02:03.000004")) else {
            unreachable!()
        };
        assert_eq!(
            (t.date.year, t.time.second, t.time.nanosecond),
            (2026, 3, 4000)
        );
        for text in ["0000-00-00 00:00:00", "2026-00-01 01:02:03.5", "what"] {
            let cell = kind.cell(Raw::new(text.as_bytes()));
            assert_eq!(cell, Cell::Text(Units::Utf8(text.as_bytes())));
        }
    }
}
