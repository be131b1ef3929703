//! What a server counts: relaxed atomics, no lock and no allocation a request; and its text for Prometheus.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | [`Metrics`]: where one server counts |
//! | `area.rs` | [`MetricsArea`]: the places of many servers, in one memory that processes share |
//! | `text.rs` | the exposition text |

mod area;
mod text;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub use area::MetricsArea;

use crate::access::Outcome;
use area::Place;

/// Upper ends of the histogram's buckets in microseconds; one more has what took longer.
const BUCKETS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Classes of statuses: none sent, then by the first digit.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The words of a place. Counters only grow, over all servers that ever had the place; gauges begin at 0 with each.
mod word {
    use super::{BUCKETS_US, CLASSES, Outcome};

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
    pub(super) const ACCEPT_PAUSES: usize = REFUSED + super::REFUSALS.len();
    pub(super) const LOG_DROPPED: usize = ACCEPT_PAUSES + 1;
    /// From here on gauges.
    pub(super) const GAUGES: usize = LOG_DROPPED + 1;
    pub(super) const CONNECTIONS: usize = GAUGES;
    pub(super) const HANDLERS: usize = GAUGES + 1;
    pub(super) const WAITING: usize = GAUGES + 2;
    pub(super) const STREAMS: usize = GAUGES + 3;
    /// How many there are.
    pub(super) const N: usize = GAUGES + 4;
}

/// Why a connection was not served.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// Past the limit: answered with 503.
    Busy,
    /// Far past the limit: closed without a word.
    Dropped,
    /// The system would not have it.
    Failed,
}

const REFUSALS: [&str; 3] = ["busy", "dropped", "failed"];

/// Where a server counts. Clones are the same place.
///
/// By itself in memory of its own; the place of a [`MetricsArea`] is seen by all processes that have the area.
#[derive(Clone)]
pub struct Metrics(Arc<Place>);

impl Metrics {
    /// All there is to tell of the area that it is in, as text for Prometheus (exposition format 0.0.4).
    #[must_use]
    pub fn text(&self) -> String {
        self.0.text()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0.words()[at]
    }

    fn add(&self, at: usize, n: u64) {
        self.word(at).fetch_add(n, Relaxed);
    }

    /// A request has been answered, or its connection has ended.
    pub(crate) fn request(&self, status: u16, outcome: Outcome, took: Duration) {
        let class = usize::from(status / 100).min(CLASSES.len() - 1);
        let at = class * Outcome::ALL.len() + outcome as usize;
        self.add(word::REQUESTS + at, 1);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|end| *end < took_us);
        self.add(word::BUCKETS + bucket, 1);
        self.add(word::DURATION_US, took_us);
    }

    pub(crate) fn sent(&self, n_bytes: u64) {
        if n_bytes > 0 {
            self.add(word::SENT, n_bytes);
        }
    }

    pub(crate) fn received(&self, n_bytes: usize) {
        self.add(word::RECEIVED, n_bytes as u64);
    }

    pub(crate) fn rows(&self, n: u64) {
        self.add(word::ROWS, n);
    }

    pub(crate) fn accepted(&self) {
        self.add(word::ACCEPTED, 1);
    }

    pub(crate) fn refused(&self, why: Refusal) {
        self.add(word::REFUSED + why as usize, 1);
    }

    pub(crate) fn accept_paused(&self) {
        self.add(word::ACCEPT_PAUSES, 1);
    }

    pub(crate) fn log_dropped(&self, n_lines: u64) {
        self.add(word::LOG_DROPPED, n_lines);
    }

    /// The connections that are open.
    pub(crate) fn set_connections(&self, n: usize) {
        self.word(word::CONNECTIONS).store(n as u64, Relaxed);
    }

    /// The handlers that run, and the requests that wait for one to end.
    pub(crate) fn set_handlers(&self, n_running: usize, n_waiting: usize) {
        self.word(word::HANDLERS).store(n_running as u64, Relaxed);
        self.word(word::WAITING).store(n_waiting as u64, Relaxed);
    }

    /// A row stream is open until what comes back is dropped.
    pub(crate) fn stream(&self) -> OpenStream {
        self.add(word::STREAMS, 1);
        OpenStream(self.clone())
    }
}

impl Default for Metrics {
    /// A place of its own, in this process alone.
    fn default() -> Metrics {
        Metrics(Arc::new(Place::own()))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Counts a row stream as open.
pub(crate) struct OpenStream(Metrics);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.word(word::STREAMS).fetch_sub(1, Relaxed);
    }
}
