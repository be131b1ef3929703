//! `Range` fields and conditional requests with any values.
//!
//! The reference implementation decides if the whole representation is sent. Ranges are inside of
//! the representation and do not touch each other, and ranges that are written again are parsed to
//! the same ones. Conditions give one verdict.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::parts;
use onecopy_wire::http::{
    Conditions, EntityTag, MOST_RANGES, Ranges, Validators, Verdict, coding_quality, date_text, parse_date, ranges,
};

fuzz_target!(|text: &str| {
    let [value, len, fields] = parts(text);
    let len_bytes: u64 = len.parse().unwrap_or(len.len() as u64);
    let found = ranges(value.as_bytes(), len_bytes);
    if let Ranges::Parts(found) = &found {
        assert!(!found.is_empty() && found.len() <= MOST_RANGES);
        for (i, range) in found.iter().enumerate() {
            assert!(range.first <= range.last && range.last < len_bytes);
            // Ranges that overlap or touch each other are merged.
            for other in &found[i + 1..] {
                assert!(range.last + 1 < other.first || other.last + 1 < range.first);
            }
        }
        let again: Vec<String> = found.iter().map(|r| format!("{}-{}", r.first, r.last)).collect();
        let again = format!("bytes={}", again.join(","));
        assert_eq!(ranges(again.as_bytes(), len_bytes), Ranges::Parts(found.clone()));
    }
    assert_eq!(found == Ranges::Whole, is_whole(value, len_bytes), "{value:?} of {len_bytes}");
    conditions(fields);
});

/// Returns true if the whole representation must be sent, according to a reference implementation.
fn is_whole(value: &str, len_bytes: u64) -> bool {
    let Some((unit, set)) = value.split_once('=') else {
        return true;
    };
    let specs: Vec<&str> = set.split(',').map(|s| s.trim_matches([' ', '\t'])).filter(|s| !s.is_empty()).collect();
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_spec = |spec: &&str| match spec.split_once('-') {
        None | Some(("", "")) => false,
        Some((first, last)) if digits(first) && digits(last) => {
            let (a, b) = (first.trim_start_matches('0'), last.trim_start_matches('0'));
            // Compares numbers of any length by their digits; those above 64 bits are equal.
            let most = u64::MAX.to_string();
            let cut = |n: &str| if (n.len(), n) > (most.len(), most.as_str()) { most.clone() } else { n.to_owned() };
            let (a, b) = (cut(a), cut(b));
            first.is_empty() || last.is_empty() || (a.len(), &a) <= (b.len(), &b)
        }
        _ => false,
    };
    if !unit.eq_ignore_ascii_case("bytes") || specs.is_empty() || !specs.iter().all(is_spec) {
        return true;
    }
    let is_suffix = |spec: &&str| spec.starts_with('-') && spec.bytes().any(|b| matches!(b, b'1'..=b'9'));
    len_bytes == 0 && specs.len() <= MOST_RANGES && specs.iter().any(is_suffix)
}

fn conditions(text: &str) {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let fields: Vec<(&str, &[u8])> = fields.map(|(name, value)| (name, value.trim().as_bytes())).collect();
    let now = Validators { tag: EntityTag::parse(b"\"a\""), modified: Some(784_111_777) };
    let conditions = Conditions::of(fields.iter().copied());
    let read = conditions.verdict(&now, true);
    let write = conditions.verdict(&now, false);
    assert!(write != Verdict::NotModified && (read == write || read == Verdict::NotModified));
    let _ = conditions.range(&now, 784_111_778);
    for (_, value) in fields {
        assert!(coding_quality([value], "gzip") <= 1000);
        if let Some(date) = parse_date(value) {
            assert_eq!(parse_date(date_text(date).as_bytes()), Some(date));
        }
    }
}
