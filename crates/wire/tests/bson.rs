//! Compares the BSON writer with reference implementations: with a plain reader, and with decimals
//! that are computed by long arithmetic.

use onecopy_text::{ByteSink, Policy, Units, Window};
use onecopy_wire::bson::naive::{self, Document, Value};
use onecopy_wire::bson::{self, Decimal128, Frame, KeySegments, Tag, VALUE_BYTES};
use onecopy_wire::{WriteError, datetime};
use proptest::prelude::*;

/// Writes a document that has one element with this key.
fn element(
    tag: Tag,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), WriteError>,
) -> Result<Vec<u8>, WriteError> {
    let mut sink = Vec::new();
    let frame = Frame::begin(&mut sink)?;
    bson::write_key(tag, Units::Utf8(b"k"), Policy::Strict, &mut sink)?;
    write(&mut sink)?;
    frame.end_document(&mut sink)?;
    Ok(sink)
}

fn read(bytes: &[u8]) -> Document {
    let mut all = naive::documents(bytes).expect("documents");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Writes a document with one value by `put`, and returns the value that the plain reader reads.
fn put(tag: Tag, put: impl FnOnce(&mut Window<'_, Vec<u8>>)) -> Value {
    let bytes = element(tag, |sink| {
        put(&mut sink.window(VALUE_BYTES)?);
        Ok(())
    });
    read(&bytes.expect("written")).remove(0).1
}

fn decimal(text: &str) -> Result<String, WriteError> {
    Decimal128::of_digits(text.as_bytes()).map(|d| naive::decimal128_text(&d.to_le_bytes()))
}

#[test]
fn the_examples_of_the_specification_have_their_bytes() {
    let hello = element(Tag::String, |sink| {
        bson::write_text(Units::Utf8(b"world"), Policy::Strict, sink)
    });
    let expected = b"\x12\x00\x00\x00\x02k\x00\x06\x00\x00\x00world\x00\x00";
    assert_eq!(hello.expect("written"), expected);

    let awesome = element(Tag::Array, |sink| {
        let array = Frame::begin(sink)?;
        bson::write_key(Tag::String, Units::Utf8(b"0"), Policy::Strict, sink)?;
        bson::write_text(Units::Latin1(b"awesome"), Policy::Strict, sink)?;
        bson::write_key(Tag::Double, Units::Utf8(b"1"), Policy::Strict, sink)?;
        bson::put_f64(5.05, &mut sink.window(VALUE_BYTES)?);
        bson::write_key(Tag::Int32, Units::Utf8(b"2"), Policy::Strict, sink)?;
        bson::put_i32(1986, &mut sink.window(VALUE_BYTES)?);
        array.end_document(sink)
    });
    let expected =
        b"\x2e\x00\x00\x00\x04k\x00\x26\x00\x00\x00\x020\x00\x08\x00\x00\x00awesome\x00\x011\x00\
                     \x33\x33\x33\x33\x33\x33\x14\x40\x102\x00\xc2\x07\x00\x00\x00\x00";
    assert_eq!(awesome.expect("written"), expected);
}

#[test]
fn each_type_reads_back() {
    assert_eq!(
        put(Tag::Bool, |w| bson::put_bool(true, w)),
        Value::Bool(true)
    );
    assert_eq!(
        put(Tag::Bool, |w| bson::put_bool(false, w)),
        Value::Bool(false)
    );
    let id = *b"twelve bytes";
    assert_eq!(
        put(Tag::ObjectId, |w| bson::put_object_id(&id, w)),
        Value::ObjectId(id)
    );
    assert_eq!(
        put(Tag::DateTime, |w| bson::put_i64(-1, w)),
        Value::DateTime(-1)
    );
    assert_eq!(
        put(Tag::Timestamp, |w| bson::put_timestamp(7, 9, w)),
        Value::Timestamp(7, 9)
    );
    let uuid = [0xAB; 16];
    assert_eq!(
        put(Tag::Binary, |w| bson::put_uuid(&uuid, w)),
        Value::Binary(4, uuid.to_vec())
    );
    for (tag, value) in [
        (Tag::Null, Value::Null),
        (Tag::Undefined, Value::Undefined),
        (Tag::MinKey, Value::MinKey),
        (Tag::MaxKey, Value::MaxKey),
    ] {
        assert_eq!(put(tag, |_| ()), value);
    }
    let regex = element(Tag::Regex, |sink| {
        bson::write_regex(
            Units::Utf8(b"^a.b"),
            Units::Utf8(b"imx"),
            Policy::Strict,
            sink,
        )
    });
    let expected = Value::Regex("^a.b".into(), "imx".into());
    assert_eq!(read(&regex.expect("written"))[0].1, expected);
    for (tag, value) in [
        (Tag::Code, Value::Code("x = \0".into())),
        (Tag::Symbol, Value::Symbol("x = \0".into())),
    ] {
        let text = element(tag, |sink| {
            bson::write_text(Units::Utf8(b"x = \0"), Policy::Strict, sink)
        });
        assert_eq!(read(&text.expect("written"))[0].1, value);
    }
    let scoped = element(Tag::CodeWithScope, |sink| {
        let whole = Frame::begin(sink)?;
        bson::write_text(Units::Utf8(b"x"), Policy::Strict, sink)?;
        let scope = Frame::begin(sink)?;
        bson::write_key(Tag::Int64, Units::Utf8(b"x"), Policy::Strict, sink)?;
        bson::put_i64(i64::MIN, &mut sink.window(VALUE_BYTES)?);
        scope.end_document(sink)?;
        whole.end_whole(sink)
    });
    let scope = vec![("x".to_owned(), Value::Int64(i64::MIN))];
    assert_eq!(
        read(&scoped.expect("written"))[0].1,
        Value::CodeWithScope("x".into(), scope)
    );
    let pointer = element(Tag::DbPointer, |sink| {
        bson::write_text(Units::Utf8(b"db.c"), Policy::Strict, sink)?;
        bson::put_object_id(&id, &mut sink.window(VALUE_BYTES)?);
        Ok(())
    });
    assert_eq!(
        read(&pointer.expect("written"))[0].1,
        Value::DbPointer("db.c".into(), id)
    );
    let time = datetime::Time {
        hour: 1,
        minute: 2,
        second: 3,
        nanosecond: 0,
    };
    let time = time.to_short(0).expect("a time");
    assert_eq!(
        put(Tag::String, |w| bson::put_short(&time, w)),
        Value::String("01:02:03".into())
    );
    for tag in Tag::ALL {
        assert_eq!(Tag::of(tag.byte()), Some(tag));
    }
    assert_eq!(Tag::of(0x14), None);
}

#[test]
fn keys_and_regexes_with_nul_are_refused_and_texts_are_not() {
    let nul = element(Tag::Regex, |sink| {
        bson::write_regex(
            Units::Utf16(&[0x61, 0]),
            Units::Utf8(b""),
            Policy::Strict,
            sink,
        )
    });
    assert_eq!(nul, Err(WriteError::NulInKey));
    let mut sink = Vec::new();
    let key = bson::write_key(Tag::Null, Units::Latin1(b"\0"), Policy::Strict, &mut sink);
    assert_eq!(key, Err(WriteError::NulInKey));
    assert_eq!(
        KeySegments::new(["a", "b\0c"]).err(),
        Some((1, WriteError::NulInKey))
    );
}

#[test]
fn decimals_keep_their_digits_and_their_scale() {
    let ten = "1".repeat(34);
    for (text, expected) in [
        ("0", "0E0"),
        ("-0.00", "-0E-2"),
        ("1.50", "150E-2"),
        ("+007.5", "75E-1"),
        (".5", "5E-1"),
        ("1.", "1E0"),
        (&ten, &format!("{ten}E0")),
        (&format!("-{ten}00"), &format!("-{ten}E2")),
        (&format!("0.{}{ten}", "0".repeat(40)), &format!("{ten}E-74")),
        ("1e6111", "1E6111"),
        ("1e6112", "10E6111"),
        ("1e6144", &format!("1{}E6111", "0".repeat(33))),
        ("1e-6176", "1E-6176"),
        ("10e-6177", "1E-6176"),
        ("0e99999999999999999999", "0E6111"),
        ("0e-99999999999999999999", "0E-6176"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-inf", "-Infinity"),
    ] {
        assert_eq!(decimal(text).as_deref(), Ok(expected), "{text}");
    }
    assert_eq!(
        naive::decimal128_text(&Decimal128::of_u64(u64::MAX).to_le_bytes()),
        "18446744073709551615E0"
    );
    // The example of IEEE 754: the number 1 is 0x3040…, with its digit in the last byte.
    let one = Decimal128::of_digits(b"1").expect("one").to_le_bytes();
    assert_eq!((one[15], one[14], one[0]), (0x30, 0x40, 1));
}

#[test]
fn decimals_that_would_be_rounded_are_refused() {
    for text in [
        &format!("{}1", "1".repeat(34)),
        &format!("0.{}1", "1".repeat(34)),
        "1e6145",
        "12e6144",
        "1e-6177",
        "15e-6177",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        &"9".repeat(400),
    ] {
        assert_eq!(decimal(text), Err(WriteError::DecimalTooLong), "{text}");
    }
    for text in ["", "1,5", "--1", "1e", "abc", "0x1"] {
        assert_eq!(decimal(text), Err(WriteError::NotADecimal), "{text}");
    }
}

proptest! {
    #[test]
    fn decimal128_matches_naive(sign in "[+-]?", whole in "[0-9]{0,40}", zeros in "0{0,45}", fraction in "[0-9]{0,40}", ends in "0{0,8}", exponent in prop_oneof![Just(None), (-6300_i64..6300).prop_map(Some), any::<i32>().prop_map(|e| Some(e.into()))]) {
        let mut text = format!("{sign}{whole}.{zeros}{fraction}{ends}");
        if let Some(e) = exponent {
            text += &format!("e{e}");
        }
        prop_assume!(text.bytes().any(|b| b.is_ascii_digit()) && !(whole.is_empty() && zeros.is_empty() && fraction.is_empty() && ends.is_empty()));
        let fast = Decimal128::of_digits(text.as_bytes()).ok().map(Decimal128::to_le_bytes);
        prop_assert_eq!(fast, naive::decimal128(&text));
        if let Some(bytes) = fast {
            // The decoded value is written as the same bytes again.
            prop_assert_eq!(naive::decimal128(&naive::decimal128_text(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn decimal128_at_its_limits_matches_naive(digits in "[1-9][0-9]{31,36}0{0,3}", near in -8_i64..8, high in any::<bool>()) {
        let limit = if high { 6111 } else { -6176 };
        let text = format!("{digits}e{}", limit + near);
        let fast = Decimal128::of_digits(text.as_bytes()).ok().map(Decimal128::to_le_bytes);
        prop_assert_eq!(fast, naive::decimal128(&text));
    }

    #[test]
    fn any_text_is_a_decimal_for_both_or_for_none(text in "[-+0-9.eEx ]{0,12}") {
        let fast = Decimal128::of_digits(text.as_bytes()).ok().map(Decimal128::to_le_bytes);
        prop_assert_eq!(fast, naive::decimal128(&text));
    }

    #[test]
    fn texts_read_back_from_every_encoding(s in any::<String>()) {
        let utf16: Vec<u16> = s.encode_utf16().collect();
        let utf32: Vec<u32> = s.chars().map(u32::from).collect();
        for units in [Units::Utf8(s.as_bytes()), Units::Utf16(&utf16), Units::Utf32(&utf32)] {
            let bytes = element(Tag::String, |sink| bson::write_text(units, Policy::Strict, sink)).expect("well-formed");
            prop_assert_eq!(read(&bytes), vec![("k".to_owned(), Value::String(s.clone()))]);
        }
    }

    #[test]
    fn malformed_text_is_refused_or_replaced(units in prop::collection::vec(any::<u16>(), 0..40)) {
        let write = |policy| element(Tag::String, |sink| bson::write_text(Units::Utf16(&units), policy, sink));
        let replaced = Value::String(String::from_utf16_lossy(&units));
        prop_assert_eq!(&read(&write(Policy::Replace).expect("replaced"))[0].1, &replaced);
        let is_malformed = matches!(write(Policy::Strict), Err(WriteError::Malformed(_)));
        prop_assert_eq!(is_malformed, String::from_utf16(&units).is_err());
    }

    #[test]
    fn binary_reads_back_in_each_subtype(bytes in prop::collection::vec(any::<u8>(), 0..60), subtype in any::<u8>()) {
        prop_assume!(!matches!(subtype, 3 | 4) || bytes.len() == 16);
        let written = element(Tag::Binary, |sink| bson::write_binary(subtype, &bytes, sink)).expect("memory");
        prop_assert_eq!(&read(&written)[0].1, &Value::Binary(subtype, bytes));
    }

    #[test]
    fn documents_of_key_segments_read_back(names in prop::collection::vec("[^\0]{0,40}", 1..6), numbers in prop::collection::vec(any::<i64>(), 6)) {
        let keys = KeySegments::new(names.iter().map(String::as_str)).expect("no NUL");
        let mut sink = b"before".to_vec();
        let frame = Frame::begin(&mut sink).expect("memory");
        for (i, number) in numbers.iter().enumerate().take(keys.len()) {
            let mut w = sink.window(keys.room_bytes() + VALUE_BYTES).expect("memory");
            keys.put_into(i, Tag::Int64, &mut w);
            bson::put_i64(*number, &mut w);
        }
        frame.end_document(&mut sink).expect("short");
        let expected: Document = names.into_iter().zip(numbers.into_iter().map(Value::Int64)).collect();
        prop_assert_eq!(read(&sink[6..]), expected);
    }
}
