//! Connections of one database: opened when needed, used again when a stream ended in order, few at a time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onecopy_rows::ConnectOptions;
use onecopy_rows::Error;
use onecopy_rows::connect::Connection;

use crate::calls::{Call, CallMark, DriverCalls};
use crate::config::Database;
use crate::log::Log;
use crate::supervision::Supervision;

/// An idle connection older than this is closed instead of used: firewalls forget silent connections.
const MAX_IDLE: Duration = Duration::from_secs(300);

pub(crate) struct Pool {
    database: Database,
    idle: Mutex<Vec<(Connection, Instant)>>,
    n_running: AtomicUsize,
    /// Of those, the ones that were stopped and whose driver does not come back.
    n_held: AtomicUsize,
    /// What is to be known of the driver was logged.
    noticed: AtomicBool,
    log: Log,
    /// Where calls of a foreign driver are marked, and the database's index there.
    calls: Option<(DriverCalls, usize)>,
    /// Not used before, since its driver crashed an earlier process.
    aside_until: Option<Instant>,
}

/// What locks here guard is whole after each statement, so a panic elsewhere leaves nothing broken.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// The pool of the database at `index` of the configuration.
    pub(crate) fn new(
        database: Database,
        index: usize,
        log: Log,
        supervision: &Supervision,
    ) -> Pool {
        let is_foreign = Connection::foreign_driver(database.target.expose()).is_some();
        let calls = supervision.calls.clone().filter(|_| is_foreign);
        let aside = supervision.set_aside.iter().find(|(i, _)| *i == index);
        Pool {
            calls: calls.map(|calls| (calls, index)),
            aside_until: aside.map(|(_, time)| Instant::now() + *time),
            database,
            idle: Mutex::default(),
            n_running: AtomicUsize::new(0),
            n_held: AtomicUsize::new(0),
            noticed: AtomicBool::new(false),
            log,
        }
    }

    /// How long the database is not used yet because its driver crashed; `None` if it is used.
    pub(crate) fn set_aside(&self) -> Option<Duration> {
        let left = self.aside_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn mark(&self, call: Call) -> Option<CallMark> {
        let (calls, index) = self.calls.as_ref()?;
        Some(calls.mark(*index, call))
    }

    /// The right to run one query, or nothing where as many as allowed run. Never waits.
    pub(crate) fn slot(self: &Arc<Pool>) -> Option<Slot> {
        let limit = self.database.max_concurrent;
        let mut n = self.n_running.load(Ordering::Acquire);
        while n < limit {
            let taken =
                self.n_running
                    .compare_exchange_weak(n, n + 1, Ordering::AcqRel, Ordering::Acquire);
            match taken {
                Ok(_) => {
                    return Some(Slot {
                        _mark: self.mark(Call::Statement),
                        pool: Arc::clone(self),
                    });
                }
                Err(now) => n = now,
            }
        }
        None
    }

    /// A run of `query` was stopped, and its driver does not come back. Its slot stays taken until it does: what the driver
    /// is at (a thread, a connection, work on the server) goes on, and must not grow without limit.
    pub(crate) fn hold(self: &Arc<Pool>, query: &str) -> Held {
        let n = self.n_held.fetch_add(1, Ordering::AcqRel) + 1;
        let (name, limit) = (&self.database.name, self.database.max_concurrent);
        self.log.line(&format!(
            "held query={query} database={name}: the driver does not obey the cancel; {n} of {limit} slots are taken by such queries"
        ));
        Held {
            pool: Arc::clone(self),
            query: query.to_owned(),
            since: Instant::now(),
        }
    }

    /// Opens a connection for reading alone.
    pub(crate) fn open(&self) -> Result<Connection, Error> {
        let _connecting = self.mark(Call::Connect);
        let connection = Connection::open(self.database.target.expose(), &options(&self.database))?;
        if !self.noticed.swap(true, Ordering::AcqRel) {
            let name = &self.database.name;
            self.log.line(&format!(
                "connected database={name}: {}",
                connection.describe()
            ));
            for notice in connection.notices() {
                self.log.line(&format!("notice database={name}: {notice}"));
            }
        }
        Ok(connection)
    }
}

/// How the gateway opens a database.
pub(crate) fn options(database: &Database) -> ConnectOptions {
    ConnectOptions {
        read_only: true,
        create: false,
        autocommit: false,
        login_timeout_s: database.connect_timeout_s,
        text_policy: database.text_policy,
        // Memory stays constant whatever a query gives.
        guesses_short: false,
        ..ConnectOptions::default()
    }
}

/// A slot whose driver does not come back; dropped when it does.
pub(crate) struct Held {
    pool: Arc<Pool>,
    query: String,
    since: Instant,
}

impl Drop for Held {
    fn drop(&mut self) {
        let n = self.pool.n_held.fetch_sub(1, Ordering::AcqRel) - 1;
        let (query, name) = (&self.query, &self.pool.database.name);
        let seconds = self.since.elapsed().as_secs_f64();
        self.pool.log.line(&format!(
            "freed query={query} database={name}: the driver came back after {seconds:.1} s; {n} slots are taken by such queries"
        ));
    }
}

/// The right to run one query; given back when dropped.
pub(crate) struct Slot {
    pool: Arc<Pool>,
    /// From here on the driver may be in use, up to the end of the connection that is not given
    /// back.
    _mark: Option<CallMark>,
}

impl Slot {
    /// Whose slot it is.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// A connection that served before, if one waits.
    pub(crate) fn take_idle(&self) -> Option<Connection> {
        let mut idle = lock(&self.pool.idle);
        // Closing may wait for the network; it happens when `old` is dropped, after the lock.
        let (old, fresh): (Vec<_>, Vec<_>) = idle
            .drain(..)
            .partition(|(_, since)| since.elapsed() > MAX_IDLE);
        *idle = fresh;
        let taken = idle.pop();
        drop(idle);
        drop(old);
        taken.map(|(connection, _)| connection)
    }

    /// Closes what is idle: one of them was found broken, so the others may be too.
    pub(crate) fn drop_idle(&self) {
        let all = std::mem::take(&mut *lock(&self.pool.idle));
        drop(all);
    }

    /// A new connection.
    pub(crate) fn open(&self) -> Result<Connection, Error> {
        self.pool.open()
    }

    /// Keeps a connection for later. Its transaction is rolled back, whatever it was; where that fails it is closed.
    pub(crate) fn give_back(&self, connection: Connection) {
        if connection.rollback().is_ok() {
            lock(&self.pool.idle).push((connection, Instant::now()));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.n_running.fetch_sub(1, Ordering::AcqRel);
    }
}
