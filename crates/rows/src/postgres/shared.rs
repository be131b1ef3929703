//! The state that a connection and its statements share: the session, with its lock.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onecopy_text::Policy;
use postgres_protocol::message::frontend;

use super::buffer::Buffer;
use super::cancel::{Activity, cancelled};
use super::wire::Wire;
use crate::codes;
use crate::database::Names;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::health::{self, ConnectionHealth};
use crate::sql::dialect::Dialect;

/// The state that a connection and its statements share.
#[derive(Debug)]
pub(super) struct Shared {
    wire: Mutex<Wire>,
    pub(super) activity: Arc<Activity>,
    pub(super) health: ConnectionHealth,
    fork_generation: u32,
    pub(super) autocommit: AtomicBool,
    pub(super) read_only: bool,
    pub(super) text_policy: Policy,
    /// Memory of the last statement's rows, for the next one.
    spare: Mutex<Option<Buffer>>,
    pub(super) names: Names,
}

impl Shared {
    pub(super) fn new(
        wire: Wire,
        autocommit: bool,
        read_only: bool,
        text_policy: Policy,
        names: Names,
    ) -> Shared {
        fork::watch_forks();
        Shared {
            activity: Arc::clone(&wire.activity),
            wire: Mutex::new(wire),
            health: ConnectionHealth::default(),
            fork_generation: fork::generation(),
            autocommit: AtomicBool::new(autocommit),
            read_only,
            text_policy,
            spare: Mutex::default(),
            names,
        }
    }

    /// Returns whether this process opened the connection.
    pub(super) fn is_ours(&self) -> bool {
        self.fork_generation == fork::generation()
    }

    pub(super) fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session; a call of another thread under way returns. Closing twice is no error. A forked child only
    /// forgets it: the parent's session goes on.
    pub(super) fn close(&self) {
        let is_usable = self.health.is_usable();
        if self.health.is_closed() {
            return;
        }
        self.health.close();
        if !self.is_ours() {
            return;
        }
        if let Ok(mut wire) = self.wire.try_lock()
            && is_usable
            && wire.reader.is_none()
        {
            frontend::terminate(&mut wire.out);
            let _ = wire.send();
        }
        self.activity.breaker().break_off();
    }

    /// Refuses a connection that cannot be used.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if it was closed or belongs to another process;
    /// [`ErrorKind::Operational`] if it was lost.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.is_ours() {
            return Err(Error::new(
                ErrorKind::Interface,
                "this connection was opened by another process (before a fork)\nOpen a new one in this process.",
            ));
        }
        if self.health.is_closed() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        self.health.check()
    }

    /// Runs `f` with the session to itself, after the rest of a result under way was received.
    pub(super) fn call<T>(
        &self,
        f: impl FnOnce(&mut Wire) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with(|wire| {
            wire.settle()?;
            f(wire)
        })
    }

    /// Runs `f` with the session; a loss is noted.
    pub(super) fn with<T>(
        &self,
        f: impl FnOnce(&mut Wire) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check()?;
        let mut wire = self.wire();
        self.check()?;
        let done = f(&mut wire);
        self.noted(&wire, done)
    }

    fn noted<T>(&self, wire: &Wire, done: Result<T, Error>) -> Result<T, Error> {
        let says_lost = |e: &Error| health::says_lost(e, Dialect::Postgres);
        if wire.is_lost || done.as_ref().err().is_some_and(says_lost) {
            self.health.lose();
            self.activity.finish();
        }
        done.map_err(|error| {
            if self.health.is_closed() {
                return Error::new(ErrorKind::Interface, "the connection was closed meanwhile");
            }
            error
        })
    }

    /// The error of the statement `id`: what stopped it on purpose comes first.
    pub(super) fn error_of(&self, id: u64, error: Error) -> Error {
        let was_cancelled = self.activity.was_cancelled(id);
        match was_cancelled && (error.sqlstate == "57014" || self.activity.breaker().is_broken()) {
            true => cancelled(),
            false => error,
        }
    }

    /// Memory for rows, if a statement has left any.
    pub(super) fn take_spare(&self) -> Option<Buffer> {
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Keeps memory for the next statement.
    pub(super) fn keep_spare(&self, mut buffer: Buffer) {
        if buffer.is_kept() {
            buffer.clear();
            *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
        }
    }

    pub(super) fn autocommit(&self) -> bool {
        self.autocommit.load(SeqCst)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

/// An error of this SQLSTATE.
pub(super) fn error_of_state(sqlstate: &str, message: &str) -> Error {
    let mut error = Error::new(ErrorKind::Operational, message);
    sqlstate.clone_into(&mut error.sqlstate);
    if let Some(meaning) = codes::meaning(Dialect::Postgres, sqlstate, 0) {
        error.set_meaning(meaning);
    }
    error
}
