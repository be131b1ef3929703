//! Compares the output of each kernel family with the reference implementation. The tests also
//! check that no kernel writes past the end of its output.

use crate::arch::cell::tests::AtEnd;
use crate::arch::dispatch::with_kernels;
#[cfg(target_arch = "x86_64")]
use crate::arch::family::with_avx2;
use crate::arch::family::{JSON_PLAIN_BYTES, JSON_PLAIN_UNITS, JsonKernels, json_capacity};
use crate::arch::family::{Kernels, Work};
use crate::sink::Pen;
use crate::{Policy, Units, naive};

/// A text in units of 8, 16 or 32 bits.
#[derive(Clone, Copy)]
enum JsonText<'a> {
    Latin1(&'a [u8], bool),
    Utf8(&'a [u8]),
    Ucs2(&'a [u16]),
    Ucs4(&'a [u32]),
}

impl<'a> JsonText<'a> {
    fn units(self) -> Units<'a> {
        match self {
            JsonText::Latin1(u, _) => Units::Latin1(u),
            JsonText::Utf8(u) => Units::Utf8(u),
            JsonText::Ucs2(u) => Units::Ucs2(u),
            JsonText::Ucs4(u) => Units::Utf32(u),
        }
    }
}

struct JsonBody<'a>(JsonText<'a>);

impl Work for JsonBody<'_> {
    type Output = Option<Vec<u8>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<Vec<u8>> {
        body(kernels, self.0)
    }
}

/// Returns the JSON that a kernel writes; `None` if it refuses the text.
#[inline(always)]
fn body<K: JsonKernels>(kernels: K, text: JsonText<'_>) -> Option<Vec<u8>> {
    const CANARY: u8 = 0xA5;
    let capacity = json_capacity(text.units().len_units());
    let mut buffer = vec![std::mem::MaybeUninit::new(CANARY); capacity + 64];
    let start = buffer.as_mut_ptr() as usize;
    let mut pen = Pen::new(&mut buffer[..capacity]);
    // SAFETY: the buffer has space for the longest text of these methods.
    let short = unsafe {
        match text {
            JsonText::Latin1(u, true) | JsonText::Utf8(u) if u.len() <= JSON_PLAIN_BYTES => {
                kernels.json_plain(u, pen.at())
            }
            JsonText::Latin1(u, false) => kernels.json_short_latin1(u, pen.at()),
            JsonText::Ucs2(u) => kernels.json_short_ucs2(u, pen.at()),
            _ => None,
        }
    };
    if let Some(end) = short {
        // SAFETY: all bytes before `end` were written.
        return Some(unsafe {
            std::slice::from_raw_parts(pen.at(), end as usize - pen.at() as usize).to_vec()
        });
    }
    let done = match text {
        JsonText::Latin1(u, known) => {
            kernels.put_json_latin1(u, known, &mut pen);
            true
        }
        JsonText::Utf8(u) => {
            kernels.put_json_utf8(u, &mut pen);
            true
        }
        JsonText::Ucs2(u) => kernels.put_json_ucs2(u, &mut pen),
        JsonText::Ucs4(u) => kernels.put_json_ucs4(u, &mut pen),
    };
    let n = pen.at() as usize - start;
    // SAFETY: every byte was initialised at the start.
    let bytes: Vec<u8> = buffer.iter().map(|b| unsafe { b.assume_init() }).collect();
    assert!(
        bytes[capacity..].iter().all(|&b| b == CANARY),
        "past the capacity"
    );
    if !done {
        assert_eq!(n, 0, "a refused text was put");
        return None;
    }
    Some(bytes[..n].to_vec())
}

/// A task that copies 16-bit units with a kernel. It returns the copy, or `None`.
struct Copied<'a>(&'a [u16]);

impl Work for Copied<'_> {
    type Output = Option<Vec<u16>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<Vec<u16>> {
        copied(kernels, self.0)
    }
}

#[inline(always)]
fn copied<K: JsonKernels>(kernels: K, u: &[u16]) -> Option<Vec<u16>> {
    const CANARY: u16 = 0xA5A5;
    let mut buffer = [CANARY; 2 * JSON_PLAIN_UNITS];
    // SAFETY: the buffer has space for twice the units.
    let is_plain = unsafe { kernels.json_copy_ucs2(u, buffer.as_mut_ptr()) };
    assert!(buffer[JSON_PLAIN_UNITS..].iter().all(|&u| u == CANARY));
    is_plain.then(|| buffer[..u.len()].to_vec())
}

fn check_copy(u: &[u16]) {
    let is_plain = |&u: &u16| u >= 0x20 && !b"\"\\".map(u16::from).contains(&u) && u >> 11 != 27;
    let expected = u.iter().all(is_plain).then(|| u.to_vec());
    assert_eq!(with_kernels(Copied(u)), expected, "{u:x?}");
    #[cfg(target_arch = "x86_64")]
    if let Some(made) = with_avx2(Copied(u)) {
        assert_eq!(made, expected, "{u:x?}");
    }
    assert_eq!(copied(super::Common, u), expected, "{u:x?}");
}

fn check(text: JsonText<'_>) {
    if let JsonText::Ucs2(u) = text
        && u.len() <= JSON_PLAIN_UNITS
    {
        check_copy(u);
    }
    let expected = naive::to_json_body(text.units(), Policy::Strict).ok();
    assert_eq!(with_kernels(JsonBody(text)), expected, "{:?}", text.units());
    #[cfg(target_arch = "x86_64")]
    if let Some(made) = with_avx2(JsonBody(text)) {
        assert_eq!(made, expected, "{:?}", text.units());
    }
    assert_eq!(body(super::Common, text), expected, "{:?}", text.units());
}

const LENGTHS: [usize; 22] = [
    0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 127, 128, 129, 200, 321,
];

/// Characters that the tests insert into texts, one at a time.
const MARKS: [u32; 10] = [
    0x20, 0x22, 0x5C, 0x7F, 0x80, 0xFF, 0x7FF, 0x800, 0xFFFD, 0x1_F600,
];

fn each_case(alphabet: &[u32], mut check: impl FnMut(&[u32])) {
    for len in LENGTHS {
        let plain: Vec<u32> = (0..len).map(|i| alphabet[i * 7 % alphabet.len()]).collect();
        check(&plain);
        for mark in MARKS.into_iter().chain(0..0x20).chain([0xD800, 0xDC00]) {
            let indices = (0..len).filter(|i| len < 70 || i % 13 == 0 || i + 3 > len);
            for position in indices {
                let mut text = plain.clone();
                text[position] = mark;
                check(&text);
            }
            check(&vec![mark; len]);
        }
    }
}

const ALPHABETS: [&[u32]; 8] = [
    // Control characters without an escape letter.
    &[0x61, 0x01, 0x22, 0x20, 0x0A],
    &[
        0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F,
        0x70, 0x71, 0x72, 0x1F,
    ],
    &[0x61, 0x7A, 0x20, 0x41],
    &[0x61, 0xE9, 0x20, 0xFC],
    &[0x430, 0x44F, 0x20],
    &[0x6771, 0x4EAC, 0x90FD],
    &[0x6771, 0x20, 0x430, 0x5C, 0x22, 0x0A],
    &[0x1_F600, 0x61, 0x20, 0x4EAC],
];

#[test]
fn every_width_is_written_as_by_the_reference_implementation() {
    for alphabet in ALPHABETS {
        each_case(alphabet, |text| {
            check(JsonText::Ucs4(text));
            let narrow: Option<Vec<u16>> = text.iter().map(|&c| u16::try_from(c).ok()).collect();
            if let Some(u) = narrow {
                check(JsonText::Ucs2(&u));
            }
            let narrow: Option<Vec<u8>> = text.iter().map(|&c| u8::try_from(c).ok()).collect();
            if let Some(u) = narrow {
                check(JsonText::Latin1(&u, false));
                if u.is_ascii() {
                    check(JsonText::Latin1(&u, true));
                }
            }
            let utf8: Option<String> = text.iter().map(|&c| char::from_u32(c)).collect();
            if let Some(u) = utf8 {
                check(JsonText::Utf8(u.as_bytes()));
            }
        });
    }
}

#[test]
fn texts_at_every_address_are_written_alike() {
    let text: Vec<u32> = (0..130).map(|i| [0x61, 0x22, 0xE9, 0x0A][i % 4]).collect();
    let one: Vec<u8> = text.iter().map(|&c| c as u8).collect();
    let two: Vec<u16> = text.iter().map(|&c| c as u16 * 3 + 0x20).collect();
    for start in 0..66 {
        check(JsonText::Latin1(&one[start..], false));
        check(JsonText::Ucs2(&two[start..]));
        check(JsonText::Ucs4(&text[start..]));
    }
}

#[test]
fn texts_at_the_end_of_a_page_are_written_alike() {
    let end = AtEnd::new();
    for len in 0..200 {
        let marks = [&[][..], &[len], &[1], &[len / 2, 1, len]];
        for (marks, escaped) in marks.into_iter().flat_map(|m| [(m, b'"'), (m, 0x01)]) {
            let mut text: Vec<u8> = (0..len).map(|i| b"az E"[i % 4]).collect();
            for &mark in marks {
                if let Some(at) = len.checked_sub(mark) {
                    text.get_mut(at).into_iter().for_each(|b| *b = escaped);
                }
            }
            end.with(&text, |text| check(JsonText::Latin1(text, true)));
            end.with(&text, |text| check(JsonText::Latin1(text, false)));
            text.iter_mut().step_by(3).for_each(|b| *b |= 0x80);
            end.with(&text, |text| check(JsonText::Latin1(text, false)));
            for width in [2, 4] {
                let wide = |b: &u8| [*b, u8::from(*b >= 0x80) * 4, 0, 0].into_iter().take(width);
                let wide: Vec<u8> = text.iter().flat_map(wide).collect();
                // SAFETY: every bit pattern is a valid unit. The units are aligned, because they
                // end at the end of a page.
                end.with(&wide, |text| unsafe {
                    if width == 2 {
                        check(JsonText::Ucs2(text.align_to().1));
                    } else {
                        check(JsonText::Ucs4(text.align_to().1));
                    }
                });
            }
        }
    }
}
