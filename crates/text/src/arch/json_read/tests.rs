//! Compares the scans of the JSON reader with plain implementations. Each comparison runs for three
//! kernel families: the best one, AVX2, and the one for every processor.

use super::super::cell::tests::AtEnd;
use super::super::dispatch::with_kernels;
#[cfg(target_arch = "x86_64")]
use super::super::family::with_avx2;
use super::super::family::{Common, Kernels, Work};
use super::*;

/// Calls `$check` once for each kernel family that the processor supports.
macro_rules! on_each {
    ($check:ident, $text:expr) => {{
        struct Check<'a, U>(&'a [U]);
        impl<'a> Work for Check<'a, Unit> {
            type Output = ();
            #[inline(always)]
            fn run<K: Kernels>(self, kernels: K) {
                $check(kernels, self.0);
            }
        }
        with_kernels(Check($text));
        #[cfg(target_arch = "x86_64")]
        with_avx2(Check($text));
        $check(Common, $text);
    }};
}

struct NumberGenerator(u64);

impl NumberGenerator {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Returns `n_texts` random texts of fewer than 200 bytes. Most bytes are `bytes[0]`, the others
/// are random items of `bytes`.
fn texts(bytes: &[u8], n_texts: usize) -> impl Iterator<Item = Box<[u8]>> {
    let bytes = bytes.to_vec();
    let mut next = NumberGenerator(bytes.len() as u64);
    (0..n_texts).map(move |i| {
        let rare = 1 + next.below(60);
        (0..i % 200)
            .map(|_| match next.below(rare) {
                0 => bytes[next.below(bytes.len())],
                _ => bytes[0],
            })
            .collect()
    })
}

#[test]
fn plain_text_ends_at_the_first_byte_that_is_not_plain() {
    type Unit = u8;
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        let end = text
            .iter()
            .position(|&b| b < 0x20 || b == b'"' || b == b'\\');
        let plain = &text[..end.unwrap_or(text.len())];
        let found = kernels.plain_u8(text);
        match found {
            Plain::Ascii(found) => assert_eq!(found.bytes(), plain),
            Plain::Other(found) => assert_eq!(found, plain),
        }
        assert_eq!(matches!(found, Plain::Ascii(_)), plain.is_ascii());
        assert_eq!(found.len(), plain.len());
        // One scanner is used for many positions, some of which are skipped.
        let (mut scan, mut at) = (Scan::new(kernels, text), 0);
        while at <= text.len() {
            assert_eq!(scan.plain(at), Common.plain_u8(&text[at..]));
            at += 1 + at % 5;
        }
        assert_eq!(kernels.look(text), scalar::look(text));
    }
    for text in texts(b"a\"\\\x1f\0\xff\x7f ", 4000) {
        on_each!(check, &text);
    }
}

#[test]
fn plain_text_of_wide_units_ends_at_the_first_unit_that_is_not_plain() {
    fn check16<K: Kernels>(kernels: K, text: &[u16]) {
        let end = text
            .iter()
            .position(|&u| u < 0x20 || u == 0x22 || u == 0x5C);
        let plain = &text[..end.unwrap_or(text.len())];
        let is_ascii = plain.iter().all(|&u| u < 0x80);
        assert_eq!(kernels.plain_u16(text), (plain.len(), is_ascii));
    }
    fn check32<K: Kernels>(kernels: K, text: &[u32]) {
        let end = text
            .iter()
            .position(|&u| u < 0x20 || u == 0x22 || u == 0x5C);
        let plain = &text[..end.unwrap_or(text.len())];
        let is_ascii = plain.iter().all(|&u| u < 0x80);
        assert_eq!(kernels.plain_u32(text), (plain.len(), is_ascii));
    }
    for text in texts(b"a\"\\\x1f\0\xff\x7f\x80", 4000) {
        // Each byte occurs once unchanged, and once as the low half of a wider non-ASCII unit.
        let wide =
            |i: usize, b: u8| u32::from(b) | if i % 9 == 8 && b == b'"' { 0x2200 } else { 0 };
        let wide: Vec<u32> = text.iter().enumerate().map(|(i, &b)| wide(i, b)).collect();
        let units: Box<[u16]> = wide.iter().map(|&u| u as u16).collect();
        {
            type Unit = u16;
            on_each!(check16, &units);
        }
        type Unit = u32;
        let wide = wide.into_boxed_slice();
        on_each!(check32, &wide);
    }
}

#[test]
fn white_space_is_counted() {
    type Unit = u8;
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        let end = text.iter().position(|b| !b" \n\r\t".contains(b));
        assert_eq!(kernels.blank_u8(text), end.unwrap_or(text.len()));
        let mut scan = Scan::new(kernels, text);
        for at in 0..=text.len() {
            assert_eq!(scan.blank(at), Common.blank_u8(&text[at..]));
        }
    }
    for text in texts(b" \n\r\t\n\r\ta\x0b\x0c\0\xa0", 3000) {
        on_each!(check, &text);
    }
}

#[test]
fn short_numbers_are_those_of_the_grammar() {
    type Unit = u8;
    /// Reads the number at the start of `text` digit by digit. It is the expected result of
    /// `short_number`.
    fn expected(text: &[u8]) -> Option<ShortNumber> {
        let count = |from: &[u8]| from.iter().take_while(|b| b.is_ascii_digit()).count();
        let n_before = count(text);
        let mut len = n_before;
        let mut n_after = 0;
        if text.get(len) == Some(&b'.') {
            n_after = count(&text[len + 1..]);
            if n_after == 0 {
                return None;
            }
            len += 1 + n_after;
        }
        let next = *text.get(len)?;
        let is_good = n_before > 0
            && !(n_before > 1 && text[0] == b'0')
            && n_before + n_after <= 19
            && !b"eE".contains(&next);
        let digits = text[..len].iter().filter(|&&b| b != b'.');
        is_good.then(|| ShortNumber {
            len,
            digits: digits.fold(0, |n, &b| n * 10 + u64::from(b - b'0')),
            n_after,
        })
    }
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        let said = String::from_utf8_lossy(text);
        assert_eq!(
            Scan::new(kernels, text).short_number(0),
            expected(text),
            "{said}"
        );
        // One scanner is used for all positions.
        let mut scan = Scan::new(kernels, text);
        for at in 0..text.len() {
            assert_eq!(scan.short_number(at), expected(&text[at..]), "{said} {at}");
            assert_eq!(
                scalar::short_number(&text[at..]),
                expected(&text[at..]),
                "{said} {at}"
            );
        }
    }
    let mut next = NumberGenerator(7);
    for i in 0..20_000 {
        let n = i % 45;
        let dots = 1 + next.below(30);
        let mut text: Vec<u8> = (0..n).map(|_| b'0' + next.below(10) as u8).collect();
        if n > 0 {
            for _ in 0..next.below(3) {
                let at = next.below(n.min(dots));
                text[at] = b".,e]E0 "[next.below(7)];
            }
        }
        on_each!(check, text.as_slice());
        text.push(b',');
        on_each!(check, text.as_slice());
    }
    for text in [
        "9999999999999999999,",
        "0,",
        "0.0,",
        "00,",
        ".5,",
        "1.,",
        "18446744073709551615,",
    ] {
        on_each!(check, text.as_bytes());
    }
}

#[test]
fn the_closing_quote_is_the_first_that_no_backslash_escapes() {
    type Unit = u8;
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        let mut at = 0;
        let expected = loop {
            match text.get(at) {
                Some(b'"') => break Some(at),
                Some(b'\\') if text.get(at + 1).is_some_and(|&b| b >= 0x20) => at += 2,
                None | Some(b'\\' | 0..0x20) => break None,
                Some(_) => at += 1,
            }
        };
        assert_eq!(kernels.closing_quote_u8(text), expected, "{text:?}");
    }
    for text in texts(b"a\\\\\\\\\\\"", 8000).chain(texts(b"\\\\a\"", 4000)) {
        on_each!(check, &text);
    }
    for text in texts(b"a\\\\\"\x1f\n", 2000) {
        on_each!(check, &text);
    }
}

#[test]
fn escapes_of_one_letter_are_replaced_up_to_one_that_is_not() {
    type Unit = u8;
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        let (mut read, mut expected) = (0, Vec::new());
        while read < text.len() {
            if text[read] != b'\\' {
                expected.push(text[read]);
                read += 1;
                continue;
            }
            let pairs = b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
            let Some(&letter) = text.get(read + 1) else {
                break;
            };
            let Some(pair) = pairs.chunks(2).find(|pair| pair[0] == letter) else {
                break;
            };
            expected.push(pair[1]);
            read += 2;
        }
        for more in [0, 7, 64, 200] {
            check_in(kernels, text, text.len() + more, read, &expected);
        }
    }
    fn check_in<K: Kernels>(
        kernels: K,
        text: &[u8],
        capacity: usize,
        read: usize,
        expected: &[u8],
    ) {
        let mut out = vec![0xA5; capacity + 80];
        let (buffer, canaries) = out.split_at_mut(capacity);
        let made = kernels.unescape_u8(text, buffer);
        let n_written = expected.len();
        assert_eq!(
            made,
            UnescapedLength {
                n_read: read,
                n_written
            },
            "{text:?}"
        );
        assert_eq!(&buffer[..n_written], expected);
        assert!(canaries.iter().all(|&b| b == 0xA5), "canaries");
    }
    for text in texts(b"a\\\\\\\\n\"/bfrt\xc3", 8000).chain(texts(b"\\n\\", 2000)) {
        on_each!(check, &text);
    }
    for text in texts(b"a\\\\ux\xee", 4000) {
        on_each!(check, &text);
    }
}

#[test]
fn a_text_starts_with_another_if_all_its_bytes_match() {
    type Unit = u8;
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        for n in 0..text.len() + 2 {
            let mut other = text[..n.min(text.len())].to_vec();
            other.resize(n, b'x');
            assert_eq!(kernels.starts_with(text, &other), text.starts_with(&other));
            if let Some(last) = other.last_mut() {
                *last ^= 1;
                assert_eq!(kernels.starts_with(text, &other), text.starts_with(&other));
            }
        }
    }
    for text in texts(b"ab\"", 400) {
        if text.len() <= 64 {
            on_each!(check_copy, &text);
        }
        on_each!(check, &text);
    }
}

#[test]
fn texts_at_the_end_of_a_page_are_read_alike() {
    type Unit = u8;
    fn check<K: Kernels>(kernels: K, text: &[u8]) {
        for at in 0..=text.len() {
            let rest = &text[at..];
            assert_eq!(kernels.plain_u8(rest), Common.plain_u8(rest));
            assert_eq!(kernels.blank_u8(rest), Common.blank_u8(rest));
            assert_eq!(kernels.look(rest), Common.look(rest));
            assert_eq!(
                kernels.closing_quote_u8(rest),
                Common.closing_quote_u8(rest)
            );
            assert!(kernels.starts_with(rest, rest));
            let (mut one, mut other) = (vec![0; 300], vec![0; 300]);
            let made = kernels.unescape_u8(rest, &mut one);
            assert_eq!(made, Common.unescape_u8(rest, &mut other));
            assert_eq!(one[..made.n_written], other[..made.n_written]);
        }
        // SAFETY: any bits are valid units.
        let (_, two, _) = unsafe { text.align_to() };
        assert_eq!(kernels.plain_u16(two), Common.plain_u16(two));
        // SAFETY: any bits are valid units.
        let (_, four, _) = unsafe { text.align_to() };
        assert_eq!(kernels.plain_u32(four), Common.plain_u32(four));
    }
    let end = AtEnd::new();
    for text in texts(b"a\\n\"a\xe9 \t", 400).chain(texts(b" 1\n\\\"", 400)) {
        end.with(&text, |text| on_each!(check, text));
    }
}

/// Copies the text into a buffer between canaries, and checks the copy and the canaries.
fn check_copy<K: Kernels>(kernels: K, text: &[u8]) {
    let mut buffer = vec![0xA5; text.len() + 128];
    // SAFETY: the buffer has space after its 64th byte.
    unsafe { kernels.copy_half(text, buffer.as_mut_ptr().add(64)) };
    let (before, after) = (&buffer[..64], &buffer[64 + text.len()..]);
    assert!(before.iter().chain(after).all(|&b| b == 0xA5), "canaries");
    assert_eq!(&buffer[64..64 + text.len()], text);
}
