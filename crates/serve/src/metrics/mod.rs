//! What a server counts: relaxed atomics, no lock and no allocation a request; and its text for Prometheus.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | [`Metrics`]: where one server counts |
//! | `area.rs` | [`MetricsArea`]: the places of many servers, in one memory that processes share |
//! | `text.rs` | the exposition text |
//! | `word.rs` | the words of a place, and the labels of those that are several |

mod area;
mod text;
mod word;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub use area::MetricsArea;

use crate::access::Outcome;
use area::Place;
use word::{BUCKETS_US, CLASSES};

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
