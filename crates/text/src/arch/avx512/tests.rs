//! Tests each AVX-512 kernel against the reference implementation. Some texts are malformed at each
//! position.

use std::mem::MaybeUninit;

use super::*;
use crate::arch::memory::destination;
use crate::arch::scalar;
use crate::arch::skips::can_test;
use crate::arch::test_texts::{each_utf16, into_buffer, lengths, starts, texts, units};
use crate::{Kind, Policy, Shape, Units, naive};

fn is_here() -> bool {
    can_test("avx512", crate::kernel() == crate::Kernel::Avx512)
}

fn check_utf8(src: &[u8]) {
    let text = naive::decode(Units::Utf8(src), Policy::Strict);
    let shape = naive::shape(Units::Utf8(src), Policy::Strict);
    // SAFETY: AVX-512 is available.
    let measured = unsafe { utf8::measure(src) };
    assert_eq!(measured, shape.ok(), "{src:x?}");
    let (n, max) = (starts(src), src.iter().copied().max().unwrap_or(0));
    let expect = |made: Option<usize>, got: Vec<u32>| match &text {
        Ok(text) => assert_eq!((made, &got), (Some(n), text), "{src:x?}"),
        Err(_) => assert_eq!(made, None, "{src:x?}"),
    };
    if max <= 0xC3 {
        // SAFETY: the buffer has a unit for each character.
        let (made, got) = into_buffer(n, |p| unsafe {
            utf8::to_latin1::<true>(src, destination(p, n))
        });
        expect(made, got.into_iter().map(u32::from).collect());
    }
    check_utf8_to_utf16(src, max);
    // SAFETY: AVX-512 is available. The buffer has space for the result.
    let (made, got) = into_buffer(4 * n, |p| unsafe {
        utf8::to_ucs4::<true>(src, destination(p.cast(), n))
    });
    expect(made, units(&got, u32::from_ne_bytes));
    // A text can grow after its units were counted. The buffer is then too small.
    for capacity in [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter(|&capacity| capacity < n)
    {
        if max <= 0xC3 {
            // SAFETY: AVX-512 is available; the kernel receives the capacity.
            let made = into_buffer(capacity, |p| unsafe {
                utf8::to_latin1::<true>(src, destination(p, capacity))
            })
            .0;
            assert_eq!(made, None);
        }
        // SAFETY: AVX-512 is available; the kernel receives the capacity.
        let made = into_buffer(4 * capacity, |p| unsafe {
            utf8::to_ucs4::<true>(src, destination(p.cast(), capacity))
        })
        .0;
        assert_eq!(made, None);
        // SAFETY: AVX-512 is available; the kernel receives the capacity.
        let made = into_buffer(2 * capacity, |p| unsafe {
            utf8::to_utf16::<true, true>(src, destination(p.cast(), capacity))
        })
        .0;
        assert_eq!(made, None);
    }
}

/// Converts UTF-8 to UTF-16 into a buffer of the exact size, and into a larger one.
fn check_utf8_to_utf16(src: &[u8], max: u8) {
    let expected = naive::to_utf16(Units::Utf8(src), Policy::Strict);
    // SAFETY: AVX-512 is available.
    let n_units = unsafe { utf8::units_of(src) };
    let see = |capacity: usize,
               convert: unsafe fn(&[u8], &mut [MaybeUninit<u16>]) -> Option<usize>| {
        // SAFETY: the buffer has at least the measured number of units.
        let (n, got) = into_buffer(2 * capacity, |p| unsafe {
            convert(src, destination(p.cast(), capacity))
        });
        let got = n.map(|n| units(&got[..2 * n], u16::from_ne_bytes));
        assert_eq!(got.as_ref(), expected.as_ref().ok(), "{src:x?}");
    };
    for capacity in [n_units, src.len()] {
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

#[test]
fn utf8_is_decoded_and_validated_whatever_its_length_and_mix() {
    if !is_here() {
        return;
    }
    for n in lengths() {
        for text in texts(n) {
            for at in 0..3.min(text.len() + 1) {
                check_utf8(&text.as_bytes()[at..]);
            }
        }
    }
}

#[test]
fn malformed_utf8_is_found_at_each_position() {
    if !is_here() {
        return;
    }
    let harm = [
        0x00, 0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF,
        0xF0, 0xF4, 0xF5, 0xF8, 0xFF,
    ];
    for n in [1, 2, 3, 5, 15, 21, 22, 31, 32, 61, 62, 63, 64, 65, 66, 100] {
        for text in texts(n) {
            let mut bytes = text.into_bytes();
            for at in (0..bytes.len()).filter(|at| *at < 200 && (*at < 70 || at % 7 == 0)) {
                let kept = bytes[at];
                for b in harm {
                    bytes[at] = b;
                    check_utf8(&bytes);
                }
                bytes[at] = kept;
                check_utf8(&bytes[..at]);
            }
        }
    }
}

#[test]
fn a_run_of_three_bytes_ends_at_a_character_of_another_length_at_each_position() {
    if !is_here() {
        return;
    }
    for n in [20, 21, 22, 43, 64, 65, 110] {
        for other in ['a', 'é', '\u{7FF}', '😀'] {
            for at in 0..n {
                let text: String = (0..n).map(|i| if i == at { other } else { '東' }).collect();
                for from in 0..3 {
                    check_utf8(&text.as_bytes()[from..]);
                }
                for from in ["x", "xy"] {
                    check_utf8((from.to_owned() + &text).as_bytes());
                }
            }
        }
    }
}

#[test]
fn every_lead_and_second_byte_is_validated_as_in_the_standard() {
    if !is_here() {
        return;
    }
    for lead in 0x80..=0xFF_u8 {
        for second in 0..=0xFF_u8 {
            for pad in [0, 58, 59, 60, 61, 62, 63] {
                let mut text = vec![b'x'; pad];
                text.extend([lead, second, 0x80, 0xBF, b'y', b'z']);
                for len in pad + 2..=text.len() {
                    check_utf8(&text[..len]);
                }
            }
        }
    }
}

/// Tests a text as UTF-16 and as UCS-2.
fn check_utf16(src: &[u16]) {
    let text = naive::decode(Units::Utf16(src), Policy::Strict);
    let n = src.iter().filter(|&&u| u & 0xFC00 != 0xDC00).count();
    // SAFETY: AVX-512 is available. The buffers have space for the results.
    assert_eq!(unsafe { utf16::count(src) }, n);
    // SAFETY: AVX-512 is available. The buffer has space for the result.
    let (made, got) = into_buffer(4 * n, |p| unsafe {
        utf16::to_ucs4(src, destination(p.cast(), n))
    });
    match &text {
        Ok(text) => assert_eq!((made, &units(&got, u32::from_ne_bytes)), (Some(n), text)),
        Err(_) => assert_eq!(made, None, "{src:x?}"),
    }
    // A text can grow after its units were counted. The buffer is then too small.
    for capacity in [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter(|&capacity| capacity < n)
    {
        // SAFETY: AVX-512 is available; the kernel receives the capacity.
        let made = into_buffer(4 * capacity, |p| unsafe {
            utf16::to_ucs4(src, destination(p.cast(), capacity))
        })
        .0;
        assert_eq!(made, None);
    }
    // SAFETY: AVX-512 is available.
    assert_eq!(unsafe { utf8_len::is_utf16(src) }, text.is_ok());
    let expected = naive::to_utf8(Units::Utf16(src), Policy::Strict).ok();
    // SAFETY: AVX-512 is available.
    let (len, found) = unsafe { utf8_len::wide(src) };
    assert_eq!(found, src.iter().any(|&u| scalar::is_surrogate(u)));
    if let Some(expected) = &expected {
        assert_eq!(len, expected.len());
    }
    let capacity = expected.as_ref().map_or(3 * src.len(), Vec::len);
    for capacity in [capacity, capacity + 70] {
        // SAFETY: AVX-512 is available. The buffer has space for the result.
        let (got, bytes) = into_buffer(capacity, |p| unsafe {
            encode::wide(src, destination(p, capacity))
        });
        let got = got.map(|n| bytes[..n].to_vec());
        assert_eq!(got, expected, "{src:x?}");
    }
}

#[test]
fn utf16_is_decoded_encoded_and_validated_whatever_its_length_and_mix() {
    if is_here() {
        each_utf16(check_utf16);
    }
}

#[test]
fn pairs_across_the_end_of_a_vector_are_whole_next_to_characters_of_each_length() {
    if !is_here() {
        return;
    }
    let letters = ['a', 'é', '東'];
    for n_before in 28..=36 {
        for n_pairs in 1..=3 {
            for (before, after) in letters.map(|b| letters.map(|a| (b, a))).concat() {
                for n_after in [0, 1, 2, 30, 40] {
                    let text = [(before, n_before), ('😀', n_pairs), (after, n_after)];
                    let text = text.map(|(c, n)| c.to_string().repeat(n)).concat();
                    for text in [text.clone(), text.clone() + &text] {
                        let mut wide: Vec<u16> = text.encode_utf16().collect();
                        check_utf16(&wide);
                        for at in n_before..n_before + 2 * n_pairs {
                            let kept = std::mem::replace(&mut wide[at], 0x6771);
                            check_utf16(&wide);
                            check_utf16(&wide[..at]);
                            wide[at] = kept;
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn other_units_are_encoded_whatever_their_length_and_mix() {
    if !is_here() {
        return;
    }
    for n in lengths() {
        for text in texts(n) {
            let utf8 = text.as_bytes().to_vec();
            let mut chars: Vec<u32> = text.chars().map(u32::from).collect();
            // SAFETY: AVX-512 is available. The buffers have space for the results.
            assert_eq!(unsafe { utf8_len::ucs4(&chars) }, Some(utf8.len()));
            let capacity = utf8.len();
            let (got, bytes) = into_buffer(capacity, |p| {
                // SAFETY: AVX-512 is available. The buffer has space for the result.
                unsafe { encode::ucs4(&chars, destination(p, capacity)) }
            });
            assert_eq!((got, &bytes), (Some(capacity), &utf8));
            for at in (0..n).filter(|at| at % 15 < 3) {
                for c in [0xD800, 0xDFFF, 0x11_0000, u32::MAX] {
                    let kept = std::mem::replace(&mut chars[at], c);
                    let (got, _) = into_buffer(4 * n, |p| {
                        // SAFETY: AVX-512 is available. The buffer has space for the result.
                        unsafe { encode::ucs4(&chars, destination(p, 4 * n)) }
                    });
                    assert_eq!(got, None);
                    // SAFETY: AVX-512 is available.
                    assert_eq!(unsafe { utf8_len::ucs4(&chars) }, None);
                    chars[at] = kept;
                }
            }
            let narrow: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
            let expected = naive::to_utf8(Units::Latin1(&narrow), Policy::Strict);
            let expected = expected.expect("Latin-1 has no malformed text");
            let capacity = expected.len();
            let (got, bytes) = into_buffer(capacity, |p| {
                // SAFETY: AVX-512 is available. The buffer has space for the result.
                unsafe { encode::latin1(&narrow, destination(p, capacity)) }
            });
            assert_eq!((got, bytes), (Some(capacity), expected));
        }
    }
}

#[test]
fn copies_stop_at_the_first_unit_out_of_range() {
    if !is_here() {
        return;
    }
    for n in lengths() {
        let mut wide: Vec<u16> = (0..n).map(|i| 0x61 + i as u16 % 25).collect();
        for at in (0..=n).filter(|at| n < 130 || at % 61 == 0) {
            for (unit, ascii, latin1, bmp) in [
                (0x7F, true, true, true),
                (0x80, false, true, true),
                (0xFF, false, true, true),
                (0x100, false, false, true),
                (0xFFFF, false, false, true),
                (0xD800, false, false, false),
                (0xDFFF, false, false, false),
            ] {
                let kept = wide.get_mut(at).map(|p| std::mem::replace(p, unit));
                let bytes: Vec<u8> = wide.iter().map(|&u| u.min(0xFF) as u8).collect();
                let whole = |good: bool| good || kept.is_none();
                let check = |done: usize, good: bool| {
                    assert_eq!(done == n, whole(good), "{n} {at} {unit:x}");
                    assert!(done <= at || whole(good));
                    assert!(done == n || at - done < 2 * BYTES);
                };
                let (done, got) = into_buffer(n, |p| {
                    // SAFETY: AVX-512 is available; the buffer has as many units as the text (so
                    // below).
                    unsafe { scan::copy_ascii(&bytes, destination(p, n)) }
                });
                check(done, ascii);
                assert_eq!(got[..done], bytes[..done]);
                // SAFETY: AVX-512 is available. The buffer has space for the result.
                let (done, got) = into_buffer(n, |p| unsafe {
                    scan::narrow_up_to::<0x7F>(&wide, destination(p, n))
                });
                check(done, ascii);
                assert_eq!(got[..done], bytes[..done]);
                // SAFETY: AVX-512 is available. The buffer has space for the result.
                let (done, got) = into_buffer(n, |p| unsafe {
                    scan::narrow_up_to::<0xFF>(&wide, destination(p, n))
                });
                check(done, latin1);
                assert_eq!(got[..done], bytes[..done]);
                // SAFETY: AVX-512 is available. The buffer has space for the result.
                let (done, got) = into_buffer(2 * n, |p| unsafe {
                    scan::copy_bmp(&wide, destination(p.cast(), n))
                });
                check(done, bmp);
                assert_eq!(units(&got, u16::from_ne_bytes)[..done], wide[..done]);
                if let Some(kept) = kept {
                    wide[at] = kept;
                }
            }
        }
    }
}

#[test]
fn the_kind_is_the_narrowest() {
    if !is_here() {
        return;
    }
    for (text, kind) in [
        ("", Kind::Ascii),
        ("a\u{7F}", Kind::Ascii),
        ("a\u{80}", Kind::Latin1),
        ("\u{FF}", Kind::Latin1),
        ("\u{100}", Kind::Ucs2),
        ("\u{FFFF}", Kind::Ucs2),
        ("\u{10000}", Kind::Ucs4),
    ] {
        // SAFETY: AVX-512 is available.
        let measured = unsafe { utf8::measure(text.as_bytes()) };
        let n_chars = text.chars().count();
        assert_eq!(measured, Some(Shape { kind, n_chars }));
    }
}
