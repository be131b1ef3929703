//! The conversions of cells for AVX2. Only `make_utf8`, `is_ascii` and `copy` have AVX2 kernels.

use crate::arch::avx2::{cell, copy};
use crate::arch::family::{Avx2, CellSteps, Common, Kernels, Work, on_avx2};
use crate::arch::new_cell::{MaybeBytes, MaybeStr};
use crate::new_object::{NewBytes, NewStr};

impl Kernels for Avx2 {
    #[inline(always)]
    fn call<W: Work>(self, work: W) -> W::Output {
        // SAFETY: a value of this type proves that AVX2 is available.
        unsafe { on_avx2(work) }
    }

    #[inline(always)]
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool {
        Common.is_equal(a, b)
    }

    #[inline(always)]
    fn hash(self, text: &[u8]) -> u32 {
        Common.hash(text)
    }

    #[inline(always)]
    fn fetch(self, text: &[u8], bytes: usize) {
        Common.fetch(text, bytes);
    }
}

impl CellSteps for Avx2 {
    #[inline(always)]
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N> {
        Common.make_utf16::<SWAPPED, N>(text, new)
    }

    #[inline(always)]
    fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N> {
        // SAFETY: a value of this type proves that AVX2 is available.
        match unsafe { cell::make_utf8(text, new) } {
            None => Common.make_utf8(text, new),
            made => made,
        }
    }

    #[inline(always)]
    fn is_ascii(self, text: &[u8]) -> bool {
        // SAFETY: a value of this type proves that AVX2 is available.
        unsafe { cell::is_ascii(text) }
    }

    #[inline(always)]
    unsafe fn copy(self, text: &[u8], out: *mut u8) {
        // SAFETY: a value of this type proves that AVX2 is available; this function's contract.
        unsafe { copy::copy(text, out) }
    }

    #[inline(always)]
    fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u8],
        new: &mut B,
    ) -> MaybeBytes<B> {
        Common.latin1_to_utf16::<SWAPPED, B>(u, new)
    }

    #[inline(always)]
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u16],
        new: &mut B,
    ) -> MaybeBytes<B> {
        Common.ucs2_to_utf16::<SWAPPED, B>(u, new)
    }

    #[inline(always)]
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u32],
        new: &mut B,
    ) -> MaybeBytes<B> {
        Common.ucs4_to_utf16::<SWAPPED, B>(u, new)
    }

    #[inline(always)]
    fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> MaybeBytes<B> {
        Common.latin1_to_utf8(u, new)
    }

    #[inline(always)]
    fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> MaybeBytes<B> {
        Common.ucs2_to_utf8(u, new)
    }

    #[inline(always)]
    fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> MaybeBytes<B> {
        Common.ucs4_to_utf8(u, new)
    }
}
