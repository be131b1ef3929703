//! [`Signals`]: the event descriptors with which other threads stop or wake a server. [`Stopped`]:
//! the result of [`crate::Server::run`].

use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::sys::EventFd;

/// The result of [`crate::Server::run`], which returns when the server has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// The number of connections that were aborted during a request, because the time limit for
    /// stopping had ended.
    pub n_cut: usize,
    /// The number of threads that still run a handler or the source of a row stream. Each of them
    /// ends when its handler or source returns.
    pub n_left: usize,
}

/// The event descriptors with which other threads stop or wake the server. The server watches them
/// with epoll.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Adding 1 to this event descriptor requests a graceful stop of the server. Adding 1 a second
    /// time aborts the requests in progress.
    pub(crate) stop: EventFd,
    /// Writing 1 to this eventfd wakes the thread that waits in epoll. The thread then reads the
    /// clock and the timers again.
    pub(crate) wake: EventFd,
    pub(crate) stop_asked: AtomicBool,
    /// The time in milliseconds for which a stopping server leaves connections without a request
    /// open (see [`crate::Handle::retire`]).
    pub(crate) idle_grace_ms: AtomicU64,
}
