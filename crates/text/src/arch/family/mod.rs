//! One type for each kernel family (the kernels for one instruction set). A value of such a type
//! exists only if the processor supports the instruction set. The methods are inlined into a
//! caller's loop, which is compiled once for each family.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the trait [`Kernels`] and the types of the families |
//! | `cell.rs` | the steps for cells |
//! | `json.rs` | the steps for bodies of JSON strings |
//! | `json_read.rs` | the steps of the JSON reader |
//! | `utf8.rs` | the steps for UTF-8 |

mod cell;
mod json;
mod json_read;
mod utf8;

pub(crate) use cell::CellSteps;
pub use json::{JSON_PLAIN_BYTES, JSON_PLAIN_UNITS, JsonKernels, json_capacity};
#[cfg(target_arch = "x86_64")]
pub(super) use json_read::escaped;
pub use json_read::{Ascii, JsonSteps, Look, Plain, ShortNumber, UnescapedLength};
pub use utf8::{UTF8_SHORT_BYTES, Utf8Kernels, utf8_capacity};

/// Defines methods of a kernel family. The input is `fn name(arguments) -> result = function;`.
/// Each method calls its function. `!unsafe` before the input makes the method unsafe.
#[cfg(target_arch = "x86_64")]
macro_rules! steps {
    ($(
        $(! $unsafe:tt)? fn $name:ident $([$($generics:tt)*])? ($($arg:ident: $ty:ty),*)
        $(-> $ret:ty)? = $function:expr;
    )+) => {$(
        #[inline(always)]
        $($unsafe)? fn $name $(<$($generics)*>)? (self $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: a value of this type proves that the instructions are available. The function
            // and the method have the same contract.
            unsafe { $function($($arg),*) }
        }
    )+};
}
#[cfg(target_arch = "x86_64")]
pub(super) use steps;

/// A task, such as a loop over short texts. It is compiled once for each kernel family.
pub trait Work {
    /// The result of [`Work::run`].
    type Output;

    /// Runs the task. The implementation and the functions that it calls for each text must be
    /// `#[inline(always)]`. Otherwise they are not compiled for the instruction set.
    fn run<K: Kernels>(self, kernels: K) -> Self::Output;
}

/// A task that returns the largest unit, or 0.
pub(crate) struct LargestUnit<'a>(pub(crate) &'a [u32]);

impl Work for LargestUnit<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> u32 {
        // The loop has no branch, so the compiler vectorizes it.
        self.0.iter().fold(0, |max, &c| c.max(max))
    }
}

/// Runs the task with the kernels that every processor supports. The function is not inlined, to
/// keep the stack frame of its caller small.
#[inline(never)]
pub(super) fn on_common<W: Work>(work: W) -> W::Output {
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

/// The methods of a kernel family, which are inlined into their callers. A value of this type
/// proves that the processor supports the instruction set.
pub trait Kernels: CellSteps + JsonSteps + JsonKernels + Utf8Kernels {
    /// Runs another task in a separate function. Use it for recursive code or code with several
    /// callers.
    fn call<W: Work>(self, work: W) -> W::Output;

    /// Returns `true` if the texts are equal.
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool;

    /// Returns a hash of a short text.
    fn hash(self, text: &[u8]) -> u32;

    /// Prefetches the memory at `bytes` bytes after the start of the text. The address may be
    /// invalid.
    fn fetch(self, text: &[u8], bytes: usize);
}

/// The kernel family that every processor supports. It has kernels for only some conversions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common;

/// The kernels for AVX2 (32-byte vectors).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Runs the task with the kernels for AVX2.
///
/// # Safety
/// The processor must support AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub(super) unsafe fn on_avx2<W: Work>(work: W) -> W::Output {
    work.run(Avx2(()))
}

/// Runs the task with the kernels for AVX2; `None` without AVX2.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn with_avx2<W: Work>(work: W) -> Option<W::Output> {
    // SAFETY: `best` has found AVX2.
    (crate::kernel() >= crate::Kernel::Avx2).then(|| unsafe { on_avx2(work) })
}

/// The kernels for AVX-512 (64-byte vectors).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());
