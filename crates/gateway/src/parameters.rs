//! Typed parameters: text from a query string (or from the configuration) to a [`Value`] that is bound, never pasted.

use std::cmp::Ordering;

use onecopy_rows::{Date, Time, Timestamp, Value};

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterType {
    /// Any text.
    Text,
    /// Integer to 64 bit.
    Int,
    /// 64-bit float; NaN and infinities are refused.
    Float,
    /// Exact decimal.
    Decimal,
    /// `true`, `false`, `1`, `0`.
    Bool,
    /// `2024-02-29`.
    Date,
    /// `23:59`, `23:59:59`, `23:59:59.123456789`.
    Time,
    /// Date and time with `T` or a space between, with or without an offset.
    Timestamp,
    /// RFC 9562, with or without hyphens.
    Uuid,
}

impl ParameterType {
    /// Every type, in the order the reference lists them.
    pub const ALL: [ParameterType; 9] = [
        ParameterType::Text,
        ParameterType::Int,
        ParameterType::Float,
        ParameterType::Decimal,
        ParameterType::Bool,
        ParameterType::Date,
        ParameterType::Time,
        ParameterType::Timestamp,
        ParameterType::Uuid,
    ];

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ParameterType::Text => "text",
            ParameterType::Int => "int",
            ParameterType::Float => "float",
            ParameterType::Decimal => "decimal",
            ParameterType::Bool => "bool",
            ParameterType::Date => "date",
            ParameterType::Time => "time",
            ParameterType::Timestamp => "timestamp",
            ParameterType::Uuid => "uuid",
        }
    }

    /// The type of a name in the configuration.
    #[must_use]
    pub fn of_name(name: &str) -> Option<ParameterType> {
        ParameterType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// What a value must look like, for error messages and the page.
    #[must_use]
    pub fn wanted(self) -> &'static str {
        match self {
            ParameterType::Text => "text without U+0000",
            ParameterType::Int => "an integer of 64 bit, such as `42`",
            ParameterType::Float => "a finite number, such as `1.5` or `2e-3`",
            ParameterType::Decimal => "a decimal, such as `12.50`",
            ParameterType::Bool => "`true` or `false`",
            ParameterType::Date => "a date, such as `2024-02-29`",
            ParameterType::Time => "a time of day, such as `23:59` or `23:59:59.5`",
            ParameterType::Timestamp => {
                "a timestamp, such as `2024-02-29T23:59:59` or `2024-02-29T23:59:59Z` (write `+` as `%2B`)"
            }
            ParameterType::Uuid => "a UUID, such as `f81d4fae-7dec-11d0-a765-00a0c91e6bf6`",
        }
    }

    /// Whether values have an order that `min` and `max` can use.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        !matches!(
            self,
            ParameterType::Text | ParameterType::Bool | ParameterType::Uuid
        )
    }

    /// The value of a text, or nothing where it is not of this type.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            ParameterType::Text => (!text.contains('\0')).then(|| Value::Text(text.to_owned())),
            ParameterType::Int => text.parse().ok().map(Value::I64),
            ParameterType::Float => {
                let number: f64 = text.parse().ok()?;
                number.is_finite().then_some(Value::F64(number))
            }
            ParameterType::Decimal => {
                is_decimal(text).then(|| Value::Decimal(text.trim_start_matches('+').to_owned()))
            }
            ParameterType::Bool => match text {
                "true" | "1" => Some(Value::Bool(true)),
                "false" | "0" => Some(Value::Bool(false)),
                _ => None,
            },
            ParameterType::Date => date(text).map(Value::Date),
            ParameterType::Time => time(text).map(Value::Time),
            ParameterType::Timestamp => timestamp(text).map(Value::Timestamp),
            ParameterType::Uuid => uuid(text).map(Value::Uuid),
        }
    }
}

/// A declared parameter of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in the SQL (`:name`) and in the query string.
    pub name: String,
    /// What it holds.
    pub parameter_type: ParameterType,
    /// For people.
    pub description: String,
    /// A value to show on the page and in its `curl` line.
    pub example: Option<String>,
    /// What it is when it is not given; `None` where it must be given. `Value::Null` for an optional one.
    pub default: Option<Value>,
    /// `default` as the configuration writes it, for the page.
    pub default_text: Option<String>,
    /// Smallest value taken.
    pub min: Option<Bound>,
    /// Largest value taken.
    pub max: Option<Bound>,
    /// Most characters of a text.
    pub max_length: Option<usize>,
    /// The only values taken; empty for any.
    pub values: Vec<Bound>,
    /// Whether the empty text is a value; otherwise it counts as not given (an HTML form sends empty fields).
    pub allow_empty: bool,
}

/// A value with the text it was written as.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The value.
    pub value: Value,
    /// As the configuration writes it.
    pub text: String,
}

impl Parameter {
    /// The value of a text that was given for this parameter.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence that starts with the parameter's name; the text itself is not repeated.
    pub fn value_of(&self, text: &str) -> Result<Value, String> {
        let value = self
            .parameter_type
            .parse(text)
            .ok_or_else(|| format!("must be {}", self.parameter_type.wanted()))?;
        if let Some(max_length) = self.max_length {
            let length = text.chars().count();
            if length > max_length {
                return Err(format!(
                    "must have at most {max_length} characters and has {length}"
                ));
            }
        }
        if !self.values.is_empty() && !self.values.iter().any(|b| same(&b.value, &value)) {
            let list: Vec<String> = self
                .values
                .iter()
                .map(|b| format!("`{}`", b.text))
                .collect();
            return Err(format!("must be one of {}", list.join(", ")));
        }
        let below = |b: &&Bound| compare(&value, &b.value) == Some(Ordering::Less);
        let above = |b: &&Bound| compare(&value, &b.value) == Some(Ordering::Greater);
        if let Some(min) = self.min.as_ref().filter(below) {
            return Err(format!("must be at least `{}`", min.text));
        }
        if let Some(max) = self.max.as_ref().filter(above) {
            return Err(format!("must be at most `{}`", max.text));
        }
        Ok(value)
    }

    /// Whether a request must give it.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.default.is_none()
    }
}

/// The order of two values of the same type, where the type has one.
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

fn same(a: &Value, b: &Value) -> bool {
    compare(a, b).map_or_else(|| a == b, |order| order == Ordering::Equal)
}

fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    digits(whole) && digits(fraction)
}

/// Compares by digits, so that no value is rounded.
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

/// `n` ASCII digits as a number.
fn digits(text: &str, n: usize) -> Option<u32> {
    (text.len() == n && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (year >= 1 && (1..=last).contains(&day)).then_some(Date {
        year: year as i32,
        month: month as u8,
        day: day as u8,
    })
}

fn time(text: &str) -> Option<Time> {
    let mut parts = text.splitn(3, ':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let (second, fraction) = match parts.next() {
        None => (0, None),
        Some(s) => match s.split_once('.') {
            None => (digits(s, 2)?, None),
            Some((s, fraction)) => (digits(s, 2)?, Some(fraction)),
        },
    };
    let nanosecond = match fraction {
        None => 0,
        Some(f) if (1..=9).contains(&f.len()) => {
            digits(f, f.len())? * 10_u32.pow(9 - f.len() as u32)
        }
        Some(_) => return None,
    };
    (hour <= 23 && minute <= 59 && second <= 59).then_some(Time {
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        nanosecond,
    })
}

fn timestamp(text: &str) -> Option<Timestamp> {
    let (day, rest) = text.split_once(['T', 't', ' '])?;
    let (clock, offset_minutes) = if let Some(clock) = rest.strip_suffix(['Z', 'z']) {
        (clock, Some(0))
    } else if let Some(i) = rest.rfind(['+', '-']) {
        let (hours, minutes) = rest[i + 1..].split_once(':')?;
        let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
        if hours > 23 || minutes > 59 {
            return None;
        }
        let offset = (hours * 60 + minutes) as i16;
        (
            &rest[..i],
            Some(if rest[i..].starts_with('-') {
                -offset
            } else {
                offset
            }),
        )
    } else {
        (rest, None)
    };
    Some(Timestamp {
        date: date(day)?,
        time: time(clock)?,
        offset_minutes,
    })
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let hyphens: Vec<usize> = text.match_indices('-').map(|(i, _)| i).collect();
    if !hyphens.is_empty() && hyphens != [8, 13, 18, 23] {
        return None;
    }
    let hex: Vec<u8> = text
        .chars()
        .filter(|&c| c != '-')
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    let mut bytes = [0; 16];
    if hex.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(bytes)
}

/// Days in the proleptic Gregorian calendar, for ordering alone.
fn day_number(d: &Date) -> i64 {
    // Months counted from March, so that the leap day is the last of its year.
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

/// A timestamp's place in time; one without an offset counts as UTC.
fn instant(t: &Timestamp) -> i128 {
    let minutes =
        i128::from(day_number(&t.date)) * 1440 - i128::from(t.offset_minutes.unwrap_or(0));
    minutes * 60_000_000_000 + i128::from(nanoseconds(&t.time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(parameter_type: ParameterType) -> Parameter {
        Parameter {
            name: "p".to_owned(),
            parameter_type,
            description: String::new(),
            example: None,
            default: None,
            default_text: None,
            min: None,
            max: None,
            max_length: None,
            values: Vec::new(),
            allow_empty: false,
        }
    }

    fn bound(t: ParameterType, text: &str) -> Bound {
        Bound {
            value: t.parse(text).unwrap(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn each_type_takes_its_own_and_refuses_the_rest() {
        use ParameterType::{Bool, Date, Decimal, Float, Int, Text, Time, Timestamp, Uuid};
        for (t, good, bad) in [
            (Text, vec!["", "a b", "漢字"], vec!["a\0b"]),
            (
                Int,
                vec!["0", "-5", "9223372036854775807"],
                vec!["", " 5", "1.0", "1e3", "9223372036854775808", "٣"],
            ),
            (
                Float,
                vec!["1", "-1.5", "2e-3"],
                vec!["", "NaN", "inf", "1e999", "1,5"],
            ),
            (
                Decimal,
                vec!["1", "-12.50", "+0.1"],
                vec!["", ".", "1.", ".5", "1e3", "--1"],
            ),
            (
                Bool,
                vec!["true", "false", "0", "1"],
                vec!["", "yes", "TRUE"],
            ),
            (
                Date,
                vec!["2024-02-29", "0001-01-01"],
                vec![
                    "2023-02-29",
                    "2024-13-01",
                    "2024-2-1",
                    "0000-01-01",
                    "2024-01-01x",
                ],
            ),
            (
                Time,
                vec!["23:59", "00:00:00", "12:00:00.123456789"],
                vec!["24:00", "12", "12:60", "12:00:00.", "12:00:00.1234567890"],
            ),
            (
                Timestamp,
                vec![
                    "2024-02-29T12:00",
                    "2024-02-29 12:00:00.5Z",
                    "2024-02-29T12:00:00-03:30",
                ],
                vec![
                    "2024-02-29",
                    "2024-02-29T12:00:00 02:00",
                    "2024-02-29T12:00+25:00",
                ],
            ),
            (
                Uuid,
                vec![
                    "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
                    "F81D4FAE7DEC11D0A76500A0C91E6BF6",
                ],
                vec![
                    "f81d4fae",
                    "f81d4fa-e7dec-11d0-a765-00a0c91e6bf6",
                    "g81d4fae7dec11d0a76500a0c91e6bf6",
                ],
            ),
        ] {
            for text in good {
                assert!(t.parse(text).is_some(), "{t:?} {text:?}");
            }
            for text in bad {
                assert!(t.parse(text).is_none(), "{t:?} {text:?}");
            }
        }
    }

    #[test]
    fn limits_are_told_by_what_is_allowed() {
        let mut p = parameter(ParameterType::Int);
        p.min = Some(bound(ParameterType::Int, "1"));
        p.max = Some(bound(ParameterType::Int, "10"));
        assert_eq!(p.value_of("0").unwrap_err(), "must be at least `1`");
        assert_eq!(p.value_of("11").unwrap_err(), "must be at most `10`");
        assert_eq!(p.value_of("10").unwrap(), Value::I64(10));
        let mut p = parameter(ParameterType::Text);
        p.max_length = Some(2);
        assert!(p.value_of("漢字").is_ok());
        assert!(p.value_of("漢字x").unwrap_err().contains("at most 2"));
        let mut p = parameter(ParameterType::Decimal);
        p.values = vec![bound(ParameterType::Decimal, "1.50")];
        assert!(p.value_of("1.5").is_ok());
        assert_eq!(p.value_of("1.51").unwrap_err(), "must be one of `1.50`");
    }

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
