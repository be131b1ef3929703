//! The families of kernels as types: a value of one proves that this processor has its instructions.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | [`Kernels`], the families, and [`with_kernels`], which chooses one |
//! | `cell.rs` | the steps for cells |
//! | `json.rs` | the steps for bodies of JSON strings |
//! | `json_read.rs` | the steps of the reader of JSON |
//! | `utf8.rs` | the steps for UTF-8 |
//!
//! The modules above implement the steps for each family: `cell`, `json`, `json_read`, `utf8`.

mod cell;
mod json;
mod json_read;
mod utf8;

#[cfg(target_arch = "x86_64")]
use super::kernel::{Kernel, kernel};
pub(crate) use cell::CellSteps;
pub use json::{JSON_PLAIN_BYTES, JSON_PLAIN_UNITS, JsonKernels, json_room};
#[cfg(target_arch = "x86_64")]
pub(super) use json_read::escaped;
pub use json_read::{Ascii, JsonSteps, Look, Plain, ShortNumber, UnescapedLength};
pub use utf8::{UTF8_SHORT_BYTES, Utf8Kernels, utf8_room};

/// Something to be done with the kernels of this process.
pub trait Work {
    /// What comes of it.
    type Output;

    /// Does it. This is to be `#[inline(always)]`, with all that is done for each cell: what is not
    /// inlined is not compiled for the kernels' instructions, and pays a call for each of them.
    fn run<K: Kernels>(self, kernels: K) -> Self::Output;
}

/// Does the work with the best kernels.
#[inline(always)]
pub fn with_kernels<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    match kernel() {
        // SAFETY: `best` has found AVX-512 with VBMI2.
        Kernel::Avx512 => return unsafe { on_avx512(work) },
        // SAFETY: `best` has found AVX2.
        Kernel::Avx2 => return unsafe { on_avx2(work) },
        _ => {}
    }
    on_common(work)
}

/// A function of its own, as of the other kernels: its variables are not on the stack of the caller.
#[inline(never)]
fn on_common<W: Work>(work: W) -> W::Output {
    work.run(Common)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512bw,avx512vl,avx512cd,avx512ifma,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt"
)]
#[inline(never)]
pub(super) fn on_avx512<W: Work>(work: W) -> W::Output {
    work.run(Avx512(()))
}

/// A family of kernels for cells: a value of it proves that this processor has them.
pub trait Kernels: CellSteps + JsonSteps + JsonKernels + Utf8Kernels {
    /// Does more work, compiled for the same instructions as a function of its own: for what calls
    /// itself, or is called from more than one place.
    fn call<W: Work>(self, work: W) -> W::Output;

    /// Whether two texts are the same.
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool;

    /// A number that most short texts have for themselves.
    fn hash(self, text: &[u8]) -> u32;

    /// Prefetches the memory `bytes` after the start of a text into the first cache, if there is anything.
    fn fetch(self, text: &[u8], bytes: usize);
}

/// What every processor has: UTF-8, UTF-16 without surrogates, and plain copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common;

/// A value of it proves that AVX2 is there.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Does the work with these kernels.
///
/// # Safety
/// `best` has found AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub(super) unsafe fn on_avx2<W: Work>(work: W) -> W::Output {
    work.run(Avx2(()))
}

/// As [`with_kernels`], by these whichever are the best, where they are there.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn with_avx2<W: Work>(work: W) -> Option<W::Output> {
    // SAFETY: `best` has found AVX2.
    (crate::kernel() >= crate::Kernel::Avx2).then(|| unsafe { on_avx2(work) })
}

/// The kernels for 64-byte vectors, one or two for each cell, loaded and stored under a mask.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());
