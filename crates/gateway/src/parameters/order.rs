//! [`compare`]: compares the values of parameters without rounding.

use std::cmp::Ordering;

use onecopy_rows::{Date, Time, Timestamp, Value};

/// Compares two values of the same type; returns `None` if the type has no order.
#[must_use]
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::I64(a), Value::I64(b)) => Some(a.cmp(b)),
        (Value::F64(a), Value::F64(b)) => a.partial_cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => Some(compare_decimals(a, b)),
        (Value::Date(a), Value::Date(b)) => Some(day_number(a).cmp(&day_number(b))),
        (Value::Time(a), Value::Time(b)) => Some(nanoseconds(a).cmp(&nanoseconds(b))),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(instant(a).cmp(&instant(b))),
        _ => None,
    }
}

/// Returns `true` if two values are equal, even if their texts differ, such as the decimals `1.5`
/// and `1.50`.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    compare(a, b).map_or_else(|| a == b, |order| order == Ordering::Equal)
}

/// Compares decimals digit by digit, so that no value is rounded.
fn compare_decimals(a: &str, b: &str) -> Ordering {
    let parts = |s: &str| -> (bool, String, String) {
        let unsigned = s.trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let whole = whole.trim_start_matches('0').to_owned();
        let fraction = fraction.trim_end_matches('0').to_owned();
        let negative = s.starts_with('-') && !(whole.is_empty() && fraction.is_empty());
        (negative, whole, fraction)
    };
    let (a, b) = (parts(a), parts(b));
    let magnitude = (a.1.len(), &a.1, &a.2).cmp(&(b.1.len(), &b.1, &b.2));
    match (a.0, b.0) {
        (false, false) => magnitude,
        (true, true) => magnitude.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// Returns the number of a day in the proleptic Gregorian calendar. The next day has the next
/// number. Day 0 is arbitrary, because numbers are only compared with each other.
fn day_number(d: &Date) -> i64 {
    // Months are counted from March, so that the leap day is the last day of its year.
    let (year, month) = match d.month {
        1 | 2 => (i64::from(d.year) - 1, i64::from(d.month) + 9),
        m => (i64::from(d.year), i64::from(m) - 3),
    };
    365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + i64::from(d.day)
}

fn nanoseconds(t: &Time) -> i64 {
    let seconds = (i64::from(t.hour) * 60 + i64::from(t.minute)) * 60 + i64::from(t.second);
    seconds * 1_000_000_000 + i64::from(t.nanosecond)
}

/// Returns the instant of a timestamp in nanoseconds since an arbitrary time. A timestamp without
/// an offset is treated as UTC.
fn instant(t: &Timestamp) -> i128 {
    let minutes =
        i128::from(day_number(&t.date)) * 1440 - i128::from(t.offset_minutes.unwrap_or(0));
    minutes * 60_000_000_000 + i128::from(nanoseconds(&t.time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::ParameterType;

    #[test]
    fn order_is_exact_for_decimals_and_knows_offsets() {
        let order = |t: ParameterType, a: &str, b: &str| {
            compare(&t.parse(a).unwrap(), &t.parse(b).unwrap()).unwrap()
        };
        let d = ParameterType::Decimal;
        for (a, b, expected) in [
            ("9", "10", Ordering::Less),
            ("-9", "-10", Ordering::Greater),
            ("-0", "0.00", Ordering::Equal),
            ("0.1", "0.09", Ordering::Greater),
            (
                "12345678901234567890.1",
                "12345678901234567890.2",
                Ordering::Less,
            ),
            ("-1", "0", Ordering::Less),
        ] {
            assert_eq!(order(d, a, b), expected, "{a} {b}");
        }
        let t = ParameterType::Timestamp;
        assert_eq!(
            order(t, "2024-03-01T00:30+01:00", "2024-02-29T23:30Z"),
            Ordering::Equal
        );
        assert_eq!(
            order(ParameterType::Date, "2024-02-29", "2024-03-01"),
            Ordering::Less
        );
        assert_eq!(
            order(ParameterType::Date, "2023-12-31", "2024-01-01"),
            Ordering::Less
        );
    }
}
