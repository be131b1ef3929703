//! The flags that threads leave for the owner of a connection.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::Event;

/// Somebody has the connection: who sets it may touch its state, all others only leave flags.
pub(super) const OWNED: u32 = 1;
pub(super) const READABLE: u32 = 1 << 1;
pub(super) const WRITABLE: u32 = 1 << 2;
pub(super) const HUNG_UP: u32 = 1 << 3;
/// Its deadline has passed.
pub(crate) const TIMER: u32 = 1 << 4;
/// A worker has put down what it has filled.
pub(crate) const FILLED: u32 = 1 << 5;
/// The server stops: end after the request under way.
pub(crate) const STOP: u32 = 1 << 6;
/// The server stops now.
pub(crate) const CUT: u32 = 1 << 7;
/// Its stream was failed by a [`crate::Breaker`].
pub(super) const BROKEN: u32 = 1 << 8;
/// A handler asks for the body of its request.
pub(crate) const ASKED: u32 = 1 << 9;
/// A handler that was called before the body has put its answer down.
pub(super) const ANSWERED: u32 = 1 << 10;

/// The owner waits until it can send; see `writer.rs`.
pub(super) const WRITER_WAITS: u32 = 1 << 11;

/// The flags of an event.
pub(crate) fn flags_of(event: &Event) -> u32 {
    let mut flags = 0;
    if event.readable() {
        flags |= READABLE;
    }
    if event.writable() {
        flags |= WRITABLE;
    }
    if event.hung_up() {
        flags |= HUNG_UP;
    }
    flags
}

/// The flags of a connection, in one word that also says whether a thread owns it.
#[derive(Default)]
pub(crate) struct ConnectionFlags(AtomicU32);

impl ConnectionFlags {
    /// Leaves `flags`, and owns the connection if nobody did. Returns the flags before.
    pub(super) fn raise(&self, flags: u32) -> u32 {
        self.0.fetch_or(flags | OWNED, Ordering::AcqRel)
    }

    /// Leaves flags for the owner, who calls it. Returns those before.
    pub(super) fn add(&self, flags: u32) -> u32 {
        self.0.fetch_or(flags, Ordering::AcqRel)
    }

    /// Clears `flags`, called by the owner. True if one of them was set.
    pub(super) fn take(&self, flags: u32) -> bool {
        self.has(flags) && self.0.fetch_and(!flags, Ordering::AcqRel) & flags != 0
    }

    /// True if one of `flags` was left, and not taken yet.
    pub(super) fn has(&self, flags: u32) -> bool {
        self.0.load(Ordering::Acquire) & flags != 0
    }

    /// Takes the flags left since the last time; called by the owner, who stays it.
    pub(super) fn take_all(&self) -> u32 {
        self.0.fetch_and(OWNED, Ordering::AcqRel)
    }

    /// Ends the caller's ownership. False if flags were left since.
    pub(super) fn release(&self) -> bool {
        self.0
            .compare_exchange(OWNED, 0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
