//! The signals that a server gets from other threads, and the result of its run.

use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::sys::EventFd;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Connections with a request under way that were cut because the limit of the stop had passed.
    pub n_cut: usize,
    /// Threads still inside a handler or a source that did not come back; they end when it does.
    pub n_left: usize,
}

/// The descriptors that reach the poll from outside.
#[derive(Debug)]
pub(crate) struct Signals {
    /// 1 asks for a graceful stop, each further 1 for a cut.
    pub(crate) stop: EventFd,
    /// Makes the poll return, to look at the clock or the timers again.
    pub(crate) wake: EventFd,
    pub(crate) stop_asked: AtomicBool,
    /// How long connections without a request are left open by the stop; see [`crate::Handle::retire`].
    pub(crate) idle_grace_ms: AtomicU64,
}
