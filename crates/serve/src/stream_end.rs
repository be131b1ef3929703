//! The end of a stream: how it came, and [`Breaker`], which brings it about from outside.

use std::fmt;
use std::sync::{Arc, Mutex};

use onecopy_wire::ChunkError;

use crate::lock;

/// Fails a stream from outside while a worker is inside its source: for a source that obeys no
/// cancel, as some database drivers. The client has its answer (by [`crate::Chunks::on_error`], or
/// a broken end) without waiting for the source; the worker stays with it until it comes back, and
/// the connection is closed, for what it then brings belongs to nobody.
#[derive(Clone, Default)]
pub struct Breaker(Arc<Mutex<BreakerState>>);

#[derive(Default)]
struct BreakerState {
    failed: Option<ChunkError>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Breaker {
    /// A breaker of no stream yet; see [`crate::Chunks::breaker`].
    #[must_use]
    pub fn new() -> Breaker {
        Breaker::default()
    }

    /// Fails the stream with `error`, unless it has ended, its source has come back, or it was
    /// failed before. Never waits.
    pub fn fail(&self, error: ChunkError) {
        let mut state = lock(&self.0);
        state.failed.get_or_insert(error);
        let wake = state.wake.clone();
        drop(state);
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Says what makes the connection look at [`Breaker::take`].
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

/// The end of a stream, as the client sees it.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEnd {
    /// Every byte, with its end mark, was handed to the kernel.
    Done {
        /// What [`onecopy_wire::ChunkSource::n_rows`] said at the end.
        n_rows: u64,
    },
    /// The source failed: an error answer if nothing had been sent, else a broken close.
    Failed(ChunkError),
    /// The source panicked; the client saw what it sees for `Failed`.
    Panicked,
    /// The peer closed its side before the end. The source was cancelled.
    ClientGone,
    /// The peer took no byte for [`crate::Limits::write_stall`]. The source was cancelled.
    Stalled,
    /// The server was stopped and its limit passed. The source was cancelled.
    Stopped,
    /// The request wanted no body (HEAD, or a status that has none): nothing was filled.
    NoBody,
}
