//! One type for each kernel family (the kernels for one instruction set). A value of such a type
//! can exist only if this processor supports the instruction set. The operations on short texts
//! that each family implements are called steps. They are inlined into a caller's loop, which is
//! compiled once for each family.
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

/// Defines methods of a kernel family. The input `fn name(arguments) -> result = function;` defines
/// a method that calls `function` with the same arguments. `!unsafe` before this input makes the
/// method unsafe.
#[cfg(target_arch = "x86_64")]
macro_rules! steps {
    ($(
        $(! $unsafe:tt)? fn $name:ident $([$($generics:tt)*])? ($($arg:ident: $ty:ty),*)
        $(-> $ret:ty)? = $function:expr;
    )+) => {$(
        #[inline(always)]
        $($unsafe)? fn $name $(<$($generics)*>)? (self $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: a value of this type proves that the instructions of the family are
            // available; the function has the same contract as the method.
            unsafe { $function($($arg),*) }
        }
    )+};
}
#[cfg(target_arch = "x86_64")]
pub(super) use steps;

/// A task, such as a loop over short texts. It is compiled once for each kernel family, and is run
/// with the kernel family of this process.
pub trait Work {
    /// The result of [`Work::run`].
    type Output;

    /// Runs the task. The implementation, and each function that it calls for every text, must be
    /// `#[inline(always)]`. A function that is not inlined is not compiled for the instruction set
    /// of the family, and every text then costs a function call.
    fn run<K: Kernels>(self, kernels: K) -> Self::Output;
}

/// A task that returns the largest of the units; 0 if there are none.
pub(crate) struct LargestUnit<'a>(pub(crate) &'a [u32]);

impl Work for LargestUnit<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> u32 {
        // The loop has no branch, so that the compiler vectorizes it.
        self.0.iter().fold(0, |max, &c| c.max(max))
    }
}

/// Runs the task with the kernels that every processor supports. This function is not inlined, so
/// that the variables of the task do not enlarge the stack frame of the caller. The functions of
/// the other families are not inlined either.
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

/// A kernel family, as a set of methods that are inlined into their callers. A value of a type that
/// implements this trait proves that the processor supports the family's instruction set.
pub trait Kernels: CellSteps + JsonSteps + JsonKernels + Utf8Kernels {
    /// Runs another task in a separate function that is compiled for the same instruction set. Use
    /// it for recursive code, or for code that has several callers.
    fn call<W: Work>(self, work: W) -> W::Output;

    /// Returns `true` if two texts are equal.
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool;

    /// Returns a hash of a short text. Different short texts usually have different hashes.
    fn hash(self, text: &[u8]) -> u32;

    /// Prefetches into the L1 cache the memory that is `bytes` bytes after the start of the text.
    /// The address may be invalid.
    fn fetch(self, text: &[u8], bytes: usize);
}

/// The kernel family that every processor supports. It has kernels for only some conversions: of
/// UTF-8, of UTF-16 without surrogates, and of text that is copied unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common;

/// The kernels for AVX2 (32-byte vectors). A value of this type proves that the processor supports
/// AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Runs the task with the kernels for AVX2.
///
/// # Safety
/// The processor must support AVX2 (`best` checks it).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub(super) unsafe fn on_avx2<W: Work>(work: W) -> W::Output {
    work.run(Avx2(()))
}

/// Runs the task with the kernels for AVX2, even if this process uses the kernels for AVX-512.
/// Returns `None` if the processor does not support AVX2.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn with_avx2<W: Work>(work: W) -> Option<W::Output> {
    // SAFETY: `best` has found AVX2.
    (crate::kernel() >= crate::Kernel::Avx2).then(|| unsafe { on_avx2(work) })
}

/// The kernels for AVX-512 (64-byte vectors). They load and store a short text with one or two
/// masked vector instructions. A value of this type proves that the processor supports AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());
