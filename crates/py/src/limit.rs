//! `TimeLimit` and `CallWatch`: cancel a driver call that exceeds its time limit. A separate thread
//! measures the time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_rows::{Error, ErrorKind};
use onecopy_wire::CancelHandle;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A time limit in milliseconds; 0 for no limit. One thread may set it while other threads read it.
#[derive(Debug, Default)]
pub(crate) struct TimeLimit(AtomicU64);

impl TimeLimit {
    /// Creates a limit from a number of seconds, or no limit from `None`.
    pub(crate) fn of(seconds: Option<f64>) -> PyResult<TimeLimit> {
        let limit = TimeLimit::default();
        limit.set(seconds)?;
        Ok(limit)
    }

    /// Returns a new `TimeLimit` that has the current value of this one.
    pub(crate) fn copy(&self) -> TimeLimit {
        TimeLimit(AtomicU64::new(self.0.load(Relaxed)))
    }

    pub(crate) fn set(&self, seconds: Option<f64>) -> PyResult<()> {
        let millis = match seconds {
            None => 0,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in range
            Some(s) if s > 0.0 && s <= 1e9 => ((s * 1000.0).ceil() as u64).max(1),
            Some(_) => {
                return Err(PyValueError::new_err(
                    "a time limit is in seconds, above 0 and up to 1e9; `None` is for none",
                ));
            }
        };
        self.0.store(millis, Relaxed);
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // At most 1e12 milliseconds.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.get().map(|limit| limit.as_millis() as f64 / 1000.0)
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        let millis = self.0.load(Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

/// The state of a driver call that has a time limit: it is running, has exceeded the limit, or has
/// ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallStage {
    UnderWay,
    RanOut,
    Over,
}

/// Watches a driver call, and cancels it if it exceeds its time limit. The watch ends when this
/// value is dropped.
pub(crate) struct CallWatch {
    limit: Duration,
    shared: Arc<(Mutex<CallStage>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl CallWatch {
    /// Starts a thread that waits until the time limit expires. The thread then cancels the driver
    /// call. It repeats this until the call ends, because a cancel has no effect if the driver has
    /// not yet begun the call. Returns `None`, without starting a thread, if no limit is set.
    pub(crate) fn start(
        limit: Option<Duration>,
        cancel: impl FnOnce() -> CancelHandle,
    ) -> Option<CallWatch> {
        let limit = limit?;
        let cancel = cancel();
        let shared = Arc::new((Mutex::new(CallStage::UnderWay), Condvar::new()));
        let watched = Arc::clone(&shared);
        let end = Instant::now() + limit;
        let thread = std::thread::Builder::new()
            .name("onecopy-limit".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                let (stage, over) = &*watched;
                let mut stage = lock(stage);
                while *stage != CallStage::Over {
                    let left = end.saturating_duration_since(Instant::now());
                    let pause = if left.is_zero() {
                        // The lock is held, so that the watched call cannot end, and another call
                        // begin, before the cancellation has arrived.
                        *stage = CallStage::RanOut;
                        cancel.cancel();
                        Duration::from_millis(50)
                    } else {
                        left
                    };
                    let waited = over.wait_timeout(stage, pause);
                    stage = unpoisoned(waited).0;
                }
            });
        Some(CallWatch {
            limit,
            shared,
            // If the thread could not be started, the call continues without a limit.
            thread: thread.ok(),
        })
    }

    /// Ends the watch of the driver call: stops the thread that waits for the time limit. Returns
    /// `true` if the call has exceeded the limit.
    fn end(&mut self) -> bool {
        let (stage, over) = &*self.shared;
        let mut stage = lock(stage);
        let ran_out = *stage == CallStage::RanOut;
        *stage = CallStage::Over;
        drop(stage);
        over.notify_all();
        ran_out
    }

    /// Stops the thread that watches the call. If the time limit has expired, returns the error
    /// with which the call has to fail.
    pub(crate) fn ran_out(mut self) -> Option<Error> {
        let limit = self.limit;
        self.end().then(|| ran_out(limit))
    }
}

/// Returns the error of a call that was cancelled because it exceeded its time limit.
pub(crate) fn ran_out(limit: Duration) -> Error {
    let limit = limit.as_secs_f64();
    let message = format!("the statement was cancelled: its time limit of {limit} s ran out");
    let mut error = Error::new(ErrorKind::Timeout, message);
    error.sqlstate = "HYT00".to_owned();
    error
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        self.end();
        // The thread wakes immediately, and never needs the GIL, so this does not block.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
