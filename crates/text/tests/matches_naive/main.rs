//! Compares every conversion with its reference implementation: texts of each width, mixed and
//! corrupted, with lengths around the vector and block sizes, at all alignments.

mod cases;
mod checks;
#[path = "../support/skips.rs"]
mod skips;

use std::mem::MaybeUninit;
use std::process::Command;

use cases::case;
use checks::{check_exact, check_large, check_parts, check_sink, check_str};
use onecopy_text::convert::{StrData, string_from_utf16, to_json_body, to_utf8, to_utf16};
use onecopy_text::{
    ConvertError, Kernel, Policy, Units, find_malformed, is_utf8, kernel, measure, naive, utf8_len,
};
use proptest::prelude::*;
use skips::can_test;

const POLICIES: [Policy; 2] = [Policy::Strict, Policy::Replace];

/// Returns the configuration of the property tests. `PROPTEST_CASES` sets a larger number of cases.
/// Seeds of failures are not stored in a file: a failing case should be added as a unit test.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if cfg!(miri) {
        config.cases = 4;
    }
    config.failure_persistence = None;
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn utf8_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                check_sink(units, naive::to_utf8(units, policy),
                    |sink| to_utf8(units, policy, sink), |sink| to_utf8(units, policy, sink));
            }
        }
    }

    #[test]
    fn json_body_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                check_sink(units, naive::to_json_body(units, policy),
                    |sink| to_json_body(units, policy, sink),
                    |sink| to_json_body(units, policy, sink));
            }
        }
    }

    #[test]
    fn str_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                check_str(units, policy);
            }
        }
    }

    #[test]
    fn exact_destinations_matches_naive(case in case()) {
        for units in case.forms() {
            check_exact(units);
        }
    }

    #[test]
    fn large_str_matches_naive(case in case()) {
        for units in case.forms() {
            check_large(units);
        }
    }

    #[test]
    fn utf16_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                let expected = naive::to_utf16(units, policy);
                let mut out = vec![7_u16];
                match (to_utf16(units, policy, &mut out), expected) {
                    (Ok(n), Ok(expected)) => {
                        prop_assert_eq!(n, expected.len());
                        prop_assert_eq!(&out[1..], &expected[..]);
                    }
                    (Err(got), Err(expected)) => {
                        prop_assert_eq!(got, ConvertError::Malformed(expected));
                        prop_assert_eq!(out, vec![7]);
                    }
                    (got, expected) => prop_assert!(false, "{:?} is not {:?}", got, expected),
                }
            }
        }
    }

    #[test]
    fn validation_and_length_matches_naive(case in case()) {
        for units in case.forms() {
            prop_assert_eq!(find_malformed(units), naive::find_malformed(units), "{:?}", units);
            let len = naive::to_utf8(units, Policy::Replace).map(|out| out.len());
            prop_assert_eq!(Ok(utf8_len(units)), len, "{:?}", units);
            if let Units::Utf8(u) = units {
                prop_assert_eq!(is_utf8(u), std::str::from_utf8(u).is_ok());
            }
            if let Units::Utf16(u) = units {
                prop_assert_eq!(string_from_utf16(u), String::from_utf16_lossy(u));
            }
        }
    }

    #[test]
    fn parts_of_a_text_matches_naive(
        case in case(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        for units in case.forms() {
            let len = units.len_units();
            let mut cuts: Vec<usize> = cuts.iter().map(|i| i.index(len + 1)).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            check_parts(units, &cuts);
        }
    }

    #[test]
    fn units_one_by_one_matches_naive(
        bytes in prop::collection::vec(
            prop::sample::select(
                &[
                    0x41_u8, 0x22, 0x80, 0xBF, 0xC3, 0xE0, 0xA0, 0xE4, 0xB8, 0xED, 0x9F, 0xF0,
                    0x9F, 0x98, 0xF4, 0x8F, 0xFF,
                ][..],
            ),
            0..24,
        ),
    ) {
        let cuts: Vec<usize> = (0..=bytes.len()).collect();
        check_parts(Units::Utf8(&bytes), &cuts);
        let wide: Vec<u16> = bytes
            .iter()
            .map(|&b| if b & 0x80 == 0 { b.into() } else { 0xD700 + u16::from(b) * 8 })
            .collect();
        check_parts(Units::Utf16(&wide), &cuts);
    }

    #[test]
    fn random_bytes_matches_naive(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        offset in 0..16_usize,
    ) {
        let units = Units::Utf8(&bytes[offset.min(bytes.len())..]);
        prop_assert_eq!(find_malformed(units), naive::find_malformed(units));
        for policy in POLICIES {
            check_str(units, policy);
            check_sink(units, naive::to_json_body(units, policy),
                |sink| to_json_body(units, policy, sink),
                    |sink| to_json_body(units, policy, sink));
        }
    }
}

#[test]
fn utf8_reports_the_maximal_subpart_of_unicode_section_3_9() {
    // Table 3-11 of Unicode 16: each of these is one subpart, then a plain byte.
    let cases: [(&[u8], usize); 6] = [
        (b"\xE1\x80A", 2),
        (b"\xF0\x91\x92A", 3),
        (b"\xF1\xBF\xBFA", 3),
        (b"\xC0A", 1),
        (b"\xED\xA0A", 1),
        (b"\xF4\x90A", 1),
    ];
    for (bytes, len_units) in cases {
        let found = find_malformed(Units::Utf8(bytes)).expect("malformed");
        assert_eq!(
            (found.at_units, found.len_units),
            (0, len_units),
            "{bytes:x?}"
        );
    }
}

#[test]
fn a_sequence_cut_by_the_end_of_a_block_is_not_mistaken_for_the_end_of_the_text() {
    // Blocks have 4096 units. A lead byte, or half of a surrogate pair, is placed near the end of a
    // block and followed by other text.
    for at in 4090..4100 {
        let mut utf8 = vec![b'a'; 9000];
        utf8[at] = 0xE4;
        let mut utf16 = vec![0x61_u16; 9000];
        utf16[at] = 0xD83D;
        for units in [Units::Utf8(&utf8), Units::Utf16(&utf16)] {
            let expected = naive::find_malformed(units).expect("malformed");
            let got = to_utf8(units, Policy::Strict, &mut Vec::new());
            assert_eq!(got, Err(ConvertError::Malformed(expected)));
        }
    }
}

#[test]
fn ucs2_reports_two_surrogates_as_two_malformed_units_even_if_they_look_like_a_pair() {
    let pair = [0xD83D_u16, 0xDE00];
    assert_eq!(
        naive::to_utf8(Units::Utf16(&pair), Policy::Strict).map(|u| u.len()),
        Ok(4)
    );
    let error = to_utf8(Units::Ucs2(&pair), Policy::Strict, &mut Vec::new());
    let expected = naive::find_malformed(Units::Ucs2(&pair)).expect("malformed");
    assert_eq!(error, Err(ConvertError::Malformed(expected)));
    let mut out = Vec::new();
    to_utf8(Units::Ucs2(&pair), Policy::Replace, &mut out).expect("memory");
    assert_eq!(out, "\u{FFFD}\u{FFFD}".as_bytes());
}

#[test]
#[should_panic(expected = "another shape")]
fn writing_into_a_destination_of_another_length_panics() {
    let measured = measure(Units::Utf8(b"abc"), Policy::Strict).expect("ASCII");
    measured.write(StrData::One(&mut [MaybeUninit::uninit(); 4]));
}

#[test]
#[should_panic(expected = "wider than the shape says")]
fn writing_wide_text_into_narrow_units_panics() {
    let measured = measure(Units::Utf16(&[0x416, 0xD83D, 0xDE00]), Policy::Strict).expect("text");
    measured.write(StrData::Two(&mut [MaybeUninit::uninit(); 2]));
}

// The following tests run the property tests with every kernel family. Each family needs its own
// process, because a process chooses its family only once.

/// The environment variable that makes a child process print its kernel family.
const PRINT_KERNEL: &str = "ONECOPY_TEST_PRINT_KERNEL";

#[test]
#[cfg_attr(
    miri,
    ignore = "Miri starts no processes, and supports one kernel only"
)]
fn every_kernel_passes_the_properties() {
    for (ours, theirs) in [
        ("scalar", "fallback"),
        ("sse2", "fallback"),
        ("avx2", "haswell"),
        ("avx512", "icelake"),
    ] {
        if ours == "avx512" && !can_test(ours, kernel() == Kernel::Avx512) {
            continue; // simdutf does not check that the processor has what it is forced to use
        }
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            // Exactly the properties: their names end so, and this test's does not.
            .arg("matches_naive")
            .env("ONECOPY_KERNEL", ours)
            .env("SIMDUTF_FORCE_IMPLEMENTATION", theirs)
            .output()
            .expect("the test program runs");
        let output = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "kernel {ours}:\n{output}");
        assert!(
            output.contains("utf8_matches_naive ... ok"),
            "kernel {ours}:\n{output}"
        );
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "Miri starts no processes, and supports one kernel only"
)]
fn the_environment_forces_a_kernel_and_never_an_unavailable_one() {
    if std::env::var_os(PRINT_KERNEL).is_some() {
        println!("kernel={}", kernel().name());
        return;
    }
    // Also if the variable is set for this process.
    let kernel_of_child = |kernel: Option<&str>| {
        let mut child = Command::new(std::env::current_exe().expect("a test has a path"));
        child.args(["--exact", "--nocapture"]);
        child.arg("the_environment_forces_a_kernel_and_never_an_unavailable_one");
        child.env(PRINT_KERNEL, "1").env_remove("ONECOPY_KERNEL");
        if let Some(kernel) = kernel {
            child.env("ONECOPY_KERNEL", kernel);
        }
        let out = child.output().expect("the test program runs");
        let output = String::from_utf8_lossy(&out.stdout).into_owned();
        let kernel = output
            .split("kernel=")
            .nth(1)
            .and_then(|t| t.lines().next());
        kernel.expect("the child prints its kernel").to_owned()
    };
    let best = kernel_of_child(None);
    for requested in ["scalar", "sse2", "avx2", "avx512", "nonsense"] {
        let chosen = kernel_of_child(Some(requested));
        match requested {
            "nonsense" => assert_eq!(chosen, best),
            "scalar" => assert_eq!(chosen, "scalar"),
            // A processor without it has less.
            requested => assert!(
                chosen == requested || chosen == best,
                "{requested} gave {chosen}"
            ),
        }
    }
}
