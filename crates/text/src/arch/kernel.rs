//! The families of kernels, and which of them runs in this process.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::Kind;

/// Which family of kernels runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kernel {
    /// Plain Rust, no simdutf.
    Scalar = 1,
    /// 16-byte vectors.
    Sse2 = 2,
    /// 32-byte vectors.
    Avx2 = 3,
    /// 64-byte vectors with masks and byte compression (AVX-512 with VBMI2).
    Avx512 = 4,
}

impl Kernel {
    /// The name that `ONECOPY_KERNEL` takes.
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

/// 0 until the first use.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// The family of kernels that runs in this process: the best the processor has, or what `ONECOPY_KERNEL` allows.
#[inline]
#[must_use]
pub fn kernel() -> Kernel {
    match CHOSEN.load(Relaxed) {
        1 => Kernel::Scalar,
        2 => Kernel::Sse2,
        3 => Kernel::Avx2,
        4 => Kernel::Avx512,
        _ => choose(),
    }
}

#[cold]
fn choose() -> Kernel {
    let requested = std::env::var("ONECOPY_KERNEL").unwrap_or_default();
    let requested = [Kernel::Scalar, Kernel::Sse2, Kernel::Avx2, Kernel::Avx512]
        .into_iter()
        .find(|k| k.name() == requested);
    let best = best();
    // Two threads may both choose: they choose the same.
    let chosen = requested.map_or(best, |requested| requested.min(best));
    CHOSEN.store(chosen as u8, Relaxed);
    chosen
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

/// Whether simdutf is to be left out.
#[inline(always)]
pub(super) fn no_simdutf() -> bool {
    cfg!(miri) || kernel() == Kernel::Scalar
}

/// Whether the kernels on 32-byte vectors run.
#[inline(always)]
pub(super) fn is_avx2() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri))) && kernel() == Kernel::Avx2
}

/// Whether the kernels on 64-byte vectors run.
#[inline(always)]
pub(super) fn is_avx512() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri))) && kernel() == Kernel::Avx512
}

/// The result of one scan of 16-bit units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan16 {
    /// The narrowest that holds every unit, at most [`Kind::Ucs2`].
    pub(crate) kind: Kind,
    /// Whether a unit is a surrogate.
    pub(crate) surrogate: bool,
}

/// The result of one scan of valid UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan8 {
    /// The largest byte: the lead bytes say which character is the widest.
    pub(crate) max: u8,
    /// Bytes that do not continue a sequence.
    pub(crate) n_chars: usize,
}
