//! Accepting connections, and the reasons for which a server pauses it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use crate::connection::Connection;
use crate::event_loop::Shared;
use crate::lock;
use crate::metrics::Refusal;
use crate::poll::{ACCEPT_TIMER, LISTENER};
use crate::sys::{Interest, Listener};
use crate::timers::millis;
use crate::transport::Transport;

/// Connections past [`crate::Limits::n_connections`] that are accepted for a 503.
const N_REFUSED_AT_ONCE: usize = 64;
/// Length of a pause when the process is out of descriptors or memory.
const SYSTEM_PAUSE_MS: u64 = 250;
/// Time between two reports of such a pause.
const TROUBLE_PAUSE_MS: u64 = 60_000;

/// Why no connection is accepted. Meanwhile new connections wait in the queue of the kernel, from
/// which another process that shares the listener accepts them.
pub(crate) struct Pause;

impl Pause {
    /// The process is out of descriptors or memory; for [`SYSTEM_PAUSE_MS`].
    pub(crate) const SYSTEM: u32 = 1;
    /// As many connections are open as the limit of open files permits; until one is closed.
    pub(crate) const FULL: u32 = 2;
    /// The handlers make no progress; until they do.
    pub(crate) const STUCK: u32 = 4;
}

/// The state of accepting.
#[derive(Default)]
pub(crate) struct Accepting {
    /// Reasons in force, [`Pause`].
    pauses: AtomicU32,
    /// Time of the next report of a pause, at the earliest.
    trouble_from_ms: AtomicU64,
}

/// Number of connections for which `n_files` descriptors suffice. The others are for databases,
/// logs and the loop itself.
pub(crate) fn connections_for(n_files: usize) -> usize {
    let n_others = (n_files / 4).min(64) + n_files / 8;
    n_files.saturating_sub(n_others).max(1)
}

/// Number of descriptors that suffice for `n_connections`.
pub(crate) fn files_for(n_connections: usize) -> usize {
    n_connections.saturating_add(65).saturating_mul(8) / 7
}

impl Shared {
    pub(crate) fn pause_accepting(&self, why: u32) {
        if let Some(listener) = &*lock(&self.listener) {
            self.pause(listener, why);
        }
    }

    fn pause(&self, listener: &Listener, why: u32) {
        if self.accepting.pauses.fetch_or(why, SeqCst) == 0 {
            let _ = self.epoll.remove(listener);
        }
    }

    pub(crate) fn resume_accepting(&self, why: u32) {
        let listener = lock(&self.listener);
        let before = self.accepting.pauses.fetch_and(!why, SeqCst);
        if before == why
            && let Some(listener) = &*listener
        {
            let _ = self.epoll.add(listener, LISTENER, Interest::ReadLevel);
        }
    }

    /// A connection was closed, and `n` are left.
    pub(crate) fn resume_where_full(&self, n: usize) {
        if n < self.n_files_max && self.accepting.pauses.load(SeqCst) & Pause::FULL != 0 {
            self.resume_accepting(Pause::FULL);
        }
    }

    /// Pauses because of the limit of open files.
    fn pause_where_full(&self, listener: &Listener, now_ms: u64) {
        self.config.metrics.accept_paused();
        self.report_trouble(&io::Error::from_raw_os_error(libc::EMFILE), now_ms);
        self.pause(listener, Pause::FULL);
        // Those who closed the last connections before the pause was visible did not end it.
        let n = lock(&self.connections).len();
        if n < self.n_files_max
            && self.accepting.pauses.fetch_and(!Pause::FULL, SeqCst) == Pause::FULL
        {
            let _ = self.epoll.add(listener, LISTENER, Interest::ReadLevel);
        }
    }

    fn report_trouble(&self, error: &io::Error, now_ms: u64) {
        let Some(on_trouble) = &self.config.on_trouble else {
            return;
        };
        let from_ms = &self.accepting.trouble_from_ms;
        if from_ms.load(SeqCst) <= now_ms {
            from_ms.store(now_ms + TROUBLE_PAUSE_MS, SeqCst);
            on_trouble(error);
        }
    }

    pub(crate) fn accept(self: &Arc<Shared>, now_ms: u64) {
        let listener = lock(&self.listener);
        let Some(listener) = listener.as_ref() else {
            return;
        };
        while self.accepting.pauses.load(SeqCst) == 0 {
            if lock(&self.connections).len() >= self.n_files_max {
                return self.pause_where_full(listener, now_ms);
            }
            let (stream, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => match e.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        // The listener stays readable: without a pause this would spin.
                        self.config.metrics.accept_paused();
                        self.pause(listener, Pause::SYSTEM);
                        self.push_timer(now_ms + SYSTEM_PAUSE_MS, ACCEPT_TIMER);
                        return self.report_trouble(&e, now_ms);
                    }
                    // The peer has left, or the network has reported an error of it: the next one.
                    _ => continue,
                },
            };
            let metrics = &self.config.metrics;
            metrics.accepted();
            let mut connections = lock(&self.connections);
            let n = connections.len();
            let n_max = self.config.limits.n_connections;
            if n >= n_max.saturating_add(N_REFUSED_AT_ONCE) {
                metrics.refused(Refusal::Dropped);
                continue; // Dropped: closed.
            }
            let local = match peer {
                Some(_) => stream.local(),
                None => Ok(None),
            };
            let transport = Transport::new(stream, self.config.tls.as_ref());
            let (Ok(local), Ok(transport)) = (local, transport) else {
                metrics.refused(Refusal::Failed);
                continue;
            };
            let busy = n >= n_max;
            if busy {
                metrics.refused(Refusal::Busy);
            }
            let connection = connections.insert(|token| {
                Arc::new(Connection::new(
                    token,
                    Arc::downgrade(self),
                    peer,
                    local,
                    &self.config.limits,
                    busy,
                ))
            });
            metrics.set_connections(connections.len());
            drop(connections);
            let deadline_ms = now_ms + millis(self.config.limits.head);
            let opened = connection.open(transport, &self.epoll, deadline_ms);
            if opened.is_err() {
                metrics.refused(Refusal::Failed);
                let mut connections = lock(&self.connections);
                connections.remove(connection.token);
                metrics.set_connections(connections.len());
                continue;
            }
            self.set_deadline(&connection, deadline_ms);
        }
    }
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
