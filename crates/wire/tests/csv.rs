//! Compares the CSV writer with a plain reader of RFC 4180 that distinguishes an empty field from
//! `""`.

use onecopy_text::{ByteSink, Carry, MalformedKind, Policy, Units};
use onecopy_wire::csv::{self, Dialect, LineEnd};
use onecopy_wire::{NonFinite, WriteError};
use proptest::prelude::*;

/// One field as the reader returns it: `None` for an empty field without quotes, which is NULL.
type Field = Option<String>;

/// Reads CSV one character at a time, as RFC 4180, section 2, specifies; panics if the text is not
/// valid CSV.
fn read(text: &str, delimiter: char) -> Vec<Vec<Field>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '"' {
            assert!(field.is_empty() && !quoted, "a quote inside a bare field");
            quoted = true;
            loop {
                match chars.next().expect("the field is closed") {
                    '"' if chars.peek() == Some(&'"') => field.push(chars.next().expect("peeked")),
                    '"' => break,
                    c => field.push(c),
                }
            }
            let next = chars.peek().copied();
            assert!(
                next.is_some_and(|c| c == delimiter || c == '\r' || c == '\n'),
                "text after a closing quote"
            );
        } else if c == delimiter || c == '\n' {
            let done = std::mem::take(&mut field);
            row.push((quoted || !done.is_empty()).then_some(done));
            quoted = false;
            if c == '\n' {
                rows.push(std::mem::take(&mut row));
            }
        } else if c == '\r' {
            assert_eq!(chars.peek(), Some(&'\n'), "a CR ends a line with an LF");
        } else {
            field.push(c);
        }
    }
    assert!(
        row.is_empty() && field.is_empty(),
        "the last line has its end"
    );
    rows
}

fn field(units: Units<'_>, dialect: &Dialect) -> String {
    let mut sink = Vec::new();
    csv::write_text(units, Policy::Strict, dialect, &mut sink).expect("well-formed");
    String::from_utf8(sink).expect("UTF-8")
}

fn dialects() -> impl Strategy<Value = Dialect> {
    (
        prop::sample::select(vec![b',', b';', b'|', b'\t']),
        any::<bool>(),
    )
        .prop_map(|(delimiter, crlf)| {
            Dialect::new(delimiter, if crlf { LineEnd::CrLf } else { LineEnd::Lf }).expect("fit")
        })
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a ,;|\t\"\r\n😀é]{0,90}",
        " ?[a-z]{0,200}\"?"
    ]
}

proptest! {
    #[test]
    fn tables_read_back_from_every_encoding(
        rows in prop::collection::vec(prop::collection::vec(prop::option::of(texts()), 3), 0..4),
        dialect in dialects(),
        encoding in 0..3_usize,
    ) {
        let mut sink = Vec::new();
        csv::write_header(["a", "b,\"c\"", ""], &dialect, &mut sink).expect("memory");
        for row in &rows {
            for (i, cell) in row.iter().enumerate() {
                if i > 0 {
                    sink.push(dialect.delimiter());
                }
                if let Some(s) = cell {
                    let utf16: Vec<u16> = s.encode_utf16().collect();
                    let utf32: Vec<u32> = s.chars().map(u32::from).collect();
                    let units = [Units::Utf8(s.as_bytes()), Units::Utf16(&utf16), Units::Utf32(&utf32)][encoding];
                    csv::write_text(units, Policy::Strict, &dialect, &mut sink).expect("well-formed");
                }
            }
            sink.extend_from_slice(dialect.line_end());
        }
        let mut expected = vec![vec![Some("a".to_owned()), Some("b,\"c\"".into()), Some(String::new())]];
        expected.extend(rows);
        let text = String::from_utf8(sink).expect("UTF-8");
        prop_assert_eq!(read(&text, char::from(dialect.delimiter())), expected);
    }

    #[test]
    fn parts_between_quotes_read_back(s in texts(), cuts in prop::collection::vec(0..100_usize, 0..4)) {
        let units: Vec<u16> = s.encode_utf16().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(units.len())).collect();
        cuts.sort_unstable();
        let (mut sink, mut carry) = (vec![b'"'], Carry::new());
        let mut at = 0;
        for cut in cuts.into_iter().chain([units.len()]) {
            let part = Units::Utf16(&units[at..cut]);
            csv::write_quoted_part(part, Policy::Strict, &mut carry, &mut sink).expect("well-formed");
            at = cut;
        }
        carry.finish_utf8(Policy::Strict, &mut sink).expect("well-formed");
        sink.extend_from_slice(b"\"\n");
        let text = String::from_utf8(sink).expect("UTF-8");
        prop_assert_eq!(read(&text, ','), vec![vec![Some(s)]]);
    }

    #[test]
    fn is_bare_matches_naive(s in texts(), pad in 0..130_usize, delimiter in prop::sample::select(vec![b',', b'\t'])) {
        let s = "x".repeat(pad) + &s;
        let special = |c: char| c == char::from(delimiter) || matches!(c, '"' | '\r' | '\n');
        let naive = !s.is_empty() && !s.contains(special) && !s.starts_with([' ', '\t']) && !s.ends_with([' ', '\t']);
        let utf16: Vec<u16> = s.encode_utf16().collect();
        prop_assert_eq!(csv::quoting::is_bare(Units::Utf8(s.as_bytes()), delimiter), naive);
        prop_assert_eq!(csv::quoting::is_bare(Units::Utf16(&utf16), delimiter), naive);
    }
}

#[test]
fn fields_are_quoted_only_where_needed() {
    let comma = Dialect::default();
    for (given, expected) in [
        ("", "\"\""),
        ("plain", "plain"),
        ("a,b", "\"a,b\""),
        ("a;b", "a;b"),
        ("say \"hi\"", "\"say \"\"hi\"\"\""),
        ("two\nlines", "\"two\nlines\""),
        ("cr\r", "\"cr\r\""),
        (" led", "\" led\""),
        ("tail\t", "\"tail\t\""),
        ("=1+1", "=1+1"),
        ("Zürich 東京 😀", "Zürich 東京 😀"),
    ] {
        assert_eq!(field(Units::Utf8(given.as_bytes()), &comma), expected);
    }
    let semicolon = Dialect::new(b';', LineEnd::Lf).expect("fit");
    assert_eq!(field(Units::Utf8(b"a;b"), &semicolon), "\"a;b\"");
    assert_eq!(field(Units::Utf8(b"a,b"), &semicolon), "a,b");
}

#[test]
fn delimiters_that_could_stand_in_a_value_are_refused() {
    for bad in [
        b'.', b'-', b'+', b'0', b'e', b'"', b'\n', b'\r', b'/', b'=', b':', b' ', 0, 0x80,
    ] {
        assert_eq!(
            Dialect::new(bad, LineEnd::Lf),
            Err(WriteError::UnfitDelimiter(bad))
        );
    }
}

#[test]
fn malformed_text_behind_a_quote_is_told_by_its_place_in_the_whole() {
    let units = [0x22, 0x61, 0x22, 0xDC00, 0x62];
    let error = csv::write_text(
        Units::Utf16(&units),
        Policy::Strict,
        &Dialect::default(),
        &mut Vec::new(),
    );
    let Err(WriteError::Malformed(malformed)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (malformed.kind, malformed.at_units),
        (MalformedKind::LoneSurrogate, 3)
    );
}

#[test]
fn numbers_that_are_none_follow_the_policy() {
    let mut sink = Vec::new();
    let mut w = sink.window(csv::SCALAR_BYTES).expect("memory");
    assert_eq!(
        csv::put_f64(f64::NAN, NonFinite::Error, &mut w),
        Err(WriteError::NonFinite)
    );
    csv::put_f64(f64::NAN, NonFinite::Null, &mut w).expect("null");
    csv::put_f32(f32::INFINITY, NonFinite::Text, &mut w).expect("text");
    drop(w);
    csv::write_decimal(b"NaN", NonFinite::Text, &mut sink).expect("text");
    csv::write_decimal(b"-.50", NonFinite::Error, &mut sink).expect("digits");
    assert_eq!(
        csv::write_decimal(b"1,5", NonFinite::Null, &mut sink),
        Err(WriteError::NotADecimal)
    );
    assert_eq!(sink, b"InfinityNaN-0.50");
}
