//! [`ConnectionFlags`]: a set of flags with which any thread reports events to the thread that owns
//! the connection.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::Event;

/// Set while a thread owns the connection. Only the owner, which is the thread that changed this
/// flag from 0 to 1, may access the connection's state. Other threads may only set flags.
pub(super) const OWNED: u32 = 1;
pub(super) const READABLE: u32 = 1 << 1;
pub(super) const WRITABLE: u32 = 1 << 2;
/// Both sides of the connection are closed, or the connection has failed.
pub(super) const HUNG_UP: u32 = 1 << 3;
/// The deadline of the connection has passed.
pub(crate) const TIMER: u32 = 1 << 4;
/// A worker thread has filled a chunk of the connection's row stream.
pub(crate) const FILLED: u32 = 1 << 5;
/// The server stops gracefully: the connection is closed after its current request.
pub(crate) const STOP: u32 = 1 << 6;
/// The server stops immediately: the connection is aborted.
pub(crate) const CUT: u32 = 1 << 7;
/// A [`crate::Breaker`] has ended the connection's row stream with an error.
pub(super) const BROKEN: u32 = 1 << 8;
/// The handler has requested the body of its request by calling `AwaitedBody::receive`.
pub(crate) const ASKED: u32 = 1 << 9;
/// A handler has delivered its response. The handler was called before the body of its request was
/// received.
pub(super) const ANSWERED: u32 = 1 << 10;

/// The thread that owns the connection is blocked until the socket is writable (see `writer.rs`).
pub(super) const WRITER_WAITS: u32 = 1 << 11;

/// The peer has closed its sending side. It may still read.
pub(super) const PEER_SHUT: u32 = 1 << 12;

/// Converts an epoll event to the flags `READABLE`, `WRITABLE`, `PEER_SHUT` and `HUNG_UP`.
pub(crate) fn flags_of(event: &Event) -> u32 {
    let mut flags = 0;
    if event.readable() {
        flags |= READABLE;
    }
    if event.writable() {
        flags |= WRITABLE;
    }
    if event.peer_shut() {
        flags |= PEER_SHUT;
    }
    if event.hung_up() {
        flags |= HUNG_UP;
    }
    flags
}

/// The flags of a connection, including the flag `OWNED`, in one atomic integer.
#[derive(Default)]
pub(crate) struct ConnectionFlags(AtomicU32);

impl ConnectionFlags {
    /// Sets `flags` and `OWNED`, and returns the flags that were set before the call. If they do
    /// not contain `OWNED`, the caller now owns the connection.
    pub(super) fn raise(&self, flags: u32) -> u32 {
        self.0.fetch_or(flags | OWNED, Ordering::AcqRel)
    }

    /// Sets `flags` and returns the flags that were set before the call. Only the owner of the
    /// connection may call this method.
    pub(super) fn add(&self, flags: u32) -> u32 {
        self.0.fetch_or(flags, Ordering::AcqRel)
    }

    /// Clears `flags`. Returns `true` if one of them was set before. Only the owner of the
    /// connection may call this method.
    pub(super) fn take(&self, flags: u32) -> bool {
        self.has(flags) && self.0.fetch_and(!flags, Ordering::AcqRel) & flags != 0
    }

    /// Returns `true` if one of `flags` is set.
    pub(super) fn has(&self, flags: u32) -> bool {
        self.0.load(Ordering::Acquire) & flags != 0
    }

    /// Clears all flags except `OWNED` and returns those that were set. Only the owner may call
    /// this method.
    pub(super) fn take_all(&self) -> u32 {
        self.0.fetch_and(OWNED, Ordering::AcqRel)
    }

    /// Ends the caller's ownership and returns `true`. If a flag was set since the last
    /// [`ConnectionFlags::take_all`], returns `false` instead, and the caller still owns the
    /// connection.
    pub(super) fn release(&self) -> bool {
        self.0
            .compare_exchange(OWNED, 0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
