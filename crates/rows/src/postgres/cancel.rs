//! Cancelling: a request on a second connection, by a thread of its own; where the server does not
//! answer it, the connection is shut down.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::buffer::Buffer;
use super::dial::{Breaker, Reached, open_stream, start_tls};
use super::socket::Socket;
use crate::error::{Error, ErrorKind};

/// How long a statement may go on after its first cancel: a server may have to roll back before it answers.
const GRACE: Duration = Duration::from_secs(3);

/// How long a request to cancel may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
struct ActivityState {
    /// The number of the statement whose answer is under way, from 1; 0 for none.
    running: u64,
    last: u64,
    /// The statement that was cancelled last, and when first.
    cancelled: Option<(u64, Instant)>,
    /// Requests to cancel that are under way.
    n_requests: usize,
}

/// The command that runs on a connection, and its cancellation.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    requested: Condvar,
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
            requested: Condvar::new(),
            reached,
            key,
            breaker,
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Marks a new statement as running; returns its number. Waits for requests under way, which would reach it.
    pub(super) fn begin(&self) -> u64 {
        let state = self.state();
        let waited = self
            .requested
            .wait_timeout_while(state, REQUEST_LIMIT, |state| state.n_requests > 0);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.last += 1;
        state.running = state.last;
        state.running
    }

    /// Marks the answer as complete.
    pub(super) fn finish(&self) {
        self.state().running = 0;
    }

    /// Returns whether the statement was cancelled while it ran.
    pub(super) fn was_cancelled(&self, id: u64) -> bool {
        self.state()
            .cancelled
            .is_some_and(|(cancelled, _)| cancelled == id)
    }

    /// Cancels the statement `id` (`None`: whichever runs), if it runs. Does not block. To be called again while the
    /// statement goes on.
    pub(super) fn cancel(self: &Arc<Self>, id: Option<u64>) {
        let mut state = self.state();
        if state.running == 0 || id.is_some_and(|id| id != state.running) {
            return;
        }
        match state.cancelled {
            Some((cancelled, since)) if cancelled == state.running => {
                if since.elapsed() >= GRACE {
                    self.breaker.break_off();
                }
                return;
            }
            _ => state.cancelled = Some((state.running, Instant::now())),
        }
        state.n_requests += 1;
        drop(state);
        let activity = Arc::clone(self);
        let thread = std::thread::Builder::new().name("onecopy-cancel".to_owned());
        let started = thread.spawn(move || {
            // If it fails, the statement goes on until the connection is shut down.
            let _ = activity.request();
            activity.end_request();
        });
        if started.is_err() {
            self.end_request();
        }
    }

    fn end_request(&self) {
        self.state().n_requests -= 1;
        self.requested.notify_all();
    }

    /// Requests on a connection of its own that the server cancels what runs.
    ///
    /// # Errors
    /// As connecting.
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
        // The server closes the connection when it has signalled the session.
        let _ = socket.read(&mut [0; 16]);
        Ok(())
    }
}

/// The error of a statement that was cancelled.
pub(super) fn cancelled() -> Error {
    let mut error = Error::new(ErrorKind::Cancelled, "the statement was cancelled");
    "57014".clone_into(&mut error.sqlstate);
    error
}
