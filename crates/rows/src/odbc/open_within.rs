//! Connects on a separate thread, within a time limit. If that thread does not return in time, the
//! caller stops waiting for it. The reason is that not every driver observes its login timeout:
//! MariaDB's driver and FreeTDS wait without a limit for the first bytes of a server. See
//! `docs/decisions/0107-stalled-calls.md`.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_wire::CancelHandle;

use super::connection::Connection;
use super::open;
use super::quirks::Width;
use super::unblock::{Caller, GRACE};
use crate::database::ConnectOptions;
use crate::error::{Error, ErrorKind};

/// The time within which a driver should return after its socket was shut down.
const RETURNS_WITHIN: Duration = Duration::from_millis(500);

/// A connection attempt in progress, shared with the handle that cancels it.
#[derive(Clone, Default)]
pub(super) struct Opening(Arc<SharedOpening>);

#[derive(Default)]
struct SharedOpening {
    state: Mutex<OpeningState>,
    changed: Condvar,
    caller: Caller,
}

#[derive(Default)]
enum OpeningState {
    #[default]
    UnderWay,
    Cancelled,
    Done(Box<Result<Connection, Error>>),
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

impl Opening {
    /// Returns a handle that cancels the connection attempt: [`Opening::open`] then returns without
    /// waiting for the driver.
    pub(super) fn cancel_handle(&self) -> CancelHandle {
        let shared = Arc::clone(&self.0);
        CancelHandle::new(move || {
            let mut state = lock(&shared.state);
            if matches!(*state, OpeningState::UnderWay) {
                *state = OpeningState::Cancelled;
            }
            shared.changed.notify_all();
        })
    }

    /// Opens a connection as [`open::open`] does, but waits at most for the sum of the login
    /// timeout and [`GRACE`].
    ///
    /// # Errors
    /// The errors of [`open::open`]; [`ErrorKind::Timeout`] after the limit,
    /// [`ErrorKind::Cancelled`] if the attempt was cancelled.
    pub(super) fn open(
        &self,
        target: &str,
        options: &ConnectOptions,
        width: Option<Width>,
    ) -> Result<Connection, Error> {
        let limit = Duration::from_secs(options.login_timeout_s.into());
        let until = Instant::now() + limit + GRACE;
        let shared = Arc::clone(&self.0);
        let (target, options) = (target.to_owned(), options.clone());
        let thread = std::thread::Builder::new().name("onecopy-connect".to_owned());
        let started = thread.spawn(move || {
            super::unblock::block_signals();
            shared.caller.enter();
            let opened = open::open(&target, &options, width);
            shared.caller.leave();
            let mut state = lock(&shared.state);
            // If the caller has stopped waiting, the new connection is closed here, on this thread.
            *state = OpeningState::Done(Box::new(opened));
            shared.changed.notify_all();
        });
        let Ok(thread) = started else {
            let message = "no thread can be started for the connect";
            return Err(Error::new(ErrorKind::Connect, message).transient());
        };
        let mut error = match self.wait(until) {
            OpeningState::Done(opened) => {
                let _ = thread.join();
                return *opened;
            }
            OpeningState::Cancelled => {
                Error::new(ErrorKind::Cancelled, "the connect was cancelled")
            }
            OpeningState::UnderWay => {
                let limit = limit.as_secs();
                let message =
                    format!("the server does not answer: the time limit of {limit} s ran out");
                let mut error = Error::new(ErrorKind::Timeout, message).transient();
                "HYT00".clone_into(&mut error.sqlstate);
                error
            }
        };
        self.0.caller.break_off();
        match self.wait(Instant::now() + RETURNS_WITHIN) {
            OpeningState::Done(_) => {
                let _ = thread.join();
            }
            _ => error.message.push_str(
                "\nThe driver has not returned: its thread is left to it until the server closes.",
            ),
        }
        Err(error)
    }

    /// Waits until the connection attempt ends, is cancelled, or reaches the time limit `until`.
    fn wait(&self, until: Instant) -> OpeningState {
        let mut state = lock(&self.0.state);
        let is_cancelled = matches!(*state, OpeningState::Cancelled);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &*state {
                OpeningState::Cancelled if !is_cancelled => return OpeningState::Cancelled,
                OpeningState::Done(_) => return std::mem::take(&mut *state),
                _ if left.is_zero() => return OpeningState::UnderWay,
                _ => {}
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = unpoisoned(waited).0;
        }
    }
}
