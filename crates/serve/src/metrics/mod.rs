//! [`Metrics`]: the counters of a server and their text for Prometheus. The counters are relaxed
//! atomics, so a request takes no lock and allocates no memory for them.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | [`Metrics`]: the counters of one server |
//! | `area.rs` | [`MetricsArea`]: slots of several servers in memory shared between processes |
//! | `text.rs` | the text for Prometheus |
//! | `word.rs` | the index of each counter in a slot, and labels |

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
use area::MetricsSlot;
use word::{BUCKETS_US, CLASSES};

/// The reason for which a connection was not served, for the counters of refused connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusalReason {
    /// Too many connections were open; the client got a 503.
    Busy,
    /// The connection was closed without a response, because the number of connections that wait
    /// for a 503 is limited too.
    Dropped,
    /// The system refused to accept the connection.
    Failed,
}

/// The counters of one server. Clones refer to the same counters.
///
/// By default the counters are in memory of this process. If they are in a slot of a
/// [`MetricsArea`], all processes that have the area can read them.
#[derive(Clone)]
pub struct Metrics(Arc<MetricsSlot>);

impl Metrics {
    /// Returns the metrics as text for Prometheus (exposition format 0.0.4). If they are in a slot
    /// of a [`MetricsArea`], the text has the sums of all its slots.
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

    /// Counts a request. It is called when the response or the connection of the request has ended.
    /// `took` is the duration of the request.
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

    pub(crate) fn refused(&self, why: RefusalReason) {
        self.add(word::REFUSED + why as usize, 1);
    }

    pub(crate) fn accept_paused(&self) {
        self.add(word::ACCEPT_PAUSES, 1);
    }

    pub(crate) fn log_dropped(&self, n_lines: u64) {
        self.add(word::LOG_DROPPED, n_lines);
    }

    /// Sets the number of open connections.
    pub(crate) fn set_connections(&self, n: usize) {
        self.word(word::CONNECTIONS).store(n as u64, Relaxed);
    }

    /// Sets the number of running handlers, and the number of requests that wait until a handler
    /// ends.
    pub(crate) fn set_handlers(&self, n_running: usize, n_waiting: usize) {
        self.word(word::HANDLERS).store(n_running as u64, Relaxed);
        self.word(word::WAITING).store(n_waiting as u64, Relaxed);
    }

    /// Counts an open row stream, until the returned value is dropped.
    pub(crate) fn stream(&self) -> OpenStream {
        self.add(word::STREAMS, 1);
        OpenStream(self.clone())
    }
}

impl Default for Metrics {
    /// Creates counters that only this process can read.
    fn default() -> Metrics {
        Metrics(Arc::new(MetricsSlot::own()))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Counts a row stream as open until it is dropped.
pub(crate) struct OpenStream(Metrics);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.word(word::STREAMS).fetch_sub(1, Relaxed);
    }
}
