//! [`accept`]: accepts new connections from the listener, as far as the limits permit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use onecopy_wire::lock::lock;

use crate::accept_gate::Pause;
use crate::connection::Connection;
use crate::metrics::RefusalReason;
use crate::poll_tokens::ACCEPT_TIMER;
use crate::shared::Shared;
use crate::sys::Listener;
use crate::timers::millis;
use crate::transport::Transport;

/// The largest number of open connections above the limit [`crate::Limits::n_connections`]. Each of
/// these connections gets only a response with the status 503. Further connections are closed
/// without a response.
const N_REFUSED_AT_ONCE: usize = 64;
/// The time, in milliseconds, for which the server accepts no connections after the process has run
/// out of descriptors or memory.
const SYSTEM_PAUSE_MS: u64 = 250;
/// The shortest time, in milliseconds, between two calls to [`crate::Config::on_trouble`].
const TROUBLE_PAUSE_MS: u64 = 60_000;

/// Pauses the acceptance of connections, because the process has as many open connections as its
/// limit of open files permits.
fn pause_where_full(shared: &Shared, listener: &Listener, now_ms: u64) {
    shared.config.metrics.accept_paused();
    report_trouble(shared, &io::Error::from_raw_os_error(libc::EMFILE), now_ms);
    shared
        .gate
        .pause_listener(listener, Pause::FULL, &shared.epoll);
    // Another thread may have closed a connection before it could see the pause. It has not ended
    // the pause then, so the number of connections is checked again.
    let n = lock(&shared.connections).len();
    if n < shared.gate.n_files_max {
        shared
            .gate
            .resume_listener(listener, Pause::FULL, &shared.epoll);
    }
}

fn report_trouble(shared: &Shared, error: &io::Error, now_ms: u64) {
    let Some(on_trouble) = &shared.config.on_trouble else {
        return;
    };
    let from_ms = &shared.trouble_from_ms;
    if from_ms.load(SeqCst) <= now_ms {
        from_ms.store(now_ms + TROUBLE_PAUSE_MS, SeqCst);
        on_trouble(error);
    }
}

/// Accepts the connections that wait in the listener's queue, until the queue is empty or a limit
/// is reached.
pub(crate) fn accept(shared: &Shared, now_ms: u64) {
    let listener = lock(&shared.gate.listener);
    let Some(listener) = listener.as_ref() else {
        return;
    };
    while shared.gate.is_open() {
        if lock(&shared.connections).len() >= shared.gate.n_files_max {
            return pause_where_full(shared, listener, now_ms);
        }
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
            Err(e) => match e.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                    // The listener stays readable, so without a pause this loop would use the
                    // processor without progress.
                    shared.config.metrics.accept_paused();
                    shared
                        .gate
                        .pause_listener(listener, Pause::SYSTEM, &shared.epoll);
                    shared.push_timer(now_ms + SYSTEM_PAUSE_MS, ACCEPT_TIMER);
                    return report_trouble(shared, &e, now_ms);
                }
                // The client has disconnected, or a network error affects only this connection. The
                // next connection is accepted.
                _ => continue,
            },
        };
        let metrics = &shared.config.metrics;
        metrics.accepted();
        let mut connections = lock(&shared.connections);
        let n = connections.len();
        let n_max = shared.config.limits.n_connections;
        if n >= n_max.saturating_add(N_REFUSED_AT_ONCE) {
            metrics.refused(RefusalReason::Dropped);
            continue; // The stream is dropped, which closes the connection.
        }
        let local = match peer {
            Some(_) => stream.local(),
            None => Ok(None),
        };
        let transport = Transport::new(stream, shared.config.tls.as_ref());
        let (Ok(local), Ok(transport)) = (local, transport) else {
            metrics.refused(RefusalReason::Failed);
            continue;
        };
        let busy = n >= n_max;
        if busy {
            metrics.refused(RefusalReason::Busy);
        }
        let connection = connections.insert(|token| {
            Arc::new(Connection::new(
                token,
                peer,
                local,
                &shared.config.limits,
                busy,
            ))
        });
        metrics.set_connections(connections.len());
        drop(connections);
        let deadline_ms = now_ms + millis(shared.config.limits.head);
        let opened = connection.open(transport, &shared.epoll, deadline_ms);
        if opened.is_err() {
            metrics.refused(RefusalReason::Failed);
            let mut connections = lock(&shared.connections);
            connections.remove(connection.token);
            metrics.set_connections(connections.len());
            continue;
        }
        shared.set_deadline(&connection, deadline_ms);
    }
}
