//! [`Pool`]: the connections of one database. They are opened on demand and limited in number. A
//! connection is reused if its last query ended without an error.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onecopy_wire::lock::lock;

use onecopy_rows::ConnectOptions;
use onecopy_rows::Error;
use onecopy_rows::connect::Connection;

use crate::config::Database;
use crate::driver_calls::{CallMark, DriverCall, DriverCalls};
use crate::log::Log;
use crate::supervision::Supervision;

/// A connection that was idle for longer than this time is closed and not used again, because
/// firewalls drop connections that send nothing for a long time.
const MAX_IDLE: Duration = Duration::from_secs(300);

pub(crate) struct Pool {
    database: Database,
    idle: Mutex<Vec<(Connection, Instant)>>,
    n_running: AtomicUsize,
    /// The number of slots that are occupied by stopped runs whose driver has not returned. A slot
    /// is the right to run one query.
    n_held: AtomicUsize,
    /// `true` after the description and the notices of the database's driver were logged. This
    /// happens at the first connect.
    noticed: AtomicBool,
    log: Log,
    /// The counters of the driver calls that are in progress, and the index of the counter for this
    /// database. `None` without a supervisor, or if the driver is part of onecopy.
    calls: Option<(DriverCalls, usize)>,
    /// The database is disabled until this time, because its driver crashed an earlier serving
    /// process. `None` if the database was not disabled.
    aside_until: Option<Instant>,
}

impl Pool {
    /// Creates the pool of `database`; `index` is its index in [`crate::Config::databases`].
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

    /// Returns the remaining time for which the database is disabled because its driver crashed;
    /// `None` if it is enabled.
    pub(crate) fn set_aside(&self) -> Option<Duration> {
        let left = self.aside_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn mark(&self, call: DriverCall) -> Option<CallMark> {
        let (calls, index) = self.calls.as_ref()?;
        Some(calls.mark(*index, call))
    }

    /// Reserves a slot, which is the right to run one query on the database. The call does not
    /// wait: it returns `None` if `max_concurrent` queries are already running.
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
                        _mark: self.mark(DriverCall::Statement),
                        pool: Arc::clone(self),
                    });
                }
                Err(now) => n = now,
            }
        }
        None
    }

    /// Logs that a run of `query` was stopped and its driver has not returned, and counts the run's
    /// slot as stuck. The run keeps its slot until the driver returns, because it still uses a
    /// thread, a connection and the database server. So `max_concurrent` limits the number of such
    /// runs too.
    pub(crate) fn hold(self: &Arc<Pool>, query: &str) -> StuckSlot {
        let n = self.n_held.fetch_add(1, Ordering::AcqRel) + 1;
        let (name, limit) = (&self.database.name, self.database.max_concurrent);
        self.log.line(&format!(
            "held query={query} database={name}: the driver ignores the cancel; {n} of {limit} slots are occupied by such queries"
        ));
        StuckSlot {
            pool: Arc::clone(self),
            query: query.to_owned(),
            since: Instant::now(),
        }
    }

    /// Opens a new read-only connection to the database.
    pub(crate) fn open(&self) -> Result<Connection, Error> {
        let _connecting = self.mark(DriverCall::Connect);
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

/// Returns the options with which the gateway opens a database.
pub(crate) fn options(database: &Database) -> ConnectOptions {
    ConnectOptions {
        read_only: true,
        create: false,
        autocommit: false,
        login_timeout_s: database.connect_timeout_s,
        text_policy: database.text_policy,
        // With this setting, memory use is bounded for a result of any size.
        guesses_short: false,
        ..ConnectOptions::default()
    }
}

/// Counts one slot of the pool that a stopped run still occupies, because the run's driver has not
/// returned. When the driver returns, the `StuckSlot` is dropped, and writes a log line.
pub(crate) struct StuckSlot {
    pool: Arc<Pool>,
    query: String,
    since: Instant,
}

impl Drop for StuckSlot {
    fn drop(&mut self) {
        let n = self.pool.n_held.fetch_sub(1, Ordering::AcqRel) - 1;
        let (query, name) = (&self.query, &self.pool.database.name);
        let seconds = self.since.elapsed().as_secs_f64();
        self.pool.log.line(&format!(
            "freed query={query} database={name}: the driver returned after {seconds:.1} s; {n} slots are occupied by such queries"
        ));
    }
}

/// The right to run one query on the database. When it is dropped, another query may run.
pub(crate) struct Slot {
    pool: Arc<Pool>,
    /// While the slot exists, marks a driver call as in progress for the supervisor. `None` if the
    /// calls of the database's driver are not counted.
    _mark: Option<CallMark>,
}

impl Slot {
    /// Returns the pool to which the slot belongs.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns an idle connection of the pool; `None` if there is none.
    pub(crate) fn take_idle(&self) -> Option<Connection> {
        let mut idle = lock(&self.pool.idle);
        // Closing a connection may wait for the network. It happens when `old` is dropped, after
        // the lock was released.
        let (old, fresh): (Vec<_>, Vec<_>) = idle
            .drain(..)
            .partition(|(_, since)| since.elapsed() > MAX_IDLE);
        *idle = fresh;
        let taken = idle.pop();
        drop(idle);
        drop(old);
        taken.map(|(connection, _)| connection)
    }

    /// Closes all idle connections. It is called after a broken connection was found: a restart of
    /// the database, for example, breaks all idle connections.
    pub(crate) fn drop_idle(&self) {
        let all = std::mem::take(&mut *lock(&self.pool.idle));
        drop(all);
    }

    /// Opens a new connection to the database.
    pub(crate) fn open(&self) -> Result<Connection, Error> {
        self.pool.open()
    }

    /// Returns a connection to the pool. Its transaction is rolled back; if the rollback fails, the
    /// connection is closed.
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
