//! Compares the evaluation of `Range` with a reference implementation that uses `split` and a set
//! of bytes, and that of conditions with a reference implementation for a single tag.

use std::collections::BTreeSet;

use onecopy_wire::http::{
    ByteRange, Conditions, EntityTag, MOST_RANGES, Ranges, Validators, Verdict, coding_quality,
    ranges,
};
use proptest::prelude::*;

/// The reference implementation of [`ranges`]. Returns `None` if the whole representation is sent,
/// and an empty list if the request is refused.
fn slowly(value: &str, len_bytes: u64) -> Option<Vec<(u64, u64)>> {
    let (unit, set) = value.split_once('=')?;
    if unit.to_lowercase() != "bytes" {
        return None;
    }
    let specs: Vec<&str> = set
        .split(',')
        .map(|s| s.trim_matches([' ', '\t']))
        .collect();
    let specs: Vec<&str> = specs.into_iter().filter(|s| !s.is_empty()).collect();
    if specs.is_empty() {
        return None;
    }
    let mut sets = Vec::new();
    for spec in &specs {
        let (first, last) = spec.split_once('-')?;
        let number = |text: &str| -> Option<Option<u128>> {
            if text.is_empty() {
                return Some(None);
            }
            let is_number = text.bytes().all(|b| b.is_ascii_digit());
            // All positions above 64 bits have the same result.
            let most = u128::from(u64::MAX);
            is_number.then(|| Some(text.parse().unwrap_or(most).min(most)))
        };
        let bytes: BTreeSet<u64> = match (number(first)?, number(last)?) {
            (None, None) => return None,
            (None, Some(n)) if len_bytes == 0 && n > 0 => BTreeSet::from([u64::MAX]),
            (None, Some(n)) => (0..len_bytes)
                .filter(|b| u128::from(len_bytes - b) <= n)
                .collect(),
            (Some(a), None) => (0..len_bytes).filter(|b| u128::from(*b) >= a).collect(),
            (Some(a), Some(b)) if a > b => return None,
            (Some(a), Some(b)) => (0..len_bytes)
                .filter(|x| (a..=b).contains(&u128::from(*x)))
                .collect(),
        };
        sets.push(bytes);
    }
    if specs.len() > MOST_RANGES {
        return Some(Vec::new());
    }
    if sets.iter().any(|s| s.contains(&u64::MAX)) {
        return None;
    }
    let overlap = |i: usize| {
        sets.iter()
            .enumerate()
            .any(|(j, s)| i != j && !s.is_disjoint(&sets[i]))
    };
    if (0..sets.len()).filter(|i| overlap(*i)).count() > 2 {
        return Some(Vec::new());
    }
    let all: BTreeSet<u64> = sets.iter().flatten().copied().collect();
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for set in sets {
        let Some(&byte) = set.iter().next() else {
            continue;
        };
        let mut part = (byte, byte);
        while part.0 > 0 && all.contains(&(part.0 - 1)) {
            part.0 -= 1;
        }
        while all.contains(&(part.1 + 1)) {
            part.1 += 1;
        }
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    Some(parts)
}

fn quickly(value: &str, len_bytes: u64) -> Option<Vec<(u64, u64)>> {
    match ranges(value.as_bytes(), len_bytes) {
        Ranges::Whole => None,
        Ranges::Refused => Some(Vec::new()),
        Ranges::Parts(parts) => {
            assert!(
                !parts.is_empty()
                    && parts
                        .iter()
                        .all(|p| p.last < len_bytes && p.len_bytes() > 0)
            );
            Some(
                parts
                    .iter()
                    .map(|ByteRange { first, last }| (*first, *last))
                    .collect(),
            )
        }
    }
}

fn values() -> impl Strategy<Value = String> {
    let number = prop_oneof![8 => "[0-9]{1,2}", 1 => "0{1,3}[0-9]", 1 => "[0-9]{18,45}"];
    let spec = prop_oneof![
        8 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("{a}-{b}")),
        3 => number.clone().prop_map(|a| format!("{a}-")),
        3 => number.prop_map(|a| format!("-{a}")),
        1 => "[0-9 ,x=+-]{0,5}",
    ];
    let spec = (spec, "[ \t]{0,1}").prop_map(|(spec, blank)| format!("{blank}{spec}{blank}"));
    let unit = prop::sample::select(vec![
        "bytes=", "bytes=", "bytes=", "Bytes=", "bits=", "bytes", "",
    ]);
    (unit, prop::collection::vec(spec, 0..20), any::<bool>()).prop_map(|(unit, specs, few)| {
        let n = if few { 3 } else { 20 };
        let specs: Vec<String> = specs.into_iter().take(n).collect();
        format!("{unit}{}", specs.join(","))
    })
}

/// Generates an entity tag of one letter, weak or strong, or a malformed tag.
fn tags() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\"a\"", "W/\"a\"", "\"b\"", "W/\"b\"", "\"a,b\"", "\"\"", "a", "*", "", "\"a\" ",
    ])
    .prop_map(str::to_owned)
}

/// The reference implementation for lists of tags: splits the list at commas outside of quotes, and
/// compares each element.
fn names_slowly(list: &str, weakly: bool) -> bool {
    if list.trim() == "*" {
        return true;
    }
    let (mut elements, mut quoted) = (vec![String::new()], false);
    for c in list.chars() {
        quoted ^= c == '"';
        match c {
            ',' if !quoted => elements.push(String::new()),
            c => elements.last_mut().expect("one").push(c),
        }
    }
    let elements: Vec<&str> = elements
        .iter()
        .map(|e| e.trim())
        .filter(|e| !e.is_empty())
        .collect();
    let is_tag = |e: &&str| {
        e.trim_start_matches("W/").len() > 1 && e.trim_start_matches("W/").matches('"').count() == 2
    };
    elements.iter().all(is_tag)
        && elements
            .iter()
            .any(|e| *e == "\"a\"" || weakly && *e == "W/\"a\"")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn ranges_are_those_of_the_slow_twin(value in values(), len_bytes in 0..110_u64) {
        prop_assert_eq!(quickly(&value, len_bytes), slowly(&value, len_bytes));
    }

    #[test]
    fn any_bytes_are_ranges_within_the_length_or_none(value in prop::collection::vec(any::<u8>(), 0..60), len_bytes: u64) {
        let mut text = b"bytes=".to_vec();
        text.extend_from_slice(&value);
        if let Ranges::Parts(parts) = ranges(&text, len_bytes) {
            prop_assert!(parts.iter().all(|p| p.first <= p.last && p.last < len_bytes));
            prop_assert!(parts.len() <= MOST_RANGES);
        }
    }

    #[test]
    fn lists_of_tags_are_those_of_the_slow_twin(lists in prop::collection::vec(tags(), 1..5), is_read: bool) {
        let list = lists.join(", ");
        let now = Validators { tag: EntityTag::parse(b"\"a\""), modified: None };
        let strongly = Conditions::of([("If-Match", list.as_bytes())]).verdict(&now, is_read);
        prop_assert_eq!(strongly == Verdict::Proceed, names_slowly(&list, false), "{}", list);
        let weakly = Conditions::of([("If-None-Match", list.as_bytes())]).verdict(&now, is_read);
        let expected = match (names_slowly(&list, true), is_read) {
            (false, _) => Verdict::Proceed,
            (true, true) => Verdict::NotModified,
            (true, false) => Verdict::Failed,
        };
        prop_assert_eq!(weakly, expected, "{}", list);
        // The tags are in one field each, or all in one field.
        let each = lists.iter().map(|tag| ("If-None-Match", tag.as_bytes()));
        prop_assert_eq!(Conditions::of(each).verdict(&now, is_read), expected);
    }

    #[test]
    fn qualities_are_within_their_bounds(value in "[a-z*;q=0-9., ]{0,40}") {
        prop_assert!(coding_quality([value.as_bytes()], "gzip") <= 1000);
        let with = format!("gzip;q=0.125,{value}");
        prop_assert_eq!(coding_quality([with.as_bytes()], "gzip"), 125);
    }
}
