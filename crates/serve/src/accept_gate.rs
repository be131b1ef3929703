//! [`AcceptGate`]: the listener of a server, and the reasons why it is paused.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use onecopy_wire::lock::lock;

use crate::poll_tokens::LISTENER;
use crate::sys::{self, Epoll, Interest, Listener};

/// The possible reasons why the server currently accepts no connections. Each reason is one bit.
/// During a pause, new connections wait in the kernel's queue. Another process with the same
/// listener may accept them.
pub(crate) struct Pause;

impl Pause {
    /// The bit that is set while no connection is accepted because the process has run out of
    /// descriptors or memory. It is cleared after a quarter of a second.
    pub(crate) const SYSTEM: u32 = 1;
    /// The bit that is set while no connection is accepted because as many are open as the limit of
    /// open files permits. It is cleared when a connection is closed.
    pub(crate) const FULL: u32 = 2;
    /// The bit that is set while no connection is accepted because the watchdog has detected that
    /// the handlers make no progress. It is cleared when a handler makes progress.
    pub(crate) const STUCK: u32 = 4;
}

/// The listener of a server, and the bits of [`Pause`]. epoll watches the listener only while no
/// bit is set.
pub(crate) struct AcceptGate {
    pub(crate) listener: Mutex<Option<Listener>>,
    /// The bits of [`Pause`] that are set: the reasons why no connections are accepted now.
    pauses: AtomicU32,
    /// The largest number of connections that the limit of open files permits.
    pub(crate) n_files_max: usize,
}

impl AcceptGate {
    pub(crate) fn new(listener: Option<Listener>, epoll: &Epoll) -> io::Result<AcceptGate> {
        if let Some(listener) = &listener {
            epoll.add(listener, LISTENER, Interest::ReadLevel)?;
        }
        Ok(AcceptGate {
            n_files_max: connections_for(sys::max_open_files()?),
            listener: Mutex::new(listener),
            pauses: AtomicU32::new(0),
        })
    }

    /// Closes this process's descriptor of the listener, so that this process accepts no more
    /// connections.
    pub(crate) fn close(&self, epoll: &Epoll) {
        if let Some(listener) = lock(&self.listener).take() {
            // Closing the descriptor does not remove the listener from epoll while another process
            // has it open.
            let _ = epoll.remove(&listener);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pauses.load(SeqCst) == 0
    }

    pub(crate) fn pause(&self, why: u32, epoll: &Epoll) {
        if let Some(listener) = &*lock(&self.listener) {
            self.pause_listener(listener, why, epoll);
        }
    }

    /// Sets the bit `why` of [`Pause`]. If no other bit was set, removes `listener` from epoll. The
    /// caller must hold the lock of the listener.
    pub(crate) fn pause_listener(&self, listener: &Listener, why: u32, epoll: &Epoll) {
        if self.pauses.fetch_or(why, SeqCst) == 0 {
            let _ = epoll.remove(listener);
        }
    }

    pub(crate) fn resume(&self, why: u32, epoll: &Epoll) {
        let listener = lock(&self.listener);
        if let Some(listener) = &*listener {
            self.resume_listener(listener, why, epoll);
        } else {
            self.pauses.fetch_and(!why, SeqCst);
        }
    }

    /// Removes the reason `why`, a bit of [`Pause`], from the reasons why no connections are
    /// accepted. If no other reason is left, adds `listener` to epoll again. The caller must hold
    /// the lock of the listener.
    pub(crate) fn resume_listener(&self, listener: &Listener, why: u32, epoll: &Epoll) {
        if self.pauses.fetch_and(!why, SeqCst) == why {
            let _ = epoll.add(listener, LISTENER, Interest::ReadLevel);
        }
    }

    /// Ends the pause [`Pause::FULL`] if `n`, the number of open connections, is less than the
    /// number of connections that the limit of open files permits.
    pub(crate) fn resume_where_full(&self, n: usize, epoll: &Epoll) {
        if n < self.n_files_max && self.pauses.load(SeqCst) & Pause::FULL != 0 {
            self.resume(Pause::FULL, epoll);
        }
    }
}

/// Returns the largest number of connections of a process whose limit of open files is `n_files`.
/// The remaining descriptors are reserved for databases, logs and the event loop.
pub(crate) fn connections_for(n_files: usize) -> usize {
    let n_others = (n_files / 4).min(64) + n_files / 8;
    n_files.saturating_sub(n_others).max(1)
}

/// Returns the limit of open files that a process with `n_connections` connections needs.
pub(crate) fn files_for(n_connections: usize) -> usize {
    n_connections.saturating_add(65).saturating_mul(8) / 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_leaves_some_for_others_and_one_connection_at_least() {
        for n_files in 0..2_000 {
            let n = connections_for(n_files);
            assert!(n >= 1 && n <= n_files.max(1), "{n_files}: {n}");
        }
        assert_eq!((connections_for(32), connections_for(1024)), (20, 832));
    }

    #[test]
    fn as_many_files_as_connections_need_suffice_for_them() {
        for n in [1, 7, 20, 832, 50_000, 1 << 20] {
            assert!(connections_for(files_for(n)) >= n, "{n}");
        }
        assert_eq!(files_for(usize::MAX), usize::MAX / 7);
    }
}
