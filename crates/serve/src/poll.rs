//! The poll: events and due timers, turned into connections with something to do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::accept::Pause;
use crate::connection::{self, Connection};
use crate::event_loop::Shared;
use crate::lock;
use crate::sys::Event;
use crate::timers::{NEVER, Timers};

/// Tokens of what is no connection; connections count up from 0.
pub(crate) const LISTENER: u64 = u64::MAX;
pub(crate) const STOP: u64 = u64::MAX - 1;
pub(crate) const WAKE: u64 = u64::MAX - 2;
pub(crate) const CUT_TIMER: u64 = u64::MAX - 3;
pub(crate) const FORCE_TIMER: u64 = u64::MAX - 4;
pub(crate) const ACCEPT_TIMER: u64 = u64::MAX - 5;

/// Deadlines, and what the thread in the poll knows of them.
#[derive(Default)]
pub(crate) struct PollTimers {
    timers: Timers,
    /// When the poll under way returns by itself; 0 while nobody polls.
    poll_until_ms: u64,
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
        self: &Arc<Shared>,
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
                ACCEPT_TIMER => self.resume_accepting(Pause::SYSTEM),
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
}
