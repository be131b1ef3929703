//! Tests the AVX2 kernels against the reference implementation.

use super::*;
use crate::arch::memory::destination;
use crate::arch::scalar;
use crate::arch::skips::can_test;
use crate::arch::test_texts::{each_utf16, into_buffer, lengths, starts, texts, units};
use crate::{Policy, Units, naive};

fn is_here() -> bool {
    can_test("avx2", crate::kernel() >= crate::Kernel::Avx2)
}

fn code_points(units: Units<'_>) -> Option<Vec<u32>> {
    naive::decode(units, Policy::Strict).ok()
}

/// Tests the validating kernels with possibly malformed bytes. A kernel runs only if its units can
/// store the text.
fn check_checked(src: &[u8]) {
    let text = code_points(Units::Utf8(src));
    let n = starts(src);
    let max = src.iter().copied().max().unwrap_or(0);
    for capacity in [n, n + 40] {
        if max <= 0xC3 {
            let (made, got) =
                // SAFETY: AVX2 is available. The buffer has a unit for each character.
                into_buffer(capacity, |p| unsafe { utf8::to_latin1_checked(src, destination(p, capacity)) });
            let got = made.map(|n| got[..n].iter().map(|&u| u.into()).collect());
            assert_eq!(got, text, "{src:x?}");
        }
    }
    check_utf8_to_utf16(src, max);
}

/// Tests the conversion from UTF-8 to UTF-16 with buffers of several sizes.
fn check_utf8_to_utf16(src: &[u8], max: u8) {
    let expected = naive::to_utf16(Units::Utf8(src), Policy::Strict);
    // SAFETY: AVX2 is available.
    let n_units = unsafe { utf8::units_of(src) };
    if let Ok(expected) = &expected {
        assert_eq!(n_units, expected.len());
    }
    let see = |capacity: usize,
               convert: unsafe fn(&[u8], &mut [MaybeUninit<u16>]) -> Option<usize>| {
        // SAFETY: the buffer has one unit for each character, and one more for each of four bytes.
        let (n, got) = into_buffer(2 * capacity, |p| unsafe {
            convert(src, destination(p.cast(), capacity))
        });
        let got = n.map(|n| units(&got[..2 * n], u16::from_ne_bytes));
        assert_eq!(got.as_ref(), expected.as_ref().ok(), "{src:x?}");
    };
    for capacity in [n_units, n_units + 40, src.len()] {
        see(capacity, utf8::to_utf16::<true, true>);
        if max <= 0xEF {
            see(capacity, utf8::to_utf16::<true, false>);
        }
        if expected.is_ok() {
            see(capacity, utf8::to_utf16::<false, true>);
            if max <= 0xEF {
                see(capacity, utf8::to_utf16::<false, false>);
            }
        }
    }
}

/// Decodes `src` to each unit width that can store it. The buffer has the exact or a larger size.
fn check_utf8(src: &[u8]) {
    check_checked(src);
    let Some(text) = code_points(Units::Utf8(src)) else {
        return;
    };
    let n = text.len();
    assert_eq!(starts(src), n);
    let max = text.iter().copied().max().unwrap_or(0);
    for capacity in [n, n + 40] {
        if max <= 0xFF {
            // SAFETY: AVX2 is available. The buffer has space for the result.
            let (made, got) = into_buffer(capacity, |p| unsafe {
                utf8::to_latin1(src, destination(p, capacity))
            });
            assert_eq!(made, Some(n));
            assert!(
                got[..n]
                    .iter()
                    .map(|&u| u32::from(u))
                    .eq(text.iter().copied())
            );
        }
        let (made, got) =
            // SAFETY: AVX2 is available. The buffer has space for the result.
            into_buffer(4 * capacity, |p| unsafe { utf8::to_ucs4(src, destination(p.cast(), capacity)) });
        assert_eq!(made, Some(n));
        assert_eq!(units(&got, u32::from_ne_bytes)[..n], text);
    }
    // A text can grow after its units were counted. The buffer is then too small.
    for capacity in [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter(|&capacity| capacity < n)
    {
        if max <= 0xFF {
            // SAFETY: AVX2 is available; the kernel receives the capacity.
            let made = into_buffer(capacity, |p| unsafe {
                utf8::to_latin1(src, destination(p, capacity))
            })
            .0;
            assert_eq!(made, None);
        }
        let made =
            // SAFETY: AVX2 is available; the kernel receives the capacity.
            into_buffer(4 * capacity, |p| unsafe { utf8::to_ucs4(src, destination(p.cast(), capacity)) }).0;
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
fn malformed_utf8_is_found_at_each_position() {
    if !is_here() {
        return;
    }
    // The bytes around each limit in table 3-7 of the Unicode standard.
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
fn a_run_of_three_bytes_ends_at_a_character_of_another_length_at_each_position() {
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

/// Tests an encoder with buffers of the exact, a larger and a smaller size.
fn check_encoder(
    expected: Option<Vec<u8>>,
    most: usize,
    mut encode: impl FnMut(*mut u8, usize) -> Option<usize>,
) {
    let Some(expected) = expected else {
        for capacity in [most, most / 2, most / 3] {
            assert_eq!(into_buffer(capacity, |p| encode(p, capacity)).0, None);
        }
        return;
    };
    let n = expected.len();
    for capacity in [n, n + 1, n + 40] {
        let (got, bytes) = into_buffer(capacity, |p| encode(p, capacity));
        assert_eq!(got, Some(n));
        assert_eq!(bytes[..n], expected);
    }
    for capacity in [n.saturating_sub(1), n / 2] {
        if capacity < n {
            assert_eq!(into_buffer(capacity, |p| encode(p, capacity)).0, None);
        }
    }
}

/// Compares the AVX2 functions for UTF-16 with the reference.
fn check_utf16(src: &[u16]) {
    let text = code_points(Units::Utf16(src));
    // SAFETY: AVX2 is available. The buffers have space for the results.
    unsafe {
        assert_eq!(utf16::is_valid(src), text.is_some(), "{src:x?}");
        let n = src.iter().filter(|&&u| u & 0xFC00 != 0xDC00).count();
        assert_eq!(utf16::count(src), n);
        let (len, found) = utf8_len::wide(src);
        assert_eq!(found, src.iter().any(|&u| scalar::is_surrogate(u)));
        let expected = naive::to_utf8(Units::Utf16(src), Policy::Strict).ok();
        if let (Some(text), Some(expected)) = (&text, &expected) {
            assert_eq!(len, expected.len());
            for capacity in [n, n + 40] {
                let (made, got) = into_buffer(4 * capacity, |p| {
                    utf16::to_ucs4(src, destination(p.cast(), capacity))
                });
                assert_eq!(made, Some(n));
                assert_eq!(&units(&got, u32::from_ne_bytes)[..n], text);
            }
            // A text can grow after its units were counted. The buffer is then too small.
            for capacity in [0, n / 2, n.saturating_sub(1)]
                .into_iter()
                .filter(|&capacity| capacity < n)
            {
                let made = into_buffer(4 * capacity, |p| {
                    utf16::to_ucs4(src, destination(p.cast(), capacity))
                })
                .0;
                assert_eq!(made, None);
            }
        }
        check_encoder(expected, 3 * src.len(), |p, capacity| {
            encode::wide(src, destination(p, capacity))
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
            // SAFETY: AVX2 is available. The buffers have space for the results.
            unsafe {
                assert_eq!(utf8_len::ucs4(&chars), Some(text.len()));
                check_encoder(Some(text.into_bytes()), 0, |p, capacity| {
                    encode::ucs4(&chars, destination(p, capacity))
                });
                for at in (0..n).filter(|at| at % 15 < 3) {
                    for c in [0xD800, 0xDFFF, 0x11_0000, u32::MAX] {
                        let kept = std::mem::replace(&mut chars[at], c);
                        assert_eq!(utf8_len::ucs4(&chars), None);
                        check_encoder(None, 4 * n, |p, capacity| {
                            encode::ucs4(&chars, destination(p, capacity))
                        });
                        chars[at] = kept;
                    }
                }
                let expected = naive::to_utf8(Units::Latin1(&narrow), Policy::Strict);
                let expected = expected.expect("Latin-1 has no malformed text");
                assert_eq!(utf8_len::latin1(&narrow), expected.len());
                check_encoder(Some(expected), 0, |p, capacity| {
                    encode::latin1(&narrow, destination(p, capacity))
                });
            }
        }
    }
}
