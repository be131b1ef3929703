//! `RecentLength`: estimates the length of the next result from the lengths of recent results.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The length of recent results, in bytes. It estimates the length of the next result, for which
/// memory is allocated before it is written. If the memory is too small, it is replaced with a new
/// mapping, which takes 17 us. If it is too large, the unused pages are never written to.
///
/// The estimate exceeds the length of the result so little that the unused end is not cut off. If
/// it were cut off, the freed memory of a `bytes` would be smaller than the next request. glibc
/// maps new memory for a request that is larger than every mapping freed so far, so each result
/// would get a new mapping. For 3.5 MB, that causes 850 page faults of 1 to 3 us each.
pub(crate) struct RecentLength(AtomicUsize);

/// Results below this size, in bytes, are copied into a `bytes` of their size.
const SHORT_BYTES: usize = 2048;

/// The smallest estimate of a result's length, in bytes.
pub(crate) const LEAST_BYTES: usize = 1024;

/// The largest estimate that is made without examining the object to encode, in bytes.
pub(crate) const MOST_BYTES: usize = 64 << 20;

impl RecentLength {
    pub(crate) const fn new() -> RecentLength {
        RecentLength(AtomicUsize::new(0))
    }

    /// Records the length of a result. A longer length replaces the estimate immediately, a shorter
    /// one gradually.
    #[inline]
    pub(crate) fn remember(&self, len: usize) {
        let recent = self.0.load(Relaxed);
        let shorter = recent - recent.saturating_sub(len).div_ceil(4);
        self.0.store(len.max(shorter), Relaxed);
    }

    /// Returns `true` if the next result is probably shorter than [`SHORT_BYTES`].
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.0.load(Relaxed) < SHORT_BYTES
    }

    /// Returns the estimated length of the next result, plus a small reserve.
    #[inline]
    pub(crate) fn likely(&self) -> usize {
        let recent = self.0.load(Relaxed);
        (recent + recent / 32 + LEAST_BYTES).min(MOST_BYTES)
    }
}
