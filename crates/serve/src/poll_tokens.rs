//! The tokens of the epoll events and timers that belong to the server, not to a connection.

/// The token of the listener. It differs from all tokens of connections, whose highest bit is never
/// set (see [`crate::slab`]).
pub(crate) const LISTENER: u64 = u64::MAX;
pub(crate) const STOP: u64 = u64::MAX - 1;
pub(crate) const WAKE: u64 = u64::MAX - 2;
pub(crate) const CUT_TIMER: u64 = u64::MAX - 3;
pub(crate) const FORCE_TIMER: u64 = u64::MAX - 4;
pub(crate) const ACCEPT_TIMER: u64 = u64::MAX - 5;
