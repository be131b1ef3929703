//! How long results were of late.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How long results were of late: the next is likely no longer. A place of the right size is not moved, and what is left over of it
/// was never touched; one that is too small is left for a mapping of its own, which costs 17 us.
///
/// What is left over is so little that a `bytes` keeps it. One that was cut is a smaller mapping when it is freed than the next one
/// that is asked for, and then glibc, which keeps for later what was freed up to the largest mapping so far, maps each anew: 850
/// faults of 1 to 3 us for 3.5 MB.
pub(crate) struct Recent(AtomicUsize);

/// Shorter ones are copied into a `bytes` of their size.
const SHORT_BYTES: usize = 2048;

/// Results are not expected to be shorter.
pub(crate) const LEAST_BYTES: usize = 1024;

/// Nor are they expected to be longer, without a look at them.
pub(crate) const MOST_BYTES: usize = 64 << 20;

impl Recent {
    pub(crate) const fn new() -> Recent {
        Recent(AtomicUsize::new(0))
    }

    /// Notes the length of a result: a longer one counts at once, a shorter one by and by.
    #[inline]
    pub(crate) fn remember(&self, len: usize) {
        let recent = self.0.load(Relaxed);
        let shorter = recent - recent.saturating_sub(len).div_ceil(4);
        self.0.store(len.max(shorter), Relaxed);
    }

    /// Whether the next result is likely short.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.0.load(Relaxed) < SHORT_BYTES
    }

    /// How long the next result is likely, with some to spare.
    #[inline]
    pub(crate) fn likely(&self) -> usize {
        let recent = self.0.load(Relaxed);
        (recent + recent / 32 + LEAST_BYTES).min(MOST_BYTES)
    }
}
