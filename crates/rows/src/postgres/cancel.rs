//! `Activity`: the statement that runs on a connection, and the state of its cancellation. To
//! cancel a statement, a separate thread sends a CancelRequest on a second connection. If the
//! statement then does not end, the connection on which it runs is shut down.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::buffer::Buffer;
use super::dial::{Breaker, Reached, open_stream, start_tls};
use super::socket::Socket;
use crate::error::{Error, ErrorKind};
use crate::task;

/// The time in which a statement should end after it was first cancelled. The server may have to
/// roll back before it responds. If the statement is cancelled again after this time, the
/// connection is shut down.
const GRACE: Duration = Duration::from_secs(3);

/// The time limit for sending one CancelRequest, including the opening of its connection.
const REQUEST_LIMIT: Duration = Duration::from_secs(3);

/// The time after which the first CancelRequest for a statement is repeated; the time doubles with
/// each repetition. A CancelRequest can be lost: the server ignores it while the server waits for
/// the next message, even between the messages of one statement.
const REPEAT_AFTER: Duration = Duration::from_millis(100);

/// The interval at which a task checks whether pending CancelRequests are finished.
const REQUEST_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct ActivityState {
    /// The number (from 1) of the statement that is running, which means that its response was not
    /// received completely. 0 if no statement is running.
    running: u64,
    last: u64,
    /// The number of the last statement that was cancelled, and the time of the first call that
    /// cancelled it. `None` if no statement was cancelled.
    cancelled: Option<(u64, Instant)>,
    /// The number of threads that are currently sending a CancelRequest.
    n_requests: usize,
}

/// The statement that is running on a connection, with the state of its cancellation.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    /// Wakes waiting threads when a CancelRequest is finished, and when a cancelled statement ends.
    changed: Condvar,
    reached: Reached,
    key: Option<(i32, i32)>,
    breaker: Arc<Breaker>,
}

impl Activity {
    pub(super) fn new(
        reached: Reached,
        key: Option<(i32, i32)>,
        breaker: Arc<Breaker>,
    ) -> Activity {
        Activity {
            state: Mutex::default(),
            changed: Condvar::new(),
            reached,
            key,
            breaker,
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        lock(&self.state)
    }

    pub(super) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Records that a new statement runs, and returns its number. Before that, waits until all
    /// CancelRequests for earlier statements are finished. Otherwise such a request could cancel
    /// the new statement.
    pub(super) fn begin(&self) -> u64 {
        let deadline = Instant::now() + REQUEST_LIMIT;
        // A task must not block, and no file descriptor signals the end of a request.
        while task::is_running()
            && self.state().n_requests > 0
            && Instant::now() < deadline
            && task::sleep(REQUEST_INTERVAL).is_ok()
        {}
        let left = deadline.saturating_duration_since(Instant::now());
        let state = self.state();
        let waited = self
            .changed
            .wait_timeout_while(state, left, |state| state.n_requests > 0);
        let mut state = unpoisoned(waited).0;
        state.last += 1;
        state.running = state.last;
        state.running
    }

    /// Records that the response to the running statement was received completely.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        let id = std::mem::take(&mut state.running);
        let was_cancelled = state
            .cancelled
            .is_some_and(|(cancelled, _)| cancelled == id);
        drop(state);
        if was_cancelled {
            self.changed.notify_all();
        }
    }

    /// Returns `true` if the connection is still receiving the server's response to the statement
    /// with the number `id`.
    pub(super) fn is_running(&self, id: u64) -> bool {
        self.state().running == id
    }

    /// Returns `true` if statement `id` was cancelled while it ran.
    pub(super) fn was_cancelled(&self, id: u64) -> bool {
        self.state()
            .cancelled
            .is_some_and(|(cancelled, _)| cancelled == id)
    }

    /// Cancels the running statement if its number is `id` or if `id` is `None`. Does not block. If
    /// the statement still runs [`GRACE`] or more after an earlier call cancelled it, this call
    /// shuts down the connection.
    pub(super) fn cancel(self: &Arc<Self>, id: Option<u64>) {
        let mut state = self.state();
        let running = state.running;
        if running == 0 || id.is_some_and(|id| id != running) {
            return;
        }
        match state.cancelled {
            Some((cancelled, since)) if cancelled == running => {
                if since.elapsed() >= GRACE {
                    self.breaker.break_off();
                }
                return;
            }
            _ => state.cancelled = Some((running, Instant::now())),
        }
        state.n_requests += 1;
        drop(state);
        let activity = Arc::clone(self);
        let thread = std::thread::Builder::new().name("onecopy-cancel".to_owned());
        if thread
            .spawn(move || activity.request_until_end(running))
            .is_err()
        {
            self.end_request();
        }
    }

    fn end_request(&self) {
        self.state().n_requests -= 1;
        self.changed.notify_all();
    }

    /// Sends a CancelRequest at intervals until the statement `id` ends, but at most for the time
    /// [`GRACE`]. The caller has already counted the first request in `n_requests`.
    fn request_until_end(&self, id: u64) {
        let deadline = Instant::now() + GRACE;
        let mut interval = REPEAT_AFTER;
        loop {
            // If the request fails, the statement continues until the connection is shut down.
            let _ = self.request();
            self.end_request();
            let state = self.state();
            let waited = self
                .changed
                .wait_timeout_while(state, interval, |state| state.running == id);
            let mut state = unpoisoned(waited).0;
            if state.running != id || Instant::now() >= deadline {
                return;
            }
            state.n_requests += 1;
            interval *= 2;
        }
    }

    /// Sends a CancelRequest on a second connection to the server.
    ///
    /// # Errors
    /// The connection cannot be opened.
    pub(super) fn request(&self) -> Result<(), Error> {
        let Some((process_id, secret_key)) = self.key else {
            return Ok(());
        };
        let deadline = Instant::now() + REQUEST_LIMIT;
        let breaker = Breaker::default();
        let stream = open_stream(&self.reached.endpoint, None, deadline, &breaker)?;
        let mut socket = Socket::new(stream, Some(deadline));
        if let Some(tls) = &self.reached.tls {
            start_tls(
                &mut socket,
                tls,
                &self.reached.host_name,
                &self.reached.endpoint,
            )?;
        }
        let mut out = BytesMut::new();
        frontend::cancel_request(process_id, secret_key, &mut out);
        let mut inbox = Buffer::new()?;
        let failed = |e: std::io::Error| Error::new(ErrorKind::Operational, e.to_string());
        socket.write_all(&out, &mut inbox).map_err(failed)?;
        // The server closes this connection after it has signalled the statement's session.
        let _ = socket.read(&mut [0; 16]);
        Ok(())
    }
}

/// Creates the error of a cancelled statement.
pub(super) fn cancelled() -> Error {
    let mut error = Error::new(ErrorKind::Cancelled, "the statement was cancelled");
    "57014".clone_into(&mut error.sqlstate);
    error
}
