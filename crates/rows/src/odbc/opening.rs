//! Connecting within a time limit, which not every driver keeps: on a thread of its own, which is left
//! there where it does not return.
//!
//! MariaDB's driver and FreeTDS wait for the greeting of a server without a limit. Decision 0107.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onecopy_wire::CancelHandle;

use super::connection::Connection;
use super::handle::lock;
use super::open;
use super::quirks::Width;
use super::unblock::{Caller, GRACE};
use crate::database::ConnectOptions;
use crate::error::{Error, ErrorKind};

/// How long a driver may take to return after its socket was shut down.
const RETURNS_WITHIN: Duration = Duration::from_millis(500);

/// A connect under way, and who cancels it.
#[derive(Clone, Default)]
pub(super) struct Opening(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    caller: Caller,
}

#[derive(Default)]
enum State {
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
    /// Gives a connect under way up.
    pub(super) fn cancel_handle(&self) -> CancelHandle {
        let shared = Arc::clone(&self.0);
        CancelHandle::new(move || {
            let mut state = lock(&shared.state);
            if matches!(*state, State::UnderWay) {
                *state = State::Cancelled;
            }
            shared.changed.notify_all();
        })
    }

    /// Opens a connection as [`open::open`] does, within its time limit and [`GRACE`].
    ///
    /// # Errors
    /// As [`open::open`]; [`ErrorKind::Timeout`] after the limit, [`ErrorKind::Cancelled`] after a cancel.
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
            // A connection that nobody waits for is closed here.
            *state = State::Done(Box::new(opened));
            shared.changed.notify_all();
        });
        let Ok(thread) = started else {
            let message = "no thread can be started for the connect";
            return Err(Error::new(ErrorKind::Connect, message).transient());
        };
        let mut error = match self.wait(until) {
            State::Done(opened) => {
                let _ = thread.join();
                return *opened;
            }
            State::Cancelled => Error::new(ErrorKind::Cancelled, "the connect was cancelled"),
            State::UnderWay => {
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
            State::Done(_) => {
                let _ = thread.join();
            }
            _ => error.message.push_str(
                "\nThe driver has not returned: its thread is left to it until the server closes.",
            ),
        }
        Err(error)
    }

    /// Waits until the connect has ended, was cancelled before, or the time is up.
    fn wait(&self, until: Instant) -> State {
        let mut state = lock(&self.0.state);
        let is_cancelled = matches!(*state, State::Cancelled);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &*state {
                State::Cancelled if !is_cancelled => return State::Cancelled,
                State::Done(_) => return std::mem::take(&mut *state),
                _ if left.is_zero() => return State::UnderWay,
                _ => {}
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
