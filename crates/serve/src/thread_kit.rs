//! [`ThreadKit`]: memory that a thread of the server reuses.

use crate::connection::LoggedRequest;
use crate::date::HttpDate;

/// The buffers and caches that one thread of the server reuses for all connections that it serves.
pub(crate) struct ThreadKit {
    /// The buffer for reads from connections. It is empty on worker threads, which fill chunks and
    /// never read requests.
    pub(crate) scratch: Vec<u8>,
    pub(crate) date: HttpDate,
    pub(crate) now_ms: u64,
    /// Buffers that contained the logged fields of earlier requests. The access log lines of these
    /// requests were written, so later requests reuse the buffers.
    pub(crate) names: Vec<LoggedRequest>,
}

impl ThreadKit {
    pub(crate) fn of_worker() -> ThreadKit {
        ThreadKit::with_scratch(0)
    }

    pub(crate) fn with_scratch(n_bytes: usize) -> ThreadKit {
        ThreadKit {
            scratch: vec![0; n_bytes],
            date: HttpDate::new(),
            now_ms: 0,
            names: Vec::new(),
        }
    }

    /// Returns `true` for a thread of the event loop, which reads requests and runs handlers.
    /// Returns `false` for a worker thread, which only fills chunks.
    pub(crate) fn is_of_loop(&self) -> bool {
        !self.scratch.is_empty()
    }
}
