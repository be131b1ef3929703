//! The indexes of the counters and gauges in the words of a metrics slot. When another server
//! claims the slot, the counters keep their values, and the gauges are set to 0.

use crate::access::Outcome;

/// The upper bounds, in microseconds, of the buckets in the histogram of request durations. One
/// additional bucket counts the durations above the last bound.
pub(super) const BUCKETS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// The labels for the class of a response status, indexed by the first digit of the status. The
/// label at index 0, `none`, is used if no status was sent.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The labels of [`super::RefusalReason`], in the order of its variants.
pub(super) const REFUSALS: [&str; 3] = ["busy", "dropped", "failed"];

/// The index of the first counter of requests. There is one counter for each combination of a label
/// of [`CLASSES`] with an outcome. The counters are ordered by label, then by outcome.
pub(super) const REQUESTS: usize = 0;
pub(super) const BUCKETS: usize = REQUESTS + CLASSES.len() * Outcome::ALL.len();
pub(super) const DURATION_US: usize = BUCKETS + BUCKETS_US.len() + 1;
pub(super) const SENT: usize = DURATION_US + 1;
pub(super) const RECEIVED: usize = SENT + 1;
pub(super) const ROWS: usize = RECEIVED + 1;
pub(super) const ACCEPTED: usize = ROWS + 1;
/// The index of the first counter of refused connections; there is one for each label of
/// [`REFUSALS`].
pub(super) const REFUSED: usize = ACCEPTED + 1;
pub(super) const ACCEPT_PAUSES: usize = REFUSED + REFUSALS.len();
pub(super) const LOG_DROPPED: usize = ACCEPT_PAUSES + 1;
/// The index of the first gauge. All words with a lower index are counters.
pub(super) const GAUGES: usize = LOG_DROPPED + 1;
pub(super) const CONNECTIONS: usize = GAUGES;
pub(super) const HANDLERS: usize = GAUGES + 1;
pub(super) const WAITING: usize = GAUGES + 2;
pub(super) const STREAMS: usize = GAUGES + 3;
/// The number of words that a slot uses: one for each counter, and one for each of the four gauges.
pub(super) const N: usize = GAUGES + 4;
