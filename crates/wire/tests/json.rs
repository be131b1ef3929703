//! Compares the JSON writer with serde_json, which reads the text that it wrote.

use onecopy_text::{ByteSink, Malformed, MalformedKind, Policy, Units};
use onecopy_wire::json::{self, KeySegments, SCALAR_BYTES};
use onecopy_wire::{NonFinite, WriteError, datetime};
use proptest::prelude::*;
use serde_json::Value;

fn put(write: impl FnOnce(&mut onecopy_text::Window<'_, Vec<u8>>)) -> String {
    let mut sink = Vec::new();
    write(&mut sink.window(SCALAR_BYTES).expect("memory"));
    String::from_utf8(sink).expect("UTF-8")
}

fn decimal(digits: &str, policy: NonFinite) -> Result<String, WriteError> {
    let mut sink = Vec::new();
    json::write_decimal(digits.as_bytes(), policy, &mut sink)?;
    Ok(String::from_utf8(sink).expect("UTF-8"))
}

fn text(units: Units<'_>, policy: Policy) -> Result<Vec<u8>, WriteError> {
    let mut sink = Vec::new();
    json::write_text(units, policy, &mut sink)?;
    Ok(sink)
}

proptest! {
    #[test]
    fn strings_read_back_from_every_encoding(s in any::<String>()) {
        let utf16: Vec<u16> = s.encode_utf16().collect();
        let utf32: Vec<u32> = s.chars().map(u32::from).collect();
        let mut all = vec![Units::Utf8(s.as_bytes()), Units::Utf16(&utf16), Units::Utf32(&utf32)];
        let latin1: Vec<u8> = utf32.iter().filter_map(|c| u8::try_from(*c).ok()).collect();
        if latin1.len() == utf32.len() {
            all.push(Units::Latin1(&latin1));
        }
        if s.chars().all(|c| u32::from(c) < 0x10000) {
            all.push(Units::Ucs2(&utf16));
        }
        for units in all {
            let out = text(units, Policy::Strict).expect("well-formed");
            prop_assert_eq!(serde_json::from_slice::<Value>(&out).expect("JSON"), Value::String(s.clone()));
        }
    }

    #[test]
    fn any_units_under_replace_are_json(units in prop::collection::vec(any::<u16>(), 0..50)) {
        let out = text(Units::Utf16(&units), Policy::Replace).expect("replaced");
        let expected = String::from_utf16_lossy(&units);
        prop_assert_eq!(serde_json::from_slice::<Value>(&out).expect("JSON"), Value::String(expected));
    }

    #[test]
    fn integers_have_all_their_digits(i in any::<i64>(), u in any::<u64>(), shift in 0..64_u32) {
        prop_assert_eq!(put(|w| json::put_i64(i >> shift, w)), (i >> shift).to_string());
        prop_assert_eq!(put(|w| json::put_u64(u >> shift, w)), (u >> shift).to_string());
    }

    #[test]
    fn doubles_read_back_the_same(bits in any::<u64>()) {
        let v = f64::from_bits(bits);
        prop_assume!(v.is_finite());
        let out = put(|w| json::put_f64(v, NonFinite::Error, w).expect("finite"));
        prop_assert_eq!(out.parse::<f64>().expect("number").to_bits(), bits);
        prop_assert!(serde_json::from_str::<Value>(&out).expect("JSON").is_number());
    }

    #[test]
    fn floats_read_back_the_same_and_are_short(bits in any::<u32>()) {
        let v = f32::from_bits(bits);
        prop_assume!(v.is_finite());
        let out = put(|w| json::put_f32(v, NonFinite::Error, w).expect("finite"));
        prop_assert_eq!(out.parse::<f32>().expect("number").to_bits(), bits);
        prop_assert!(out.len() <= 17, "{}", out);
    }

    #[test]
    fn decimals_keep_every_digit(sign in "[+-]?", whole in "[0-9]{0,30}", fraction in "[0-9]{0,30}", point in any::<bool>()) {
        let given = if point || !fraction.is_empty() { format!("{sign}{whole}.{fraction}") } else { format!("{sign}{whole}") };
        let out = decimal(&given, NonFinite::Error);
        if whole.is_empty() && fraction.is_empty() {
            prop_assert_eq!(out, Err(WriteError::NotADecimal));
        } else {
            let significant = whole.trim_start_matches('0');
            let expected = format!(
                "{}{}{}{}",
                if sign == "-" { "-" } else { "" },
                if significant.is_empty() { "0" } else { significant },
                if fraction.is_empty() { "" } else { "." },
                fraction,
            );
            let out = out.expect("decimal");
            prop_assert_eq!(&out, &expected);
            prop_assert!(serde_json::from_str::<Value>(&out).expect("JSON").is_number());
        }
    }

    #[test]
    fn what_is_written_for_any_decimal_text_is_a_json_number(given in "[-+0-9.eE naif]{0,12}") {
        if let Ok(out) = decimal(&given, NonFinite::Error) {
            // The value may exceed the range of `f64`, which serde_json rejects. This test checks
            // only the grammar.
            let is_number = match serde_json::from_str::<Value>(&out) {
                Ok(v) => v.is_number(),
                Err(e) => e.to_string().contains("out of range"),
            };
            prop_assert!(is_number, "{} -> {}", given, out);
        }
    }

    #[test]
    fn objects_of_key_segments_read_back(names in prop::collection::vec(any::<String>(), 1..6)) {
        let keys = KeySegments::new(names.iter().map(String::as_str));
        let mut sink = Vec::new();
        for i in 0..keys.len() {
            let mut w = sink.window(keys.room_bytes() + SCALAR_BYTES).expect("memory");
            keys.put_into(i, &mut w);
            json::put_u64(i as u64, &mut w);
        }
        sink.push(b'}');
        let mut expected = serde_json::Map::new();
        for (i, name) in names.iter().enumerate() {
            expected.insert(name.clone(), Value::from(i));
        }
        prop_assert_eq!(serde_json::from_slice::<Value>(&sink).expect("JSON"), Value::Object(expected));
    }
}

#[test]
fn ends_of_the_integer_ranges_are_exact() {
    assert_eq!(put(|w| json::put_i64(i64::MIN, w)), "-9223372036854775808");
    assert_eq!(put(|w| json::put_u64(u64::MAX, w)), "18446744073709551615");
    assert_eq!(put(|w| json::put_i64(0, w)), "0");
    assert_eq!(put(|w| json::put_i64(-7, w)), "-7");
}

#[test]
fn a_32_bit_float_is_written_as_short_as_it_is() {
    assert_eq!(
        put(|w| json::put_f32(0.1, NonFinite::Error, w).expect("finite")),
        "0.1"
    );
    assert_eq!(
        put(|w| json::put_f64(-0.0, NonFinite::Error, w).expect("finite")),
        "-0.0"
    );
}

#[test]
fn nan_and_infinities_are_an_error_unless_asked_for() {
    for (value, name) in [
        (f64::NAN, "\"NaN\""),
        (f64::INFINITY, "\"Infinity\""),
        (f64::NEG_INFINITY, "\"-Infinity\""),
    ] {
        let mut sink = Vec::new();
        let mut w = sink.window(SCALAR_BYTES).expect("memory");
        assert_eq!(
            json::put_f64(value, NonFinite::Error, &mut w),
            Err(WriteError::NonFinite)
        );
        assert_eq!(
            json::put_f32(value as f32, NonFinite::Error, &mut w),
            Err(WriteError::NonFinite)
        );
        drop(w);
        assert!(sink.is_empty());
        assert_eq!(
            put(|w| json::put_f64(value, NonFinite::Null, w).expect("null")),
            "null"
        );
        assert_eq!(
            put(|w| json::put_f64(value, NonFinite::Text, w).expect("text")),
            name
        );
        assert_eq!(
            put(|w| json::put_f64(value, NonFinite::Literal, w).expect("literal")),
            name.trim_matches('"')
        );
    }
    assert_eq!(decimal("NaN", NonFinite::Error), Err(WriteError::NonFinite));
    assert_eq!(
        decimal("-infinity", NonFinite::Text),
        Ok("\"-Infinity\"".into())
    );
    assert_eq!(decimal("NaN", NonFinite::Null), Ok("null".into()));
    assert_eq!(decimal("NaN", NonFinite::Literal), Ok("NaN".into()));
}

#[test]
fn forms_that_json_refuses_are_mended_and_junk_is_refused() {
    for (given, expected) in [
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("+1", "1"),
        ("1.", "1"),
        ("007.10", "7.10"),
        ("-0.00", "-0.00"),
        ("1E+5", "1E+5"),
        ("00", "0"),
        (
            "12345678901234567890123456789012345678.90",
            "12345678901234567890123456789012345678.90",
        ),
    ] {
        assert_eq!(
            decimal(given, NonFinite::Error).as_deref(),
            Ok(expected),
            "{given}"
        );
    }
    for junk in [
        "", "-", ".", "+.", "1,5", "1 ", " 1", "1e", "1e+", "--1", "1.2.3", "0x10", "$1", "1_000",
        "\u{661}",
    ] {
        assert_eq!(
            decimal(junk, NonFinite::Error),
            Err(WriteError::NotADecimal),
            "{junk}"
        );
    }
}

#[test]
fn malformed_text_is_an_error_with_its_place() {
    let error =
        text(Units::Utf16(&[0x61, 0xD800, 0x62]), Policy::Strict).expect_err("lone surrogate");
    assert_eq!(
        error,
        WriteError::Malformed(Malformed {
            kind: MalformedKind::LoneSurrogate,
            at_units: 1,
            len_units: 1
        })
    );
}

#[test]
fn dates_uuids_and_binary_are_strings() {
    let date = datetime::Date {
        year: 2024,
        month: 12,
        day: 31,
    };
    assert_eq!(
        put(|w| json::put_date(date, w).expect("valid")),
        "\"2024-12-31\""
    );
    let uuid = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xAB, 11, 12, 13, 14, 0xFF];
    assert_eq!(
        put(|w| json::put_uuid(&uuid, w)),
        "\"00010203-0405-0607-0809-ab0b0c0d0eff\""
    );
    let mut sink = Vec::new();
    json::write_base64(b"\x00\xFFab", &mut sink).expect("memory");
    assert_eq!(sink, b"\"AP9hYg==\"");
    assert_eq!(put(|w| json::put_null(w)), "null");
    assert_eq!(put(|w| json::put_bool(true, w)), "true");
    assert_eq!(put(|w| json::put_bool(false, w)), "false");
}
