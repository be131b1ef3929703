//! Query strings of the gateway: a string is accepted if and only if the reference implementation
//! accepts it, with the values that the crate `form_urlencoded` reads. Any values that this crate
//! encodes are read unchanged.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::parts;
use onecopy_gateway::Config;
use onecopy_gateway::config::Query;
use onecopy_gateway::query_string::bind;
use onecopy_rows::Value;

const CONFIG: &str = "[databases.d]\nurl = 'sqlite:a.db'\n[queries.q]\nsql = 'select :b, :a, :b, :c, :d'\n\
    parameters.a = { type = 'text', allow_empty = true }\n\
    parameters.b = { type = 'text', default = 'x' }\n\
    parameters.c = { type = 'int', required = false, min = -5 }\n\
    parameters.d = { type = 'text', allow_empty = true, default = 'y', max_length = 3 }\n";

thread_local! {
    static QUERY: Query = Config::parse(CONFIG, Path::new("c.toml"), &|_| None)
        .expect("well-formed")
        .queries
        .remove(0);
}

fuzz_target!(|text: &str| QUERY.with(|query| {
    let [raw, a, b] = parts(text);
    match (bind(query, Some(raw)), plain(raw)) {
        (Ok(values), Some(expected)) => assert_eq!(values, expected),
        (Err(problems), None) => assert!(!problems.is_empty() && problems.len() <= 25),
        (got, expected) => panic!("{raw:?}: {got:?}, by a plain reading {expected:?}"),
    }
    encoded(query, a, b);
}));

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// Returns the values by the reference implementation; `None` if the string must be refused.
fn plain(raw: &str) -> Option<Vec<Value>> {
    let mut given: [Option<String>; 4] = Default::default();
    for pair in raw.split('&').filter(|p| !p.is_empty()) {
        let percent = pair.split('%').skip(1);
        for after in percent {
            let two = after.as_bytes().get(..2)?;
            if !two.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
        }
        let mut pairs = form_urlencoded::parse(pair.as_bytes());
        let (name, value) = pairs.next()?;
        // The crate replaces bytes that are not UTF-8 by U+FFFD. The result then has more of
        // these characters than the input.
        let marks = name.matches('\u{FFFD}').count() + value.matches('\u{FFFD}').count();
        let wanted = pair.matches('\u{FFFD}').count() + pair.to_ascii_uppercase().matches("%EF%BF%BD").count();
        if marks != wanted || value.contains('\0') {
            return None;
        }
        let place = ["a", "b", "c", "d"].iter().position(|n| *n == name)?;
        if given[place].replace(value.into_owned()).is_some() {
            return None;
        }
    }
    let [a, b, c, d] = given;
    let b = b.filter(|b| !b.is_empty()).map_or(text("x"), text);
    let c = match c.filter(|c| !c.is_empty()) {
        None => Value::Null,
        Some(c) => Value::I64(integer(&c).filter(|n| *n >= -5)?),
    };
    let d = d.unwrap_or_else(|| "y".to_owned());
    if d.chars().count() > 3 {
        return None;
    }
    Some(vec![b.clone(), text(a?), b, c, text(d)])
}

/// Parses a sign and digits as an integer of 64 bits.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > 19 {
        return None;
    }
    let number = digits.bytes().fold(0_i128, |n, b| n * 10 + i128::from(b - b'0'));
    i64::try_from(if text.starts_with('-') { -number } else { number }).ok()
}

fn encoded(query: &Query, a: &str, b: &str) {
    let (a, b) = (a.replace('\0', ""), b.replace('\0', ""));
    let mut out = form_urlencoded::Serializer::new(String::new());
    out.append_pair("b", &b).append_pair("a", &a);
    let c = Value::I64(a.len() as i64);
    out.append_pair("c", &a.len().to_string());
    let b = if b.is_empty() { text("x") } else { text(b) };
    let expected = vec![b.clone(), text(a), b, c, text("y")];
    assert_eq!(bind(query, Some(&out.finish())), Ok(expected));
}
