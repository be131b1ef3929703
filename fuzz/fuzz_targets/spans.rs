//! Spans of time (intervals) in the formats of databases. A span that is written from its
//! microseconds is parsed to the same span, zeros after its decimal point change nothing, and a
//! minus sign before an unsigned one negates it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_rows::odbc::fuzzing::span;

fuzz_target!(|text: &str| {
    check(text);
    // The same bytes mapped to characters of spans, which are valid more often.
    let letters = b"0123456789:::...+- days";
    let likely: String = text.bytes().map(|b| char::from(letters[usize::from(b) % letters.len()])).collect();
    check(&likely);
    // The same bytes as digits in the format of a span.
    let digits: String = text.bytes().take(24).map(|b| char::from(b'0' + b % 10)).collect();
    if let (Some((head, rest)), Some(days)) = (digits.split_at_checked(6), digits.get(6..10)) {
        check(&format!("{head}:{}:{}", &rest[..2.min(rest.len())], rest.get(2..4).unwrap_or("00")));
        check(&format!("-{days} days +{head}:00:01.{rest}"));
    }
});

fn check(text: &str) {
    let Some(microseconds) = span(text) else {
        return;
    };
    // Additional characters could exceed the length limit of a span.
    if text.len() > 50 {
        return;
    }
    assert_eq!(span(&written(microseconds)), Some(microseconds), "{text:?}");
    if text.contains(':') && !text.contains('.') {
        assert_eq!(span(&format!("{text}.000000")), Some(microseconds), "{text:?}");
    }
    // The largest spans cannot be negated, because the smallest one has no time of day.
    let is_small = microseconds < 999_999_999 * 86_400_000_000;
    if is_small && text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(' ') {
        assert_eq!(span(&format!("-{text}")), Some(-microseconds), "{text:?}");
    }
}

fn written(microseconds: i128) -> String {
    let sign = if microseconds < 0 { "-" } else { "" };
    let n = microseconds.unsigned_abs();
    let (seconds, fraction) = (n / 1_000_000, n % 1_000_000);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!("{sign}{:02}:{:02}:{seconds:02}.{fraction:06}", minutes / 60, minutes % 60)
}
