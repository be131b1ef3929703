//! `RecentLength`: estimates the length of the next result from the lengths of recent results.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The length of recent results, which the next result probably does not exceed. Memory of this
/// size is not moved while a result is written, and its unused part is never written to. If the
/// memory were too small, it would be replaced with a new mapping, which takes 17 us.
///
/// The unused part is so small that it is not freed before the `bytes` is. glibc maps new memory
/// for a request that is larger than every mapping freed so far. If the unused part were freed, the
/// mapping of a freed `bytes` would be smaller than the next request, so each result would get a
/// new mapping. For 3.5 MB, that causes 850 page faults of 1 to 3 us each.
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
