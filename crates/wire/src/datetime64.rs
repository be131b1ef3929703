//! [`Step`]: the length of one step, for a column that stores each time as a number of steps since
//! 1970, as NumPy's `datetime64` does.

use crate::datetime::{Date, Time, Timestamp};

/// A unit of time. Times are counted in multiples of a unit since the start of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A calendar year. A number of years since 1970 denotes the start of a year.
    Year,
    /// A calendar month. A number of months since January 1970 denotes the start of a month.
    Month,
    /// A week. Weeks are counted from Thursday, 1970-01-01.
    Week,
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds.
    Second,
    /// Milliseconds.
    Milli,
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
    /// Picoseconds.
    Pico,
    /// Femtoseconds.
    Femto,
    /// Attoseconds.
    Atto,
}

/// The resolution of times that are stored as a number of steps since 1970. A step is a multiple of
/// one [`Unit`], such as 10 milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time unit in which the length of a step is given.
    pub unit: Unit,
    /// The length of one step as a multiple of `unit`, at least 1. For example, it is 10 for a step
    /// of 10 milliseconds.
    pub n_units: u32,
}

const SECONDS_PER_DAY: i64 = 86_400;
const MS_PER_DAY: i64 = 1000 * SECONDS_PER_DAY;

impl Unit {
    /// Returns the unit whose name in NumPy's types is `name`, such as `ns` in `datetime64[ns]`.
    /// Returns `None` if no unit has this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Unit> {
        Some(match name {
            "Y" => Unit::Year,
            "M" => Unit::Month,
            "W" => Unit::Week,
            "D" => Unit::Day,
            "h" => Unit::Hour,
            "m" => Unit::Minute,
            "s" => Unit::Second,
            "ms" => Unit::Milli,
            "us" | "μs" => Unit::Micro,
            "ns" => Unit::Nano,
            "ps" => Unit::Pico,
            "fs" => Unit::Femto,
            "as" => Unit::Atto,
            _ => return None,
        })
    }

    /// Returns `true` if the unit consists of whole days. A time counted in such a unit has no time
    /// of day.
    #[inline]
    #[must_use]
    pub fn is_of_days(self) -> bool {
        matches!(self, Unit::Year | Unit::Month | Unit::Week | Unit::Day)
    }

    /// Returns `true` if the unit is shorter than a nanosecond.
    #[inline]
    #[must_use]
    pub fn is_below_nano(self) -> bool {
        matches!(self, Unit::Pico | Unit::Femto | Unit::Atto)
    }
}

impl Step {
    #[inline(always)]
    fn n_units(self, count: i64) -> Option<i64> {
        match self.n_units {
            1 => Some(count),
            n => count.checked_mul(n.into()),
        }
    }

    /// Returns the time that is `count` multiples of the unit after the start of 1970, rounded down
    /// to nanoseconds, without an offset from UTC. Returns `None` if its year is not 0 to 9999.
    // Inlined, because a call takes an eighth of the time that writing one element of an array
    // takes.
    #[inline(always)]
    #[must_use]
    pub fn timestamp(self, count: i64) -> Option<Timestamp> {
        let n = self.n_units(count)?;
        match self.unit {
            Unit::Year | Unit::Month | Unit::Week | Unit::Day => of_day(days(self.unit, n)?, 0, 0),
            Unit::Hour => of_second(n.checked_mul(3600)?, 0),
            Unit::Minute => of_second(n.checked_mul(60)?, 0),
            Unit::Second => of_second(n, 0),
            Unit::Milli => of_parts::<1_000>(n),
            Unit::Micro => of_parts::<1_000_000>(n),
            Unit::Nano => of_parts::<1_000_000_000>(n),
            Unit::Pico => of_parts::<1_000_000_000>(n.div_euclid(1_000)),
            Unit::Femto => of_parts::<1_000_000_000>(n.div_euclid(1_000_000)),
            Unit::Atto => of_parts::<1_000_000_000>(n.div_euclid(1_000_000_000)),
        }
    }

    /// Returns the time that is `count` steps after the start of 1970, in milliseconds since the
    /// start of 1970, rounded down. The time may be in any year. Returns `None` if the result does
    /// not fit into 64 bits.
    #[inline]
    #[must_use]
    pub fn unix_ms(self, count: i64) -> Option<i64> {
        let n = self.n_units(count)?;
        match self.unit {
            Unit::Year | Unit::Month | Unit::Week | Unit::Day => {
                days(self.unit, n)?.checked_mul(MS_PER_DAY)
            }
            Unit::Hour => n.checked_mul(3_600_000),
            Unit::Minute => n.checked_mul(60_000),
            Unit::Second => n.checked_mul(1000),
            Unit::Milli => Some(n),
            Unit::Micro => Some(n.div_euclid(1_000)),
            Unit::Nano => Some(n.div_euclid(1_000_000)),
            Unit::Pico => Some(n.div_euclid(1_000_000_000)),
            Unit::Femto => Some(n.div_euclid(1_000_000_000_000)),
            Unit::Atto => Some(n.div_euclid(1_000_000_000_000_000)),
        }
    }
}

/// Returns the number of days from 1970-01-01 to the date that is `n` years, months, weeks or days
/// later. `unit` determines which of these four units is used. Returns `None` if the number does
/// not fit into 64 bits.
#[inline]
fn days(unit: Unit, n: i64) -> Option<i64> {
    match unit {
        Unit::Year => Date::first_of_month(n.checked_mul(12)?),
        Unit::Month => Date::first_of_month(n),
        Unit::Week => n.checked_mul(7),
        _ => Some(n),
    }
}

#[inline(always)]
fn of_day(day: i64, second: u32, nanosecond: u32) -> Option<Timestamp> {
    Some(Timestamp {
        date: Date::of_unix_days(day)?,
        time: Time::of_seconds(second, nanosecond),
        offset_minutes: None,
    })
}

#[inline(always)]
fn of_second(second: i64, nanosecond: u32) -> Option<Timestamp> {
    let (day, second) = (
        second.div_euclid(SECONDS_PER_DAY),
        second.rem_euclid(SECONDS_PER_DAY),
    );
    of_day(day, second as u32, nanosecond)
}

/// Returns the time that is `n / PER_SECOND` seconds after the start of 1970.
#[inline(always)]
fn of_parts<const PER_SECOND: i64>(n: i64) -> Option<Timestamp> {
    let rest = n.rem_euclid(PER_SECOND) * (1_000_000_000 / PER_SECOND);
    of_second(n.div_euclid(PER_SECOND), rest as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [(&str, Unit); 13] = [
        ("Y", Unit::Year),
        ("M", Unit::Month),
        ("W", Unit::Week),
        ("D", Unit::Day),
        ("h", Unit::Hour),
        ("m", Unit::Minute),
        ("s", Unit::Second),
        ("ms", Unit::Milli),
        ("us", Unit::Micro),
        ("ns", Unit::Nano),
        ("ps", Unit::Pico),
        ("fs", Unit::Femto),
        ("as", Unit::Atto),
    ];

    fn step(unit: Unit) -> Step {
        Step { unit, n_units: 1 }
    }

    fn text(step: Step, count: i64) -> String {
        let Some(at) = step.timestamp(count) else {
            return "none".to_owned();
        };
        String::from_utf8_lossy(at.to_short(0).expect("a date").as_bytes()).into_owned()
    }

    #[test]
    fn counts_of_each_unit_are_moments_before_and_after_1970() {
        for (unit, one, minus_one) in [
            (Unit::Year, "1971-01-01T00:00:00", "1969-01-01T00:00:00"),
            (Unit::Month, "1970-02-01T00:00:00", "1969-12-01T00:00:00"),
            (Unit::Week, "1970-01-08T00:00:00", "1969-12-25T00:00:00"),
            (Unit::Day, "1970-01-02T00:00:00", "1969-12-31T00:00:00"),
            (Unit::Hour, "1970-01-01T01:00:00", "1969-12-31T23:00:00"),
            (Unit::Minute, "1970-01-01T00:01:00", "1969-12-31T23:59:00"),
            (Unit::Second, "1970-01-01T00:00:01", "1969-12-31T23:59:59"),
            (
                Unit::Milli,
                "1970-01-01T00:00:00.001",
                "1969-12-31T23:59:59.999",
            ),
            (
                Unit::Micro,
                "1970-01-01T00:00:00.000001",
                "1969-12-31T23:59:59.999999",
            ),
            (
                Unit::Nano,
                "1970-01-01T00:00:00.000000001",
                "1969-12-31T23:59:59.999999999",
            ),
            (
                Unit::Atto,
                "1970-01-01T00:00:00",
                "1969-12-31T23:59:59.999999999",
            ),
        ] {
            assert_eq!(text(step(unit), 0), "1970-01-01T00:00:00");
            assert_eq!(text(step(unit), 1), one);
            assert_eq!(text(step(unit), -1), minus_one);
        }
        let quarter = Step {
            unit: Unit::Minute,
            n_units: 15,
        };
        assert_eq!(text(quarter, 5), "1970-01-01T01:15:00");
    }

    #[test]
    fn names_are_those_of_numpy() {
        for (name, unit) in UNITS {
            assert_eq!(Unit::of_name(name), Some(unit));
        }
        assert_eq!(Unit::of_name("generic"), None);
    }

    #[test]
    fn the_years_0_and_9999_are_the_first_and_the_last() {
        assert_eq!(text(step(Unit::Year), -1970), "0000-01-01T00:00:00");
        assert_eq!(text(step(Unit::Year), 9999 - 1970), "9999-01-01T00:00:00");
        assert_eq!(text(step(Unit::Year), -1971), "none");
        assert_eq!(text(step(Unit::Year), 10_000 - 1970), "none");
        let last = 253_402_300_799;
        assert_eq!(text(step(Unit::Second), last), "9999-12-31T23:59:59");
        assert_eq!(text(step(Unit::Second), last + 1), "none");
        for (_, unit) in UNITS {
            for n_units in [1, 7, u32::MAX] {
                for count in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                    // No count may cause an overflow or a panic.
                    let step = Step { unit, n_units };
                    let _ = (step.timestamp(count), step.unix_ms(count));
                }
            }
        }
        assert_eq!(step(Unit::Week).timestamp(i64::MAX), None);
        assert_eq!(step(Unit::Week).unix_ms(i64::MAX), None);
    }

    #[test]
    fn months_begin_at_the_days_of_the_calendar() {
        for months in -1970 * 12..(10_000 - 1970) * 12 {
            let at = step(Unit::Month).timestamp(months);
            let date = at.expect("a year up to 9999").date;
            assert_eq!(i64::from(date.year), 1970 + months.div_euclid(12));
            assert_eq!(i64::from(date.month), 1 + months.rem_euclid(12));
            assert_eq!(date.day, 1);
            assert_eq!(step(Unit::Month).unix_ms(months), date.to_unix_ms().ok());
        }
        // The year 401,970 is outside of 0 to 9999, but its milliseconds fit into 64 bits.
        assert_eq!(
            step(Unit::Year).unix_ms(400_000),
            Some(400_000 / 400 * 146_097 * 86_400_000)
        );
    }
}
