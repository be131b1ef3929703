//! [`Kernel`]: the kernel families, and the choice of one for this process.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::Kind;

/// The kernels for one level of instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kernel {
    /// Plain Rust without simdutf.
    Scalar = 1,
    /// The kernels for SSE2, with 16-byte vectors.
    Sse2 = 2,
    /// The kernels for AVX2, with 32-byte vectors.
    Avx2 = 3,
    /// The kernels for AVX-512 and VBMI2, with 64-byte vectors, masks and byte compression.
    Avx512 = 4,
}

impl Kernel {
    /// Returns the name of the family, as in the environment variable `ONECOPY_KERNEL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Scalar => "scalar",
            Kernel::Sse2 => "sse2",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
        }
    }
}

/// The [`Kernel`] of this process as a number; 0 before the choice.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Returns the kernel family of this process: the best for the processor, up to `ONECOPY_KERNEL`.
#[inline]
#[must_use]
pub fn kernel() -> Kernel {
    match number() {
        1 => Kernel::Scalar,
        2 => Kernel::Sse2,
        3 => Kernel::Avx2,
        _ => Kernel::Avx512,
    }
}

/// Returns [`kernel`] as a number, which is quicker to compare.
#[inline(always)]
pub(super) fn number() -> u8 {
    match CHOSEN.load(Relaxed) {
        0 => choose(),
        number => number,
    }
}

#[cold]
#[inline(never)]
fn choose() -> u8 {
    let requested = std::env::var("ONECOPY_KERNEL").unwrap_or_default();
    let requested = [Kernel::Scalar, Kernel::Sse2, Kernel::Avx2, Kernel::Avx512]
        .into_iter()
        .find(|k| k.name() == requested);
    let best = best();
    // If two threads choose at the same time, both choose the same family.
    let chosen = requested.map_or(best, |requested| requested.min(best));
    CHOSEN.store(chosen as u8, Relaxed);
    chosen as u8
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn best() -> Kernel {
    if !(is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt"))
    {
        Kernel::Sse2
    } else if !(is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2"))
    {
        Kernel::Avx2
    } else {
        Kernel::Avx512
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn best() -> Kernel {
    Kernel::Scalar
}

/// Returns `true` if the kernels validate UTF-8 while they decode it.
pub(super) fn checks_while_decoding() -> bool {
    kernel() >= Kernel::Avx2
}

/// Returns `true` if validating kernels write only valid characters even if the text changes
/// meanwhile.
pub(super) fn writes_code_points() -> bool {
    kernel() == Kernel::Avx512
}

/// The result of a scan of 16-bit units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan16 {
    /// The narrowest kind for the units, at most [`Kind::Ucs2`].
    pub(crate) kind: Kind,
    /// `true` if a unit is a surrogate.
    pub(crate) surrogate: bool,
}

/// The result of a scan of valid UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan8 {
    /// The largest byte. It shows the width of the widest character.
    pub(crate) max: u8,
    /// The number of characters: all bytes except continuation bytes.
    pub(crate) n_chars: usize,
}
