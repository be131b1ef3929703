//! [`Kernel`]: the kernel families, and the choice of one of them when this process first needs it.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::Kind;

/// A kernel family: the kernels for one level of instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kernel {
    /// Plain Rust without vector kernels and without simdutf.
    Scalar = 1,
    /// The kernels for SSE2, with 16-byte vectors.
    Sse2 = 2,
    /// The kernels for AVX2, with 32-byte vectors.
    Avx2 = 3,
    /// The kernels for AVX-512 and VBMI2, with 64-byte vectors, masks and byte compression.
    Avx512 = 4,
}

impl Kernel {
    /// Returns the name of the family. The environment variable `ONECOPY_KERNEL` selects a family
    /// by this name.
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

/// The discriminant of the [`Kernel`] that this process uses; 0 before one is chosen.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Returns the kernel family of this process: the best that the processor supports, limited by
/// `ONECOPY_KERNEL`.
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

/// Returns the discriminant of the [`Kernel`] that [`kernel`] returns. To compare discriminants
/// takes one comparison less than to compare enum values.
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
    // Two threads may choose at the same time; both choose the same family.
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

/// Returns `true` if the kernels validate UTF-8 while they decode it; otherwise validation is a
/// separate pass.
pub(super) fn checks_while_decoding() -> bool {
    kernel() >= Kernel::Avx2
}

/// Returns `true` if the decoded text has only valid code points even if another thread changes the
/// UTF-8 during the conversion. Concerns only kernels that validate UTF-8 while they decode it.
pub(super) fn writes_code_points() -> bool {
    kernel() == Kernel::Avx512
}

/// The result of one scan of 16-bit units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan16 {
    /// The narrowest kind that can store each of the scanned units unchanged. A 16-bit unit never
    /// requires a wider kind than [`Kind::Ucs2`].
    pub(crate) kind: Kind,
    /// `true` if any of the scanned units is a surrogate.
    pub(crate) surrogate: bool,
}

/// The result of one scan of valid UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan8 {
    /// The largest byte of the text. It shows the width of the widest character: lead bytes are
    /// larger than all other bytes, and a higher character never has a lower lead byte.
    pub(crate) max: u8,
    /// The number of characters, which is the number of bytes that are not continuation bytes.
    pub(crate) n_chars: usize,
}
