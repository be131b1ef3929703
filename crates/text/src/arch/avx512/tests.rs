//! Each kernel against the slow twin, each place made malformed.

use super::*;
use crate::arch::scalar;
use crate::arch::skips::can_test;
use crate::arch::texts::{each_utf16, into_place, lengths, starts, texts, units};
use crate::{Kind, Policy, Units, naive};

fn is_here() -> bool {
    can_test("avx512", crate::kernel() == crate::Kernel::Avx512)
}

/// All that can be asked of one text of UTF-8, well-formed or not.
fn check_utf8(src: &[u8]) {
    let text = naive::decode(Units::Utf8(src), Policy::Strict);
    let shape = naive::shape(Units::Utf8(src), Policy::Strict);
    // SAFETY: AVX-512 is there (so below).
    let measured = unsafe { utf8::measure(src) };
    assert_eq!(
        measured,
        shape.ok().map(|s| (s.kind, s.n_chars)),
        "{src:x?}"
    );
    let (n, max) = (starts(src), src.iter().copied().max().unwrap_or(0));
    let expect = |made: Option<usize>, got: Vec<u32>| match &text {
        Ok(text) => assert_eq!((made, &got), (Some(n), text), "{src:x?}"),
        Err(_) => assert_eq!(made, None, "{src:x?}"),
    };
    if max <= 0xC3 {
        // SAFETY: the place takes a unit for each byte that continues nothing (so below).
        let (made, got) = into_place(n, |p| unsafe { utf8::to_latin1::<true>(src, p, n) });
        expect(made, got.into_iter().map(u32::from).collect());
    }
    check_utf8_to_utf16(src, max);
    // SAFETY: AVX-512 is there; the place takes what is written.
    let (made, got) = into_place(4 * n, |p| unsafe {
        utf8::to_ucs4::<true>(src, p.cast(), n)
    });
    expect(made, units(&got, u32::from_ne_bytes));
    // Where the text has grown since it was counted.
    for room in [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter(|&room| room < n)
    {
        if max <= 0xC3 {
            // SAFETY: AVX-512 is there; the kernel knows the room.
            let made = into_place(room, |p| unsafe { utf8::to_latin1::<true>(src, p, room) }).0;
            assert_eq!(made, None);
        }
        // SAFETY: AVX-512 is there; the kernel knows the room.
        let made = into_place(4 * room, |p| unsafe {
            utf8::to_ucs4::<true>(src, p.cast(), room)
        })
        .0;
        assert_eq!(made, None);
        // SAFETY: AVX-512 is there; the kernel knows the room.
        let made = into_place(2 * room, |p| unsafe {
            utf8::to_utf16::<true, true>(src, p.cast(), room)
        })
        .0;
        assert_eq!(made, None);
    }
}

/// UTF-8 to UTF-16, with and without pairs, into a place of just the size and one with a unit for each byte.
fn check_utf8_to_utf16(src: &[u8], max: u8) {
    let expected = naive::to_utf16(Units::Utf8(src), Policy::Strict);
    // SAFETY: AVX-512 is there (so below).
    let n_units = unsafe { utf8::units_of(src) };
    let see = |room: usize, convert: unsafe fn(&[u8], *mut u16, usize) -> Option<usize>| {
        // SAFETY: the place takes a unit for each byte, or each that begins something and each third one of a sequence of four.
        let (n, got) = into_place(2 * room, |p| unsafe { convert(src, p.cast(), room) });
        let got = n.map(|n| units(&got[..2 * n], u16::from_ne_bytes));
        assert_eq!(got.as_ref(), expected.as_ref().ok(), "{src:x?}");
    };
    for room in [n_units, src.len()] {
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
fn malformed_utf8_is_seen_at_each_place() {
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
fn a_run_of_three_bytes_ends_at_a_character_of_another_length_wherever_it_stands() {
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
fn every_lead_and_second_byte_is_told_as_the_standard_tells_it() {
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

/// All that can be asked of one text of UTF-16 and of the same units as UCS-2.
fn check_utf16(src: &[u16]) {
    let text = naive::decode(Units::Utf16(src), Policy::Strict);
    let n = src.iter().filter(|&&u| u & 0xFC00 != 0xDC00).count();
    // SAFETY: AVX-512 is there; the places take what is written (so below).
    assert_eq!(unsafe { utf16::count(src) }, n);
    // SAFETY: AVX-512 is there; the place takes what is written.
    let (made, got) = into_place(4 * n, |p| unsafe { utf16::to_ucs4(src, p.cast(), n) });
    match &text {
        Ok(text) => assert_eq!((made, &units(&got, u32::from_ne_bytes)), (Some(n), text)),
        Err(_) => assert_eq!(made, None, "{src:x?}"),
    }
    // Where the text has grown since it was counted.
    for room in [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter(|&room| room < n)
    {
        // SAFETY: AVX-512 is there; the kernel knows the room.
        let made = into_place(4 * room, |p| unsafe { utf16::to_ucs4(src, p.cast(), room) }).0;
        assert_eq!(made, None);
    }
    // SAFETY: AVX-512 is there.
    assert_eq!(unsafe { measure::is_utf16(src) }, text.is_ok());
    let expected = naive::to_utf8(Units::Utf16(src), Policy::Strict).ok();
    // SAFETY: AVX-512 is there.
    let (len, found) = unsafe { measure::wide(src) };
    assert_eq!(found, src.iter().any(|&u| scalar::is_surrogate(u)));
    if let Some(expected) = &expected {
        assert_eq!(len, expected.len());
    }
    let room = expected.as_ref().map_or(3 * src.len(), Vec::len);
    for room in [room, room + 70] {
        // SAFETY: AVX-512 is there; the place takes what is written.
        let (got, bytes) = into_place(room, |p| unsafe { encode::wide(src, p, room) });
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
fn pairs_on_the_border_of_vectors_are_whole_beside_characters_of_each_length() {
    if !is_here() {
        return;
    }
    let letters = ['a', 'é', '東'];
    for n_before in 28..=36 {
        for n_pairs in 1..=3 {
            for (before, behind) in letters.map(|b| letters.map(|a| (b, a))).concat() {
                for n_behind in [0, 1, 2, 30, 40] {
                    let text = [(before, n_before), ('😀', n_pairs), (behind, n_behind)];
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
            // SAFETY: AVX-512 is there; the places take what is written (so below).
            assert_eq!(unsafe { measure::ucs4(&chars) }, Some(utf8.len()));
            let room = utf8.len();
            // SAFETY: AVX-512 is there; the place takes what is written.
            let (got, bytes) = into_place(room, |p| unsafe { encode::ucs4(&chars, p, room) });
            assert_eq!((got, &bytes), (Some(room), &utf8));
            for at in (0..n).filter(|at| at % 15 < 3) {
                for c in [0xD800, 0xDFFF, 0x11_0000, u32::MAX] {
                    let kept = std::mem::replace(&mut chars[at], c);
                    // SAFETY: AVX-512 is there; the place takes what is written.
                    let (got, _) = into_place(4 * n, |p| unsafe { encode::ucs4(&chars, p, 4 * n) });
                    assert_eq!(got, None);
                    // SAFETY: AVX-512 is there.
                    assert_eq!(unsafe { measure::ucs4(&chars) }, None);
                    chars[at] = kept;
                }
            }
            let narrow: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
            let expected = naive::to_utf8(Units::Latin1(&narrow), Policy::Strict);
            let expected = expected.expect("Latin-1 has no malformed text");
            let room = expected.len();
            // SAFETY: AVX-512 is there; the place takes what is written.
            let (got, bytes) = into_place(room, |p| unsafe { encode::latin1(&narrow, p, room) });
            assert_eq!((got, bytes), (Some(room), expected));
        }
    }
}

#[test]
fn copies_go_on_while_the_text_is_what_it_was_taken_for() {
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
                let place = wide.get_mut(at).map(|p| std::mem::replace(p, unit));
                let bytes: Vec<u8> = wide.iter().map(|&u| u.min(0xFF) as u8).collect();
                let whole = |good: bool| good || place.is_none();
                let check = |done: usize, good: bool| {
                    assert_eq!(done == n, whole(good), "{n} {at} {unit:x}");
                    assert!(done <= at || whole(good));
                    assert!(done == n || at - done < 2 * BYTES);
                };
                // SAFETY: AVX-512 is there; the places take a unit for each unit (so below).
                let (done, got) = into_place(n, |p| unsafe { copy_ascii(&bytes, p) });
                check(done, ascii);
                assert_eq!(got[..done], bytes[..done]);
                // SAFETY: AVX-512 is there; the place takes what is written.
                let (done, got) = into_place(n, |p| unsafe { narrow_up_to::<0x7F>(&wide, p) });
                check(done, ascii);
                assert_eq!(got[..done], bytes[..done]);
                // SAFETY: AVX-512 is there; the place takes what is written.
                let (done, got) = into_place(n, |p| unsafe { narrow_up_to::<0xFF>(&wide, p) });
                check(done, latin1);
                assert_eq!(got[..done], bytes[..done]);
                // SAFETY: AVX-512 is there; the place takes what is written.
                let (done, got) = into_place(2 * n, |p| unsafe { copy_bmp(&wide, p.cast()) });
                check(done, bmp);
                assert_eq!(units(&got, u16::from_ne_bytes)[..done], wide[..done]);
                if let Some(kept) = place {
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
        // SAFETY: AVX-512 is there.
        let measured = unsafe { utf8::measure(text.as_bytes()) };
        assert_eq!(measured, Some((kind, text.chars().count())));
    }
}
