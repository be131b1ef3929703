//! Tests of the detection of an encoding: by a byte order mark, by zero bytes, by validity, and by
//! chardetng's guess.
#![allow(clippy::unwrap_used)] // Helper functions of tests too.

use onecopy_text::transcode::naive;
use onecopy_text::{Certainty, Detection, Detector, Encoding, Order, TranscodeOptions};

fn detected(parts: &[&[u8]], is_whole: bool) -> Detection {
    let mut detector = Detector::new();
    parts.iter().for_each(|part| detector.push(part));
    detector.finish(is_whole)
}

/// Detects the encoding, and asserts that the result does not depend on how the bytes are divided
/// into parts.
fn detect(bytes: &[u8]) -> Detection {
    let whole = detected(&[bytes], true);
    for at in 0..=bytes.len() {
        let (a, b) = bytes.split_at(at);
        assert_eq!(detected(&[a, b], true), whole, "cut at {at}");
    }
    let by_bytes: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(detected(&by_bytes, true), whole);
    whole
}

fn written(text: &str, encoding: Encoding) -> Vec<u8> {
    let options = TranscodeOptions::default();
    let (bytes, ended) = naive::transcode(text.as_bytes(), Encoding::Utf8, encoding, options);
    assert_eq!(ended, Ok(()), "{encoding:?}");
    bytes
}

const RUSSIAN: &str = "Москва — столица России, город федерального значения. Население города \
    растёт, и улицы его полны людей; реки, парки и музеи известны во всём мире.\n";
const JAPANESE: &str = "日本語の文章です。東京都は日本の首都であり、人口が最も多い都市です。\n今日はとても良い天気です。";

#[test]
fn a_mark_is_certain() {
    for name in ["utf-8-sig", "utf-16", "utf-32"] {
        let encoding = Encoding::by_name(name).unwrap();
        for text in ["", "a", "аб"] {
            let found = detect(&written(text, encoding));
            assert_eq!(found.encoding, Some(encoding), "{name} {text:?}: {found}");
            assert_eq!(found.certainty, Certainty::Certain);
        }
    }
    let big = detect(b"\xfe\xff\0a");
    assert_eq!(big.encoding, Some(Encoding::Utf16(Order::Marked)));
    assert!(big.reason.contains("big-endian"), "{big}");
}

#[test]
fn units_without_a_mark_are_known_by_their_zeros() {
    for text in ["a line of ASCII\n", RUSSIAN, JAPANESE, "one 😀 line\n"] {
        for order in [Order::Little, Order::Big] {
            for encoding in [Encoding::Utf16(order), Encoding::Utf32(order)] {
                let found = detect(&written(text, encoding));
                assert_eq!(found.encoding, Some(encoding), "{text}: {found}");
                assert_eq!(found.certainty, Certainty::Likely);
            }
        }
    }
}

#[test]
fn ascii_and_utf_8_are_certain_and_nothing_is_utf_8() {
    for (text, name) in [
        ("", "utf-8"),
        ("plain\r\n", "ascii"),
        ("Zürich", "utf-8"),
        (JAPANESE, "utf-8"),
    ] {
        let found = detect(text.as_bytes());
        assert_eq!(found.encoding.map(Encoding::name), Some(name));
        assert_eq!(found.certainty, Certainty::Certain);
    }
}

#[test]
fn other_text_is_reported_as_a_guess() {
    for (text, name) in [
        (RUSSIAN, "windows-1251"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (
            "Äußerungen über Größe: „schön“, naïve Café-Gäste und größere Straßen.",
            "windows-1252",
        ),
    ] {
        let found = detect(&written(text, Encoding::by_name(name).unwrap()));
        assert_eq!(found.encoding.map(Encoding::name), Some(name), "{found}");
        assert_eq!(found.certainty, Certainty::Guess);
        assert!(found.reason.starts_with("not UTF-8 (byte "), "{found}");
    }
    let escapes = detect(&written(
        JAPANESE,
        Encoding::by_name("iso-2022-jp").unwrap(),
    ));
    assert_eq!(escapes.encoding.map(Encoding::name), Some("iso-2022-jp"));
    assert_eq!(escapes.certainty, Certainty::Likely);
}

#[test]
fn zeros_without_a_pattern_are_not_text() {
    let found = detect(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0\x90");
    assert_eq!(found.encoding, None, "{found}");
}

#[test]
fn an_incomplete_end_is_not_an_error_if_the_text_goes_on() {
    let part = &"Straße".as_bytes()[..5];
    assert_eq!(detected(&[part], false).encoding, Some(Encoding::Utf8));
    assert_ne!(detected(&[part], true).encoding, Some(Encoding::Utf8));
}

#[test]
fn an_extra_byte_after_a_character_cut_by_a_part_is_malformed() {
    // Found by the fuzz target `text_codec`: it was treated as a part of the character.
    let found = detect(b"\xed\x9f\x98\x80 ");
    assert_ne!(found.encoding, Some(Encoding::Utf8), "{found}");
}

#[test]
fn bytes_far_from_the_start_are_examined() {
    let ascii = [b'a'; 100_000];
    let found = detected(&[&ascii, &ascii, b"Gr\xf6\xdfe und gr\xfcn"], true);
    assert_eq!(
        found.encoding.map(Encoding::name),
        Some("windows-1252"),
        "{found}"
    );
    assert!(found.reason.contains("byte 200002"), "{found}");
}
