//! The poll: events, due timers and new connections, turned into connections with something to do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::connection::{self, Connection};
use crate::event_loop::{Shared, millis};
use crate::lock;
use crate::metrics::Refusal;
use crate::sys::{Event, Interest};
use crate::timers::{NEVER, Timers};
use crate::transport::Transport;

/// Tokens of what is no connection; connections count up from 0.
pub(crate) const LISTENER: u64 = u64::MAX;
pub(crate) const STOP: u64 = u64::MAX - 1;
pub(crate) const WAKE: u64 = u64::MAX - 2;
pub(crate) const CUT_TIMER: u64 = u64::MAX - 3;
pub(crate) const FORCE_TIMER: u64 = u64::MAX - 4;
const ACCEPT_TIMER: u64 = u64::MAX - 5;

/// Connections past the limit that are still accepted, to be told so with a 503.
pub(crate) const N_REFUSED_AT_ONCE: usize = 64;
/// How long accepting rests when the process is out of descriptors or memory.
const ACCEPT_PAUSE_MS: u64 = 250;
/// How long nothing more is said about that.
const TROUBLE_PAUSE_MS: u64 = 60_000;

/// Deadlines, and what the thread in the poll knows of them.
#[derive(Default)]
pub(crate) struct PollTimers {
    timers: Timers,
    /// When the poll under way returns by itself; 0 while nobody polls.
    poll_until_ms: u64,
    /// Before then trouble with accepting is not told again.
    trouble_from_ms: u64,
}

impl Shared {
    /// Sets the deadline of a connection, for the thread that owns it.
    pub(crate) fn set_deadline(&self, connection: &Connection, at_ms: u64) {
        connection.deadline_ms.store(at_ms, SeqCst);
        // The thread that takes entries out stores `timer_at_ms` before it loads `deadline_ms`, the reverse order, so
        // one of the two sees the other and no deadline is lost. A second entry does no harm.
        if at_ms < connection.timer_at_ms.load(SeqCst) {
            connection.timer_at_ms.store(at_ms, SeqCst);
            self.push_timer(at_ms, connection.token);
        }
    }

    pub(crate) fn push_timer(&self, at_ms: u64, token: u64) {
        let mut timers = lock(&self.timers);
        let is_first = timers.timers.push(at_ms, token);
        if is_first && at_ms < timers.poll_until_ms {
            self.signals.wake.add(1);
        }
    }

    /// Waits for events and due timers; `found` gets the connections they are for.
    pub(crate) fn poll(
        &self,
        events: &mut [Event],
        found: &mut Vec<Arc<Connection>>,
    ) -> io::Result<()> {
        let timeout_ms = {
            let mut timers = lock(&self.timers);
            let first = timers.timers.first();
            timers.poll_until_ms = first.unwrap_or(NEVER);
            first.map(|at| at.saturating_sub(self.now_ms()))
        };
        let n = self.epoll.wait(events, timeout_ms)?;
        lock(&self.timers).poll_until_ms = 0;
        let (mut accept, mut stop) = (false, false);
        {
            let connections = lock(&self.connections);
            for event in &events[..n] {
                match event.token() {
                    LISTENER => accept = true,
                    WAKE => drop(self.signals.wake.drain()),
                    STOP => stop = true,
                    token => {
                        if let Some(connection) = connections.get(token)
                            && connection.raise(connection::flags_of(event))
                        {
                            found.push(Arc::clone(connection));
                        }
                    }
                }
            }
        }
        let now_ms = self.now_ms();
        self.take_due_timers(now_ms, found);
        if stop {
            let n_asked = self.signals.stop.drain();
            let was_stopping = self.is_stopping();
            self.begin_stop(now_ms, found);
            if was_stopping || n_asked > 1 {
                self.cut(now_ms, found);
            }
        }
        if accept {
            self.accept(now_ms);
        }
        Ok(())
    }

    fn take_due_timers(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
        loop {
            let Some(token) = lock(&self.timers).timers.pop_due(now_ms) else {
                return;
            };
            match token {
                CUT_TIMER => self.cut(now_ms, found),
                FORCE_TIMER => self.finish(true),
                ACCEPT_TIMER => {
                    if let Some(listener) = lock(&self.listener).as_ref() {
                        let _ = self.epoll.add(listener, LISTENER, Interest::ReadLevel);
                    }
                }
                token => {
                    let Some(connection) = lock(&self.connections).get(token).cloned() else {
                        continue;
                    };
                    connection.timer_at_ms.store(NEVER, SeqCst);
                    let at_ms = connection.deadline_ms.load(SeqCst);
                    if at_ms <= now_ms {
                        if connection.raise(connection::TIMER) {
                            found.push(connection);
                        }
                    } else if at_ms != NEVER {
                        connection.timer_at_ms.store(at_ms, SeqCst);
                        self.push_timer(at_ms, token);
                    }
                }
            }
        }
    }

    fn tell_trouble(&self, error: &io::Error, now_ms: u64) {
        let Some(on_trouble) = &self.config.on_trouble else {
            return;
        };
        let mut timers = lock(&self.timers);
        if timers.trouble_from_ms <= now_ms {
            timers.trouble_from_ms = now_ms + TROUBLE_PAUSE_MS;
            drop(timers);
            on_trouble(error);
        }
    }

    fn accept(&self, now_ms: u64) {
        let listener = lock(&self.listener);
        let Some(listener) = listener.as_ref() else {
            return;
        };
        loop {
            let (stream, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => match e.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        // The listener stays readable: without a rest this would spin.
                        self.config.metrics.accept_paused();
                        let _ = self.epoll.remove(listener);
                        self.push_timer(now_ms + ACCEPT_PAUSE_MS, ACCEPT_TIMER);
                        return self.tell_trouble(&e, now_ms);
                    }
                    // The peer has left, or the network has said something about it: the next one.
                    _ => continue,
                },
            };
            let metrics = &self.config.metrics;
            metrics.accepted();
            let mut connections = lock(&self.connections);
            let n = connections.len();
            if n >= self.n_connections_max + N_REFUSED_AT_ONCE {
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
            let busy = n >= self.n_connections_max;
            if busy {
                metrics.refused(Refusal::Busy);
            }
            let connection = connections.insert(|token| {
                Arc::new(Connection::new(
                    token,
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
