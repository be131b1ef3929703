//! [`Parameter`]: the typed parameters of a query. The text of a request's query string, or of a
//! default in the configuration, is converted to a [`Value`]. The value is bound to a placeholder
//! and never inserted into the SQL.

mod order;
mod parse;

use std::cmp::Ordering;

use onecopy_rows::Value;

pub(crate) use order::compare;
use order::same;

/// The type of a query's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterType {
    /// Any text.
    Text,
    /// An integer of 64 bits.
    Int,
    /// A 64-bit float; NaN and infinities are errors.
    Float,
    /// A decimal number of any length, which is not rounded.
    Decimal,
    /// A boolean: `true`, `false`, `1` or `0`.
    Bool,
    /// A date, such as `2024-02-29`.
    Date,
    /// A time of day: `23:59`, `23:59:59` or `23:59:59.123456789`.
    Time,
    /// A date and time with `T` or a space between them, with or without an offset.
    Timestamp,
    /// A UUID (RFC 9562), with or without hyphens.
    Uuid,
}

impl ParameterType {
    /// All types, in the order in which `docs/reference/gateway-config.md` lists them.
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

    /// Returns the name of the type in the configuration.
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

    /// Returns the type with this name in the configuration; `None` if no type has this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<ParameterType> {
        ParameterType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Returns a description of the type's values, for error messages and for the page at `/`.
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

    /// Returns `true` if the values of this type can be ordered, which `min` and `max` require.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        !matches!(
            self,
            ParameterType::Text | ParameterType::Bool | ParameterType::Uuid
        )
    }

    /// Converts a text to a value of this type; returns `None` if the text is not a valid value of
    /// the type.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            ParameterType::Text => (!text.contains('\0')).then(|| Value::Text(text.to_owned())),
            ParameterType::Int => text.parse().ok().map(Value::I64),
            ParameterType::Float => {
                let number: f64 = text.parse().ok()?;
                number.is_finite().then_some(Value::F64(number))
            }
            ParameterType::Decimal => parse::is_decimal(text)
                .then(|| Value::Decimal(text.trim_start_matches('+').to_owned())),
            ParameterType::Bool => match text {
                "true" | "1" => Some(Value::Bool(true)),
                "false" | "0" => Some(Value::Bool(false)),
                _ => None,
            },
            ParameterType::Date => parse::date(text).map(Value::Date),
            ParameterType::Time => parse::time(text).map(Value::Time),
            ParameterType::Timestamp => parse::timestamp(text).map(Value::Timestamp),
            ParameterType::Uuid => parse::uuid(text).map(Value::Uuid),
        }
    }
}

/// A parameter of a query, as declared in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in the SQL (`:name`) and in the query string.
    pub name: String,
    /// The type of the parameter's values.
    pub parameter_type: ParameterType,
    /// The description of the parameter, for users.
    pub description: String,
    /// An example value, which the page at `/` displays and uses in its `curl` line.
    pub example: Option<String>,
    /// The value that is used if a request does not contain the parameter; `None` if the parameter
    /// is required. It is `Value::Null` if the parameter is optional and has no default.
    pub default: Option<Value>,
    /// The text of `default` as written in the configuration, for the page.
    pub default_text: Option<String>,
    /// The smallest permitted value of the parameter; `None` if there is no minimum.
    pub min: Option<Bound>,
    /// The largest permitted value of the parameter; `None` if there is no maximum.
    pub max: Option<Bound>,
    /// The largest permitted number of characters of a text; `None` if there is no limit.
    pub max_length: Option<usize>,
    /// The permitted values of the parameter; if the list is empty, all values are permitted.
    pub values: Vec<Bound>,
    /// `true` if an empty string in a request is a valid value. If `false`, an empty string is
    /// treated as a missing parameter, because an HTML form also sends its empty fields.
    pub allow_empty: bool,
}

/// A value of `min`, `max` or `values` in the configuration, and the text from which it was parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The parsed value, with which the parameter's value in a request is compared.
    pub value: Value,
    /// The text of the value as written in the configuration.
    pub text: String,
}

impl Parameter {
    /// Creates a required parameter for text of any length.
    #[must_use]
    pub fn new(name: String) -> Parameter {
        Parameter {
            name,
            parameter_type: ParameterType::Text,
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

    /// Converts the text of this parameter in a request to a value, and checks the value against
    /// the limits of the parameter.
    ///
    /// # Errors
    /// A message if `text` is not a permitted value, such as ``must be `true` or `false` ``. The
    /// caller writes the parameter's name before the message. The message does not contain `text`.
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

    /// Returns `true` if a request must contain this parameter.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.default.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(parameter_type: ParameterType) -> Parameter {
        Parameter {
            parameter_type,
            ..Parameter::new("p".to_owned())
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
}
