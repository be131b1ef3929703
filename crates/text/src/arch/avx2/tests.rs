//! Each kernel of the modules against the slow twin.

use super::*;
use crate::arch::scalar;
use crate::arch::skips::can_test;
use crate::arch::texts::{each_utf16, into_place, lengths, starts, texts, units};
use crate::{Policy, Units, naive};

fn is_here() -> bool {
    let is_here = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
    can_test("avx2", is_here && !cfg!(miri))
}

fn code_points(units: Units<'_>) -> Option<Vec<u32>> {
    naive::decode(units, Policy::Strict).ok()
}

/// Decodes bytes that may be malformed by each kernel that checks them and that takes their widest character.
fn check_checked(src: &[u8]) {
    let text = code_points(Units::Utf8(src));
    let n = starts(src);
    let max = src.iter().copied().max().unwrap_or(0);
    for room in [n, n + 40] {
        if max <= 0xC3 {
            let (made, got) =
                // SAFETY: AVX2 is there; the place takes a unit for each byte that continues nothing (so below).
                into_place(room, |p| unsafe { utf8::to_latin1_checked(src, p, room) });
            let got = made.map(|n| got[..n].iter().map(|&u| u.into()).collect());
            assert_eq!(got, text, "{src:x?}");
        }
    }
    check_utf8_to_utf16(src, max);
}

/// UTF-8 to UTF-16, with and without pairs, into a place of just the size, a larger one, and one with a unit for each byte.
fn check_utf8_to_utf16(src: &[u8], max: u8) {
    let expected = naive::to_utf16(Units::Utf8(src), Policy::Strict);
    // SAFETY: AVX2 is there (so below).
    let n_units = unsafe { utf8::units_of(src) };
    if let Ok(expected) = &expected {
        assert_eq!(n_units, expected.len());
    }
    let see = |room: usize, convert: unsafe fn(&[u8], *mut u16, usize) -> Option<usize>| {
        // SAFETY: the place takes a unit for each byte that continues nothing, and one more for each that leads four.
        let (n, got) = into_place(2 * room, |p| unsafe { convert(src, p.cast(), room) });
        let got = n.map(|n| units(&got[..2 * n], u16::from_ne_bytes));
        assert_eq!(got.as_ref(), expected.as_ref().ok(), "{src:x?}");
    };
    for room in [n_units, n_units + 40, src.len()] {
        see(room, utf8::to_utf16::<true, true>);
        if max <= 0xEF {
            see(room, utf8::to_utf16::<true, false>);
        }
        if expected.is_ok() {
            see(room, utf8::to_utf16::<false, true>);
            if max <= 0xEF {
                see(room, utf8::to_utf16::<false, false>);
            }
        }
    }
}

/// Decodes a well-formed text to units of each width that takes it, in a place of its size and in a larger one.
fn check_utf8(src: &[u8]) {
    check_checked(src);
    let Some(text) = code_points(Units::Utf8(src)) else {
        return;
    };
    let n = text.len();
    assert_eq!(starts(src), n);
    let max = text.iter().copied().max().unwrap_or(0);
    for room in [n, n + 40] {
        if max <= 0xFF {
            // SAFETY: AVX2 is there; the place takes what is written (so below).
            let (made, got) = into_place(room, |p| unsafe { utf8::to_latin1(src, p, room) });
            assert_eq!(made, Some(n));
            assert!(
                got[..n]
                    .iter()
                    .map(|&u| u32::from(u))
                    .eq(text.iter().copied())
            );
        }
        let (made, got) =
            // SAFETY: AVX2 is there; the place takes what is written.
            into_place(4 * room, |p| unsafe { utf8::to_ucs4(src, p.cast(), room) });
        assert_eq!(made, Some(n));
        assert_eq!(units(&got, u32::from_ne_bytes)[..n], text);
    }
    // Where the text has grown since it was counted.
    for room in [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter(|&room| room < n)
    {
        if max <= 0xFF {
            // SAFETY: AVX2 is there; the kernel knows the room.
            let made = into_place(room, |p| unsafe { utf8::to_latin1(src, p, room) }).0;
            assert_eq!(made, None);
        }
        let made =
            // SAFETY: AVX2 is there; the kernel knows the room.
            into_place(4 * room, |p| unsafe { utf8::to_ucs4(src, p.cast(), room) }).0;
        assert_eq!(made, None);
    }
}

#[test]
fn utf8_is_decoded_whatever_its_length_and_mix() {
    if !is_here() {
        return;
    }
    for n in lengths() {
        for text in texts(n) {
            check_utf8(text.as_bytes());
        }
    }
}

#[test]
fn malformed_utf8_is_seen_wherever_it_stands() {
    if !is_here() {
        return;
    }
    // On both sides of each border that table 3-7 of the Unicode standard draws.
    const HARM: [u8; 25] = [
        b'a', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xDF, 0xE0,
        0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xF8, 0xFF,
    ];
    for n in [1, 5, 16, 23, 40, 53, 70] {
        for text in texts(n) {
            let text = ["東東東東東東東東東東", &text, "éa東"].concat();
            for from in [&text[..], &text[9..], &text[30..]] {
                let mut text = from.as_bytes().to_vec();
                for at in 0..text.len() {
                    let kept = text[at];
                    for byte in HARM {
                        text[at] = byte;
                        check_checked(&text);
                    }
                    text[at] = kept;
                    check_checked(&text[..at]);
                }
            }
        }
    }
}

#[test]
fn a_run_of_three_bytes_ends_at_a_character_of_another_length_wherever_it_stands() {
    if !is_here() {
        return;
    }
    for n in [10, 11, 16, 17, 33, 64, 65, 110] {
        for other in ['a', 'é', '\u{7FF}', '😀'] {
            for at in 0..n {
                let text: String = (0..n).map(|i| if i == at { other } else { '東' }).collect();
                for from in ["", "x", "xy"] {
                    check_utf8((from.to_owned() + &text).as_bytes());
                }
            }
        }
    }
}

/// Encodes into a place of the text's size, into a larger one, and into one that is too small; what is malformed into some.
fn check_encoder(
    expected: Option<Vec<u8>>,
    most: usize,
    mut encode: impl FnMut(*mut u8, usize) -> Option<usize>,
) {
    let Some(expected) = expected else {
        for room in [most, most / 2, most / 3] {
            assert_eq!(into_place(room, |p| encode(p, room)).0, None);
        }
        return;
    };
    let n = expected.len();
    for room in [n, n + 1, n + 40] {
        let (got, bytes) = into_place(room, |p| encode(p, room));
        assert_eq!(got, Some(n));
        assert_eq!(bytes[..n], expected);
    }
    for room in [n.saturating_sub(1), n / 2] {
        if room < n {
            assert_eq!(into_place(room, |p| encode(p, room)).0, None);
        }
    }
}

/// All that can be asked of one text of UTF-16.
fn check_utf16(src: &[u16]) {
    let text = code_points(Units::Utf16(src));
    // SAFETY: AVX2 is there; the places take what is written (so below).
    unsafe {
        assert_eq!(utf16::is_valid(src), text.is_some(), "{src:x?}");
        let n = src.iter().filter(|&&u| u & 0xFC00 != 0xDC00).count();
        assert_eq!(utf16::count(src), n);
        let (len, found) = measure::wide(src);
        assert_eq!(found, src.iter().any(|&u| scalar::is_surrogate(u)));
        let expected = naive::to_utf8(Units::Utf16(src), Policy::Strict).ok();
        if let (Some(text), Some(expected)) = (&text, &expected) {
            assert_eq!(len, expected.len());
            for room in [n, n + 40] {
                let (made, got) = into_place(4 * room, |p| utf16::to_ucs4(src, p.cast(), room));
                assert_eq!(made, Some(n));
                assert_eq!(&units(&got, u32::from_ne_bytes)[..n], text);
            }
            // Where the text has grown since it was counted.
            for room in [0, n / 2, n.saturating_sub(1)]
                .into_iter()
                .filter(|&room| room < n)
            {
                let made = into_place(4 * room, |p| utf16::to_ucs4(src, p.cast(), room)).0;
                assert_eq!(made, None);
            }
        }
        check_encoder(expected, 3 * src.len(), |p, room| {
            encode::wide(src, p, room)
        });
    }
}

#[test]
fn utf16_is_decoded_encoded_and_validated_whatever_its_length_and_mix() {
    if is_here() {
        each_utf16(check_utf16);
    }
}

#[test]
fn other_units_are_encoded_whatever_their_length_and_mix() {
    if !is_here() {
        return;
    }
    for n in lengths() {
        for text in texts(n) {
            let mut chars: Vec<u32> = text.chars().map(u32::from).collect();
            let narrow: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
            // SAFETY: AVX2 is there; the places take what is written (so below).
            unsafe {
                assert_eq!(measure::ucs4(&chars), Some(text.len()));
                check_encoder(Some(text.into_bytes()), 0, |p, room| {
                    encode::ucs4(&chars, p, room)
                });
                for at in (0..n).filter(|at| at % 15 < 3) {
                    for c in [0xD800, 0xDFFF, 0x11_0000, u32::MAX] {
                        let kept = std::mem::replace(&mut chars[at], c);
                        assert_eq!(measure::ucs4(&chars), None);
                        check_encoder(None, 4 * n, |p, room| encode::ucs4(&chars, p, room));
                        chars[at] = kept;
                    }
                }
                let expected = naive::to_utf8(Units::Latin1(&narrow), Policy::Strict);
                let expected = expected.expect("Latin-1 has no malformed text");
                assert_eq!(measure::latin1(&narrow), expected.len());
                check_encoder(Some(expected), 0, |p, room| {
                    encode::latin1(&narrow, p, room)
                });
            }
        }
    }
}
