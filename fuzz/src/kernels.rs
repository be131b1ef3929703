//! Checks of conversions that do not use `measure` and the sinks: long texts in one pass, buffers
//! of exactly the text's size, cells.
//!
//! Buffers are boxes of the exact length, so that the sanitizer detects a write past the end.

use std::mem::MaybeUninit;

use onecopy_text::convert::{
    CellBytes, CellEncoding, CellUtf8, CellUtf16, Kernels, Made, NewBytes, NewStr, StrData, Work, make_large,
    ordered_utf16, utf8_exact, utf8_len_exact, utf16_len_exact, with_kernels,
};
use onecopy_text::{Kind, Policy, Shape, Units, naive};

/// Repeats the input until it is longer than the limit for long texts and than several vector
/// blocks.
pub fn long<U: Copy>(units: &[U]) -> Vec<U> {
    units.iter().copied().cycle().take(if units.is_empty() { 0 } else { 1500 }).collect()
}

/// Checks all these conversions that accept units of this form.
pub fn check_kernels(units: Units<'_>) {
    check_exact(units);
    check_large(units);
    with_kernels(Cell(units));
}

fn check_exact(units: Units<'_>) {
    let expected = naive::to_utf8(units, Policy::Strict).ok();
    assert_eq!(utf8_len_exact(units), expected.as_ref().map(Vec::len));
    if let Some(expected) = expected {
        let mut place = place(expected.len(), 0xA5_u8);
        // UTF-8 is only copied.
        utf8_exact(units, &mut place);
        assert_eq!(written(&place), expected);
    }
    let expected = naive::to_utf16(units, Policy::Strict).ok();
    assert_eq!(utf16_len_exact(units), expected.as_ref().map(Vec::len));
    // A `str` is not stored as UTF-8.
    if let Some(expected) = expected
        && !matches!(units, Units::Utf8(_))
    {
        let mut place = place(2 * expected.len(), 0xA5_u8);
        ordered_utf16::<false>(units, &mut place);
        assert!(written(&place).into_iter().eq(expected.iter().copied().flat_map(u16::to_ne_bytes)));
        ordered_utf16::<true>(units, &mut place);
        assert!(written(&place).into_iter().eq(expected.iter().flat_map(|u| u.swap_bytes().to_ne_bytes())));
    }
}

fn place<U: Copy>(len: usize, canary: U) -> Box<[MaybeUninit<U>]> {
    vec![MaybeUninit::new(canary); len].into_boxed_slice()
}

fn written<U: Copy>(place: &[MaybeUninit<U>]) -> Vec<U> {
    // SAFETY: all were initialised when the box was made.
    place.iter().map(|u| unsafe { u.assume_init() }).collect()
}

/// A newly created `str`: its shape and its data.
enum Fresh {
    One(Shape, Box<[MaybeUninit<u8>]>),
    Two(Shape, Box<[MaybeUninit<u16>]>),
    Four(Shape, Box<[MaybeUninit<u32>]>),
}

impl Fresh {
    fn new(shape: Shape) -> Fresh {
        let n = shape.n_chars;
        match shape.kind {
            Kind::Ascii | Kind::Latin1 => Fresh::One(shape, place(n, 0xA5)),
            Kind::Ucs2 => Fresh::Two(shape, place(n, 0xA5A5)),
            Kind::Ucs4 => Fresh::Four(shape, place(n, 0xA5A5_A5A5)),
        }
    }

    fn data(&mut self) -> StrData<'_> {
        match self {
            Fresh::One(_, place) => StrData::One(place),
            Fresh::Two(_, place) => StrData::Two(place),
            Fresh::Four(_, place) => StrData::Four(place),
        }
    }

    fn read(&self) -> (Shape, Vec<u32>) {
        match self {
            Fresh::One(shape, place) => (*shape, written(place).into_iter().map(u32::from).collect()),
            Fresh::Two(shape, place) => (*shape, written(place).into_iter().map(u32::from).collect()),
            Fresh::Four(shape, place) => (*shape, written(place)),
        }
    }

    /// Asserts that the `str` has the text, which must be well-formed, in the smallest storage
    /// kind.
    fn check(&self, units: Units<'_>) {
        let (shape, text) = self.read();
        assert_eq!(Ok(shape), naive::shape(units, Policy::Strict));
        assert_eq!(Ok(text), naive::decode(units, Policy::Strict));
    }
}

struct Boxes;

impl NewStr for Boxes {
    type Str = Box<Fresh>;
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Box<Fresh>, ()> {
        Ok(Box::new(Fresh::new(shape)))
    }

    fn data<'a>(&self, made: &'a mut Box<Fresh>) -> StrData<'a> {
        made.data()
    }
}

/// Checks the conversion to a `str` in one pass, which must return `None` for malformed text.
fn check_large(units: Units<'_>) {
    if let Some(made) = make_large(units, &mut Boxes) {
        made.expect("there is memory").made.check(units);
    }
}

/// Creates new `bytes` objects.
struct Bytes;

impl NewBytes for Bytes {
    type Bytes = Box<[MaybeUninit<u8>]>;
    type Error = ();

    fn new_bytes(&mut self, len: usize) -> Result<Self::Bytes, ()> {
        Ok(place(len, 0xA5))
    }

    fn data<'a>(&self, made: &'a mut Self::Bytes) -> &'a mut [MaybeUninit<u8>] {
        made
    }
}

/// The conversions of a cell to a `str` and from one.
struct Cell<'a>(Units<'a>);

impl Work for Cell<'_> {
    type Output = ();

    fn run<K: Kernels>(self, kernels: K) {
        let units = self.0;
        match units {
            Units::Utf8(u) => made(units, CellUtf8::make(kernels, u, &mut Boxes)),
            Units::Latin1(u) => made(units, CellBytes::<false>::make(kernels, u, &mut Boxes)),
            Units::Utf16(u) => {
                let bytes: Vec<u8> = u.iter().copied().flat_map(u16::to_ne_bytes).collect();
                made(units, CellUtf16::<false>::make(kernels, &bytes, &mut Boxes));
                let swapped: Vec<u8> = u.iter().map(|u| u.swap_bytes()).flat_map(u16::to_ne_bytes).collect();
                made(units, CellUtf16::<true>::make(kernels, &swapped, &mut Boxes));
                return;
            }
            Units::Ucs2(_) | Units::Utf32(_) => {}
        }
        if !matches!(units, Units::Utf8(_)) {
            let is_ascii = naive::decode(units, Policy::Strict).is_ok_and(|text| text.iter().all(|c| *c < 0x80));
            if let Some(got) = CellUtf8::encode(kernels, units, is_ascii, &mut Bytes) {
                let got = got.ok().map(|made| written(&made));
                assert_eq!(got, naive::to_utf8(units, Policy::Strict).ok());
            }
            if let Some(got) = CellUtf16::<false>::encode(kernels, units, is_ascii, &mut Bytes) {
                let expected = naive::to_utf16(units, Policy::Strict).ok();
                let expected = expected.map(|text| text.into_iter().flat_map(u16::to_ne_bytes).collect());
                assert_eq!(got.ok().map(|made| written(&made)), expected);
            }
        }
    }
}

/// Asserts that a created object has the text; malformed text must create none.
fn made(units: Units<'_>, made: Option<Result<Made<Box<Fresh>>, ()>>) {
    if let Some(made) = made {
        made.expect("there is memory").made.check(units);
    }
}
