//! Any bytes as Extended JSON and as BSON: the converters accept what the reference implementations
//! accept, with the same result. The positions of errors are within the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_text::Policy;
use onecopy_wire::bson::check;
use onecopy_wire::bson::extended::{Form, FromJson, ToJson, from_json, naive, to_json};
use onecopy_wire::bson::naive::{Document, Value, documents, tree};
use onecopy_wire::bson::read::{ReadError, Rules};
use onecopy_wire::json::read::{Ucs4, Utf8, naive as json};

/// The depth limit, since the reference implementations are recursive.
const DEPTH: usize = 100;

fn options() -> FromJson {
    FromJson { max_depth: DEPTH, ..FromJson::default() }
}

fn text_of(bson: &[u8], form: Form) -> Vec<u8> {
    let mut text = Vec::new();
    let n = to_json(bson, &ToJson { form, ..ToJson::default() }, &mut text).expect("a document of ours");
    assert_eq!(n, bson.len());
    text
}

fn bson_of(text: &[u8]) -> Option<Vec<u8>> {
    let mut bson = Vec::new();
    let end = from_json::<Utf8, _>(text, 0, &options(), &mut bson).ok()?;
    assert_eq!(end, text.len());
    Some(bson)
}

/// Converts Extended JSON to BSON, and compares the result for each form of the text and with the
/// reference implementation. The text of the result must be stable.
fn as_text(data: &[u8]) {
    let mut bson = Vec::new();
    let done = from_json::<Utf8, _>(data, 0, &options(), &mut bson);
    let end = match done {
        Ok(end) => end,
        Err(e) => {
            assert!(e.at_units <= data.len() && bson.is_empty(), "{e}");
            data.len()
        }
    };
    let is_whole = data[end..].iter().all(|b| b" \n\r\t".contains(b));
    if let Ok(text) = std::str::from_utf8(data)
        && is_whole
    {
        let chars: Vec<u32> = text.chars().map(u32::from).collect();
        let value = json::parse(&chars, Policy::Strict, DEPTH);
        let expected = value.and_then(|value| naive::document(&value)).map(|d| tree::write(&d));
        assert_eq!(done.is_ok().then_some(&bson), expected.as_ref(), "{text}");
        let mut wide = Vec::new();
        let again = from_json::<Ucs4, _>(&chars, 0, &options(), &mut wide);
        assert_eq!((again.is_ok(), &wide), (done.is_ok(), &bson));
    }
    if done.is_err() {
        return;
    }
    assert_eq!(check(&bson, Rules::default()), Ok(bson.len()));
    for form in [Form::Canonical, Form::Relaxed] {
        let text = text_of(&bson, form);
        // At the top level, keys such as `$oid` are keys; nested ones were parsed as wrappers.
        let again = bson_of(&text).expect("a text of ours");
        if form == Form::Canonical {
            assert_eq!(again, bson, "{}", text.escape_ascii());
        }
        assert_eq!(text_of(&again, form), text);
    }
}

/// Returns true if the document has only one text and the text only this document. NaNs, one form
/// of decimals, unsorted options and keys with `$` make this false.
fn is_canonical(document: &Document) -> bool {
    document.iter().all(|(key, value)| {
        !key.starts_with('$')
            && match value {
                Value::Document(inner) | Value::Array(inner) | Value::CodeWithScope(_, inner) => is_canonical(inner),
                Value::Double(bits) => !f64::from_bits(*bits).is_nan() || *bits == f64::NAN.to_bits(),
                Value::Decimal128(bytes) => bytes[15] & 0x60 != 0x60,
                Value::Regex(_, options) => options.chars().is_sorted(),
                _ => true,
            }
    })
}

fn as_bson(data: &[u8]) {
    let rules = Rules { max_depth: DEPTH, ..Rules::default() };
    let mut text = Vec::new();
    let options = ToJson { form: Form::Canonical, rules, ..ToJson::default() };
    let done = to_json(data, &options, &mut text);
    let is_good = check(data, rules);
    let Ok(n) = done else {
        assert!(text.is_empty());
        return assert!(is_good.is_err_and(|ReadError { offset_bytes, .. }| offset_bytes <= data.len()));
    };
    assert_eq!(is_good, Ok(n));
    let found = documents(&data[..n]).expect("the reference accepts it too");
    if !is_canonical(&found[0]) || !tree::has_index_keys(&found[0]) {
        return;
    }
    assert_eq!(String::from_utf8(text.clone()).expect("UTF-8"), naive::text(&found[0], true));
    let big = found[0].iter().any(|(_, v)| matches!(v, Value::Decimal128(_)));
    let back = bson_of(&text).expect("a text of ours");
    if !big {
        assert_eq!(back, tree::write(&found[0]));
    }
    assert_eq!(text_of(&back, Form::Canonical), text);
}

fuzz_target!(|data: &[u8]| {
    as_text(data);
    as_bson(data);
});
