//! Compares the reader with its reference implementation, in each encoding of text. The texts are
//! generated from the JSON grammar, some of them with one unit changed.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Policy, Units, find_malformed};
use proptest::prelude::*;

use super::escape::LEAST_PART_BYTES;
use super::naive::{Tree, Value, parse};
use super::*;

struct ReadTree<'a, F: SourceForm>(&'a [F::Unit], Policy, usize);

impl<F: SourceForm> Work for ReadTree<'_, F> {
    type Output = Result<Value, ReadError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut tree = Tree::new(self.1);
        let limits = Limits { max_depth: self.2 };
        read_all::<F, K, _>(kernels, self.0, limits, &mut tree)?;
        Ok(tree.finish().expect("a complete value"))
    }
}

fn tree<F: SourceForm>(text: &[F::Unit], policy: Policy) -> Result<Value, ReadError> {
    with_kernels(ReadTree::<F>(text, policy, 100))
}

fn error(text: &str) -> (Reason, usize) {
    let e = tree::<Utf8>(text.as_bytes(), Policy::Strict).expect_err(text);
    (e.reason, e.at_units)
}

/// Reads a text under each policy for surrogates, in all encodings that can represent it, and
/// compares the results with those of the reference implementation.
fn check(text: &str) {
    let chars: Vec<u32> = text.chars().map(u32::from).collect();
    let latin1: Option<Vec<u8>> = chars.iter().map(|&c| u8::try_from(c).ok()).collect();
    let ucs2: Option<Vec<u16>> = chars.iter().map(|&c| u16::try_from(c).ok()).collect();
    for policy in [Policy::Strict, Policy::Replace, Policy::SurrogatePass] {
        let expected = parse(&chars, policy, 100);
        assert_eq!(
            tree::<Utf8>(text.as_bytes(), policy).ok(),
            expected,
            "{text}"
        );
        assert_eq!(tree::<Ucs4>(&chars, policy).ok(), expected, "{text}");
        if let Some(latin1) = &latin1 {
            assert_eq!(tree::<Latin1>(latin1, policy).ok(), expected, "{text}");
        }
        if let Some(ucs2) = &ucs2 {
            assert_eq!(tree::<Ucs2>(ucs2, policy).ok(), expected, "{text}");
        }
    }
}

#[test]
fn what_the_grammar_allows_is_read() {
    for text in [
        "0",
        "-0",
        "0.0",
        "-0.0e-0",
        "1E+2",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "123456789012345678901234567890",
        "1e308",
        "5e-324",
        "1e-400",
        "[]",
        "{}",
        " [ ] ",
        "\t{\r\n}",
        "[[[]]]",
        "[{},[{}]]",
        "{\"\":{\"\":[]}}",
        "[1,2, 3 ,4\n]",
        "{\"a\" : 1 , \"a\": 2}",
        "\"\"",
        "\"a\"",
        "\"é東😀\"",
        r#""\"\\\/\b\f\n\r\t\u0041\u00e9\u6771\uD83D\uDE00""#,
        "\"\u{7f}\u{80}\"",
        "true",
        " false ",
        "null",
        "[true,false,null]",
        "0.1",
        "123.456",
        "1.7976931348623157e308",
        "2.5",
        "0.000000000000000000000000000000000001",
        "123456789012345678.9",
        "[1.5,-2.25]",
    ] {
        check(text);
        assert!(
            tree::<Utf8>(text.as_bytes(), Policy::Strict).is_ok(),
            "{text}"
        );
    }
}

#[test]
fn what_the_grammar_does_not_allow_is_refused_with_its_place() {
    for (text, reason, at) in [
        ("", Reason::End, 0),
        ("  ", Reason::End, 2),
        ("[", Reason::End, 1),
        ("[1", Reason::End, 2),
        ("[1,", Reason::End, 3),
        ("{", Reason::End, 1),
        ("{\"a\"", Reason::End, 4),
        ("{\"a\":", Reason::End, 5),
        ("{\"a\":1", Reason::End, 6),
        ("tru", Reason::End, 3),
        ("nul]", Reason::NoValue, 0),
        ("-", Reason::End, 1),
        ("1.", Reason::End, 2),
        ("1e", Reason::End, 2),
        ("\"", Reason::OpenString, 1),
        ("\"\\\"", Reason::OpenString, 3),
        ("\"\\", Reason::OpenString, 2),
        ("[1,]", Reason::TrailingComma, 3),
        ("{\"a\":1, }", Reason::TrailingComma, 8),
        ("[,1]", Reason::NoValue, 1),
        ("[1 2]", Reason::NoCommaInArray, 3),
        ("[1}", Reason::NoCommaInArray, 2),
        ("{\"a\":1]", Reason::NoCommaInObject, 6),
        ("{a:1}", Reason::NoKey, 1),
        ("{1:1}", Reason::NoKey, 1),
        ("{\"a\" 1}", Reason::NoColon, 5),
        ("1 2", Reason::TrailingData, 2),
        ("[]]", Reason::TrailingData, 2),
        ("01", Reason::LeadingZero, 0),
        ("-01", Reason::LeadingZero, 1),
        ("[-]", Reason::NoDigit, 2),
        ("[1.]", Reason::NoDigit, 3),
        ("[.1]", Reason::NoValue, 1),
        ("[1e+]", Reason::NoDigit, 4),
        ("[1.e3]", Reason::NoDigit, 3),
        ("+1", Reason::NoValue, 0),
        ("1e400", Reason::FloatRange, 0),
        ("NaN", Reason::NotFinite, 0),
        ("[-Infinity]", Reason::NotFinite, 1),
        ("Infinity", Reason::NotFinite, 0),
        ("-NaN", Reason::NoDigit, 1),
        ("'a'", Reason::NoValue, 0),
        ("\"a\nb\"", Reason::Control, 2),
        ("\"a\\nb\0\"", Reason::Control, 5),
        ("\"\\x\"", Reason::Escape, 1),
        ("\"ab\\u12\"", Reason::HexEscape, 3),
        ("\"\\u+123\"", Reason::HexEscape, 1),
        ("\"ab\\ud800\"", Reason::Surrogate, 3),
        ("\"\\udc00\\ud800\"", Reason::Surrogate, 1),
        ("\u{FEFF}1", Reason::ByteOrderMark, 0),
        ("1\u{a0}", Reason::TrailingData, 1),
        ("\u{a0}1", Reason::NoValue, 0),
        ("// c\n1", Reason::NoValue, 0),
        ("123\0", Reason::TrailingData, 3),
    ] {
        check(text);
        assert_eq!(error(text), (reason, at), "{text:?}");
    }
}

#[test]
fn malformed_utf8_is_refused_with_its_place() {
    let cases: [(&[u8], usize); 8] = [
        (b"[\"a\xFF\"]", 3),
        (b"\"\xC0\x80\"", 1),
        (b"\"\xED\xA0\x80\"", 1),
        (b"\"ab\\n\xF4\x90\x80\x80\"", 5),
        (b"\"\xE6\x9D\"", 1),
        (b"{\"\xE6\":1}", 2),
        (b"\"\xE6\\n\x9D\xB1\"", 1),
        (b"\"\\u00e9\xC3\"", 7),
    ];
    for (text, at) in cases {
        let e = tree::<Utf8>(text, Policy::SurrogatePass).expect_err("malformed");
        assert!(matches!(e.reason, Reason::Malformed(_)), "{text:?} {e}");
        assert_eq!(e.at_units, at, "{text:?}");
        assert_eq!(find_malformed(Units::Utf8(text)).unwrap().at_units, at);
    }
}

#[test]
fn depth_is_limited_and_counted_by_levels_of_either_kind() {
    for (depth, limit) in [
        (0, 0),
        (1, 0),
        (63, 63),
        (64, 64),
        (65, 64),
        (65, 65),
        (128, 128),
        (129, 128),
        (1000, 1000),
        (1001, 1000),
    ] {
        let open: String = (0..depth)
            .map(|i| if i % 3 == 1 { "{\"k\":" } else { "[" })
            .collect();
        let close: String = (0..depth)
            .rev()
            .map(|i| if i % 3 == 1 { '}' } else { ']' })
            .collect();
        let text = format!("{open}1{close}");
        let found = with_kernels(ReadTree::<Utf8>(text.as_bytes(), Policy::Strict, limit));
        assert_eq!(found.is_ok(), depth <= limit, "{depth} {limit}");
        if let Err(e) = found {
            assert_eq!(e.reason, Reason::Depth);
        }
        // One closing bracket is replaced by the bracket of the other type.
        if depth > 0 && depth <= limit {
            let at = text.len() - depth / 2 - 1;
            let wrong = if text.as_bytes()[at] == b']' {
                "}"
            } else {
                "]"
            };
            let mut text = text.clone();
            text.replace_range(at..=at, wrong);
            assert!(
                with_kernels(ReadTree::<Utf8>(text.as_bytes(), Policy::Strict, limit)).is_err()
            );
        }
    }
}

#[test]
fn a_place_is_counted_in_lines_characters_and_bytes() {
    let place = TextPosition::of(Units::Utf8("é\n東b".as_bytes()), 6);
    let expected = TextPosition {
        line: 2,
        column: 2,
        char_index: 3,
        byte_index: 6,
    };
    assert_eq!(place, expected);
    assert_eq!(
        TextPosition::of(Units::Ucs2(&[0xE9, 0x0A, 0x6771, 0x62]), 3),
        expected
    );
}

struct Unescape<'a>(Escaped<'a>, usize, Policy);

impl Work for Unescape<'_> {
    type Output = Result<Vec<u8>, Rejection>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let (mut from, mut made) = (0, Vec::new());
        while from < self.0.body().len_units() {
            let mut out = vec![0; self.1];
            let part = self.0.unescape(kernels, from, self.2, &mut out)?;
            assert!(part.n_read > 0);
            from += part.n_read;
            made.extend_from_slice(&out[..part.n_written]);
        }
        Ok(made)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn unescaping_in_parts_matches_naive(
        body in r#"([a-zé東😀]{0,40}|\\[nt"\\/]|\\u00[eE]9|\\u6771|\\ud83d\\ude00|\\ud800){0,60}"#,
        capacity in LEAST_PART_BYTES..200,
    ) {
        for policy in [Policy::Strict, Policy::Replace] {
            let text = Escaped::new(Units::Utf8(body.as_bytes()), 0);
            let expected: Result<Vec<u32>, _> = text.chars(policy).collect();
            let made = with_kernels(Unescape(text, capacity, policy));
            let made = made.map(|made| String::from_utf8(made).unwrap().chars().map(u32::from).collect());
            prop_assert_eq!(made, expected);
        }
    }

    #[test]
    fn documents_match_naive(text in documents()) {
        check(&text);
        prop_assert!(tree::<Utf8>(text.as_bytes(), Policy::Strict).is_ok());
    }

    #[test]
    fn documents_with_one_change_match_naive(text in documents(), at: prop::sample::Index, c in ".|[\\[\\]{},:\"\\\\0-9eE.+ \\-]") {
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        match c.chars().next() {
            Some(c) => chars[at] = c,
            None => { chars.remove(at); }
        }
        check(&chars.into_iter().collect::<String>());
    }
}

/// Generates documents with values of all types. Some have long strings, and some have white space.
fn documents() -> impl Strategy<Value = String> {
    let string = r#"([ a-z]{0,80}|[^"\\\x00-\x1F]{0,40}|\\[nrtbf"\\/]|\\u[0-9a-cA-C][0-9a-fA-F]{3}|\\uD83d\\uDe00){0,3}"#;
    let string = string.prop_map(|body| format!("\"{body}\"")).boxed();
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (-999..999_i32).prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?",
    ];
    let blank =
        prop_oneof![8 => Just(String::new()), 1 => Just(" ".to_owned()), 1 => "[ \n\r\t]{0,70}"]
            .boxed();
    let leaf = prop_oneof![
        string.clone(),
        number,
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let (a, b) = (blank.clone(), blank.clone());
        let member = (string.clone(), blank.clone(), inner.clone(), blank.clone());
        let member = member.prop_map(|(key, a, value, b)| format!("{key}{a}:{b}{value}"));
        prop_oneof![
            (prop::collection::vec(inner, 0..8), a.clone(), b.clone())
                .prop_map(|(items, a, b)| format!("[{a}{}{b}]", items.join(&format!("{b},{a}")))),
            (prop::collection::vec(member, 0..8), a, b)
                .prop_map(|(items, a, b)| format!("{{{a}{}{b}}}", items.join(&format!("{b},{a}")))),
        ]
    })
}
