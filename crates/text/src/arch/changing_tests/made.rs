//! Tests with texts that change between measuring and writing, when the result is allocated.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{GuardedBuffer, bytes_of, utf8_variants, utf16_variants};
use crate::arch::{bytes, family};
use crate::convert::{
    CellEncoding, CellUtf8, CellUtf16, Kernels, NewBytes, NewStr, StrData, VolatileBytes, Work,
    make_large, make_large_volatile, make_volatile, with_kernels,
};
use crate::{Encoding, Kind, MalformedKind, Order, Policy, Shape, Units, measure};

/// A text that gets the bytes of `later` when the result is allocated.
struct Changing<'a> {
    text: *mut u8,
    later: &'a [u8],
}

impl Changing<'_> {
    fn change(&self) {
        // SAFETY: `later` has as many bytes as the text. Only the conversion refers to the text.
        unsafe {
            self.text
                .copy_from_nonoverlapping(self.later.as_ptr(), self.later.len())
        };
    }
}

/// The data of a `str` between canaries.
enum Data {
    One(GuardedBuffer<u8>),
    Two(GuardedBuffer<u16>),
    Four(GuardedBuffer<u32>),
}

impl NewStr for Changing<'_> {
    type Str = (Shape, Data);
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, ()> {
        self.change();
        let n = shape.n_chars;
        let data = match shape.kind {
            Kind::Ascii | Kind::Latin1 => Data::One(GuardedBuffer::new(n)),
            Kind::Ucs2 => Data::Two(GuardedBuffer::new(n)),
            Kind::Ucs4 => Data::Four(GuardedBuffer::new(n)),
        };
        Ok((shape, data))
    }

    fn data<'a>(&self, made: &'a mut Self::Str) -> StrData<'a> {
        match &mut made.1 {
            Data::One(data) => StrData::One(data.out()),
            Data::Two(data) => StrData::Two(data.out()),
            Data::Four(data) => StrData::Four(data.out()),
        }
    }
}

impl NewBytes for Changing<'_> {
    type Bytes = GuardedBuffer<u8>;
    type Error = ();

    fn new_bytes(&mut self, len: usize) -> Result<GuardedBuffer<u8>, ()> {
        self.change();
        Ok(GuardedBuffer::new(len))
    }

    fn data<'a>(&self, made: &'a mut GuardedBuffer<u8>) -> &'a mut [MaybeUninit<u8>] {
        made.out()
    }
}

/// Asserts that a `str` has the narrowest kind for its largest character.
fn assert_canonical((shape, data): &(Shape, Data)) {
    let most = match data {
        Data::One(data) => data.units().iter().map(|&u| u.into()).max(),
        Data::Two(data) => data.units().iter().map(|&u| u.into()).max(),
        Data::Four(data) => data.units().iter().copied().max(),
    };
    let most = most.unwrap_or(0);
    assert!(
        most <= 0x10_FFFF && Kind::of(most) == shape.kind,
        "{shape:?} of {most:x}"
    );
}

/// Calls `check` for each pair of `texts` of equal lengths. The first text becomes the second
/// during the conversion.
fn each_change(texts: &[Vec<u8>], mut check: impl FnMut(&[u8], &mut Changing<'_>)) {
    for before in texts {
        for later in texts {
            // Aligned for all units.
            let mut memory = vec![0_u32; before.len() / 4 + 1];
            let text = memory.as_mut_ptr().cast::<u8>();
            // SAFETY: the memory has as many bytes, and exists until the check has ended.
            let units = unsafe {
                text.copy_from_nonoverlapping(before.as_ptr(), before.len());
                std::slice::from_raw_parts(text, before.len())
            };
            check(units, &mut Changing { text, later });
        }
    }
}

fn as_utf16(bytes: &[u8]) -> &[u16] {
    bytes::as_units(bytes).expect("the memory is aligned")
}

/// Returns some variants of the texts of `len` bytes. Pairs of all variants would take too long.
fn few_variants(len: usize) -> Vec<Vec<u8>> {
    let mut all = utf8_variants(len);
    let wide = utf16_variants(len / 2);
    all.extend(wide.iter().map(|units| bytes_of(units).concat()));
    let step = if len > 2000 { 5 } else { 2 };
    let mut all: Vec<_> = all.into_iter().step_by(step).collect();
    all.iter_mut().for_each(|text| text.resize(len, b'x'));
    all
}

#[test]
fn changed_text_becomes_a_canonical_str_or_none() {
    for len in [512, 1024, 1032, 2048, 4104] {
        each_change(&few_variants(len), |text, changing| {
            for encoding in [
                Encoding::Utf8,
                Encoding::Ascii,
                Encoding::Latin1,
                Encoding::Utf16(Order::Little),
                Encoding::Utf16(Order::Big),
                Encoding::Utf32(Order::Little),
                Encoding::Utf32(Order::Big),
            ] {
                // SAFETY: the text is readable during the call.
                let volatile = unsafe { VolatileBytes::new(text.as_ptr(), text.len()) };
                if let Some(Ok(made)) = make_volatile(volatile, encoding, changing) {
                    assert_canonical(&made.made);
                }
            }
            for units in [
                Units::Utf8(text),
                Units::Latin1(text),
                Units::Utf16(as_utf16(text)),
            ] {
                if let Some(Ok(made)) = make_large_volatile(units, changing) {
                    assert_canonical(&made.made);
                }
                // `make_large` requires an unchanged text, so only writes outside the destination
                // are tested.
                drop(make_large(units, changing));
            }
        });
    }
}

#[test]
fn changed_text_that_was_measured_is_written_as_a_canonical_str_or_refused() {
    for len in [2, 8, 14, 24, 32, 40, 64, 130, 512] {
        each_change(&few_variants(len), |text, changing| {
            for units in [
                Units::Utf8(text),
                Units::Latin1(text),
                Units::Utf16(as_utf16(text)),
                Units::Ucs2(as_utf16(text)),
            ] {
                for policy in [Policy::Strict, Policy::Replace] {
                    let Ok(measured) = measure(units, policy) else {
                        continue;
                    };
                    let mut made = changing.new_str(measured.shape()).expect("memory");
                    match measured.write_volatile(NewStr::data(changing, &mut made)) {
                        Ok(()) => assert_canonical(&made),
                        Err(e) => assert_eq!(e.kind, MalformedKind::Changed),
                    }
                }
            }
        });
    }
}

/// Converts table cells with each encoding. The text changes between the scan and the store.
struct Cells<'a, 'c>(&'a [u8], &'a mut Changing<'c>);

impl Work for Cells<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) {
        let Cells(text, changing) = self;
        let units = as_utf16(text);
        drop(CellUtf8::make(kernels, text, changing));
        drop(CellUtf16::<false>::make(kernels, text, changing));
        drop(CellUtf16::<true>::make(kernels, text, changing));
        drop(CellUtf8::encode(
            kernels,
            Units::Ucs2(units),
            false,
            changing,
        ));
        drop(CellUtf8::encode(
            kernels,
            Units::Latin1(text),
            false,
            changing,
        ));
        drop(CellUtf16::<true>::encode(
            kernels,
            Units::Ucs2(units),
            false,
            changing,
        ));
    }
}

#[test]
fn changed_text_of_a_cell_stays_inside_of_its_memory() {
    for len in [2, 6, 16, 30, 32, 64, 66, 100, 128] {
        each_change(&few_variants(len), |text, changing| {
            // The data of a `str` never changes, so encoders may panic.
            let run = |work: &mut dyn FnMut()| drop(catch_unwind(AssertUnwindSafe(work)));
            run(&mut || with_kernels(Cells(text, changing)));
            #[cfg(target_arch = "x86_64")]
            run(&mut || _ = family::with_avx2(Cells(text, changing)));
            run(&mut || Cells(text, changing).run(family::Common));
        });
    }
}
