//! Tests the conversion of Extended JSON to BSON: the forms that the specification has for each
//! type, and rejected input with the position of the error.

use onecopy_text::Policy;
use onecopy_wire::bson::extended::{BigInts, FromJson, Reason, from_json};
use onecopy_wire::bson::naive::{self, Document, Value};
use onecopy_wire::json::read::{self, Latin1, Ucs2, Ucs4, Utf8};

mod limits;

fn bson_with(text: &str, options: &FromJson) -> Result<Vec<u8>, (Reason, usize)> {
    let mut sink = b"before".to_vec();
    let done = from_json::<Utf8, _>(text.as_bytes(), 0, options, &mut sink);
    // The result must be the same for each form of a `str` that can represent the text.
    let chars: Vec<u32> = text.chars().map(u32::from).collect();
    let ucs2: Option<Vec<u16>> = chars.iter().map(|&c| u16::try_from(c).ok()).collect();
    let latin1: Option<Vec<u8>> = chars.iter().map(|&c| u8::try_from(c).ok()).collect();
    let mut others = vec![Vec::new(); 3];
    let mut ends = vec![from_json::<Ucs4, _>(&chars, 0, options, &mut others[0])];
    if let Some(ucs2) = ucs2 {
        ends.push(from_json::<Ucs2, _>(&ucs2, 0, options, &mut others[1]));
    }
    if let Some(latin1) = latin1 {
        ends.push(from_json::<Latin1, _>(&latin1, 0, options, &mut others[2]));
    }
    for (i, end) in ends.iter().enumerate() {
        match (&done, end) {
            (Ok(_), Ok(n)) => assert_eq!((*n, &others[i][..]), (chars.len(), &sink[6..]), "{text}"),
            (Err(a), Err(b)) => assert_eq!(a.reason, b.reason, "{text}"),
            _ => panic!("{text}: {done:?} {end:?}"),
        }
    }
    match done {
        Ok(end) => {
            assert_eq!(end, text.len());
            Ok(sink.split_off(6))
        }
        Err(e) => {
            assert_eq!(sink, b"before", "{text}");
            Err((e.reason, e.at_units))
        }
    }
}

fn bson(text: &str) -> Result<Vec<u8>, (Reason, usize)> {
    bson_with(text, &FromJson::default())
}

fn document(text: &str) -> Document {
    let bytes = bson(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let mut all = naive::documents(&bytes).expect(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Returns the value that the key `a` has in the document made from this JSON text.
fn value(json: &str) -> Value {
    let mut found = document(&format!("{{\"a\" : {json}}}"));
    assert_eq!(found.len(), 1, "{json}");
    let (key, value) = found.remove(0);
    assert_eq!(key, "a");
    value
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

const OID: [u8; 12] = [
    0x56, 0xE1, 0xFC, 0x72, 0xE0, 0xC9, 0x17, 0xE9, 0xC4, 0x71, 0x41, 0x61,
];

#[test]
fn plain_values_take_the_smallest_type_that_holds_them() {
    for (json, expected) in [
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("0", Value::Int32(0)),
        ("-2147483648", Value::Int32(i32::MIN)),
        ("2147483648", Value::Int64(2_147_483_648)),
        ("-9223372036854775808", Value::Int64(i64::MIN)),
        (
            "9223372036854775808",
            Value::Double(9_223_372_036_854_775_808_f64.to_bits()),
        ),
        ("1.0", Value::Double(1_f64.to_bits())),
        ("-0.0", Value::Double((-0_f64).to_bits())),
        ("1E+2", Value::Double(100_f64.to_bits())),
        ("\"\"", text("")),
        ("\"Zürich 東京 😀\"", text("Zürich 東京 😀")),
        (r#""\u0000\n\u00e9\ud83d\ude00z""#, text("\0\né😀z")),
        (r#""é\n""#, text("é\n")),
        ("[]", Value::Array(vec![])),
        ("{}", Value::Document(vec![])),
        ("{ }", Value::Document(vec![])),
        (
            "[1,[\"x\"],{\"b\":null}]",
            Value::Array(vec![
                ("0".into(), Value::Int32(1)),
                ("1".into(), Value::Array(vec![("0".into(), text("x"))])),
                ("2".into(), Value::Document(vec![("b".into(), Value::Null)])),
            ]),
        ),
    ] {
        assert_eq!(value(json), expected, "{json}");
    }
    let long = "x\\n".repeat(3000);
    assert_eq!(value(&format!("\"{long}\"")), text(&"x\n".repeat(3000)));
    let many = format!("[{}0]", "0,".repeat(12_000));
    let Value::Array(items) = value(&many) else {
        panic!()
    };
    assert_eq!(items.len(), 12_001);
    assert_eq!(items[11_999].0, "11999");
}

#[test]
fn wrappers_of_each_type_are_read_with_their_keys_in_any_order() {
    let scope = || vec![("x".to_owned(), Value::Int32(1))];
    for (json, expected) in [
        (
            r#"{"$oid":"56e1fc72e0c917e9c4714161"}"#,
            Value::ObjectId(OID),
        ),
        (
            r#"{ "$oid" : "56E1FC72E0C917E9C4714161" }"#,
            Value::ObjectId(OID),
        ),
        (
            r#"{"\u0024oid":"56e1fc72e0c917e9c471416\u0031"}"#,
            Value::ObjectId(OID),
        ),
        (r#"{"$symbol":"é\n"}"#, Value::Symbol("é\n".into())),
        (r#"{"$symbol":"東"}"#, Value::Symbol("東".into())),
        (r#"{"$numberInt":"-2147483648"}"#, Value::Int32(i32::MIN)),
        (r#"{"$numberLong":"42"}"#, Value::Int64(42)),
        (
            r#"{"$numberDouble":"-0.0"}"#,
            Value::Double((-0_f64).to_bits()),
        ),
        (
            r#"{"$numberDouble":"1.5E+300"}"#,
            Value::Double(1.5e300_f64.to_bits()),
        ),
        (
            r#"{"$numberDouble":"-Infinity"}"#,
            Value::Double(f64::NEG_INFINITY.to_bits()),
        ),
        (
            r#"{"$numberDouble":"NaN"}"#,
            Value::Double(f64::NAN.to_bits()),
        ),
        (
            r#"{"$numberDecimal":"1.50"}"#,
            Value::Decimal128(naive::decimal128("1.50").unwrap()),
        ),
        (
            r#"{"$binary":{"base64":"//8=","subType":"00"}}"#,
            Value::Binary(0, vec![255, 255]),
        ),
        (
            r#"{"$binary":{"subType":"2","base64":"//8="}}"#,
            Value::Binary(2, vec![255, 255]),
        ),
        (
            r#"{"$binary":"//8=","$type":"80"}"#,
            Value::Binary(128, vec![255, 255]),
        ),
        (
            r#"{"$type":"80","$binary":"//8="}"#,
            Value::Binary(128, vec![255, 255]),
        ),
        (
            r#"{"$uuid":"73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}"#,
            uuid(),
        ),
        (r#"{"$uuid":"73ffd26444b34c6990e8e7d1dfc035d4"}"#, uuid()),
        (r#"{"$code":"f()"}"#, Value::Code("f()".into())),
        (
            r#"{"$code":"f()","$scope":{"x":1}}"#,
            Value::CodeWithScope("f()".into(), scope()),
        ),
        (
            r#"{"$scope":{"x":1},"$code":"f()"}"#,
            Value::CodeWithScope("f()".into(), scope()),
        ),
        (
            r#"{"$timestamp":{"i":42,"t":4294967295}}"#,
            Value::Timestamp(u32::MAX, 42),
        ),
        (
            r#"{"$regularExpression":{"options":"mix","pattern":"a/\"b"}}"#,
            Value::Regex("a/\"b".into(), "imx".into()),
        ),
        (
            r#"{"$regex":"^a","$options":"si"}"#,
            Value::Regex("^a".into(), "is".into()),
        ),
        (
            r#"{"$options":"","$regex":"^a"}"#,
            Value::Regex("^a".into(), String::new()),
        ),
        (
            r#"{"$regex":"^a"}"#,
            Value::Regex("^a".into(), String::new()),
        ),
        (
            r#"{"$dbPointer":{"$id":{"$oid":"56e1fc72e0c917e9c4714161"},"$ref":"b"}}"#,
            Value::DbPointer("b".into(), OID),
        ),
        (
            r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
            Value::DateTime(1_356_351_330_501),
        ),
        (
            r#"{"$date":"2012-12-24T13:15:30.501+01:00"}"#,
            Value::DateTime(1_356_351_330_501),
        ),
        (
            r#"{"$date":{"$numberLong":"-284643869501"}}"#,
            Value::DateTime(-284_643_869_501),
        ),
        (r#"{"$minKey":1}"#, Value::MinKey),
        (r#"{"$maxKey":1}"#, Value::MaxKey),
        (r#"{"$undefined":true}"#, Value::Undefined),
    ] {
        assert_eq!(value(json), expected, "{json}");
        // The value is also tested in an array, and after other values.
        let array = value(&format!("[0,{json},{json}]"));
        let Value::Array(items) = array else {
            panic!("{json}")
        };
        assert_eq!(items[1].1, expected, "{json}");
        assert_eq!(items[2], ("2".to_owned(), expected), "{json}");
    }
    let base64 = "QUJD".repeat(1000);
    let binary = value(&format!(
        r#"{{"$binary":{{"base64":"{base64}","subType":"00"}}}}"#
    ));
    assert_eq!(binary, Value::Binary(0, b"ABC".repeat(1000)));
    // A long text with an escape, as the value of a type wrapper.
    let zeros = "0".repeat(600);
    let decimal = value(&format!(r#"{{"$numberDecimal":"{zeros}\u0031"}}"#));
    assert_eq!(decimal, Value::Decimal128(naive::decimal128("1").unwrap()));
}

fn uuid() -> Value {
    let bytes = [
        0x73, 0xff, 0xd2, 0x64, 0x44, 0xb3, 0x4c, 0x69, 0x90, 0xe8, 0xe7, 0xd1, 0xdf, 0xc0, 0x35,
        0xd4,
    ];
    Value::Binary(4, bytes.to_vec())
}

#[test]
fn what_only_looks_like_a_wrapper_stays_a_document() {
    let id = ("$id".to_owned(), Value::ObjectId(OID));
    let reference = |name: Value| ("$ref".to_owned(), name);
    for (json, expected) in [
        (
            r#"{"$ref":"c","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}"#,
            vec![reference(text("c")), id.clone()],
        ),
        (
            r#"{"$ref":1,"$id":{"$oid":"56e1fc72e0c917e9c4714161"}}"#,
            vec![reference(Value::Int32(1)), id],
        ),
        (r#"{"$ref":"c"}"#, vec![reference(text("c"))]),
        (r#"{"$foo":"c"}"#, vec![("$foo".into(), text("c"))]),
        (r#"{"$":1}"#, vec![("$".into(), Value::Int32(1))]),
        (
            r#"{"$type":"string"}"#,
            vec![("$type".into(), text("string"))],
        ),
        (r#"{"$type":2}"#, vec![("$type".into(), Value::Int32(2))]),
        (r#"{"$options":"i"}"#, vec![("$options".into(), text("i"))]),
        (
            r#"{"$regex":"a","$in":[]}"#,
            vec![
                ("$regex".into(), text("a")),
                ("$in".into(), Value::Array(vec![])),
            ],
        ),
        (
            r#"{"$regex":{"$regularExpression":{"pattern":"p","options":""}},"$options":"ix"}"#,
            vec![
                ("$regex".into(), Value::Regex("p".into(), String::new())),
                ("$options".into(), text("ix")),
            ],
        ),
        (
            r#"{"b":1,"$foo":2}"#,
            vec![
                ("b".into(), Value::Int32(1)),
                ("$foo".into(), Value::Int32(2)),
            ],
        ),
    ] {
        assert_eq!(value(json), Value::Document(expected), "{json}");
    }
    // The outermost object is a document, whatever its keys are.
    let top = document(r#"{"$oid":"x","$numberInt":{"$numberInt":"1"}}"#);
    assert_eq!(
        top,
        [
            ("$oid".to_owned(), text("x")),
            ("$numberInt".to_owned(), Value::Int32(1))
        ]
    );
}

#[test]
fn wrong_wrappers_are_refused_with_their_key_and_place() {
    for (json, key, at) in [
        (r#"{"a":{"$oid":42}}"#, "$oid", 13),
        (r#"{"a":{"$oid":"56e1fc72e0c917e9c471416"}}"#, "$oid", 14),
        (r#"{"a":{"$oid":"56e1fc72e0c917e9c471416g"}}"#, "$oid", 14),
        (r#"{"a":{"$oid":"56e1fc72e0c917e9c47141é1"}}"#, "$oid", 14),
        (r#"{"a":{"$oid":null}}"#, "$oid", 13),
        (r#"{"a":{"$oid":[]}}"#, "$oid", 13),
        (r#"{"a":{"$oid":{}}}"#, "$oid", 13),
        (r#"{"a":{"$numberInt":"2147483648"}}"#, "$numberInt", 20),
        (r#"{"a":{"$numberInt":" 1"}}"#, "$numberInt", 20),
        (
            r#"{"a":{"$numberLong":"9223372036854775808"}}"#,
            "$numberLong",
            21,
        ),
        (r#"{"a":{"$numberDouble":"inf"}}"#, "$numberDouble", 23),
        (r#"{"a":{"$numberDouble":"1e400"}}"#, "$numberDouble", 23),
        (r#"{"a":{"$numberDouble":""}}"#, "$numberDouble", 23),
        (
            r#"{"a":{"$numberDecimal":"1E-6177"}}"#,
            "$numberDecimal",
            24,
        ),
        (
            r#"{"a":{"$uuid":"73ff-d26444b-34c6-990e8e-7d1dfc035d4"}}"#,
            "$uuid",
            15,
        ),
        (r#"{"a":{"$date":42}}"#, "$date", 14),
        (r#"{"a":{"$date":"yesterday"}}"#, "$date", 15),
        (r#"{"a":{"$date":{"$numberInt":"42"}}}"#, "$date", 33),
        (r#"{"a":{"$date":{"n":1},"b":1}}"#, "$date", 27),
        (
            r#"{"a":{"$binary":{"base64":"/","subType":"00"}}}"#,
            "$binary",
            45,
        ),
        (
            r#"{"a":{"$binary":{"base64":"","subType":"000"}}}"#,
            "$binary",
            45,
        ),
        (
            r#"{"a":{"$binary":{"base64":"YWJj","subType":"04"}}}"#,
            "$binary",
            48,
        ),
        (r#"{"a":{"$binary":"YWJj","$type":"03"}}"#, "$binary", 35),
        (r#"{"a":{"$binary":{"base64":""}}}"#, "$binary", 29),
        (r#"{"a":{"$binary":""}}"#, "$binary", 18),
        (r#"{"a":{"$code":"","$scope":42}}"#, "$code", 28),
        (r#"{"a":{"$scope":{}}}"#, "$scope", 17),
        (r#"{"a":{"$timestamp":{"t":-1,"i":1}}}"#, "$timestamp", 33),
        (
            r#"{"a":{"$timestamp":{"t":{"$numberLong":"1"},"i":1}}}"#,
            "$timestamp",
            50,
        ),
        (r#"{"a":{"$minKey":2}}"#, "$minKey", 17),
        (r#"{"a":{"$undefined":false}}"#, "$undefined", 24),
        (
            r#"{"a":{"$type":"00","$oid":"56e1fc72e0c917e9c4714161"}}"#,
            "$oid",
            52,
        ),
    ] {
        let (reason, place) = bson(json).expect_err(json);
        assert!(
            matches!(reason, Reason::Wrapper { key: k, .. } if k == key),
            "{json}: {reason}"
        );
        assert_eq!(place, at, "{json}");
    }
    for (json, key, at) in [
        (
            r#"{"a":{"$oid":"56e1fc72e0c917e9c4714161","b":1}}"#,
            "$oid",
            41,
        ),
        (
            r#"{"a":{"b":1,"$oid":"56e1fc72e0c917e9c4714161"}}"#,
            "$oid",
            13,
        ),
        (r#"{"a":{"$ref":"c","$code":""}}"#, "$code", 18),
    ] {
        assert_eq!(bson(json), Err((Reason::ExtraKey(key), at)), "{json}");
    }
}

#[test]
fn the_string_of_a_wrapper_holds_its_value_and_nothing_else() {
    for (key, good) in [
        ("$oid", "56e1fc72e0c917e9c4714161"),
        ("$numberInt", "10"),
        ("$numberLong", "10"),
        ("$numberDouble", "10.5"),
        ("$numberDecimal", "10.5"),
        ("$uuid", "73ffd264-44b3-4c69-90e8-e7d1dfc035d4"),
        ("$date", "2024-02-29T12:05:09Z"),
    ] {
        let json = |text: &str| format!(r#"{{"a":{{"{key}":"{text}"}}}}"#);
        assert!(bson(&json(good)).is_ok(), "{key}");
        let (head, rest) = good.split_at(1);
        for odd in [
            " ", "_", "\\t", "\\n", "\\u0000", "\u{a0}", "\u{661}", "\u{ff11}",
        ] {
            for text in [
                format!("{odd}{good}"),
                format!("{good}{odd}"),
                format!("{head}{odd}{rest}"),
                format!("{odd}{rest}"),
            ] {
                let (reason, _) = bson(&json(&text)).expect_err(&text);
                assert!(
                    matches!(reason, Reason::Wrapper { key: k, .. } if k == key),
                    "{text}: {reason}"
                );
            }
        }
    }
}

#[test]
fn other_texts_are_refused_with_their_place() {
    for (json, reason, at) in [
        ("", Reason::Json(read::Reason::End), 0),
        ("[]", Reason::NotADocument, 0),
        ("1", Reason::NotADocument, 0),
        ("\"a\"", Reason::NotADocument, 1),
        ("null", Reason::NotADocument, 0),
        ("{\"a\":1,}", Reason::Json(read::Reason::TrailingComma), 7),
        ("{\"a\":NaN}", Reason::Json(read::Reason::NotFinite), 5),
        ("{\"a\":1e400}", Reason::Json(read::Reason::FloatRange), 5),
        (r#"{"a\u0000":1}"#, Reason::Nul, 2),
        (r#"{"a":{"b\u0000":1}}"#, Reason::Nul, 7),
        (
            r#"{"a":{"$regularExpression":{"pattern":"b\u0000","options":""}}}"#,
            Reason::Nul,
            61,
        ),
        (
            r#"{"a":"\ud800"}"#,
            Reason::Json(read::Reason::Surrogate),
            6,
        ),
        (r#"{"é\ud800":1}"#, Reason::Json(read::Reason::Surrogate), 4),
    ] {
        let (found, place) = bson(json).expect_err(json);
        assert_eq!(found, reason, "{json}");
        assert_eq!(place, at, "{json}");
    }
    let huge = format!("{{\"a\":{}}}", "9".repeat(400));
    assert_eq!(
        bson(&huge),
        Err((Reason::Json(read::Reason::FloatRange), 5))
    );
    let exact = FromJson {
        big_ints: BigInts::Error,
        ..FromJson::default()
    };
    let found = bson_with("{\"a\":18446744073709551616}", &exact);
    assert_eq!(found, Err((Reason::Json(read::Reason::BigInt), 5)));
    let mut sink = Vec::new();
    let error = from_json::<Utf8, _>(b"{\"a\":\"x\xFF\"}", 0, &FromJson::default(), &mut sink);
    let error = error.expect_err("malformed");
    assert!(
        matches!(error.reason, Reason::Json(read::Reason::Malformed(_))),
        "{error}"
    );
    assert_eq!(error.at_units, 7);
}
