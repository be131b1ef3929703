//! Cancels a driver call that exceeds its time limit. A separate thread measures the time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_rows::{Error, ErrorKind};
use onecopy_wire::CancelHandle;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A time limit in milliseconds; 0 for no limit.
#[derive(Debug, Default)]
pub(crate) struct TimeLimit(AtomicU64);

impl TimeLimit {
    /// Creates a limit from seconds. `None` means no limit.
    pub(crate) fn of(seconds: Option<f64>) -> PyResult<TimeLimit> {
        let limit = TimeLimit::default();
        limit.set(seconds)?;
        Ok(limit)
    }

    /// Returns a new `TimeLimit` with the same value.
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

    #[allow(clippy::cast_precision_loss)] // at most 1e12 milliseconds
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.get().map(|limit| limit.as_millis() as f64 / 1000.0)
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        let millis = self.0.load(Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

/// The state of a driver call with a time limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallStage {
    UnderWay,
    RanOut,
    Over,
}

/// Cancels a driver call that exceeds its time limit. Its drop ends the watch.
pub(crate) struct CallWatch {
    limit: Duration,
    shared: Arc<(Mutex<CallStage>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl CallWatch {
    /// Starts a thread that cancels the driver call after the time limit. The thread repeats the
    /// cancel until the call ends, because an early cancel has no effect. `None` if there is no
    /// limit.
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
                        // The lock is held: otherwise the cancel could reach the next call.
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
            // Without a thread, the call has no limit.
            thread: thread.ok(),
        })
    }

    /// Stops the thread. Returns `true` if the call exceeded its limit.
    fn end(&mut self) -> bool {
        let (stage, over) = &*self.shared;
        let mut stage = lock(stage);
        let ran_out = *stage == CallStage::RanOut;
        *stage = CallStage::Over;
        drop(stage);
        over.notify_all();
        ran_out
    }

    /// Stops the thread. Returns an error if the time limit has expired.
    pub(crate) fn ran_out(mut self) -> Option<Error> {
        let limit = self.limit;
        self.end().then(|| ran_out(limit))
    }
}

/// Returns the error of a call that exceeded its time limit.
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
        // This does not block: the thread wakes immediately, and never needs the GIL.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
