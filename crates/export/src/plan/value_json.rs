//! Parameter values as JSON objects, which contain the type and the text of the value.

use onecopy_rows::{Date, Time, Timestamp, Value};

use crate::json::{Json, JsonWriter, member, text};

/// Returns `true` if [`write`] can represent the value. It cannot represent a value with a type
/// that the statement or the caller has declared.
pub(crate) fn is_complete(value: &Value) -> bool {
    encoded(value).is_some()
}

/// Writes a value as JSON. [`is_complete`] must return `true` for it.
pub(crate) fn write(out: &mut JsonWriter, value: &Value) {
    let (name, text) = encoded(value).expect("a plan has no other values");
    out.open('{');
    out.key("type");
    out.string(name);
    if let Some(text) = text {
        out.key("value");
        out.string(&text);
    }
    out.close('}');
}

/// Parses JSON that [`write`] has written, and returns the value. Returns `None` for JSON that
/// `write` does not write.
pub(crate) fn read(json: &Json) -> Option<Value> {
    let name = text(member(json, "type")?)?;
    if name == "null" {
        return Some(Value::Null);
    }
    decoded(&name, text(member(json, "value")?)?)
}

fn encoded(value: &Value) -> Option<(&'static str, Option<String>)> {
    let (name, text) = match value {
        Value::Null => return Some(("null", None)),
        Value::Bool(b) => ("bool", b.to_string()),
        Value::I64(n) => ("int", n.to_string()),
        Value::F64(f) => ("float", format!("{f:?}")),
        Value::Decimal(digits) => ("decimal", digits.clone()),
        Value::Text(text) => ("text", text.clone()),
        Value::Bytes(bytes) => ("bytes", hex(bytes)),
        Value::Date(date) => ("date", date_text(date)),
        Value::Time(time) => ("time", time_text(time)),
        Value::Timestamp(t) => {
            let offset = t
                .offset_minutes
                .map_or(String::new(), |m| format!("{m:+}m"));
            let text = format!("{} {}{offset}", date_text(&t.date), time_text(&t.time));
            ("timestamp", text)
        }
        Value::Uuid(uuid) => ("uuid", hex(uuid)),
        _ => return None,
    };
    Some((name, Some(text)))
}

fn decoded(name: &str, text: String) -> Option<Value> {
    Some(match name {
        "bool" => Value::Bool(text.parse().ok()?),
        "int" => Value::I64(text.parse().ok()?),
        "float" => Value::F64(text.parse().ok()?),
        "decimal" => Value::Decimal(text),
        "text" => Value::Text(text),
        "bytes" => Value::Bytes(unhex(&text)?),
        "date" => Value::Date(date(&text)?),
        "time" => Value::Time(time(&text)?),
        "timestamp" => {
            let (day, rest) = text.split_once(' ')?;
            let at = rest.find(['+', '-']).unwrap_or(rest.len());
            let (clock, offset) = rest.split_at(at);
            Value::Timestamp(Timestamp {
                date: date(day)?,
                time: time(clock)?,
                offset_minutes: match offset {
                    "" => None,
                    offset => Some(offset.strip_suffix('m')?.parse().ok()?),
                },
            })
        }
        "uuid" => Value::Uuid(unhex(&text)?.try_into().ok()?),
        _ => return None,
    })
}

fn date_text(date: &Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn time_text(t: &Time) -> String {
    format!(
        "{:02}:{:02}:{:02}.{:09}",
        t.hour, t.minute, t.second, t.nanosecond
    )
}

fn date(text: &str) -> Option<Date> {
    let (rest, day) = text.rsplit_once('-')?;
    let (year, month) = rest.rsplit_once('-')?;
    Some(Date {
        year: year.parse().ok()?,
        month: month.parse().ok()?,
        day: day.parse().ok()?,
    })
}

fn time(text: &str) -> Option<Time> {
    let (clock, nanosecond) = text.split_once('.')?;
    let mut parts = clock.split(':').map(|part| part.parse::<u8>().ok());
    Some(Time {
        hour: parts.next()??,
        minute: parts.next()??,
        second: parts.next()??,
        nanosecond: nanosecond.parse().ok()?,
    })
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}

/// Returns a value as human-readable text.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Date(date) => format!("'{}'", date_text(date)),
        value => encoded(value)
            .and_then(|(_, text)| text)
            .unwrap_or_else(|| "NULL".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_value_of_each_type_is_read_back() {
        let date = Date {
            year: 2024,
            month: 2,
            day: 29,
        };
        let time = Time {
            hour: 23,
            minute: 59,
            second: 60,
            nanosecond: 1,
        };
        let stamp = |offset_minutes| {
            Value::Timestamp(Timestamp {
                date,
                time,
                offset_minutes,
            })
        };
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::I64(i64::MIN),
            Value::F64(-0.1),
            Value::F64(f64::INFINITY),
            Value::F64(5e-324),
            Value::Decimal("-12345678901234567890.50".to_owned()),
            Value::Text("a\"\\\n\u{1}é\u{1F600}'".to_owned()),
            Value::Bytes(vec![0, 255, 16]),
            Value::Date(date),
            Value::Date(Date { year: -44, ..date }),
            Value::Date(Date::INFINITY),
            Value::Time(time),
            stamp(None),
            stamp(Some(-330)),
            stamp(Some(60)),
            Value::Uuid([7; 16]),
        ] {
            let mut out = JsonWriter::default();
            write(&mut out, &value);
            assert_eq!(read(&json::parse(&out.finish()).unwrap()), Some(value));
        }
    }

    #[test]
    fn a_wrong_value_is_refused() {
        for text in [
            "{}",
            "5",
            r#"{"type":"int","value":"x"}"#,
            r#"{"type":"int"}"#,
            r#"{"type":"bytes","value":"0"}"#,
            r#"{"type":"uuid","value":"00"}"#,
            r#"{"type":"date","value":"2024"}"#,
            r#"{"type":"timestamp","value":"2024-01-01 0:0:0.0+1"}"#,
            r#"{"type":"secret","value":"x"}"#,
        ] {
            assert_eq!(read(&json::parse(text).unwrap()), None, "{text}");
        }
    }
}
