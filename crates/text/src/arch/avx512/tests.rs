//! Each kernel against the slow twin: texts of each width and mix, all lengths around one to four vectors, each place made
//! malformed, places of exactly the size that is written, with canaries on both sides.

use super::*;
use crate::{Kind, Policy, Units, naive};

const CANARY: u8 = 0xA5;

fn is_here() -> bool {
    crate::kernel() == crate::Kernel::Avx512
}

/// Runs `f` into a place of `len` bytes and returns what it wrote there.
fn into_place<R>(len: usize, f: impl FnOnce(*mut u8) -> R) -> (R, Vec<u8>) {
    let shift = 8 * (1 + len * 7 % 16);
    let mut place = vec![CANARY; shift + len + 128];
    // SAFETY: the place goes on for len bytes and more behind shift.
    let result = f(unsafe { place.as_mut_ptr().add(shift) });
    assert!(place[..shift].iter().all(|&b| b == CANARY), "before");
    assert!(place[shift + len..].iter().all(|&b| b == CANARY), "behind");
    (result, place[shift..shift + len].to_vec())
}

/// Texts of `n` characters, one for each mix of widths.
fn texts(n: usize) -> impl Iterator<Item = String> {
    let mixes: [&[char]; 12] = [
        &['a', 'z', '\0'],
        &['é'],
        &['a', 'b', 'é', 'ÿ', '\u{80}'],
        &['Ж'],
        &['Ж', 'я', ' ', '\u{7FF}', '\u{100}'],
        &['東'],
        &[
            '東', '\u{800}', '\u{FFFD}', '\u{FFFF}', '\u{D7FF}', '\u{E000}',
        ],
        &['東', 'a', 'é', 'Ж', 'b'],
        &['😀'],
        &['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', '😀'],
        &['😀', 'a', 'Ж', '東', '\u{10FFFF}', '\u{10000}'],
        &['é', '東', '😀'],
    ];
    mixes.into_iter().map(move |mix| {
        let mut state = n as u64 * 0x9E37_79B9 + mix.len() as u64;
        let next = |state: &mut u64| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (*state >> 33) as usize
        };
        (0..n).map(|_| mix[next(&mut state) % mix.len()]).collect()
    })
}

fn lengths() -> impl Iterator<Item = usize> {
    (0..=140).chain([191, 192, 193, 255, 256, 257, 300, 1000])
}

fn starts(src: &[u8]) -> usize {
    src.iter().filter(|&&b| b & 0xC0 != 0x80).count()
}

fn units<const N: usize, U>(bytes: &[u8], of: fn([u8; N]) -> U) -> Vec<U> {
    let parts = bytes.chunks_exact(N);
    parts.map(|b| of(b.try_into().expect("a chunk"))).collect()
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
    let expect = |good: bool, got: Vec<u32>| match &text {
        Ok(text) => assert_eq!((good, &got), (true, text), "{src:x?}"),
        Err(_) => assert!(!good, "{src:x?}"),
    };
    if max <= 0xC3 {
        // SAFETY: the place takes a unit for each byte that continues nothing (so below).
        let (good, got) = into_place(n, |p| unsafe { utf8::to_latin1::<true>(src, p, n) });
        expect(good, got.into_iter().map(u32::from).collect());
    }
    if max <= 0xEF {
        // SAFETY: AVX-512 is there; the place takes what is written.
        let (good, got) = into_place(2 * n, |p| unsafe {
            utf8::to_ucs2::<true>(src, p.cast(), n)
        });
        let got = units(&got, u16::from_ne_bytes);
        expect(good, got.into_iter().map(u32::from).collect());
        if text.is_ok() {
            // SAFETY: AVX-512 is there; the text is well-formed, and the place takes what is written.
            let (good, got) = into_place(2 * n, |p| unsafe {
                utf8::to_ucs2::<false>(src, p.cast(), n)
            });
            let got = units(&got, u16::from_ne_bytes);
            expect(good, got.into_iter().map(u32::from).collect());
        }
    }
    // SAFETY: AVX-512 is there; the place takes what is written.
    let (good, got) = into_place(4 * n, |p| unsafe {
        utf8::to_ucs4::<true>(src, p.cast(), n)
    });
    expect(good, units(&got, u32::from_ne_bytes));
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
    let (good, got) = into_place(4 * n, |p| unsafe { utf16::to_ucs4(src, p.cast(), n) });
    match &text {
        Ok(text) => assert_eq!((good, &units(&got, u32::from_ne_bytes)), (true, text)),
        Err(_) => assert!(!good, "{src:x?}"),
    }
    for (pairs, units) in [(true, Units::Utf16(src)), (false, Units::Ucs2(src))] {
        let expected = naive::to_utf8(units, Policy::Strict).ok();
        // Text before the first malformed unit, and the room for what a vector may hold of it.
        let room = expected.as_ref().map_or(3 * src.len(), Vec::len);
        let (got, bytes) = into_place(room, |p| {
            if pairs {
                // SAFETY: AVX-512 is there; the place takes what is written.
                unsafe { encode::wide::<true>(src, p, room) }
            } else {
                // SAFETY: AVX-512 is there; the place takes what is written.
                unsafe { encode::wide::<false>(src, p, room) }
            }
        });
        assert_eq!(
            got.map(|n| bytes[..n].to_vec()),
            expected,
            "{src:x?} {pairs}"
        );
    }
}

#[test]
fn utf16_is_decoded_encoded_and_validated_whatever_its_length_and_mix() {
    if !is_here() {
        return;
    }
    let harm = [
        0x41, 0xE9, 0x416, 0x6771, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000,
    ];
    for n in lengths() {
        for text in texts(n) {
            let mut wide: Vec<u16> = text.encode_utf16().collect();
            for at in 0..3.min(wide.len() + 1) {
                check_utf16(&wide[at..]);
            }
            for at in
                (0..wide.len()).filter(|at| n < 70 && (at % 13 == 0 || at % 32 < 2 || at % 32 > 29))
            {
                let kept = wide[at];
                for u in harm {
                    wide[at] = u;
                    check_utf16(&wide);
                }
                wide[at] = kept;
                check_utf16(&wide[..at]);
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
