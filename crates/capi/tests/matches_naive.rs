//! Compares every function with the reference implementations, for capacities around the required
//! one and for several alignments. Canaries after the output detect writes past the capacity.

#[path = "../../text/tests/support/skips.rs"]
mod skips;

use std::process::Command;

use onecopy::abi::*;
use onecopy::result_code::{
    ONECOPY_INVALID_ARGUMENT as INVALID_ARGUMENT, ONECOPY_NO_ROOM as NO_ROOM,
};
use onecopy_text::{Kernel, Units, kernel, naive};
use proptest::collection::vec;
use proptest::prelude::*;
use skips::can_test;

const CANARY: u8 = 0xA5;

fn character(c: u32) -> char {
    char::from_u32(c).expect("the naive decoder gives scalar values")
}

/// Decodes a text with the reference implementation and replaces its malformed parts by
/// `replacement`. If `replacement` is 0, malformed text is an error: the result code -1 - k, where
/// k is the index of the first malformed unit.
fn decoded(units: Units<'_>, replacement: u32) -> Result<String, i64> {
    naive::code_points(units)
        .map(|item| match item {
            Err(e) if replacement == 0 => Err(-1 - e.at_units as i64),
            Err(_) => Ok(character(replacement)),
            Ok(c) => Ok(character(c)),
        })
        .collect()
}

/// Returns the expected output of a call with this capacity, or its expected result code. `full` is
/// the expectation for an unlimited capacity.
fn expected<T>(full: Result<Vec<T>, i64>, capacity: usize) -> Result<Vec<T>, i64> {
    full.and_then(|units| {
        if units.len() <= capacity {
            Ok(units)
        } else {
            Err(NO_ROOM)
        }
    })
}

/// Calls `call` with capacities around the required one, and compares its result and its output
/// with `full`. Checks that the bytes around the destination are unchanged.
fn at_capacities<T: Copy + PartialEq + std::fmt::Debug>(
    full: &Result<Vec<T>, i64>,
    worst: usize,
    call: impl Fn(*mut T, usize) -> i64,
) {
    let needed = full.as_ref().map_or(worst, Vec::len);
    let around = needed.saturating_sub(70)..=needed + 3;
    let others = [0, 1, worst.saturating_sub(1), worst, worst + 64];
    for (i, capacity) in around.chain(others).enumerate() {
        let before = 1 + i % 33;
        let mut place = vec![CANARY; size_of::<T>() * (before + capacity + 72)];
        let shift = place.as_ptr().align_offset(size_of::<T>());
        let start = shift + before * size_of::<T>();
        // SAFETY: the address is inside `place`.
        let dst = unsafe { place.as_mut_ptr().add(start) }.cast::<T>();
        let result = call(dst, capacity);
        let end = start + capacity * size_of::<T>();
        assert!(
            place[..start]
                .iter()
                .chain(&place[end..])
                .all(|&b| b == CANARY),
            "wrote outside {capacity}"
        );
        match expected(full.clone(), capacity) {
            Err(code) => assert_eq!(result, code, "of {capacity}"),
            Ok(units) => {
                assert_eq!(result, units.len() as i64, "of {capacity}");
                // SAFETY: this number of units is inside `place`, and `dst` is aligned.
                let written = unsafe { std::slice::from_raw_parts(dst, units.len()) };
                assert_eq!(written, units);
            }
        }
    }
}

/// Returns `src` with two more units before it, for the functions that read from an index on.
fn behind_two<T: Copy + From<u8>>(src: &[T]) -> Vec<T> {
    [&[T::from(0xFF), T::from(0xFF)], src].concat()
}

fn of_utf16(src: &[u16], replacement: u32) {
    let (p, n) = (src.as_ptr(), src.len());
    let text = decoded(Units::Utf16(src), replacement);
    let full = text.clone().map(String::into_bytes);
    let len = full.as_ref().map_or_else(|&code| code, |u| u.len() as i64);
    // SAFETY: the source is a slice, and no destination is smaller than its stated capacity.
    unsafe {
        assert_eq!(onecopy_utf8_len_from_utf16(p, n, replacement), len);
        at_capacities(&full, 3 * n, |dst, capacity| {
            onecopy_utf16_to_utf8(p, n, dst, capacity, replacement)
        });
        let later = behind_two(src);
        at_capacities(&full, 3 * n, |dst, capacity| {
            let array = dst.sub(1);
            onecopy_utf16_to_utf8_at(later.as_ptr(), 2, n, array, 1, capacity, replacement)
        });
        let bson = full.map(|u| [&(u.len() as i32 + 1).to_le_bytes()[..], &u, &[0]].concat());
        at_capacities(&bson, 3 * n + 5, |dst, capacity| {
            onecopy_bson_string(p, n, dst, capacity, replacement)
        });
    }
}

fn of_utf8(src: &[u8], replacement: u32) {
    let (p, n) = (src.as_ptr(), src.len());
    let text = decoded(Units::Utf8(src), replacement);
    let full: Result<Vec<u16>, i64> = text.map(|t| t.encode_utf16().collect());
    let len = full.as_ref().map_or_else(|&code| code, |u| u.len() as i64);
    // SAFETY: the source is a slice, and no destination is smaller than its stated capacity.
    unsafe {
        assert_eq!(onecopy_utf16_len_from_utf8(p, n, replacement), len);
        at_capacities(&full, n, |dst, capacity| {
            onecopy_utf8_to_utf16(p, n, dst, capacity, replacement)
        });
        let later = behind_two(src);
        at_capacities(&full, n, |dst, capacity| {
            let array = dst.sub(1);
            onecopy_utf8_to_utf16_at(later.as_ptr(), 2, n, array, 1, capacity, replacement)
        });
    }
}

fn of_utf8_without_replacement(src: &[u8]) {
    let (p, n) = (src.as_ptr(), src.len());
    let mut at = 0;
    let latin1: Result<Vec<u8>, i64> = naive::code_points(Units::Utf8(src))
        .map(|item| {
            let here = at;
            let c = item.map_err(|e| -1 - e.at_units as i64)?;
            at += character(c).len_utf8();
            u8::try_from(c).map_err(|_| -1 - here as i64)
        })
        .collect();
    let malformed = naive::find_malformed(Units::Utf8(src)).map_or(n, |e| e.at_units);
    let ascii = src.iter().take_while(|b| b.is_ascii()).count();
    let encoded: String = src.iter().map(|&b| char::from(b)).collect();
    let encoded: Result<Vec<u8>, i64> = Ok(encoded.into_bytes());
    // SAFETY: the source is a slice, and no destination is smaller than its stated capacity.
    unsafe {
        assert_eq!(onecopy_utf8_find_malformed(p, n), malformed as i64);
        assert_eq!(onecopy_utf8_ascii_prefix(p, n), ascii as i64);
        at_capacities(&latin1, n, |dst, capacity| {
            onecopy_utf8_to_latin1(p, n, dst, capacity)
        });
        let later = behind_two(src);
        let q = later.as_ptr();
        at_capacities(&latin1, n, |dst, capacity| {
            onecopy_utf8_to_latin1_at(q, 2, n, dst.sub(1), 1, capacity)
        });
        at_capacities(&encoded, 2 * n, |dst, capacity| {
            onecopy_latin1_to_utf8(p, n, dst, capacity)
        });
        at_capacities(&encoded, 2 * n, |dst, capacity| {
            onecopy_latin1_to_utf8_at(q, 2, n, dst.sub(1), 1, capacity)
        });
    }
}

/// Generates runs of UTF-16 units. The units of most runs need equally many bytes in UTF-8, as in
/// most texts; a few runs have lone surrogates.
fn utf16() -> impl Strategy<Value = Vec<u16>> {
    let run = prop_oneof![
        4 => vec(0..0x80_u16, 0..80),
        3 => vec(0x80..0x800_u16, 0..80),
        3 => vec(0x800..0xD800_u16, 0..80),
        2 => vec(any::<char>(), 0..40).prop_map(|t| t.iter().collect::<String>().encode_utf16().collect()),
        1 => vec(0xD800..0xE000_u16, 0..3),
        1 => vec(any::<u16>(), 0..20),
    ];
    vec(run, 0..6).prop_map(|runs| runs.concat())
}

fn utf8() -> impl Strategy<Value = Vec<u8>> {
    let valid = |text: Vec<u16>| String::from_utf16_lossy(&text).into_bytes();
    let latin1 = vec(0..0x100_u16, 0..150).prop_map(valid);
    let broken = (
        utf16(),
        vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    )
        .prop_map(move |(text, changes)| {
            let mut bytes = valid(text);
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes
        });
    prop_oneof![
        3 => utf16().prop_map(valid),
        2 => latin1,
        2 => broken,
        1 => vec(any::<u8>(), 0..100),
        1 => vec(0x80..=0xFF_u8, 0..100),
    ]
}

const REPLACEMENTS: [u32; 5] = [0, '?' as u32, 0xE9, 0xFFFD, 0x1_F600];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn utf16_matches_naive(text in utf16(), which in 0..REPLACEMENTS.len()) {
        of_utf16(&text, REPLACEMENTS[which]);
    }

    #[test]
    fn utf8_matches_naive(text in utf8(), which in 0..REPLACEMENTS.len()) {
        of_utf8(&text, REPLACEMENTS[which]);
    }

    #[test]
    fn utf8_to_latin1_and_back_match_naive(text in utf8()) {
        of_utf8_without_replacement(&text);
    }
}

#[test]
fn long_texts_match_naive() {
    for pattern in ["plain ", "Zürich é", "Москва ", "東京都", "a東é😀", "😀"] {
        let units: Vec<u16> = pattern.encode_utf16().cycle().take(1 << 12).collect();
        let whole = String::from_utf16_lossy(&units);
        of_utf16(&whole.encode_utf16().collect::<Vec<_>>(), 0);
        of_utf8(whole.as_bytes(), 0);
        of_utf8_without_replacement(whole.as_bytes());
        for at in [0, units.len() / 2, units.len() - 1] {
            let mut broken = units.clone();
            broken[at] = 0xDC00;
            of_utf16(&broken, 0);
            of_utf16(&broken, '?' as u32);
            let mut broken = whole.clone().into_bytes();
            let at = at * broken.len() / units.len();
            broken[at] = 0xF8;
            of_utf8(&broken, 0);
            of_utf8(&broken, 0xFFFD);
            of_utf8_without_replacement(&broken);
        }
    }
}

#[test]
fn arguments_that_break_the_rules_are_refused() {
    let (src, mut dst) = ([0x61_u16; 4], [0_u8; 64]);
    let (p, q) = (src.as_ptr(), dst.as_mut_ptr());
    // SAFETY: the pointers that a call accesses are valid. Calls with invalid pointers or lengths
    // are refused before any access.
    unsafe {
        assert_eq!(
            onecopy_utf16_to_utf8(std::ptr::null(), 0, std::ptr::null_mut(), 0, 0),
            0
        );
        assert_eq!(
            onecopy_utf16_to_utf8(std::ptr::null(), 1, q, 64, 0),
            INVALID_ARGUMENT
        );
        assert_eq!(
            onecopy_utf16_to_utf8(p, 4, std::ptr::null_mut(), 1, 0),
            INVALID_ARGUMENT
        );
        assert_eq!(
            onecopy_utf16_to_utf8(p.byte_add(1), 3, q, 64, 0),
            INVALID_ARGUMENT
        );
        assert_eq!(
            onecopy_utf16_to_utf8(p, usize::MAX, q, 64, 0),
            INVALID_ARGUMENT
        );
        assert_eq!(
            onecopy_utf16_to_utf8(p, 4, q, usize::MAX, 0),
            INVALID_ARGUMENT
        );
        for no_character in [0xD800, 0xDFFF, 0x11_0000, u32::MAX] {
            assert_eq!(
                onecopy_utf16_to_utf8(p, 4, q, 64, no_character),
                INVALID_ARGUMENT
            );
        }
        // An index into NULL, and indexes whose address is outside of the address space.
        for (array, at) in [(std::ptr::null(), 8), (p, usize::MAX), (p, usize::MAX / 2)] {
            assert_eq!(
                onecopy_utf16_to_utf8_at(array, at, 1, q, 0, 64, 0),
                INVALID_ARGUMENT
            );
            let array: *mut u8 = array.cast_mut().cast();
            assert_eq!(
                onecopy_latin1_to_utf8_at(q, 0, 1, array, usize::MAX, 64),
                INVALID_ARGUMENT
            );
        }
        // Source and destination overlap.
        assert_eq!(
            onecopy_utf8_to_latin1(q, 40, q.add(39), 8),
            INVALID_ARGUMENT
        );
        assert_eq!(onecopy_utf8_to_latin1(q.add(8), 40, q, 9), INVALID_ARGUMENT);
        assert_eq!(onecopy_utf8_to_latin1(q, 40, q.add(40), 8), NO_ROOM);
    }
}

#[test]
fn malformed_utf8_is_replaced_as_by_encoding_rs() {
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&utf8(), |text| {
            let expected: Vec<u16> = encoding_rs::UTF_8
                .decode_without_bom_handling(&text)
                .0
                .encode_utf16()
                .collect();
            let mut place = vec![0; text.len()];
            let (p, n) = (text.as_ptr(), text.len());
            // SAFETY: the source and `place` have the lengths that are passed.
            let n = unsafe { onecopy_utf8_to_utf16(p, n, place.as_mut_ptr(), n, 0xFFFD) };
            prop_assert_eq!(n, expected.len() as i64);
            prop_assert_eq!(&place[..expected.len()], expected);
            Ok(())
        })
        .expect("both replace alike");
}

/// Runs the property tests under every kernel. Each kernel needs its own process, because a process
/// chooses its kernel only once.
#[test]
fn every_kernel_passes_the_properties() {
    for (ours, theirs) in [
        ("scalar", "fallback"),
        ("sse2", "fallback"),
        ("sse2", "westmere"),
        ("avx2", "haswell"),
        ("avx512", "icelake"),
    ] {
        if ours == "avx512" && !can_test(ours, kernel() == Kernel::Avx512) {
            continue; // simdutf does not check that the processor has what it is forced to use
        }
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            // Selects only the property tests, whose names contain `_naive`.
            .arg("_naive")
            .env("ONECOPY_KERNEL", ours)
            .env("SIMDUTF_FORCE_IMPLEMENTATION", theirs)
            .output()
            .expect("the test program runs");
        let printed = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "kernel {ours}, {theirs}:\n{printed}");
        assert!(
            printed.contains("4 passed"),
            "kernel {ours}, {theirs}:\n{printed}"
        );
    }
}

#[test]
fn versions_are_told() {
    assert_eq!(onecopy_abi_version(), ONECOPY_ABI_VERSION);
    // SAFETY: the text is static and ends with a NUL.
    let version = unsafe { std::ffi::CStr::from_ptr(onecopy_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}
