//! The memory of a thread.

use crate::connection::LoggedRequest;
use crate::date::Date;

/// The memory of a thread that it uses again.
pub(crate) struct ThreadKit {
    /// Buffer to read into; empty on workers, which never read requests.
    pub(crate) scratch: Vec<u8>,
    pub(crate) date: Date,
    pub(crate) now_ms: u64,
    /// Memory for what the access log gets.
    pub(crate) names: Vec<LoggedRequest>,
}

impl ThreadKit {
    pub(crate) fn of_worker() -> ThreadKit {
        ThreadKit::with_scratch(0)
    }

    pub(crate) fn with_scratch(n_bytes: usize) -> ThreadKit {
        ThreadKit {
            scratch: vec![0; n_bytes],
            date: Date::new(),
            now_ms: 0,
            names: Vec::new(),
        }
    }

    /// True if this thread may read requests and run handlers.
    pub(crate) fn is_of_loop(&self) -> bool {
        !self.scratch.is_empty()
    }
}
