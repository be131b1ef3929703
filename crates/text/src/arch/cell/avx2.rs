//! The kernels for 32-byte vectors: those of JSON are of their own; cells go the way of every processor, but for what JSON
//! asks of them too.

use super::steps::Steps;
use super::{Common, Encoded, Kernels, NewBytes, NewStr, Tried, Work};
use crate::arch::avx2::cell;

/// A value of it proves that AVX2 is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Does the work with these kernels.
///
/// # Safety
/// `best` has found AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub(super) unsafe fn on_avx2<W: Work>(work: W) -> W::Output {
    work.run(Avx2(()))
}

/// As [`with_kernels`](super::with_kernels), by these whichever are the best, where they are there.
#[cfg(test)]
pub(crate) fn with_avx2<W: Work>(work: W) -> Option<W::Output> {
    // SAFETY: `best` has found AVX2.
    (crate::kernel() >= crate::Kernel::Avx2).then(|| unsafe { on_avx2(work) })
}

impl Kernels for Avx2 {
    #[inline(always)]
    fn call<W: Work>(self, work: W) -> W::Output {
        // SAFETY: a value of this type proves that AVX2 is there.
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

impl Steps for Avx2 {
    #[inline(always)]
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N> {
        Common.make_utf16::<SWAPPED, N>(text, new)
    }

    #[inline(always)]
    fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N> {
        // SAFETY: a value of this type proves that AVX2 is there.
        match unsafe { cell::make_utf8(text, new) } {
            None => Common.make_utf8(text, new),
            made => made,
        }
    }

    #[inline(always)]
    fn is_ascii(self, text: &[u8]) -> bool {
        // SAFETY: a value of this type proves that AVX2 is there.
        unsafe { cell::is_ascii(text) }
    }

    #[inline(always)]
    unsafe fn copy(self, text: &[u8], out: *mut u8) {
        // SAFETY: a value of this type proves that AVX2 is there; the duty of the caller.
        unsafe { cell::copy(text, out) }
    }

    #[inline(always)]
    fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u8],
        new: &mut B,
    ) -> Encoded<B> {
        Common.latin1_to_utf16::<SWAPPED, B>(u, new)
    }

    #[inline(always)]
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(self, u: &[u16], new: &mut B) -> Encoded<B> {
        Common.ucs2_to_utf16::<SWAPPED, B>(u, new)
    }

    #[inline(always)]
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(self, u: &[u32], new: &mut B) -> Encoded<B> {
        Common.ucs4_to_utf16::<SWAPPED, B>(u, new)
    }

    #[inline(always)]
    fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> Encoded<B> {
        Common.latin1_to_utf8(u, new)
    }

    #[inline(always)]
    fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> Encoded<B> {
        Common.ucs2_to_utf8(u, new)
    }

    #[inline(always)]
    fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> Encoded<B> {
        Common.ucs4_to_utf8(u, new)
    }
}
