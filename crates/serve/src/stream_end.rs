//! [`StreamEnd`], the outcome of a row stream; and [`Breaker`], by which a thread ends a row stream
//! with an error.

use std::fmt;
use std::sync::{Arc, Mutex};

use onecopy_wire::lock::lock;

use onecopy_wire::ChunkError;

/// Ends a row stream with an error while a worker waits for its source. It is needed for sources
/// that cannot be cancelled, such as some database drivers. The client gets the error response of
/// [`crate::Chunks::on_error`], or its connection is aborted, without waiting for the source. The
/// worker waits until the source returns, and the result of the source is then discarded.
#[derive(Clone, Default)]
pub struct Breaker(Arc<Mutex<BreakerState>>);

#[derive(Default)]
struct BreakerState {
    failed: Option<ChunkError>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Breaker {
    /// Creates a breaker. [`crate::Chunks::breaker`] connects it to a stream.
    #[must_use]
    pub fn new() -> Breaker {
        Breaker::default()
    }

    /// Ends the stream with `error`. Has no effect if the stream has ended, if its source has
    /// returned, or if `fail` was called before. Never waits.
    pub fn fail(&self, error: ChunkError) {
        let mut state = lock(&self.0);
        state.failed.get_or_insert(error);
        let wake = state.wake.clone();
        drop(state);
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Sets the function `wake`, which [`Breaker::fail`] calls. It wakes the connection, and the
    /// connection then calls [`Breaker::take`].
    pub(crate) fn on_fail(&self, wake: impl Fn() + Send + Sync + 'static) {
        lock(&self.0).wake = Some(Arc::new(wake));
    }

    pub(crate) fn take(&self) -> Option<ChunkError> {
        lock(&self.0).failed.take()
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Breaker")
    }
}

/// The outcome of a stream for its client.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEnd {
    /// The kernel has accepted all bytes of the response, including those that mark the end of the
    /// body.
    Done {
        /// The number of rows that [`onecopy_wire::ChunkSource::n_rows`] returned at the end.
        n_rows: u64,
    },
    /// The source failed. The client got an error response if nothing had been sent, otherwise its
    /// connection was aborted.
    Failed(ChunkError),
    /// The source panicked. The client got an error response if nothing had been sent, otherwise
    /// its connection was aborted.
    Panicked,
    /// The client closed its side before the end, and the source was cancelled.
    ClientGone,
    /// The client read nothing for [`crate::Limits::write_stall`], and the source was cancelled.
    Stalled,
    /// The server was stopped, and the stream did not end within the time for requests in progress.
    /// The source was cancelled.
    Stopped,
    /// The response has no body (for HEAD, or by its status). The source was not called.
    NoBody,
}
