//! `RecentLength`: estimates the length in bytes of the next result from those of recent results.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Estimates the length in bytes of the next result from the lengths of recent results. Memory of
/// this length is allocated before the result is written. If it is too small, it is replaced with a
/// new mapping, which takes 17 us. If it is too large, the unused pages are never written to.
///
/// The estimate exceeds the length of the result by so little that the unused end is not freed. If
/// it were freed, the memory of a freed `bytes` would be smaller than the next request. glibc
/// creates a new mapping for a request that is larger than every mapping freed so far, so each
/// result would get a new mapping. For 3.5 MB, this causes 850 page faults of 1 to 3 us each.
pub(crate) struct RecentLength(AtomicUsize);

/// Results of less than this size, in bytes, are copied into a `bytes` object of exactly their
/// size.
const SHORT_BYTES: usize = 2048;

/// The minimum estimate of a result's length, in bytes.
pub(crate) const LEAST_BYTES: usize = 1024;

/// The maximum of the estimated length of a result, in bytes. The estimate is computed from earlier
/// results. It does not depend on the object that is encoded next.
pub(crate) const MOST_BYTES: usize = 64 << 20;

impl RecentLength {
    pub(crate) const fn new() -> RecentLength {
        RecentLength(AtomicUsize::new(0))
    }

    /// Records the length of a result. If it exceeds the estimate, it becomes the new estimate
    /// immediately; otherwise the estimate decreases gradually.
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

    /// Returns the estimated length of the next result in bytes. The estimate is slightly larger
    /// than recent results.
    #[inline]
    pub(crate) fn likely(&self) -> usize {
        let recent = self.0.load(Relaxed);
        (recent + recent / 32 + LEAST_BYTES).min(MOST_BYTES)
    }
}
