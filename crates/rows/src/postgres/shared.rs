//! `Shared`: the session of a connection, and the lock of this session. The connection and its
//! statements share them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use onecopy_wire::lock::lock;

use onecopy_text::Policy;
use postgres_protocol::message::frontend;

use super::buffer::Buffer;
use super::cancel::{Activity, cancelled};
use super::message::{is_copying, is_violation};
use super::wire::Wire;
use crate::codes;
use crate::database::{ConnectOptions, Names};
use crate::deadlock::thread_number;
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::health::{self, ConnectionHealth};
use crate::sql::dialect::Dialect;
use crate::task;

/// The state that a connection to PostgreSQL and its statements share.
#[derive(Debug)]
pub(super) struct Shared {
    wire: Mutex<Wire>,
    /// The number of the thread whose task holds the session's lock; 0 if no task holds the lock.
    /// Other code on that thread must not wait for the lock, because the suspended task could then
    /// not continue and release it.
    task_thread: AtomicU64,
    pub(super) activity: Arc<Activity>,
    pub(super) health: ConnectionHealth,
    fork_generation: u32,
    pub(super) autocommit: AtomicBool,
    pub(super) read_only: bool,
    pub(super) text_policy: Policy,
    pub(super) far_dates_as_text: bool,
    /// A buffer from an earlier statement, for the rows of the next statement; `None` if no buffer
    /// is stored.
    spare: Mutex<Option<Buffer>>,
    pub(super) names: Names,
}

impl Shared {
    pub(super) fn new(wire: Wire, options: &ConnectOptions, names: Names) -> Shared {
        fork::watch_forks();
        Shared {
            activity: Arc::clone(&wire.activity),
            wire: Mutex::new(wire),
            task_thread: AtomicU64::new(0),
            health: ConnectionHealth::default(),
            fork_generation: fork::generation(),
            autocommit: AtomicBool::new(options.autocommit),
            read_only: options.read_only,
            text_policy: options.text_policy,
            far_dates_as_text: options.far_dates_as_text,
            spare: Mutex::default(),
            names,
        }
    }

    /// Returns `true` if this process opened the connection, `false` in a forked child.
    pub(super) fn is_ours(&self) -> bool {
        self.fork_generation == fork::generation()
    }

    /// Locks the session; waits if another thread holds the lock.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if a suspended task of this thread holds the lock.
    fn wire(&self) -> Result<MutexGuard<'_, Wire>, Error> {
        match self.wire.try_lock() {
            Ok(wire) => Ok(wire),
            Err(TryLockError::Poisoned(wire)) => Ok(wire.into_inner()),
            Err(TryLockError::WouldBlock) if self.task_thread.load(SeqCst) == thread_number() => {
                let message = "another call of this connection is under way on the same event loop\n\
                               Await its end first.";
                Err(Error::new(ErrorKind::Interface, message))
            }
            Err(TryLockError::WouldBlock) => Ok(lock(&self.wire)),
        }
    }

    /// Ends the session; an active call on another thread returns an error. A second close is not
    /// an error. A forked child only drops the connection: the session of the parent continues.
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
            // The message is sent only if the system accepts it at once, because the network may
            // not respond.
            wire.socket.set_deadline(Some(Instant::now()));
            let _ = wire.send();
        }
        self.activity.breaker().break_off();
    }

    /// Returns an error if the connection was opened by another process, is closed, or is lost.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if the connection was closed or belongs to another process;
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

    /// Calls `f` with exclusive access to the session. Before the call, receives the remaining rows
    /// of the current result, and executes the remaining statements of that result's SQL string.
    /// Returns an error while a COPY is in progress.
    pub(super) fn call<T>(
        self: &Arc<Self>,
        f: impl FnOnce(&mut Wire) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with(|wire| {
            if wire.copying.is_some() {
                return Err(is_copying());
            }
            wire.settle()?;
            if let Some(waiting) = wire.further.take() {
                (waiting.run_all)(waiting, self, wire)?;
            }
            f(wire)
        })
    }

    /// Executes `sql`, a command without parameters that returns no rows. Another thread can cancel
    /// this call.
    pub(super) fn command(&self, wire: &mut Wire, sql: &str) -> Result<(), Error> {
        let id = self.activity.begin();
        let done = wire.command(sql);
        self.activity.finish();
        done.map(drop).map_err(|error| self.error_of(id, error))
    }

    /// Locks the session and calls `f` with it. If the result of `f` shows that the connection was
    /// lost, records this in the shared state.
    pub(super) fn with<T>(
        &self,
        f: impl FnOnce(&mut Wire) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check()?;
        let mut wire = self.wire()?;
        self.check()?;
        let is_task = task::is_running();
        if is_task {
            self.task_thread.store(thread_number(), SeqCst);
        }
        let done = f(&mut wire);
        if is_task {
            self.task_thread.store(0, SeqCst);
        }
        if done.is_err() && wire.copying.is_none() {
            // If `f` failed while it encoded a message, the incomplete message must not be sent.
            // During a COPY, `out` may contain data that is sent later.
            wire.out.clear();
        }
        self.noted(&wire, done)
    }

    fn noted<T>(&self, wire: &Wire, done: Result<T, Error>) -> Result<T, Error> {
        // An error of the server that ends the session has set `wire.is_lost`. Any other error of
        // the server has a severity, and may be that of a session with another server, which a
        // statement uses.
        let is_lost = |e: &Error| {
            let is_ours = !e.details.iter().any(|(name, _)| *name == "severity");
            is_ours && (health::says_lost(e, Dialect::Postgres) || is_violation(e))
        };
        if wire.is_lost || done.as_ref().err().is_some_and(is_lost) {
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

    /// Returns the error that is reported for the statement `id`. If the statement was cancelled
    /// and `error` is the consequence, this is the error of a cancelled statement; otherwise it is
    /// `error`.
    pub(super) fn error_of(&self, id: u64, error: Error) -> Error {
        let was_cancelled = self.activity.was_cancelled(id);
        match was_cancelled && (error.sqlstate == "57014" || self.activity.breaker().is_broken()) {
            true => cancelled(),
            false => error,
        }
    }

    /// Returns the buffer that [`Shared::keep_spare`] stored, and removes it; `None` if no buffer
    /// is stored.
    pub(super) fn take_spare(&self) -> Option<Buffer> {
        lock(&self.spare).take()
    }

    /// Keeps the memory of a result's rows, so that the next statement can use it. A buffer that is
    /// too large is freed instead.
    pub(super) fn keep_spare(&self, mut buffer: Buffer) {
        if buffer.is_kept() {
            buffer.clear();
            *lock(&self.spare) = Some(buffer);
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

pub(super) fn error_of_state(sqlstate: &str, message: &str) -> Error {
    let mut error = Error::new(ErrorKind::Operational, message);
    sqlstate.clone_into(&mut error.sqlstate);
    if let Some(meaning) = codes::meaning(Dialect::Postgres, sqlstate, 0) {
        error.set_meaning(meaning);
    }
    error
}
