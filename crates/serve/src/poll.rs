//! [`poll`]: waits for epoll events and due timers, and returns the connections to which they
//! belong.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use onecopy_wire::lock::lock;

use crate::accept::accept;
use crate::accept_gate::Pause;
use crate::connection::{self, Connection};
use crate::poll_tokens::{ACCEPT_TIMER, CUT_TIMER, FORCE_TIMER, LISTENER, STOP, WAKE};
use crate::shared::Shared;
use crate::sys::Event;
use crate::timers::NEVER;

/// Waits for epoll events and due timers. Adds to `found` each connection that has an event or a
/// due timer, unless another thread owns the connection. The caller then owns the connections in
/// `found`.
pub(crate) fn poll(
    shared: &Shared,
    events: &mut [Event],
    found: &mut Vec<Arc<Connection>>,
) -> io::Result<()> {
    let timeout_ms = {
        let mut timers = lock(&shared.timers);
        let first = timers.timers.first();
        timers.poll_until_ms = first.unwrap_or(NEVER);
        first.map(|at| at.saturating_sub(shared.now_ms()))
    };
    let n = shared.epoll.wait(events, timeout_ms)?;
    lock(&shared.timers).poll_until_ms = 0;
    let (mut accepts, mut stop) = (false, false);
    {
        let connections = lock(&shared.connections);
        for event in &events[..n] {
            match event.token() {
                LISTENER => accepts = true,
                WAKE => drop(shared.signals.wake.drain()),
                STOP => stop = true,
                token => {
                    if let Some(connection) = connections.get(token)
                        && connection.raise(connection::flags::flags_of(event))
                    {
                        found.push(Arc::clone(connection));
                    }
                }
            }
        }
    }
    let now_ms = shared.now_ms();
    take_due_timers(shared, now_ms, found);
    if stop {
        let n_asked = shared.signals.stop.drain();
        let was_stopping = shared.is_stopping();
        shared.begin_stop(now_ms, found);
        if was_stopping || n_asked > 1 {
            shared.cut(now_ms, found);
        }
    }
    if accepts {
        accept(shared, now_ms);
    }
    Ok(())
}

fn take_due_timers(shared: &Shared, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
    loop {
        let Some(token) = lock(&shared.timers).timers.pop_due(now_ms) else {
            return;
        };
        match token {
            CUT_TIMER => shared.cut(now_ms, found),
            FORCE_TIMER => shared.finish(true),
            ACCEPT_TIMER => shared.gate.resume(Pause::SYSTEM, &shared.epoll),
            token => {
                let Some(connection) = lock(&shared.connections).get(token).cloned() else {
                    continue;
                };
                connection.timer_at_ms.store(NEVER, SeqCst);
                let at_ms = connection.deadline_ms.load(SeqCst);
                if at_ms <= now_ms {
                    if connection.raise(connection::flags::TIMER) {
                        found.push(connection);
                    }
                } else if at_ms != NEVER {
                    connection.timer_at_ms.store(at_ms, SeqCst);
                    shared.push_timer(at_ms, token);
                }
            }
        }
    }
}
