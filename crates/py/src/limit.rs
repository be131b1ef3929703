//! Time limits: a call of a driver that lasts too long is cancelled from a thread of its own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onecopy_rows::{Error, ErrorKind};
use onecopy_wire::CancelHandle;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A limit that may be set while others look at it: milliseconds, 0 for none.
#[derive(Debug, Default)]
pub(crate) struct TimeLimit(AtomicU64);

impl TimeLimit {
    /// Of seconds; `None` for no limit.
    pub(crate) fn of(seconds: Option<f64>) -> PyResult<TimeLimit> {
        let limit = TimeLimit::default();
        limit.set(seconds)?;
        Ok(limit)
    }

    /// The same, as it is now.
    pub(crate) fn copy(&self) -> TimeLimit {
        TimeLimit(AtomicU64::new(self.0.load(Relaxed)))
    }

    pub(crate) fn set(&self, seconds: Option<f64>) -> PyResult<()> {
        let millis = match seconds {
            None => 0,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between the two
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

    #[allow(clippy::cast_precision_loss)] // 1e12 at most
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.get().map(|limit| limit.as_millis() as f64 / 1000.0)
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        let millis = self.0.load(Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

/// Where a call stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    UnderWay,
    RanOut,
    Over,
}

/// A call under watch, for as long as this stands.
pub(crate) struct Watch {
    limit: Duration,
    shared: Arc<(Mutex<Stage>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch, where there is a limit. A cancel that comes before the driver has begun is lost, so it is repeated
    /// until the call is over.
    pub(crate) fn start(
        limit: Option<Duration>,
        cancel: impl FnOnce() -> CancelHandle,
    ) -> Option<Watch> {
        let limit = limit?;
        let cancel = cancel();
        let shared = Arc::new((Mutex::new(Stage::UnderWay), Condvar::new()));
        let watched = Arc::clone(&shared);
        let end = Instant::now() + limit;
        let thread = std::thread::Builder::new()
            .name("onecopy-limit".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                let (stage, over) = &*watched;
                let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
                while *stage != Stage::Over {
                    let left = end.saturating_duration_since(Instant::now());
                    let pause = if left.is_zero() {
                        // With the lock held: the call cannot be over and another begun when the cancel lands.
                        *stage = Stage::RanOut;
                        cancel.cancel();
                        Duration::from_millis(50)
                    } else {
                        left
                    };
                    let waited = over.wait_timeout(stage, pause);
                    stage = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            });
        Some(Watch {
            limit,
            shared,
            // No thread to be had: the call goes on without a limit.
            thread: thread.ok(),
        })
    }

    /// Ends it; whether the limit ran out.
    fn end(&mut self) -> bool {
        let (stage, over) = &*self.shared;
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        let ran_out = *stage == Stage::RanOut;
        *stage = Stage::Over;
        drop(stage);
        over.notify_all();
        ran_out
    }

    /// Ends it: the error of a call that failed because its limit ran out.
    pub(crate) fn ran_out(mut self) -> Option<Error> {
        let limit = self.limit.as_secs_f64();
        self.end().then(|| {
            let message =
                format!("the statement was cancelled: its time limit of {limit} s ran out");
            let mut error = Error::new(ErrorKind::Timeout, message);
            error.sqlstate = "HYT00".to_owned();
            error
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
        // It wakes at once, and never attaches to Python.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
