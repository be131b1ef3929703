//! [`StreamEnd`]: the outcome of a row stream. [`Breaker`]: an object with which any thread can end
//! a row stream with an error.

use std::fmt;
use std::sync::{Arc, Mutex};

use onecopy_wire::lock::lock;

use onecopy_wire::ChunkError;

/// An object with which any thread can end a row stream with an error, even while a worker waits
/// for the stream's source. It is needed for sources that cannot be cancelled, such as some
/// database drivers. The client does not wait for the source: it gets the error response of
/// [`crate::Chunks::on_error`], or its connection is aborted. The worker waits until the source
/// returns, and then discards the result.
#[derive(Clone, Default)]
pub struct Breaker(Arc<Mutex<BreakerState>>);

#[derive(Default)]
struct BreakerState {
    failed: Option<ChunkError>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Breaker {
    /// Creates a breaker. [`crate::Chunks::breaker`] connects it to a row stream.
    #[must_use]
    pub fn new() -> Breaker {
        Breaker::default()
    }

    /// Ends the stream with `error`. Has no effect if the stream has ended, if its source has
    /// already returned, or if `fail` was called before. The call never waits.
    pub fn fail(&self, error: ChunkError) {
        let mut state = lock(&self.0);
        state.failed.get_or_insert(error);
        let wake = state.wake.clone();
        drop(state);
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Sets the function `wake`, which [`Breaker::fail`] calls. `wake` notifies the connection,
    /// which then calls [`Breaker::take`].
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

/// The outcome of a row stream for its client.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEnd {
    /// The kernel has accepted all bytes of the response, including those that mark the end of the
    /// body.
    Done {
        /// The number of rows in the stream: the result of [`onecopy_wire::ChunkSource::n_rows`]
        /// after the last chunk.
        n_rows: u64,
    },
    /// The source failed. If no byte had been sent, the client got an error response. Otherwise its
    /// connection was aborted.
    Failed(ChunkError),
    /// The source panicked. If no byte had been sent, the client got an error response. Otherwise
    /// its connection was aborted.
    Panicked,
    /// The client closed its side before the end of the response, and the source was cancelled.
    ClientGone,
    /// The client read no bytes for the time [`crate::Limits::write_stall`], and the source was
    /// cancelled.
    Stalled,
    /// The server was stopped, and the stream did not end within [`crate::Limits::stop`]. The
    /// source was cancelled.
    Stopped,
    /// The response has no body, because the method is HEAD or the status forbids a body. No byte
    /// was read from the source of the row stream.
    NoBody,
}
