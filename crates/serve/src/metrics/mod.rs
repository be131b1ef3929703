//! [`Metrics`]: the counters of a server, and their text for Prometheus. The counters are atomics
//! with relaxed ordering, so counting takes no lock and allocates no memory.
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

/// The reason why the server did not serve a connection. Each reason has a separate counter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusalReason {
    /// Too many connections were open; the client got a 503.
    Busy,
    /// The connection was closed without a response, because too many connections were already
    /// waiting for a 503.
    Dropped,
    /// A system call for the new connection failed.
    Failed,
}

/// The counters of one server. Clones refer to the same counters.
///
/// By default, the counters are in private memory of this process. If they are in a slot of a
/// [`MetricsArea`], all processes that have opened the area can read them.
#[derive(Clone)]
pub struct Metrics(Arc<MetricsSlot>);

impl Metrics {
    /// Returns the metrics as text for Prometheus (exposition format 0.0.4). If the counters are in
    /// a slot of a [`MetricsArea`], the text has the sums over all slots of the area.
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

    /// Counts a request whose response or connection has ended. `took` is the duration of the
    /// request.
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

    /// Sets two counters: the number of running handlers, and the number of requests that wait
    /// because no thread is free to run their handler.
    pub(crate) fn set_handlers(&self, n_running: usize, n_waiting: usize) {
        self.word(word::HANDLERS).store(n_running as u64, Relaxed);
        self.word(word::WAITING).store(n_waiting as u64, Relaxed);
    }

    /// Counts an open row stream. The stream is counted as open until the returned value is
    /// dropped.
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

/// Represents one open row stream in the metrics. Dropping it decreases the number of open streams.
pub(crate) struct OpenStream(Metrics);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.word(word::STREAMS).fetch_sub(1, Relaxed);
    }
}
