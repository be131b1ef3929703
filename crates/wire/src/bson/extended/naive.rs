//! Reference implementations of the conversions between document trees and Extended JSON text, for
//! tests and fuzzing. They follow the specification literally.

use std::fmt::Write as _;

use onecopy_text::{Policy, Units};

use crate::bson::naive::{Document, Value, decimal128, decimal128_text};
use crate::json::read::naive as json;

/// Returns the document as Extended JSON, in canonical format if `canonical` is `true`, otherwise
/// in relaxed format. The options of regular expressions must already be in alphabetical order.
#[must_use]
pub fn text(document: &Document, canonical: bool) -> String {
    let members: Vec<String> = document
        .iter()
        .map(|(key, value)| format!("{}:{}", string(key), value_text(value, canonical)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn string(text: &str) -> String {
    let body = onecopy_text::naive::to_json_body(Units::Utf8(text.as_bytes()), Policy::Strict);
    let body = String::from_utf8(body.expect("a str is well-formed")).expect("UTF-8");
    format!("\"{body}\"")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn value_text(value: &Value, canonical: bool) -> String {
    match value {
        Value::Double(bits) => {
            let value = f64::from_bits(*bits);
            let digits = double(value);
            match canonical || !value.is_finite() {
                true => format!("{{\"$numberDouble\":\"{digits}\"}}"),
                false => digits,
            }
        }
        Value::String(text) => string(text),
        Value::Document(inner) => text(inner, canonical),
        Value::Array(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(_, v)| value_text(v, canonical))
                .collect();
            format!("[{}]", items.join(","))
        }
        Value::Binary(subtype, bytes) => format!(
            "{{\"$binary\":{{\"base64\":\"{}\",\"subType\":\"{subtype:02x}\"}}}}",
            base64(bytes)
        ),
        Value::Undefined => "{\"$undefined\":true}".to_owned(),
        Value::ObjectId(id) => format!("{{\"$oid\":\"{}\"}}", hex(id)),
        Value::Bool(value) => value.to_string(),
        Value::DateTime(ms) => match date(*ms).filter(|_| !canonical) {
            Some(date) => format!("{{\"$date\":\"{date}\"}}"),
            None => format!("{{\"$date\":{{\"$numberLong\":\"{ms}\"}}}}"),
        },
        Value::Null => "null".to_owned(),
        Value::Regex(pattern, options) => format!(
            "{{\"$regularExpression\":{{\"pattern\":{},\"options\":{}}}}}",
            string(pattern),
            string(options)
        ),
        Value::DbPointer(name, id) => format!(
            "{{\"$dbPointer\":{{\"$ref\":{},\"$id\":{{\"$oid\":\"{}\"}}}}}}",
            string(name),
            hex(id)
        ),
        Value::Code(code) => format!("{{\"$code\":{}}}", string(code)),
        Value::Symbol(text) => format!("{{\"$symbol\":{}}}", string(text)),
        Value::CodeWithScope(code, scope) => format!(
            "{{\"$code\":{},\"$scope\":{}}}",
            string(code),
            text(scope, canonical)
        ),
        Value::Int32(value) if canonical => format!("{{\"$numberInt\":\"{value}\"}}"),
        Value::Int32(value) => value.to_string(),
        Value::Timestamp(seconds, increment) => {
            format!("{{\"$timestamp\":{{\"t\":{seconds},\"i\":{increment}}}}}")
        }
        Value::Int64(value) if canonical => format!("{{\"$numberLong\":\"{value}\"}}"),
        Value::Int64(value) => value.to_string(),
        Value::Decimal128(bytes) => format!("{{\"$numberDecimal\":\"{}\"}}", decimal(bytes)),
        Value::MinKey => "{\"$minKey\":1}".to_owned(),
        Value::MaxKey => "{\"$maxKey\":1}".to_owned(),
    }
}

/// Returns the shortest decimal text that is parsed as the same double. The text is the output of
/// the library zmij, in which an exponent is then rewritten from the form `e18` to `E+18`. NaN and
/// the infinities become `NaN`, `Infinity` and `-Infinity`.
fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = zmij::Buffer::new().format(value).replace("e-", "E-");
    text.replace("e+", "E+").replace('e', "E+")
}

/// Encodes `bytes` as base64, six bits at a time.
fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| {
            bits << 8 | u32::from(*group.get(i).unwrap_or(&0))
        });
        for i in 0..4 {
            text.push(match i <= group.len() {
                true => char::from(letters[(bits >> (18 - 6 * i) & 63) as usize]),
                false => '=',
            });
        }
    }
    text
}

/// Returns the date as RFC 3339 text, which is calculated by counting years and months from 1970.
/// `None` for dates outside of the years 1970 to 9999.
fn date(ms: i64) -> Option<String> {
    let mut days = usize::try_from(ms.div_euclid(86_400_000)).ok()?;
    let (mut year, mut month) = (1970, 0);
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let lengths = [
            31,
            28 + usize::from(is_leap),
            31,
            30,
            31,
            30,
            31,
            31,
            30,
            31,
            30,
            31,
        ];
        let of_year = lengths.iter().sum::<usize>();
        if month == 0 && days >= of_year {
            (days, year) = (days - of_year, year + 1);
        } else if days >= lengths[month] {
            (days, month) = (days - lengths[month], month + 1);
        } else {
            break;
        }
        if year > 9999 {
            return None;
        }
    }
    let ms = ms.rem_euclid(86_400_000);
    let (second, fraction) = (ms / 1000, ms % 1000);
    let fraction = match fraction {
        0 => String::new(),
        n => format!(".{n:03}"),
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!(
        "{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z",
        month + 1,
        days + 1
    ))
}

/// Returns the decimal as text. Large and small exponents are written in the notation `E+18`.
#[must_use]
pub fn decimal(bytes: &[u8; 16]) -> String {
    let bits = u128::from_le_bytes(*bytes);
    let sign = if bits >> 127 == 1 { "-" } else { "" };
    let is_other_form = bits >> 125 & 3 == 3;
    let (digits, exponent) = if is_other_form && bits >> 123 & 15 != 15 {
        ("0".to_owned(), (bits >> 111 & 0x3FFF) as i32 - 6176)
    } else {
        let text = decimal128_text(bytes);
        let Some((digits, exponent)) = text.split_once('E') else {
            return text;
        };
        let digits = digits.trim_start_matches('-');
        let digits = if digits.len() > 34 { "0" } else { digits };
        (digits.to_owned(), exponent.parse().expect("an exponent"))
    };
    let adjusted = exponent + digits.len() as i32 - 1;
    if exponent > 0 || adjusted < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{adjusted:+}");
    }
    if exponent == 0 {
        return format!("{sign}{digits}");
    }
    let n_after = exponent.unsigned_abs() as usize;
    let padded = format!("{digits:0>width$}", width = n_after + 1);
    let (before, after) = padded.split_at(padded.len() - n_after);
    format!("{sign}{before}.{after}")
}

/// Returns the document that a JSON value represents. `None` if the value is not an object or
/// contains an invalid type wrapper.
#[must_use]
pub fn document(value: &json::Value) -> Option<Document> {
    let json::Value::Object(members) = value else {
        return None;
    };
    members_of(members)
}

type Members = [(Vec<u32>, json::Value)];

fn members_of(members: &Members) -> Option<Document> {
    members
        .iter()
        .map(|(key, value)| {
            let key = chars(key)?;
            (!key.contains('\0')).then_some(())?;
            Some((key, value_of(value)?))
        })
        .collect()
}

fn chars(text: &[u32]) -> Option<String> {
    text.iter().map(|&c| char::from_u32(c)).collect()
}

fn value_of(value: &json::Value) -> Option<Value> {
    Some(match value {
        json::Value::Null => Value::Null,
        json::Value::Bool(value) => Value::Bool(*value),
        json::Value::Int(digits) => match (digits.parse(), digits.parse()) {
            (Ok(value), _) => Value::Int32(value),
            (_, Ok(value)) => Value::Int64(value),
            _ => finite(digits.parse().ok()?)?,
        },
        json::Value::Float(bits) => finite(f64::from_bits(*bits))?,
        json::Value::Str(text) => Value::String(chars(text)?),
        json::Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(i, item)| Some((i.to_string(), value_of(item)?)));
            Value::Array(items.collect::<Option<_>>()?)
        }
        json::Value::Object(members) => object(members)?,
    })
}

fn finite(value: f64) -> Option<Value> {
    value.is_finite().then(|| Value::Double(value.to_bits()))
}

/// The keys that make an object a type wrapper. An entry has the required key of a wrapper, and the
/// other keys that the wrapper permits.
const WRAPPERS: [(&str, &[&str]); 16] = [
    ("$oid", &[]),
    ("$symbol", &[]),
    ("$numberInt", &[]),
    ("$numberLong", &[]),
    ("$numberDouble", &[]),
    ("$numberDecimal", &[]),
    ("$uuid", &[]),
    ("$date", &[]),
    ("$binary", &["$type"]),
    ("$code", &["$scope"]),
    ("$scope", &["$code"]),
    ("$timestamp", &[]),
    ("$regularExpression", &[]),
    ("$dbPointer", &[]),
    ("$minKey", &[]),
    ("$maxKey", &[]),
];

fn object(members: &Members) -> Option<Value> {
    let keys: Vec<String> = members
        .iter()
        .map(|(k, _)| chars(k))
        .collect::<Option<_>>()?;
    let has = |key: &str| keys.iter().any(|k| k == key);
    let get = |key: &str| {
        members
            .iter()
            .zip(&keys)
            .find(|(_, k)| *k == key)
            .map(|((_, v), _)| v)
    };
    let is_whole = |keys_of: &[&str]| keys.iter().all(|k| keys_of.contains(&k.as_str()));
    let is_once = (1..keys.len()).all(|i| !keys[..i].contains(&keys[i]));
    if has("$undefined") {
        return (keys.len() == 1 && get("$undefined")? == &json::Value::Bool(true))
            .then_some(Value::Undefined);
    }
    for (key, others) in WRAPPERS {
        if has(key) {
            let all: Vec<&str> = others.iter().copied().chain([key]).collect();
            return (is_whole(&all) && is_once).then(|| wrapped(key, &get))?;
        }
    }
    if has("$regex")
        && is_whole(&["$regex", "$options"])
        && is_once
        && let Some(json::Value::Str(pattern)) = get("$regex")
        && let None | Some(json::Value::Str(_)) = get("$options")
    {
        return regex(pattern, get("$options"));
    }
    members_of(members).map(Value::Document)
}

fn text_of(value: Option<&json::Value>) -> Option<String> {
    match value? {
        json::Value::Str(text) => chars(text),
        _ => None,
    }
}

/// Returns the values of the keys `a` and `b` of an object that has exactly these two keys. `None`
/// for any other value.
fn both<'a>(value: Option<&'a json::Value>, a: &str, b: &str) -> Option<[&'a json::Value; 2]> {
    let json::Value::Object(members) = value? else {
        return None;
    };
    let get = |key: &str| {
        members
            .iter()
            .find(|(k, _)| chars(k).as_deref() == Some(key))
    };
    (members.len() == 2).then_some([&get(a)?.1, &get(b)?.1])
}

fn regex(pattern: &[u32], options: Option<&json::Value>) -> Option<Value> {
    let pattern = chars(pattern)?;
    let mut options: Vec<char> = match options {
        None => Vec::new(),
        options => text_of(options)?.chars().collect(),
    };
    options.sort_unstable();
    let options: String = options.into_iter().collect();
    (!pattern.contains('\0') && !options.contains('\0')).then_some(Value::Regex(pattern, options))
}

fn unsigned(value: &json::Value) -> Option<u32> {
    match value {
        json::Value::Int(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let bytes = (0..N).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16));
    bytes.collect::<Result<Vec<u8>, _>>().ok()?.try_into().ok()
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bare = text.trim_end_matches('=');
    let values = bare.chars().map(|c| letters.find(c));
    let values = values.collect::<Option<Vec<usize>>>()?;
    let bits: Vec<usize> = values
        .iter()
        .flat_map(|v| (0..6).rev().map(move |i| v >> i & 1))
        .collect();
    let bytes: Vec<u8> = bits
        .chunks_exact(8)
        .map(|b| b.iter().fold(0, |n, b| n << 1 | *b as u8))
        .collect();
    // The text must be the canonical encoding: it has padding, and its unused bits are zero.
    (base64(&bytes) == text).then_some(bytes)
}

fn wrapped<'a>(key: &str, get: &impl Fn(&str) -> Option<&'a json::Value>) -> Option<Value> {
    let text = || text_of(get(key));
    Some(match key {
        "$oid" => Value::ObjectId(unhex(&text()?)?),
        "$symbol" => Value::Symbol(text()?),
        "$numberInt" => Value::Int32(text()?.parse().ok()?),
        "$numberLong" => Value::Int64(text()?.parse().ok()?),
        "$numberDouble" => match text()?.as_str() {
            "NaN" => Value::Double(f64::NAN.to_bits()),
            "Infinity" => Value::Double(f64::INFINITY.to_bits()),
            "-Infinity" => Value::Double(f64::NEG_INFINITY.to_bits()),
            text => {
                let is_named = text.contains(['n', 'N', 'i', 'I']);
                (!is_named).then_some(())?;
                finite(text.parse().ok()?)?
            }
        },
        "$numberDecimal" => Value::Decimal128(decimal_of(&text()?)?),
        "$uuid" => {
            let text = text()?;
            let parts: Vec<usize> = text.split('-').map(str::len).collect();
            ([vec![8, 4, 4, 4, 12], vec![32]].contains(&parts)).then_some(())?;
            Value::Binary(4, unhex::<16>(&text.replace('-', ""))?.to_vec())
        }
        "$date" => match get(key)? {
            json::Value::Str(text) => {
                Value::DateTime(super::instant::parse(chars(text)?.as_bytes())?)
            }
            json::Value::Object(members) => match object(members)? {
                Value::Int64(ms) => Value::DateTime(ms),
                _ => return None,
            },
            _ => return None,
        },
        "$binary" => {
            let (data, kind) = match get("$type") {
                None => {
                    let [data, kind] = both(get(key), "base64", "subType")?;
                    (text_of(Some(data))?, text_of(Some(kind))?)
                }
                kind => (text()?, text_of(kind)?),
            };
            let is_short =
                matches!(kind.len(), 1 | 2) && kind.bytes().all(|b| b.is_ascii_hexdigit());
            is_short.then_some(())?;
            let (subtype, data) = (u8::from_str_radix(&kind, 16).ok()?, unbase64(&data)?);
            (!matches!(subtype, 3 | 4) || data.len() == 16).then_some(())?;
            Value::Binary(subtype, data)
        }
        "$code" | "$scope" => {
            let code = text_of(get("$code"))?;
            match get("$scope").map(value_of) {
                None => Value::Code(code),
                Some(Some(Value::Document(scope))) => Value::CodeWithScope(code, scope),
                Some(_) => return None,
            }
        }
        "$timestamp" => {
            let [seconds, increment] = both(get(key), "t", "i")?;
            Value::Timestamp(unsigned(seconds)?, unsigned(increment)?)
        }
        "$regularExpression" => {
            let [pattern, options] = both(get(key), "pattern", "options")?;
            match (pattern, options) {
                (json::Value::Str(pattern), json::Value::Str(_)) => regex(pattern, Some(options))?,
                _ => return None,
            }
        }
        "$dbPointer" => {
            let [name, id] = both(get(key), "$ref", "$id")?;
            match value_of(id)? {
                Value::ObjectId(id) => Value::DbPointer(text_of(Some(name))?, id),
                _ => return None,
            }
        }
        "$minKey" => (get(key)? == &json::Value::Int("1".to_owned())).then_some(Value::MinKey)?,
        "$maxKey" => (get(key)? == &json::Value::Int("1".to_owned())).then_some(Value::MaxKey)?,
        _ => return None,
    })
}

/// Returns the decimal that `text` represents. `text` is a number, or a name such as `NaN`. The
/// decimal is calculated digit by digit.
fn decimal_of(text: &str) -> Option<[u8; 16]> {
    let (sign, name) = match text.strip_prefix('-') {
        Some(name) => (1 << 127, name),
        None => (0, text.strip_prefix('+').unwrap_or(text)),
    };
    match name.to_ascii_lowercase().as_str() {
        "nan" => Some((0x7C_u128 << 120).to_le_bytes()),
        "inf" | "infinity" => Some((0x78_u128 << 120 | sign).to_le_bytes()),
        _ => decimal128(text),
    }
}
