//! Compares the conversions of units in both byte orders with the reference implementation. The
//! texts need `str` units of different widths, and some are malformed.

use super::*;
use crate::{Policy, naive};

/// A [`NewStr`] for tests, which creates a vector of units.
struct Heap;

enum Data {
    One(Vec<MaybeUninit<u8>>),
    Two(Vec<MaybeUninit<u16>>),
    Four(Vec<MaybeUninit<u32>>),
}

impl NewStr for Heap {
    type Str = (Shape, Data);
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, ()> {
        let n = shape.n_chars;
        let data = match shape.kind {
            Kind::Ascii | Kind::Latin1 => Data::One(vec![MaybeUninit::new(0xA5); n]),
            Kind::Ucs2 => Data::Two(vec![MaybeUninit::new(0xA5A5); n]),
            Kind::Ucs4 => Data::Four(vec![MaybeUninit::new(0xA5A5_A5A5); n]),
        };
        Ok((shape, data))
    }

    fn data<'a>(&self, (_, data): &'a mut Self::Str) -> StrData<'a> {
        match data {
            Data::One(data) => StrData::One(data),
            Data::Two(data) => StrData::Two(data),
            Data::Four(data) => StrData::Four(data),
        }
    }
}

fn chars((shape, data): (Shape, Data)) -> (Shape, Vec<u32>) {
    let chars = match data {
        Data::One(data) => init(&data).iter().map(|&u| u.into()).collect(),
        Data::Two(data) => init(&data).iter().map(|&u| u.into()).collect(),
        Data::Four(data) => init(&data),
    };
    (shape, chars)
}

fn init<U: Copy>(data: &[MaybeUninit<U>]) -> Vec<U> {
    crate::arch::memory::written(data).to_vec()
}

fn check(chars_in: &[u32]) {
    let expected = |units| {
        let shape = naive::shape(units, Policy::Strict).ok()?;
        let is_shared = shape.n_chars == 0 || (shape.n_chars == 1 && shape.kind <= Kind::Latin1);
        (!is_shared).then(|| {
            (
                shape,
                naive::decode(units, Policy::Strict).unwrap_or_default(),
            )
        })
    };
    let wide: Vec<[u8; 4]> = chars_in.iter().map(|c| c.to_ne_bytes()).collect();
    let swapped: Vec<[u8; 4]> = chars_in
        .iter()
        .map(|c| c.swap_bytes().to_ne_bytes())
        .collect();
    let made =
        |made: Option<Result<MadeStr<_>, ()>>| made.map(|made| chars(made.expect("memory").made));
    let units = Units::Utf32(chars_in);
    assert_eq!(
        made(make_ordered_utf32::<false, _>(&wide, &mut Heap)),
        expected(units)
    );
    assert_eq!(
        made(make_ordered_utf32::<true, _>(&swapped, &mut Heap)),
        expected(units)
    );
    let utf16: Vec<u16> = chars_in
        .iter()
        .flat_map(|&c| match c.checked_sub(0x1_0000) {
            None => vec![c as u16],
            Some(c) => vec![0xD800 | (c >> 10) as u16, 0xDC00 | (c & 0x3FF) as u16],
        })
        .collect();
    let plain: Vec<[u8; 2]> = utf16.iter().map(|c| c.to_ne_bytes()).collect();
    let swapped: Vec<[u8; 2]> = utf16.iter().map(|c| c.swap_bytes().to_ne_bytes()).collect();
    let units = Units::Utf16(&utf16);
    assert_eq!(
        made(make_ordered_utf16::<false, _>(&plain, &mut Heap)),
        expected(units),
        "{utf16:x?}"
    );
    assert_eq!(
        made(make_ordered_utf16::<true, _>(&swapped, &mut Heap)),
        expected(units)
    );
    check_encode(chars_in);
}

fn check_encode(chars: &[u32]) {
    let one: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
    let two: Vec<u16> = chars.iter().map(|&c| c as u16).collect();
    let widest = chars.iter().copied().max().unwrap_or(0);
    let units = match Kind::of(widest) {
        Kind::Ascii | Kind::Latin1 => Units::Latin1(&one),
        Kind::Ucs2 => Units::Ucs2(&two),
        Kind::Ucs4 => Units::Utf32(chars),
    };
    let is_good = naive::decode(units, Policy::Strict).is_ok();
    assert_eq!(utf32_len_exact(units), is_good.then_some(chars.len()));
    if !is_good {
        let mut out = vec![MaybeUninit::uninit(); 4 * chars.len()];
        assert!(!ordered_utf32::<false>(units, &mut out));
        return;
    }
    assert_eq!(
        utf16_len_of_str(units),
        naive::to_utf16(units, Policy::Strict)
            .ok()
            .map(|text| text.len())
    );
    let into = |len: usize, write: fn(Units<'_>, &mut [MaybeUninit<u8>])| {
        [0, 1].map(|from| {
            let mut out = vec![MaybeUninit::new(0xA5); from + len + 1];
            write(units, &mut out[from..from + len]);
            let out = init(&out);
            assert_eq!(out[from + len], 0xA5);
            out[from..from + len].to_vec()
        })
    };
    let expected: Vec<u8> = chars.iter().flat_map(|c| c.to_ne_bytes()).collect();
    assert_eq!(
        into(4 * chars.len(), |units, out| assert!(
            ordered_utf32::<false>(units, out)
        )),
        [&expected[..]; 2]
    );
    let expected: Vec<u8> = chars
        .iter()
        .flat_map(|c| c.swap_bytes().to_ne_bytes())
        .collect();
    assert_eq!(
        into(4 * chars.len(), |units, out| assert!(
            ordered_utf32::<true>(units, out)
        )),
        [&expected[..]; 2]
    );
    let utf16 = naive::to_utf16(units, Policy::Strict).expect("good");
    let expected: Vec<u8> = utf16.iter().flat_map(|c| c.to_ne_bytes()).collect();
    assert_eq!(
        into(expected.len(), ordered_utf16::<false>),
        [&expected[..]; 2]
    );
    let expected: Vec<u8> = utf16
        .iter()
        .flat_map(|c| c.swap_bytes().to_ne_bytes())
        .collect();
    assert_eq!(
        into(expected.len(), ordered_utf16::<true>),
        [&expected[..]; 2]
    );
}

#[test]
fn units_of_any_order_match_naive_whatever_their_length_and_mix() {
    let mixes: [&[u32]; 7] = [
        &[0x61, 0x7A],
        &[0x61, 0xE9],
        &[0x416, 0x61],
        &[0x6771, 0xFFFD, 0xE000],
        &[0x1F600],
        &[0x61, 0x1F600, 0x416],
        &[0x61, 0x62, 0x63, 0x64, 0x65, 0x10_FFFF, 0x1_0000],
    ];
    let lengths = (0..70).chain([255, 256, 257, 2047, 2048, 2049, 4100]);
    for n in lengths {
        for mix in mixes {
            let text: Vec<u32> = mix.iter().copied().cycle().take(n).collect();
            check(&text);
            for other in [0xE9, 0x416, 0x1F600, 0xD800, 0xDFFF, 0x11_0000] {
                // Surrogate pairs are other characters in UTF-16, so they are not inserted as
                // 32-bit units.
                for at in [0, 1, n / 2, n.saturating_sub(2), n.saturating_sub(1)] {
                    let mut text = text.clone();
                    if let Some(unit) = text.get_mut(at) {
                        *unit = other;
                        if other > 0x10_FFFF {
                            let wide: Vec<[u8; 4]> = text.iter().map(|c| c.to_ne_bytes()).collect();
                            assert!(make_ordered_utf32::<false, _>(&wide, &mut Heap).is_none());
                            continue;
                        }
                        check(&text);
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_are_widened_at_every_address() {
    for n in (0..200).chain([1000]) {
        let text: Vec<u8> = (0..n).map(|i| (i % 255) as u8 | 1).collect();
        let wide: Vec<u8> = text
            .iter()
            .flat_map(|&b| u16::from(b).to_le_bytes())
            .collect();
        let wider: Vec<u8> = text
            .iter()
            .flat_map(|&b| u32::from(b).to_be_bytes())
            .collect();
        for from in 0..64 {
            let mut out = vec![MaybeUninit::new(0xA5); from + 4 * n + 64];
            ordered_utf16::<false>(Units::Latin1(&text), &mut out[from..from + 2 * n]);
            let got = init(&out);
            assert_eq!(got[from..from + 2 * n], wide, "{n} {from}");
            let canaries = got[..from].iter().chain(&got[from + 2 * n..]);
            assert!(canaries.copied().all(|b| b == 0xA5), "{n} {from}");
            assert!(ordered_utf32::<true>(
                Units::Latin1(&text),
                &mut out[from..from + 4 * n]
            ));
            let got = init(&out);
            assert_eq!(got[from..from + 4 * n], wider, "{n} {from}");
            let canaries = got[..from].iter().chain(&got[from + 4 * n..]);
            assert!(canaries.copied().all(|b| b == 0xA5), "{n} {from}");
        }
    }
}
