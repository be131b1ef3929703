//! Tests each kernel family against the reference implementation, with many lengths and alignments.

use crate::arch::cell::tests::AtEnd;
use crate::arch::dispatch::with_kernels;
#[cfg(target_arch = "x86_64")]
use crate::arch::family::with_avx2;
use crate::arch::family::{Kernels, Work};
use crate::arch::family::{UTF8_SHORT_BYTES, Utf8Kernels, utf8_capacity};
use crate::sink::Pen;
use crate::{Policy, Units, naive};

/// Writes a text as UTF-8. If the `bool` is `true`, tries the kernel for short texts first.
#[derive(Clone, Copy)]
struct Utf8Body<'a>(Units<'a>, bool);

impl Work for Utf8Body<'_> {
    type Output = Option<Vec<u8>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<Vec<u8>> {
        body(kernels, self)
    }
}

/// Returns the bytes that a kernel writes. `None` if it does not convert the text.
#[inline(always)]
fn body<K: Utf8Kernels>(kernels: K, Utf8Body(units, is_short): Utf8Body<'_>) -> Option<Vec<u8>> {
    const CANARY: u8 = 0xA5;
    let mut buffer =
        vec![std::mem::MaybeUninit::new(CANARY); utf8_capacity(units.len_units()) + 64];
    let capacity = if is_short {
        UTF8_SHORT_BYTES
    } else {
        utf8_capacity(units.len_units())
    };
    let mut pen = Pen::new(&mut buffer[..capacity]);
    let start = pen.at();
    let done = if is_short {
        // SAFETY: the pen has the required capacity, and the text is short enough.
        let end = unsafe {
            match units {
                Units::Utf8(u) => Some(kernels.utf8_bytes(u, start)),
                Units::Latin1(u) => kernels.utf8_short_latin1(u, start),
                Units::Ucs2(u) => kernels.utf8_short_ucs2(u, start),
                _ => None,
            }
        };
        if let Some(end) = end {
            // SAFETY: all bytes before `end` are written.
            unsafe { pen.set_at(end) };
        }
        end.is_some()
    } else {
        match units {
            Units::Latin1(u) => {
                kernels.put_utf8_latin1(u, &mut pen);
                true
            }
            Units::Ucs2(u) => kernels.put_utf8_ucs2(u, &mut pen),
            Units::Utf32(u) => kernels.put_utf8_ucs4(u, &mut pen),
            _ => unreachable!("bytes are short"),
        }
    };
    let n = pen.at() as usize - start as usize;
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

fn check(units: Units<'_>) {
    let expected = naive::to_utf8(units, Policy::Strict).ok();
    let each = |made: Option<Vec<u8>>, is_short: bool| {
        if !(is_short && made.is_none()) {
            assert_eq!(made, expected, "{units:x?}");
        }
    };
    let is_bytes = matches!(units, Units::Utf8(_));
    for is_short in [true, false] {
        let fits = !is_bytes || units.len_units() <= UTF8_SHORT_BYTES;
        if is_bytes && !is_short || is_short && !fits {
            continue;
        }
        let work = Utf8Body(units, is_short);
        each(with_kernels(work), is_short);
        #[cfg(target_arch = "x86_64")]
        if let Some(made) = with_avx2(work) {
            each(made, is_short);
        }
        each(body(super::Common, work), is_short);
    }
}

/// Checks a text in 32-bit units, and in narrower units if its characters fit.
fn check_each(text: &[u32]) {
    check(Units::Utf32(text));
    let narrow: Option<Vec<u16>> = text.iter().map(|&c| u16::try_from(c).ok()).collect();
    if let Some(u) = narrow {
        check(Units::Ucs2(&u));
    }
    let narrow: Option<Vec<u8>> = text.iter().map(|&c| u8::try_from(c).ok()).collect();
    if let Some(u) = narrow {
        check(Units::Latin1(&u));
    }
    let utf8: Option<String> = text.iter().map(|&c| char::from_u32(c)).collect();
    if let Some(u) = utf8 {
        check(Units::Utf8(u.as_bytes()));
    }
}

const LENGTHS: [usize; 22] = [
    0, 1, 2, 7, 15, 16, 17, 21, 22, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 321,
];

/// The characters to insert, one per text.
const MARKS: [u32; 14] = [
    0, 0x0A, 0x22, 0x5C, 0x7F, 0x80, 0xFF, 0x100, 0x7FF, 0x800, 0xFFFD, 0x1_F600, 0xD800, 0xDC00,
];

#[test]
fn every_width_is_written_as_by_the_reference_implementation() {
    let alphabets: [&[u32]; 6] = [
        &[0x61, 0x7A, 0x20, 0x41],
        &[0x61, 0xE9, 0x20, 0xFC],
        &[0x430, 0x44F, 0x20],
        &[0x6771, 0x4EAC, 0x90FD],
        &[0x6771, 0x20, 0x430, 0, 0x22],
        &[0x1_F600, 0x61, 0x20, 0x4EAC],
    ];
    for alphabet in alphabets {
        for len in LENGTHS {
            let plain: Vec<u32> = (0..len).map(|i| alphabet[i * 7 % alphabet.len()]).collect();
            check_each(&plain);
            for mark in MARKS {
                for position in (0..len).filter(|i| len < 70 || i % 13 == 0 || i + 3 > len) {
                    let mut text = plain.clone();
                    text[position] = mark;
                    check_each(&text);
                }
                check_each(&vec![mark; len]);
            }
        }
    }
}

#[test]
fn two_halves_of_a_pair_in_16_bit_units_are_refused() {
    for len in [2, 16, 40, 100] {
        for at in 0..len - 1 {
            let mut text = vec![0x6771_u16; len];
            (text[at], text[at + 1]) = (0xD83D, 0xDE00);
            check(Units::Ucs2(&text));
        }
    }
}

#[test]
fn texts_at_the_end_of_a_page_are_written_alike() {
    let end = AtEnd::new();
    for len in 0..200 {
        let mut text: Vec<u8> = (0..len).map(|i| b"az E"[i % 4]).collect();
        end.with(&text, |text| check(Units::Latin1(text)));
        end.with(&text, |text| check(Units::Utf8(text)));
        text.iter_mut().step_by(3).for_each(|b| *b |= 0x80);
        end.with(&text, |text| check(Units::Latin1(text)));
        for width in [2, 4] {
            let wide = |b: &u8| [*b, u8::from(*b >= 0x80) * 4, 0, 0].into_iter().take(width);
            let wide: Vec<u8> = text.iter().flat_map(wide).collect();
            // SAFETY: every bit pattern is a valid unit. The end of a page aligns the units.
            end.with(&wide, |text| unsafe {
                if width == 2 {
                    check(Units::Ucs2(text.align_to().1));
                } else {
                    check(Units::Utf32(text.align_to().1));
                }
            });
        }
    }
}
