//! Compares the conversions between BSON and Extended JSON with their reference implementations,
//! for documents and texts of every kind.

use onecopy_text::Policy;
use onecopy_wire::bson::extended::{self, Form, FromJson, ToJson, ToJsonError, from_json, to_json};
use onecopy_wire::bson::naive::{self, Document, Value, tree};
use onecopy_wire::bson::read::{Reason, Rules};
use onecopy_wire::json::read::{Utf8, naive as json};
use proptest::prelude::*;

fn to_text(bytes: &[u8], form: Form) -> Result<String, ToJsonError> {
    let mut sink = b"before".to_vec();
    let options = ToJson {
        form,
        ..ToJson::default()
    };
    let done = to_json(bytes, &options, &mut sink);
    assert!(sink.starts_with(b"before"));
    match done {
        Ok(n) => {
            assert_eq!(n, bytes.len());
            Ok(String::from_utf8(sink.split_off(6)).expect("UTF-8"))
        }
        Err(e) => {
            assert_eq!(sink, b"before");
            Err(e)
        }
    }
}

fn to_bson(text: &str) -> Option<Vec<u8>> {
    let mut sink = Vec::new();
    let end = from_json::<Utf8, _>(text.as_bytes(), 0, &FromJson::default(), &mut sink).ok()?;
    text[end..].trim().is_empty().then_some(sink)
}

/// Generates keys that are not keys of a type wrapper.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{0,12}",
        1 => "[^\\x00$][^\\x00]{0,80}",
        1 => Just("$ref".to_owned()),
        1 => Just("$foo".to_owned()),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ -~]{0,20}",
        2 => ".{0,12}",
        1 => "[\\x00-\\x7F]{0,150}",
        1 => "[a-zé東😀\"\\\\]{0,300}",
    ]
}

fn no_nul() -> impl Strategy<Value = String> {
    "[^\\x00]{0,8}"
}

/// Generates options of a regular expression, in alphabetical order.
fn flags() -> impl Strategy<Value = String> {
    prop::sample::subsequence(vec!['i', 'l', 'm', 's', 'u', 'x'], 0..6)
        .prop_map(|flags| flags.into_iter().collect())
}

fn decimal() -> impl Strategy<Value = [u8; 16]> {
    prop_oneof![
        4 => (any::<bool>(), "[0-9]{1,34}", -6176..=6111_i32).prop_filter_map("fits", |(minus, digits, exponent)| {
            let sign = if minus { "-" } else { "" };
            naive::decimal128(&format!("{sign}{digits}E{exponent}"))
        }),
        1 => (any::<bool>(), "[0-9]{1,34}", -45..=5_i32).prop_filter_map("fits", |(minus, digits, exponent)| {
            let sign = if minus { "-" } else { "" };
            naive::decimal128(&format!("{sign}{digits}E{exponent}"))
        }),
        1 => prop::sample::select(vec![0x7C_u128, 0x78, 0xF8]).prop_map(|top| (top << 120).to_le_bytes()),
    ]
}

fn millis() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..253_402_300_800_000_i64,
        any::<i64>(),
        Just(253_402_300_799_999),
        Just(253_402_300_800_000),
        Just(-1),
    ]
}

fn documents() -> impl Strategy<Value = Document> {
    let scalar = prop_oneof![
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        (-999..999_i32).prop_map(|n| Value::Double((f64::from(n) / 100.0).to_bits())),
        any::<f64>()
            .prop_filter("the NaN of readers is one", |f| !f.is_nan())
            .prop_map(|f| Value::Double(f.to_bits())),
        Just(Value::Double(f64::NAN.to_bits())),
        any_text().prop_map(Value::String),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..70))
            .prop_filter("a UUID has 16 bytes", |(subtype, _)| !matches!(
                subtype,
                3 | 4
            ))
            .prop_map(|(subtype, bytes)| Value::Binary(subtype, bytes)),
        (3..5_u8, any::<[u8; 16]>()).prop_map(|(s, bytes)| Value::Binary(s, bytes.to_vec())),
        Just(Value::Undefined),
        any::<[u8; 12]>().prop_map(Value::ObjectId),
        any::<bool>().prop_map(Value::Bool),
        millis().prop_map(Value::DateTime),
        Just(Value::Null),
        (no_nul(), flags()).prop_map(|(pattern, flags)| Value::Regex(pattern, flags)),
        (any_text(), any::<[u8; 12]>()).prop_map(|(name, id)| Value::DbPointer(name, id)),
        any_text().prop_map(Value::Code),
        any_text().prop_map(Value::Symbol),
        (any::<u32>(), any::<u32>()).prop_map(|(s, i)| Value::Timestamp(s, i)),
        decimal().prop_map(Value::Decimal128),
        Just(Value::MinKey),
        Just(Value::MaxKey),
    ];
    let value = scalar.prop_recursive(4, 40, 6, |inner| {
        let members = prop::collection::vec((key(), inner.clone()), 0..6).boxed();
        prop_oneof![
            members.clone().prop_map(Value::Document),
            prop::collection::vec(inner, 0..14).prop_map(|items| {
                let items = items.into_iter().enumerate();
                Value::Array(items.map(|(i, v)| (i.to_string(), v)).collect())
            }),
            (any_text(), members).prop_map(|(code, scope)| Value::CodeWithScope(code, scope)),
        ]
    });
    prop::collection::vec((key(), value), 0..8)
}

/// Generates JSON text that looks like type wrappers, valid or not.
fn texts() -> impl Strategy<Value = String> {
    let keys = [
        "$oid",
        "$symbol",
        "$numberInt",
        "$numberLong",
        "$numberDouble",
        "$numberDecimal",
        "$uuid",
        "$date",
        "$binary",
        "$type",
        "base64",
        "subType",
        "$code",
        "$scope",
        "$timestamp",
        "t",
        "i",
        "$regularExpression",
        "pattern",
        "options",
        "$regex",
        "$options",
        "$dbPointer",
        "$ref",
        "$id",
        "$minKey",
        "$maxKey",
        "$undefined",
        "a",
        "$b",
    ];
    let strings = [
        "56e1fc72e0c917e9c4714161",
        "",
        "1",
        "-42",
        "2147483648",
        "1.5",
        "NaN",
        "-Infinity",
        "nan",
        "1E-7",
        "//8=",
        "AA==",
        "AB==",
        "00",
        "4",
        "xyz",
        "im",
        "mi",
        "é",
        "\\u0041",
        "\\ud800",
        "\\u0000",
        "73ffd264-44b3-4c69-90e8-e7d1dfc035d4",
        "2012-12-24T12:15:30.501Z",
        "2012-12-24",
        "9223372036854775808",
    ];
    let leaf = prop_oneof![
        4 => prop::sample::select(strings.to_vec()).prop_map(|s| format!("\"{s}\"")),
        2 => prop::sample::select(vec!["1", "0", "-1", "true", "false", "null", "4294967295", "5000000000", "1.0", "[]", "{}"]).prop_map(str::to_owned),
    ];
    let single = (prop::sample::select(keys.to_vec()), leaf.clone())
        .prop_map(|(k, v)| format!("{{\"{k}\":{v}}}"));
    let good = prop::sample::select(vec![
        r#"{"$binary":{"base64":"//8=","subType":"00"}}"#,
        r#"{"$date":{"$numberLong":"5"}}"#,
        r#"{"$timestamp":{"t":1,"i":2}}"#,
        r#"{"$regularExpression":{"pattern":"a","options":"xi"}}"#,
        r#"{"$code":"f","$scope":{"a":1}}"#,
        r#"{"$dbPointer":{"$ref":"c","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}}"#,
    ])
    .prop_map(str::to_owned);
    let value = prop_oneof![2 => leaf, 3 => single, 1 => good].prop_recursive(3, 24, 4, move |inner| {
        let member = (prop::sample::select(keys.to_vec()), inner.clone());
        let member = member.prop_map(|(key, value)| format!("\"{key}\":{value}"));
        prop_oneof![
            4 => prop::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
            1 => prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
        ]
    });
    value.prop_map(|value| format!("{{\"a\":{value}}}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn documents_as_text_match_naive(document in documents()) {
        let bytes = tree::write(&document);
        for (form, canonical) in [(Form::Relaxed, false), (Form::Canonical, true)] {
            prop_assert_eq!(to_text(&bytes, form).expect("good"), extended::naive::text(&document, canonical));
        }
    }

    #[test]
    fn canonical_text_becomes_the_bytes_it_was_made_of(document in documents()) {
        let bytes = tree::write(&document);
        let text = to_text(&bytes, Form::Canonical).expect("good");
        prop_assert_eq!(to_bson(&text), Some(bytes), "{}", text);
    }

    #[test]
    fn relaxed_text_is_the_same_when_it_comes_back(document in documents()) {
        let text = to_text(&tree::write(&document), Form::Relaxed).expect("good");
        let again = to_text(&to_bson(&text).expect(&text), Form::Relaxed).expect("good");
        prop_assert_eq!(again, text);
    }

    #[test]
    fn texts_full_of_wrappers_match_naive(text in texts()) {
        let chars: Vec<u32> = text.chars().map(u32::from).collect();
        let value = json::parse(&chars, Policy::Strict, 1000);
        let expected = value.and_then(|value| extended::naive::document(&value)).map(|d| tree::write(&d));
        prop_assert_eq!(to_bson(&text), expected, "{}", text);
    }

    #[test]
    fn decimals_as_text_match_naive_whatever_their_bits_are(bits in any::<u128>(), top in any::<u8>()) {
        for bits in [bits, bits >> 8 | u128::from(top) << 120] {
            let text = onecopy_wire::bson::Decimal128::from_le_bytes(bits.to_le_bytes()).to_text();
            let text = String::from_utf8(text.as_bytes().to_vec()).expect("ASCII");
            prop_assert_eq!(text, extended::naive::decimal(&bits.to_le_bytes()));
        }
    }
}

#[test]
fn what_is_no_bson_is_an_error_with_its_byte_and_leaves_the_sink() {
    let good = tree::write(&vec![("a".to_owned(), Value::String("é".to_owned()))]);
    for n in 0..good.len() {
        assert!(to_text(&good[..n], Form::Relaxed).is_err(), "{n}");
    }
    let mut bad = good.clone();
    bad[12] = b'x';
    match to_text(&bad, Form::Relaxed) {
        Err(ToJsonError::Read(e)) => {
            assert!(matches!(e.reason, Reason::Malformed(_)), "{e}");
            assert_eq!(e.offset_bytes, 11);
        }
        other => panic!("{other:?}"),
    }
    let mut sink = Vec::new();
    let lossy = ToJson {
        policy: Policy::Replace,
        ..ToJson::default()
    };
    to_json(&bad, &lossy, &mut sink).expect("replaced");
    assert_eq!(sink, "{\"a\":\"\u{FFFD}x\"}".as_bytes());
    let shallow = ToJson {
        rules: Rules {
            max_depth: 1,
            ..Rules::default()
        },
        ..ToJson::default()
    };
    let nested = tree::write(&vec![("a".to_owned(), Value::Document(vec![]))]);
    let error = to_json(&nested, &shallow, &mut sink).expect_err("too deep");
    assert!(matches!(error, ToJsonError::Read(e) if e.reason == Reason::Depth));
}

#[test]
fn regular_expressions_with_malformed_parts_tell_the_byte() {
    for (pattern, options, at) in [(&b"a\xFF"[..], &b"i"[..], 8), (b"a", b"m\xFFi", 10)] {
        let element = [b"\x0Bk\0", pattern, b"\0", options, b"\0\0"].concat();
        let length = (element.len() as u32 + 4).to_le_bytes();
        let bytes = [&length[..], &element].concat();
        match to_text(&bytes, Form::Relaxed) {
            Err(ToJsonError::Read(e)) => assert_eq!(e.offset_bytes, at),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn options_and_keys_of_arrays_are_put_in_order() {
    let bytes = tree::write(&vec![
        ("r".to_owned(), Value::Regex("p".into(), "mix".into())),
        (
            "a".to_owned(),
            Value::Array(vec![("x".into(), Value::Null), ("x".into(), Value::MaxKey)]),
        ),
    ]);
    let text = to_text(&bytes, Form::Relaxed).expect("good");
    assert_eq!(
        text,
        r#"{"r":{"$regularExpression":{"pattern":"p","options":"imx"}},"a":[null,{"$maxKey":1}]}"#
    );
}

#[test]
fn several_documents_are_read_one_by_one_and_a_cut_one_says_so() {
    let text =
        b" {\"a\":1}{\"b\":{\"$oid\":\"56e1fc72e0c917e9c4714161\"}} \n{\"c\":\"\xC3\xA9\\n\"}";
    let (mut at, mut sink, mut n) = (0, Vec::new(), 0);
    while at < text.len() {
        at = from_json::<Utf8, _>(text, at, &FromJson::default(), &mut sink).expect("a document");
        n += 1;
    }
    assert_eq!(n, 3);
    assert_eq!(naive::documents(&sink).expect("documents").len(), 3);
    let one = &text[8..49];
    for end in 0..one.len() {
        let error = from_json::<Utf8, _>(&one[..end], 0, &FromJson::default(), &mut Vec::new());
        assert!(error.expect_err("cut").is_at_end(end), "{end}");
    }
}
