//! The words of a place. Counters only grow, over all servers that ever had the place; gauges begin at 0 with each.

use crate::access::Outcome;

/// Upper ends of the histogram's buckets in microseconds; one more has what took longer.
pub(super) const BUCKETS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Classes of statuses: none sent, then by the first digit.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Reasons for which a connection is not served, by the number of `Refusal`.
pub(super) const REFUSALS: [&str; 3] = ["busy", "dropped", "failed"];

/// By class and outcome.
pub(super) const REQUESTS: usize = 0;
pub(super) const BUCKETS: usize = REQUESTS + CLASSES.len() * Outcome::ALL.len();
pub(super) const DURATION_US: usize = BUCKETS + BUCKETS_US.len() + 1;
pub(super) const SENT: usize = DURATION_US + 1;
pub(super) const RECEIVED: usize = SENT + 1;
pub(super) const ROWS: usize = RECEIVED + 1;
pub(super) const ACCEPTED: usize = ROWS + 1;
/// By reason.
pub(super) const REFUSED: usize = ACCEPTED + 1;
pub(super) const ACCEPT_PAUSES: usize = REFUSED + REFUSALS.len();
pub(super) const LOG_DROPPED: usize = ACCEPT_PAUSES + 1;
/// From here on gauges.
pub(super) const GAUGES: usize = LOG_DROPPED + 1;
pub(super) const CONNECTIONS: usize = GAUGES;
pub(super) const HANDLERS: usize = GAUGES + 1;
pub(super) const WAITING: usize = GAUGES + 2;
pub(super) const STREAMS: usize = GAUGES + 3;
/// How many there are.
pub(super) const N: usize = GAUGES + 4;
