//! Typed parameters of the gateway: a parsed value that is written by the row formats is parsed to
//! the same value. The order of values is that of a plain comparison and is transitive.
#![no_main]

use std::cmp::Ordering;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::parts;
use onecopy_gateway::Config;
use onecopy_gateway::parameters::{Bound, Parameter, ParameterType};
use onecopy_rows::{Date, Time, Value};
use onecopy_text::ByteSink;
use onecopy_wire::csv;

thread_local! {
    /// One parameter for each type, with the name of its type.
    static PARAMETERS: Vec<Parameter> = {
        let names: Vec<&str> = ParameterType::ALL.iter().map(|t| t.name()).collect();
        let used: Vec<String> = names.iter().map(|n| format!(":{n}")).collect();
        let declared: Vec<String> = names.iter().map(|n| format!("parameters.{n} = '{n}'\n")).collect();
        let text = format!(
            "[databases.d]\nurl = 'sqlite:a.db'\n[queries.q]\nsql = 'select {}'\n{}",
            used.join(", "),
            declared.concat()
        );
        let config = Config::parse(&text, Path::new("c.toml"), &|_| None);
        config.expect("well-formed").queries.remove(0).parameters
    };
}

fuzz_target!(|text: &str| PARAMETERS.with(|parameters| {
    let texts: [&str; 3] = parts(text);
    for p in parameters {
        for text in texts {
            if let Some(value) = p.parameter_type.parse(text) {
                assert_eq!(p.value_of(text).as_ref(), Ok(&value));
                let again = written(&value);
                assert_eq!(p.parameter_type.parse(&again), Some(value), "{text:?} {again:?}");
            }
        }
        if p.parameter_type.is_ordered() {
            order(p, texts);
        }
    }
}));

/// Returns the value as a row format writes it.
fn written(value: &Value) -> String {
    let mut out = Vec::new();
    match value {
        Value::Bool(b) => csv::put_bool(*b, &mut out.window(csv::SCALAR_BYTES).expect("memory")),
        Value::I64(n) => csv::put_i64(*n, &mut out.window(csv::SCALAR_BYTES).expect("memory")),
        Value::Uuid(u) => csv::put_uuid(u, &mut out.window(csv::SCALAR_BYTES).expect("memory")),
        Value::F64(f) => {
            let mut w = out.window(csv::SCALAR_BYTES).expect("memory");
            csv::put_f64(*f, Default::default(), &mut w).expect("finite");
        }
        // The digits are unchanged: `007` and `7` are equal numbers, but different texts.
        Value::Decimal(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Date(d) => out.extend_from_slice(d.to_short().expect("a date").as_bytes()),
        Value::Time(t) => out.extend_from_slice(t.to_short(0).expect("a time").as_bytes()),
        Value::Timestamp(t) => out.extend_from_slice(t.to_short(0).expect("a timestamp").as_bytes()),
        other => panic!("no parameter is {other:?}"),
    }
    if let Value::Decimal(digits) = value {
        let mut number = Vec::new();
        csv::write_decimal(digits.as_bytes(), Default::default(), &mut number).expect("a number");
    }
    String::from_utf8(out).expect("text")
}

fn order(p: &Parameter, texts: [&str; 3]) {
    let Some(values) = texts.iter().map(|t| p.parameter_type.parse(t)).collect::<Option<Vec<_>>>() else {
        return;
    };
    let mut orders = [Ordering::Equal; 3];
    for (i, order) in orders.iter_mut().enumerate() {
        let (a, b) = (i, (i + 1) % 3);
        *order = compare(p, texts[a], texts[b]);
        assert_eq!(*order, compare(p, texts[b], texts[a]).reverse(), "{texts:?}");
        if let Some(expected) = plain(&values[a], &values[b]) {
            assert_eq!(*order, expected, "{:?} {:?}", texts[a], texts[b]);
        }
    }
    // If value 0 ≤ value 1 and value 1 ≤ value 2, then value 0 ≤ value 2.
    if orders[0].is_le() && orders[1].is_le() {
        assert!(orders[2].reverse().is_le(), "{texts:?}");
    }
}

/// Compares two values by the lower and the upper limit of a parameter.
fn compare(p: &Parameter, a: &str, b: &str) -> Ordering {
    let mut p = p.clone();
    let bound = Bound {
        value: p.parameter_type.parse(b).expect("a value"),
        text: b.to_owned(),
    };
    p.min = Some(bound.clone());
    let below = p.value_of(a).is_err();
    (p.min, p.max) = (None, Some(bound));
    let above = p.value_of(a).is_err();
    match (below, above) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => Ordering::Equal,
        (true, true) => panic!("{a:?} is below and above {b:?}"),
    }
}

/// Returns the order of two values by the reference implementation; `None` if it cannot compare
/// them.
fn plain(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::I64(a), Value::I64(b)) => a.cmp(b),
        (Value::F64(a), Value::F64(b)) => a.partial_cmp(b)?,
        (Value::Decimal(a), Value::Decimal(b)) => {
            let n_fraction = |s: &str| s.split_once('.').map_or(0, |(_, f)| f.len());
            let n = n_fraction(a).max(n_fraction(b));
            let (a, b) = (scaled(a, n)?, scaled(b, n)?);
            a.cmp(&b)
        }
        (Value::Date(a), Value::Date(b)) => day(a).cmp(&day(b)),
        (Value::Time(a), Value::Time(b)) => clock(a).cmp(&clock(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) if a.offset_minutes == b.offset_minutes => {
            (day(&a.date), clock(&a.time)).cmp(&(day(&b.date), clock(&b.time)))
        }
        _ => return None,
    })
}

/// Returns a decimal as an integer in units of its `n`th fractional digit; `None` if it exceeds 128
/// bits.
fn scaled(text: &str, n: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction}{}", "0".repeat(n - fraction.len())).parse().ok()
}

fn day(d: &Date) -> (i32, u8, u8) {
    (d.year, d.month, d.day)
}

fn clock(t: &Time) -> (u8, u8, u8, u32) {
    (t.hour, t.minute, t.second, t.nanosecond)
}
