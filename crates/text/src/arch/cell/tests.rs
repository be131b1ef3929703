//! Tests the conversions of cells against the reference implementation. Texts have all lengths and
//! widths, and errors at each position.

use std::mem::MaybeUninit;

use super::*;
use crate::arch::dispatch::with_kernels;
#[cfg(target_arch = "x86_64")]
use crate::arch::family::with_avx2;
use crate::arch::family::{Common, Kernels, Work};
use crate::new_object::{NewBytes, NewStr, StrData};
use crate::{Kind, Policy, Shape, Units, naive};

const CANARY: u8 = 0xA5;

/// A buffer of `len` bytes between canaries, aligned to 8 bytes.
struct CanaryBuffer {
    bytes: Vec<u64>,
    len: usize,
}

impl CanaryBuffer {
    fn new(len: usize) -> CanaryBuffer {
        let bytes = vec![u64::from_ne_bytes([CANARY; 8]); 2 + len.div_ceil(8) + 16];
        CanaryBuffer { bytes, len }
    }

    /// Returns the memory between the canaries.
    ///
    /// # Safety
    /// The buffer must have space for `n` units of type `U`.
    unsafe fn slice<U>(&mut self, n: usize) -> &mut [MaybeUninit<U>] {
        assert!(n * size_of::<U>() <= self.len);
        // SAFETY: the slice is inside the vector, and aligned as the vector is.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().add(1).cast(), n) }
    }

    /// Checks the canaries and returns the bytes between them.
    fn written(&self) -> Vec<u8> {
        let all: Vec<u8> = self.bytes.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert!(all[..8].iter().all(|&b| b == CANARY), "before");
        assert!(
            all[8 + self.len..].iter().all(|&b| b == CANARY),
            "canaries after the text"
        );
        all[8..8 + self.len].to_vec()
    }
}

struct Maker;

impl NewStr for Maker {
    type Str = (Shape, CanaryBuffer);
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, ()> {
        Ok((shape, CanaryBuffer::new(shape.n_chars * width(shape.kind))))
    }

    fn data<'a>(&self, (shape, buffer): &'a mut Self::Str) -> StrData<'a> {
        // SAFETY: the buffer was made for this shape.
        unsafe {
            match shape.kind {
                Kind::Ascii | Kind::Latin1 => StrData::One(buffer.slice(shape.n_chars)),
                Kind::Ucs2 => StrData::Two(buffer.slice(shape.n_chars)),
                Kind::Ucs4 => StrData::Four(buffer.slice(shape.n_chars)),
            }
        }
    }
}

impl NewBytes for Maker {
    type Bytes = CanaryBuffer;
    type Error = ();

    fn new_bytes(&mut self, len: usize) -> Result<CanaryBuffer, ()> {
        Ok(CanaryBuffer::new(len))
    }

    fn data<'a>(&self, made: &'a mut CanaryBuffer) -> &'a mut [MaybeUninit<u8>] {
        let len = made.len;
        // SAFETY: the slice is as long as the buffer.
        unsafe { made.slice(len) }
    }
}

fn width(kind: Kind) -> usize {
    match kind {
        Kind::Ascii | Kind::Latin1 => 1,
        Kind::Ucs2 => 2,
        Kind::Ucs4 => 4,
    }
}

struct DecodeCell<'a, E>(&'a [u8], std::marker::PhantomData<E>);

impl<E: CellEncoding> Work for DecodeCell<'_, E> {
    type Output = Option<(Shape, Vec<u32>, bool)>;

    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let made = E::make(kernels, self.0, &mut Maker)?.expect("enough memory");
        let (shape, buffer) = made.made;
        let units = buffer.written();
        let units = units.chunks_exact(width(shape.kind)).map(|unit| {
            let mut wide = [0; 4];
            wide[..unit.len()].copy_from_slice(unit);
            u32::from_le_bytes(wide)
        });
        Some((shape, units.collect(), made.is_copied))
    }
}

struct EncodeCell<'a, E>(Units<'a>, bool, std::marker::PhantomData<E>);

impl<E: CellEncoding> Work for EncodeCell<'_, E> {
    type Output = Option<Vec<u8>>;

    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        Some(
            E::encode(kernels, self.0, self.1, &mut Maker)?
                .expect("enough memory")
                .written(),
        )
    }
}

/// A readable page before an inaccessible page. A read past the end of a text causes a fault.
pub(in crate::arch) struct AtEnd {
    page: *mut u8,
}

#[cfg(all(target_os = "linux", not(miri)))]
impl AtEnd {
    const PAGE: usize = 1 << 16;

    pub(in crate::arch) fn new() -> AtEnd {
        // SAFETY: declared as in POSIX.
        unsafe extern "C" {
            fn mmap(at: *mut u8, len: usize, prot: i32, flags: i32, fd: i32, from: i64) -> *mut u8;
            fn mprotect(at: *mut u8, len: usize, prot: i32) -> i32;
        }
        // SAFETY: the call creates a private mapping of two pages and protects the second. The
        // mapping exists until the process ends.
        unsafe {
            let page = mmap(std::ptr::null_mut(), 2 * Self::PAGE, 3, 0x22, -1, 0);
            assert_eq!(mprotect(page.add(Self::PAGE), Self::PAGE, 0), 0);
            AtEnd { page }
        }
    }

    pub(in crate::arch) fn with<R>(&self, bytes: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: the slice is inside the first page, which has no other users.
        f(unsafe {
            let at = self.page.add(Self::PAGE - bytes.len());
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            std::slice::from_raw_parts(at, bytes.len())
        })
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
impl AtEnd {
    pub(in crate::arch) fn new() -> AtEnd {
        AtEnd {
            page: std::ptr::null_mut(),
        }
    }

    pub(in crate::arch) fn with<R>(&self, bytes: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        let _ = self.page;
        f(bytes)
    }
}

/// Decodes `text` with several kernel families. The results must be those of the reference for
/// `units`.
fn check_decode<E: CellEncoding>(end: &AtEnd, text: &[u8], units: Units<'_>, is_copy_of: Kind) {
    let expected = naive::decode(units, Policy::Strict).ok().map(|chars| {
        let shape = naive::shape(units, Policy::Strict).expect("well-formed");
        (shape, chars)
    });
    let is_cell = |(shape, _): &(Shape, Vec<u32>)| {
        text.len() <= MOST_CELL_BYTES && (shape.n_chars > 1 || shape.kind > Kind::Latin1)
    };
    let (best, common) = end.with(text, |text| {
        let work = || DecodeCell::<E>(text, std::marker::PhantomData);
        (with_kernels(work()), work().run(Common))
    });
    #[cfg(target_arch = "x86_64")]
    if let Some(Some(got)) = end.with(text, |text| {
        with_avx2(DecodeCell::<E>(text, std::marker::PhantomData))
    }) {
        assert_eq!(Some((got.0, got.1)), expected, "{units:x?}");
    }
    if let Some(got) = &best {
        let is_copied =
            got.0.kind == is_copy_of || (is_copy_of == Kind::Latin1 && width(got.0.kind) == 1);
        assert_eq!(got.2, is_copied, "{units:x?}");
        assert_eq!(Some((got.0, got.1.clone())), expected, "{units:x?}");
    } else if crate::kernel() == crate::Kernel::Avx512 {
        // A single unit of kind 2 is not converted as a cell.
        let is_left = expected
            .filter(is_cell)
            .filter(|(shape, _)| shape.n_chars > 1);
        assert_eq!(is_left, None, "{units:x?}");
    }
    if let Some(got) = common {
        assert_eq!(best, Some(got), "{units:x?}");
    }
}

fn check(end: &AtEnd, text: &[u16]) {
    let bytes: Vec<u8> = text.iter().flat_map(|u| u.to_ne_bytes()).collect();
    let swapped: Vec<u8> = text
        .iter()
        .flat_map(|u| u.swap_bytes().to_ne_bytes())
        .collect();
    let none = Kind::Ascii; // UTF-16 is never a copy of ASCII
    check_decode::<CellUtf16<false>>(end, &bytes, Units::Utf16(text), Kind::Ucs2);
    // Swapped units are not copied; all else must be the same.
    let best = with_kernels(DecodeCell::<CellUtf16<true>>(
        &swapped,
        std::marker::PhantomData,
    ));
    let plain = with_kernels(DecodeCell::<CellUtf16<false>>(
        &bytes,
        std::marker::PhantomData,
    ));
    match (best, plain) {
        (Some(swapped), Some(plain)) => {
            assert_eq!((swapped.0, swapped.1, swapped.2), (plain.0, plain.1, false));
        }
        (None, _) if crate::kernel() != crate::Kernel::Avx512 => {}
        (swapped, plain) => assert_eq!(swapped, plain, "{text:x?}"),
    }
    let utf8 = naive::to_utf8(Units::Utf16(text), Policy::Strict);
    if let Ok(utf8) = utf8 {
        check_decode::<CellUtf8>(end, &utf8, Units::Utf8(&utf8), none);
        if let Some(last) = utf8.len().checked_sub(1) {
            check_decode::<CellUtf8>(end, &utf8[..last], Units::Utf8(&utf8[..last]), none);
        }
    }
    check_encode(text);
}

/// Encodes `text` in each encoding and compares the results with the reference.
fn check_encode(text: &[u16]) {
    let chars = naive::decode(Units::Utf16(text), Policy::Strict);
    // A `str` may have lone surrogates.
    let chars = chars.unwrap_or_else(|_| text.iter().map(|&u| u.into()).collect());
    let widest = chars.iter().copied().max().unwrap_or(0);
    let one: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
    let two: Vec<u16> = chars.iter().map(|&c| c as u16).collect();
    let units = match Kind::of(widest) {
        Kind::Ascii | Kind::Latin1 => Units::Latin1(&one),
        Kind::Ucs2 => Units::Ucs2(&two),
        Kind::Ucs4 => Units::Utf32(&chars),
    };
    let is_ascii = widest < 0x80;
    let wide = naive::to_utf16(units, Policy::Strict).ok();
    let of = |swapped: bool| {
        let units = wide.as_ref()?.iter();
        let units = units.map(|u| if swapped { u.swap_bytes() } else { *u });
        Some(units.flat_map(u16::to_ne_bytes).collect::<Vec<u8>>())
    };
    // The limit applies to the length in UTF-32, or in UTF-16 for narrower units.
    let fits = match units {
        Units::Utf32(u) => 4 * u.len() <= MOST_CELL_BYTES,
        _ => 2 * chars.len() <= MOST_CELL_BYTES,
    };
    check_encoded::<CellUtf16<false>>(units, is_ascii, of(false), fits);
    check_encoded::<CellUtf16<true>>(units, is_ascii, of(true), fits);
    let utf8 = naive::to_utf8(units, Policy::Strict).ok();
    check_encoded::<CellUtf8>(units, is_ascii, utf8, fits);
    let latin1 = (widest <= 0xFF).then(|| one.clone());
    check_encoded::<CellBytes<false>>(units, is_ascii, latin1, fits);
    check_encoded::<CellBytes<true>>(units, is_ascii, is_ascii.then(|| one.clone()), fits);
}

fn check_encoded<E: CellEncoding>(
    units: Units<'_>,
    is_ascii: bool,
    expected: Option<Vec<u8>>,
    fits: bool,
) {
    let work = || EncodeCell::<E>(units, is_ascii, std::marker::PhantomData);
    let best = with_kernels(work());
    if best.is_some() || (fits && crate::kernel() == crate::Kernel::Avx512) {
        assert_eq!(best, expected, "{units:x?}");
    }
    if let Some(common) = work().run(Common) {
        assert_eq!(Some(common), expected, "{units:x?}");
    }
}

const MIXES: [&[u16]; 8] = [
    &[0x61, 0x7A, 0],
    &[0xE9, 0x61, 0x80, 0xFF],
    &[0x416, 0x20, 0x7FF, 0x100],
    &[0x6771, 0x800, 0xFFFF, 0xD7FF, 0xE000],
    &[0x6771, 0x61, 0xE9, 0x416],
    &[0xD83D, 0xDE00],
    &[0x61, 0xD83D, 0xDE00, 0x62, 0x63],
    &[0xDBFF, 0xDFFF, 0x416, 0xD800, 0xDC00, 0x6771],
];

#[test]
fn cells_of_each_length_and_mix_are_those_of_the_reference_implementation() {
    let end = AtEnd::new();
    for n in 0..=70 {
        for mix in MIXES {
            let text: Vec<u16> = mix.iter().copied().cycle().take(n).collect();
            check(&end, &text);
            // Puts a unit of another width, or a malformed one, at each position.
            for other in [0x61, 0xE9, 0x416, 0xD800, 0xDC00] {
                for at in 0..n {
                    let mut text = text.clone();
                    text[at] = other;
                    check(&end, &text);
                }
            }
        }
    }
}

#[test]
fn malformed_utf8_is_not_a_cell() {
    let end = AtEnd::new();
    let texts: [&[u8]; 8] = [
        b"a\x80",
        b"a\xC0\x80",
        b"a\xC3",
        b"\xE6\x9Da",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"\xF0\x9F\x98",
        b"\xFF\xFE",
    ];
    for pad in 0..=125 {
        for bad in texts {
            let mut text = vec![b'x'; pad];
            text.extend(bad);
            check_decode::<CellUtf8>(&end, &text, Units::Utf8(&text), Kind::Ascii);
        }
    }
}

#[test]
fn any_few_bytes_are_the_cell_of_the_reference_implementation_or_none() {
    // The bytes around each limit in table 3-7 of the Unicode standard.
    const BYTES: [u8; 24] = [
        b'a', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xDF, 0xE0,
        0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF3, 0xF4, 0xF5,
    ];
    let end = AtEnd::new();
    let mut text = Vec::new();
    for pad in [0, 1, 29, 30, 31, 59, 60, 61, 62, 63, 64, 65, 121] {
        for n in 0..24_usize.pow(4) {
            // Tests all sequences of one and two bytes, and one in 97 of the longer ones.
            if n >= 24_usize.pow(2) && n % 97 != 0 {
                continue;
            }
            text.clear();
            text.resize(pad, b'x');
            let mut rest = n;
            while rest > 0 {
                text.push(BYTES[rest % 24]);
                rest /= 24;
            }
            check_decode::<CellUtf8>(&end, &text, Units::Utf8(&text), Kind::Ascii);
        }
    }
}

#[test]
fn cells_of_a_byte_a_character_are_copies() {
    let end = AtEnd::new();
    for n in 0..=130_usize {
        for high in [None, Some(0), Some(n / 2), n.checked_sub(1)] {
            let mut text = vec![b'x'; n];
            if let Some(byte) = high.and_then(|at| text.get_mut(at)) {
                *byte = 0xE9;
            }
            check_decode::<CellBytes<false>>(&end, &text, Units::Latin1(&text), Kind::Latin1);
            let is_ascii = text.is_ascii();
            let made = with_kernels(DecodeCell::<CellBytes<true>>(
                &text,
                std::marker::PhantomData,
            ));
            assert_eq!(
                made.is_some(),
                is_ascii && (2..=MOST_CELL_BYTES).contains(&n)
            );
        }
    }
}

struct Same<'a>(&'a [u8], &'a [u8]);

impl Work for Same<'_> {
    type Output = (bool, bool);

    fn run<K: Kernels>(self, kernels: K) -> (bool, bool) {
        let Same(a, b) = self;
        (kernels.is_equal(a, b), kernels.hash(a) == kernels.hash(b))
    }
}

#[test]
fn cells_are_unequal_if_any_byte_differs() {
    let end = AtEnd::new();
    for n in 0..=140 {
        let text: Vec<u8> = (0..n).map(|i| i as u8 ^ 0x5A).collect();
        end.with(&text, |there| {
            assert_eq!(with_kernels(Same(&text, there)), (true, true));
            assert_eq!(Same(&text, there).run(Common), (true, true));
            let mut hashes_alike = 0;
            for at in 0..n {
                let mut other = text.clone();
                other[at] ^= 1;
                let (is_equal, is_hash) = with_kernels(Same(&other, there));
                assert!(!is_equal, "{n} {at}");
                hashes_alike += usize::from(is_hash && at < MOST_CELL_BYTES);
            }
            if crate::kernel() == crate::Kernel::Avx512 {
                assert_eq!(hashes_alike, 0, "{n}");
            }
            if let Some((_, shorter)) = there.split_last() {
                assert!(!with_kernels(Same(&text, shorter)).0);
            }
        });
    }
}
