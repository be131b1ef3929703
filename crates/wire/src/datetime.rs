//! [`Date`], [`Time`] and [`Timestamp`]: the date and time types of all crates. Their fields are
//! public, so they may be invalid until a method validates them. They are written as RFC 3339 text.
//! JSON encloses this text in quotes, and CSV does not.
//!
//! The parameter `digits` is the minimum number of digits (0 to 9) of the fraction of the second.
//! More digits are written if the fraction needs them. If `digits` and the fraction are both 0, no
//! fraction is written.

use onecopy_text::Put;

use crate::error::WriteError;
use crate::inline_text::{InlineText, two_digits, write_padded};

/// A calendar date in the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year. Dates from a database may have a year outside of 0 to 9999. Writing such a date
    /// causes the error [`WriteError::YearOutOfRange`].
    pub year: i32,
    /// The month, from 1 to 12.
    pub month: u8,
    /// The day of the month, from 1 on.
    pub day: u8,
}

/// A time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// The hour, 0 to 23. The hour 24 is valid only in `24:00:00`, the end of a day in PostgreSQL
    /// and ISO 8601, and is written unchanged.
    pub hour: u8,
    /// The minute, 0 to 59.
    pub minute: u8,
    /// The second, 0 to 59, or 60 in a leap second.
    pub second: u8,
    /// The fraction of the second in nanoseconds, below 1,000,000,000.
    pub nanosecond: u32,
}

/// A date and a time, with or without an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The date.
    pub date: Date,
    /// The time of day.
    pub time: Time,
    /// The offset from UTC in minutes, positive east of Greenwich. Its absolute value is below 24
    /// hours. `None` for a timestamp without an offset.
    pub offset_minutes: Option<i16>,
}

impl Date {
    /// The date `infinity` of PostgreSQL, which is later than all other dates. No output format can
    /// represent it as a date.
    pub const INFINITY: Date = Date {
        year: i32::MAX,
        month: 1,
        day: 1,
    };
    /// The date `-infinity` of PostgreSQL, which is earlier than all other dates.
    pub const MINUS_INFINITY: Date = Date {
        year: i32::MIN,
        ..Date::INFINITY
    };

    /// A date that PostgreSQL wrote in a `DateStyle` other than ISO. Its fields are unknown.
    pub const OTHER_STYLE: Date = Date {
        year: i32::MAX - 1,
        ..Date::INFINITY
    };

    /// Returns the name of the date if it is PostgreSQL's date `infinity` or `-infinity`; otherwise
    /// `None`.
    #[must_use]
    pub fn infinity(self) -> Option<&'static str> {
        match self {
            Date::INFINITY => Some("infinity"),
            Date::MINUS_INFINITY => Some("-infinity"),
            _ => None,
        }
    }

    /// Returns the timestamp of the start of this day (00:00), with `offset_minutes` as its offset
    /// from UTC.
    #[must_use]
    pub fn midnight(self, offset_minutes: Option<i16>) -> Timestamp {
        Timestamp {
            date: self,
            time: Time::default(),
            offset_minutes,
        }
    }

    /// Returns the date as `YYYY-MM-DD` (RFC 3339 `full-date`).
    ///
    /// # Errors
    /// Returns [`WriteError::YearOutOfRange`] or [`WriteError::NotADate`].
    pub fn to_short(self) -> Result<InlineText, WriteError> {
        let mut text = InlineText::new();
        self.put(&mut text)?;
        Ok(text)
    }

    /// Returns the start of this day in UTC, in milliseconds since 1970.
    ///
    /// # Errors
    /// Returns the errors of [`Date::to_short`].
    pub fn to_unix_ms(self) -> Result<i64, WriteError> {
        self.check()?;
        Ok(self.to_unix_days() * MS_PER_DAY)
    }

    /// Returns the date that is `days` days after 1970-01-01; `None` if its year is not 0 to 9999.
    // Inlined, because a call takes a tenth of the time that writing one element of a time array
    // takes.
    #[inline(always)]
    #[must_use]
    pub fn of_unix_days(days: i64) -> Option<Date> {
        // A year begins in March here, so that the leap day is its last day. Days are counted from
        // 1 March of the year -400, so that no number is negative.
        let days = u32::try_from(days.checked_add(DAYS_TO_1970 + DAYS_OF_400_YEARS)?)
            .ok()
            .filter(|days| (FIRST_DAY..FIRST_DAY + DAYS_OF_10_000_YEARS).contains(days))?;
        // A century has 36,524.25 days on average, and a year in it has 365.25 days. In quarters of
        // a day, both numbers are integers.
        let (century, quarters) = (
            (4 * days + 3) / 146_097,
            (4 * days + 3) % 146_097 / 4 * 4 + 3,
        );
        let (year, day_of_year) = (quarters / 1461, quarters % 1461 / 4);
        // Counted from March, each five consecutive months have 153 days.
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let is_next_year = month >= 10;
        let month = if is_next_year { month - 9 } else { month + 3 };
        Some(Date {
            year: (100 * century + year + u32::from(is_next_year)) as i32 - 400,
            month: month as u8,
            day: day as u8,
        })
    }

    /// Returns the date that is `days` days after 1970-01-01; `None` if the year does not fit into
    /// 32 bits.
    #[inline]
    #[must_use]
    pub fn of_unix_days_in_any_year(days: i64) -> Option<Date> {
        // A year begins in March here, so that the leap day is its last day.
        let days = days.checked_add(DAYS_TO_1970)?;
        let cycle = days.div_euclid(DAYS_OF_400_YEARS);
        let day = days.rem_euclid(DAYS_OF_400_YEARS) as u32;
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let is_next_year = month >= 10;
        let month = if is_next_year { month - 9 } else { month + 3 };
        Some(Date {
            year: i32::try_from(cycle * 400 + i64::from(year + u32::from(is_next_year))).ok()?,
            month: month as u8,
            day: day as u8,
        })
    }

    /// Returns the number of days from 1970-01-01 to this date, in any year. If the calendar does
    /// not contain the date, the result is wrong.
    #[inline]
    #[must_use]
    pub fn to_unix_days(self) -> i64 {
        first_of_month(self.year.into(), self.month.into()) + i64::from(self.day) - 1
    }

    /// Returns `true` if the calendar contains the date. Its year is not limited.
    #[inline(always)]
    #[must_use]
    pub fn is_in_calendar(self) -> bool {
        // The day exists in this month of every year, or it is 29 February of a leap year.
        let is_day = self.day.wrapping_sub(1) < days_in(self.month);
        is_day || self.month == 2 && self.day == 29 && is_leap(self.year)
    }

    /// Returns the first day of the month that is `months` months after January 1970, as a number
    /// of days since 1970-01-01. Returns `None` if the result does not fit into 64 bits.
    pub(crate) fn first_of_month(months: i64) -> Option<i64> {
        const MOST_YEARS: i64 = i64::MAX / 400;
        let year = months.div_euclid(12) + 1970;
        let month = months.rem_euclid(12) + 1;
        (year.abs() < MOST_YEARS).then(|| first_of_month(year, month))
    }

    /// Returns an error if the fields are not a valid date, or if the year is not 0 to 9999.
    #[inline(always)]
    pub(crate) fn check(self) -> Result<(), WriteError> {
        if !(0..=9999).contains(&self.year) {
            return Err(WriteError::YearOutOfRange(self.year));
        }
        if !self.is_in_calendar() {
            return Err(WriteError::NotADate);
        }
        Ok(())
    }

    /// Writes the date as `YYYY-MM-DD`. `out` must have at least 16 bytes of space, because the
    /// bytes are stored in groups of fixed size.
    ///
    /// # Errors
    /// Returns the errors of [`Date::to_short`]. Nothing is written in this case.
    #[inline]
    pub fn put<P: Put>(self, out: &mut P) -> Result<(), WriteError> {
        self.check()?;
        self.put_checked(out);
        Ok(())
    }

    /// Writes the date as [`Date::put`] does, but without validating it. The caller must have
    /// called [`Date::check`].
    #[inline(always)]
    pub(crate) fn put_checked<P: Put>(self, out: &mut P) {
        let year = self.year as u32;
        let text = two_digits(year / 100)
            | two_digits(year % 100) << 16
            | u64::from(b'-') << 32
            | two_digits(u32::from(self.month)) << 40
            | u64::from(b'-') << 56;
        out.put_short(&text.to_le_bytes(), 8);
        let day = two_digits(u32::from(self.day)) as u16;
        out.put_short(&day.to_le_bytes(), 2);
    }
}

/// Returns the first day of the month `month` (1 to 12) of `year`, as a number of days since
/// 1970-01-01.
#[inline]
fn first_of_month(year: i64, month: i64) -> i64 {
    // A year begins in March here, so that the leap day is its last day. All periods of 400 years
    // have the same length.
    let month = (month + 9) % 12;
    let year = year - i64::from(month >= 10);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 - DAYS_TO_1970
}

const MS_PER_DAY: i64 = 86_400_000;

/// The number of days from 1 March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

const DAYS_OF_400_YEARS: i64 = 146_097;
/// The number of days from 1 March of the year -400 to 1 January of the year 0, in the proleptic
/// Gregorian calendar.
const FIRST_DAY: u32 = 146_037;
const DAYS_OF_10_000_YEARS: u32 = 25 * DAYS_OF_400_YEARS as u32;

/// Returns the number of days of a month in a year that is not a leap year, or 0 for an invalid
/// month. A table is used, because a branch that depends on the month would often be mispredicted.
#[inline(always)]
fn days_in(month: u8) -> u8 {
    const DAYS: [u8; 16] = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0];
    if month < 16 {
        DAYS[usize::from(month)]
    } else {
        0
    }
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Time {
    /// Returns the time of day that is `seconds` seconds after midnight, with the fraction
    /// `nanosecond`. `seconds` must be at most 86,400, which is the time `24:00:00`.
    #[inline(always)]
    #[must_use]
    pub fn of_seconds(seconds: u32, nanosecond: u32) -> Time {
        Time {
            hour: (seconds / 3600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            nanosecond,
        }
    }

    /// Returns the number of nanoseconds from midnight to this time.
    #[inline]
    fn to_ns(self) -> i64 {
        let minutes = i64::from(self.hour) * 60 + i64::from(self.minute);
        (minutes * 60 + i64::from(self.second)) * 1_000_000_000 + i64::from(self.nanosecond)
    }

    /// Returns the time as `HH:MM:SS[.fraction]` (RFC 3339 `partial-time`), with at least `digits`
    /// digits of the fraction.
    ///
    /// # Errors
    /// Returns [`WriteError::NotADate`].
    pub fn to_short(self, digits: u8) -> Result<InlineText, WriteError> {
        let mut text = InlineText::new();
        self.put(digits, &mut text)?;
        Ok(text)
    }

    /// Returns an error if the fields are not a valid time of day, or if `digits` is above 9.
    #[inline(always)]
    pub(crate) fn check(self, digits: u8) -> Result<(), WriteError> {
        let end_of_day =
            self.hour == 24 && self.minute == 0 && self.second == 0 && self.nanosecond == 0;
        if (self.hour > 23 && !end_of_day)
            || self.minute > 59
            || self.second > 60
            || self.nanosecond > 999_999_999
            || digits > 9
        {
            return Err(WriteError::NotADate);
        }
        Ok(())
    }

    /// Writes the time as `HH:MM:SS[.fraction]`. `out` must have at least 24 bytes of space.
    ///
    /// # Errors
    /// Returns the errors of [`Time::to_short`]. Nothing is written in this case.
    #[inline]
    pub fn put<P: Put>(self, digits: u8, out: &mut P) -> Result<(), WriteError> {
        self.check(digits)?;
        self.put_checked(digits, out);
        Ok(())
    }

    /// Writes the time as [`Time::put`] does, but without validating it. The caller must have
    /// called [`Time::check`].
    #[inline(always)]
    pub(crate) fn put_checked<P: Put>(self, digits: u8, out: &mut P) {
        const COLON: u64 = b':' as u64;
        let text = two_digits(u32::from(self.hour))
            | COLON << 16
            | two_digits(u32::from(self.minute)) << 24
            | COLON << 40
            | two_digits(u32::from(self.second)) << 48;
        out.put_short(&text.to_le_bytes(), 8);
        if self.nanosecond == 0 && digits == 0 {
            return;
        }
        let micros = self.nanosecond / 1000;
        let nanos = self.nanosecond - micros * 1000;
        if digits == 9 || (digits == 6 && nanos == 0) {
            let text = u64::from(b'.')
                | two_digits(micros / 10_000) << 8
                | two_digits(micros / 100 % 100) << 24
                | two_digits(micros % 100) << 40;
            out.put_short(&text.to_le_bytes(), 7);
            if digits == 9 {
                let text = two_digits(nanos / 10) | u64::from(b'0' as u32 + nanos % 10) << 16;
                out.put_short(&(text as u32).to_le_bytes(), 3);
            }
            return;
        }
        self.put_fraction(digits, out);
    }

    /// Writes the decimal point and the fraction of the second with at least `digits` digits.
    #[inline(never)]
    fn put_fraction<P: Put>(self, digits: u8, out: &mut P) {
        let mut n_digits = usize::from(digits);
        while !self.nanosecond.is_multiple_of(POWERS[9 - n_digits]) {
            n_digits += 1;
        }
        let mut digits = [0; 9];
        let digits = &mut digits[..n_digits];
        write_padded(digits, self.nanosecond / POWERS[9 - n_digits]);
        out.put_byte(b'.');
        out.put(digits);
    }
}

/// The powers of ten from 10^0 to 10^9.
const POWERS: [u32; 10] = {
    let (mut powers, mut n) = ([1; 10], 1);
    while n < 10 {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

impl Timestamp {
    /// Returns the timestamp as `YYYY-MM-DDTHH:MM:SS[.fraction][±HH:MM]` (RFC 3339 `date-time`). If
    /// no offset is stored, the text has no offset. The offset of UTC is written as `+00:00`,
    /// because `Z` means since RFC 9557 that the local offset is unknown.
    ///
    /// # Errors
    /// Returns [`WriteError::YearOutOfRange`] or [`WriteError::NotADate`].
    pub fn to_short(self, digits: u8) -> Result<InlineText, WriteError> {
        let mut text = InlineText::new();
        self.put(digits, &mut text)?;
        Ok(text)
    }

    /// Writes the timestamp as `YYYY-MM-DDTHH:MM:SS[.fraction][±HH:MM]`. `out` must have at least
    /// [`SHORT_BYTES`](crate::inline_text::SHORT_BYTES) bytes of space.
    ///
    /// # Errors
    /// Returns the errors of [`Timestamp::to_short`]. Nothing is written in this case.
    #[inline]
    pub fn put<P: Put>(self, digits: u8, out: &mut P) -> Result<(), WriteError> {
        self.check(digits)?;
        self.put_checked(digits, false, out);
        Ok(())
    }

    /// Returns an error if the fields are not a valid date, time and offset, or if `digits` is
    /// above 9.
    #[inline(always)]
    pub(crate) fn check(self, digits: u8) -> Result<(), WriteError> {
        self.date.check()?;
        self.time.check(digits)?;
        checked_offset(self.offset_minutes.unwrap_or(0)).map(|_| ())
    }

    /// Writes the timestamp as [`Timestamp::put`] does, but without validating it. The caller must
    /// have called [`Timestamp::check`]. If `utc_z` is `true`, the offset of UTC is written as `Z`,
    /// otherwise as `+00:00`.
    #[inline(always)]
    pub(crate) fn put_checked<P: Put>(self, digits: u8, utc_z: bool, out: &mut P) {
        self.date.put_checked(out);
        out.put_byte(b'T');
        self.time.put_checked(digits, out);
        let Some(offset) = self.offset_minutes else {
            return;
        };
        if offset == 0 && utc_z {
            return out.put_byte(b'Z');
        }
        let minutes = u32::from(offset.unsigned_abs());
        let sign = if offset < 0 { b'-' } else { b'+' };
        let text = u64::from(sign)
            | two_digits(minutes / 60) << 8
            | u64::from(b':') << 24
            | two_digits(minutes % 60) << 32;
        out.put_short(&text.to_le_bytes(), 6);
    }

    /// Returns the timestamp of `date` and `time`, whose offset from UTC is `offset_us`
    /// microseconds. If the offset is not whole minutes, the timestamp is converted to UTC. Returns
    /// `None` if such a conversion finds an invalid date or time.
    #[must_use]
    pub fn with_offset(date: Date, time: Time, offset_us: i64) -> Option<Timestamp> {
        let mut at = date.midnight(Some(i16::try_from(offset_us / 60_000_000).ok()?));
        at.time = time;
        if offset_us % 60_000_000 != 0 {
            time.check(0).ok().filter(|()| date.is_in_calendar())?;
            let ns = time.to_ns() - offset_us * 1000;
            let days = date.to_unix_days() + ns.div_euclid(MS_PER_DAY * 1_000_000);
            let ns = ns.rem_euclid(MS_PER_DAY * 1_000_000);
            at = Date::of_unix_days_in_any_year(days)?.midnight(Some(0));
            at.time = Time::of_seconds((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
        }
        Some(at)
    }

    /// Returns the instant in milliseconds since 1970, rounded down. A timestamp without an offset
    /// counts as UTC. The leap second 60 counts as the first second of the next minute.
    ///
    /// # Errors
    /// Returns the errors of [`Timestamp::to_short`].
    pub fn to_unix_ms(self) -> Result<i64, WriteError> {
        self.time.check(0)?;
        let offset = self.offset_minutes.unwrap_or(0);
        checked_offset(offset)?;
        let ms = self.time.to_ns() / 1_000_000 - i64::from(offset) * 60_000;
        Ok(self.date.to_unix_ms()? + ms)
    }

    /// Returns the timestamp in UTC that is `ms` milliseconds after the start of 1970. Returns
    /// `None` if its year is not 0 to 9999.
    #[inline]
    #[must_use]
    pub fn of_unix_ms(ms: i64) -> Option<Timestamp> {
        let date = Date::of_unix_days(ms.div_euclid(MS_PER_DAY))?;
        let ms = ms.rem_euclid(MS_PER_DAY) as u32;
        Some(Timestamp {
            date,
            time: Time::of_seconds(ms / 1000, ms % 1000 * 1_000_000),
            offset_minutes: Some(0),
        })
    }
}

/// Returns the absolute value of an offset in minutes. If it is 24 hours or more, returns an error.
#[inline]
fn checked_offset(offset: i16) -> Result<u16, WriteError> {
    let minutes = offset.unsigned_abs();
    if minutes >= 24 * 60 {
        return Err(WriteError::NotADate);
    }
    Ok(minutes)
}

#[cfg(test)]
mod tests;
