//! Converts values to the text that the server's output functions write.

use std::borrow::Cow;

use super::date_time::{time_text, timestamp_text, with_era};
use crate::plain_text::uuid_text;
use crate::value::Value;

/// Returns the text of a value in the form in which the PostgreSQL server writes it; `None` for
/// NULL. The server would write a timestamp in the time zone of the session. This zone is unknown
/// here, so the timestamp keeps its own UTC offset.
#[must_use]
pub fn text_of_value(value: &Value) -> Option<Cow<'_, str>> {
    Some(Cow::Owned(match value {
        Value::Text(text) | Value::Decimal(text) | Value::Cast(text, _) => {
            return Some(Cow::Borrowed(text));
        }
        Value::Null => return None,
        Value::Bool(b) => b.to_string(),
        Value::I64(n) => n.to_string(),
        Value::F64(f) => float_text(*f),
        Value::Bytes(bytes) => {
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            format!("\\x{hex}")
        }
        Value::Date(date) => with_era(date, ""),
        Value::Time(time) => time_text(*time),
        Value::Timestamp(stamp) => timestamp_text(stamp),
        Value::Uuid(uuid) => uuid_text(uuid),
        Value::Declared(inner, _) => return text_of_value(inner),
    }))
}

/// Returns the shortest text that the server parses to this double. The text has an exponent if the
/// exponent is less than -4 or greater than 14.
fn float_text(f: f64) -> String {
    if f.is_infinite() {
        return if f < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let scientific = format!("{f:e}");
    let exponent = scientific.split_once('e');
    let exponent = exponent.and_then(|(digits, n)| Some((digits, n.parse::<i32>().ok()?)));
    match exponent {
        Some((digits, n)) if !(-4..15).contains(&n) => {
            let sign = if n < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", n.unsigned_abs())
        }
        _ => f.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_text_of_the_server() {
        for (f, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (-1e300, "-1e+300"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float_text(f), text);
        }
    }
}
