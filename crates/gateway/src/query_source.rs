//! [`QuerySource`]: one execution of a query for one request (a run), as the chunk source of a
//! response.
//!
//! The run starts when the first chunk is requested. A worker thread connects to the database,
//! executes the query and fills the chunks, so a slow database does not block the thread that reads
//! requests. The status of the response is sent only after the first chunk, so an error that occurs
//! earlier can still change the status.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onecopy_wire::lock::lock;

use onecopy_rows::Format;
use onecopy_rows::connect::Connection;
use onecopy_rows::{Error, ErrorKind, Value};
use onecopy_serve::Breaker;
use onecopy_text::{Chunk, Ledger};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

use crate::deadlines::Watch;
use crate::pool::{Pool, Slot, StuckSlot};
use crate::run_error::RunError;

/// The SQL of a query. All runs of the query share it.
pub(crate) struct Sql {
    /// The name of the query.
    pub(crate) name: String,
    /// The SQL, with `?` for each parameter.
    pub(crate) text: String,
    /// `true` if the database can report, before it runs a statement, that the statement writes
    /// data.
    pub(crate) can_describe: bool,
    /// `true` after the database has reported that the statement does not modify data.
    pub(crate) reads: AtomicBool,
}

impl Sql {
    /// Returns an error if the database reports that the statement writes data. A read-only
    /// connection would reject the statement too, but only this check reports it as an error of the
    /// configuration.
    fn check(&self, connection: &Connection) -> Result<(), ChunkError> {
        if self.can_describe && !self.reads.load(Ordering::Acquire) {
            let prepared = connection.prepare_check(&self.text)?;
            if prepared.read_only == Some(false) {
                return Err(run_error(RunError::Writes));
            }
            self.reads.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// The state of a run (one execution of a query) that other threads need in order to stop it.
pub(crate) struct Run {
    limit: Duration,
    deadline: Instant,
    control: Mutex<Control>,
    /// The connection and the row stream of the run; `None` after the end of the run. A worker
    /// thread has the lock while it fills a chunk.
    live: Mutex<Option<Live>>,
    /// Ends the response to the client if the query was stopped, but the call to the driver does
    /// not return.
    breaker: Breaker,
    sql: Arc<Sql>,
    pool: Arc<Pool>,
}

/// The number of checks of a stopped run after which the log reports that the driver ignores the
/// cancel. A stopped run is checked every 100 ms until it ends. The client's response ends earlier,
/// at the second check.
const N_LOOKS_TO_HELD: u32 = 10;

#[derive(Default)]
struct Control {
    stopped: Option<RunError>,
    /// The handle with which the driver call in progress on the run's connection is cancelled.
    /// `None` before the run has a connection, and after the end of the run.
    handle: Option<CancelHandle>,
    /// The number of checks that found the stopped run still in progress.
    n_looks: u32,
    /// Counts the slot of this run as occupied by a driver that ignores the cancel; `None` until
    /// the driver was found to ignore it.
    held: Option<StuckSlot>,
}

/// The resources of a run. Rust drops the fields in the order of their declaration: the row stream
/// must be dropped before its connection, and the connection before the run's slot in the pool.
struct Live {
    chunks: Option<Box<dyn ChunkSource>>,
    connection: Option<Connection>,
    slot: Slot,
}

impl Run {
    /// Stops the execution of the query: records the reason `why` unless an earlier reason was
    /// recorded, and cancels the driver call in progress.
    fn stop(&self, why: RunError) {
        let mut control = lock(&self.control);
        control.stopped.get_or_insert(why);
        // The lock is held during the cancel, so that the cancel cannot affect a later run on the
        // same connection.
        if let Some(handle) = &control.handle {
            handle.cancel();
        }
    }

    /// Stores the handle with which the run's driver calls are cancelled from now on. Returns an
    /// error if the run was already stopped.
    fn stops(&self, handle: CancelHandle) -> Result<(), ChunkError> {
        let mut control = lock(&self.control);
        control.handle = Some(handle);
        control.stopped.map_or(Ok(()), |why| Err(run_error(why)))
    }

    /// Checks the run at the time `now`. Stops it if its deadline has passed, or cancels it again
    /// if it was already stopped. Returns the time of the next check; `None` if no further check is
    /// needed.
    ///
    /// A run is stopped repeatedly, because a cancel that arrives between two calls to the driver
    /// has no effect.
    pub(crate) fn look(&self, now: Instant, again: Duration) -> Option<Instant> {
        let stopped = lock(&self.control).stopped;
        match stopped {
            None if now < self.deadline => return Some(self.deadline),
            None => self.stop(RunError::TimeLimit { limit: self.limit }),
            Some(why) => self.stop(why),
        }
        // No worker fills a chunk now, because the client reads slowly. Such a client must not
        // occupy a slot or a connection, so they are released.
        if let Ok(mut live) = self.live.try_lock() {
            if let Some(live) = live.take() {
                lock(&self.control).handle = None;
                // Closing a connection may wait for the network, and other runs depend on this
                // thread.
                drop(std::thread::spawn(move || drop(live)));
            }
            return None;
        }
        self.wait_no_more();
        Some(now + again)
    }

    /// Called by each check that finds the worker thread of a stopped run still in a driver call;
    /// counts these checks. If the time limit has stopped the run, the second one ends the client's
    /// response.
    fn wait_no_more(&self) {
        let mut control = lock(&self.control);
        control.n_looks += 1;
        let (n_looks, stopped) = (control.n_looks, control.stopped);
        if n_looks == N_LOOKS_TO_HELD {
            control.held = Some(self.pool.hold(&self.sql.name));
        }
        drop(control);
        if let (2, Some(why @ RunError::TimeLimit { .. })) = (n_looks, stopped) {
            self.breaker.fail(run_error(why));
        }
    }
}

/// The rows of one run of a query, as a chunk source.
pub(crate) struct QuerySource {
    run: Arc<Run>,
    watch: Watch,
    values: Arc<[Value]>,
    format: Format,
    ledger: Ledger,
    n_rows: u64,
    reused: bool,
    /// `true` after bytes of the result were returned. The query can then not be executed again,
    /// because the client would receive rows twice.
    filled: bool,
}

impl QuerySource {
    /// Creates a run, which is one execution of a query. Its time limit starts now, but the query
    /// is executed only when the first chunk is requested.
    pub(crate) fn new(
        slot: Slot,
        watch: &Watch,
        sql: Arc<Sql>,
        values: Arc<[Value]>,
        format: Format,
        limit: Duration,
        ledger: &Ledger,
    ) -> QuerySource {
        let deadline = Instant::now() + limit;
        let run = Arc::new(Run {
            limit,
            deadline,
            breaker: Breaker::new(),
            sql,
            pool: Arc::clone(slot.pool()),
            control: Mutex::default(),
            live: Mutex::new(Some(Live {
                chunks: None,
                connection: None,
                slot,
            })),
        });
        watch.add(&run, deadline);
        QuerySource {
            run,
            watch: watch.clone(),
            values,
            format,
            ledger: ledger.clone(),
            n_rows: 0,
            reused: false,
            filled: false,
        }
    }

    /// Returns the [`Breaker`] of the response, which ends the response with an error if the driver
    /// does not return after the time limit.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.run.breaker
    }

    /// Connects to the database and executes the query. If `fresh` is `false` and the pool has an
    /// idle connection, this connection is used. Otherwise a new connection is opened.
    fn start(&mut self, live: &mut Live, fresh: bool) -> Result<(), ChunkError> {
        let idle = if fresh { None } else { live.slot.take_idle() };
        self.reused = idle.is_some();
        let connection = match idle {
            Some(connection) => connection,
            None => live.slot.open()?,
        };
        self.run.stops(connection.cancel_handle())?;
        let connection = live.connection.insert(connection);
        self.run.sql.check(connection)?;
        let statement = connection.execute(&self.run.sql.text, &self.values)?;
        if !statement.schema().has_rows() {
            return Err(run_error(RunError::NoRows));
        }
        let chunks = statement.into_chunks(self.format, &self.ledger)?;
        // From here on, the stream records a stop at any time.
        self.run.stops(chunks.cancel_handle())?;
        live.chunks = Some(chunks);
        Ok(())
    }

    fn step(
        &mut self,
        live: &mut Live,
        chunk: &mut Chunk,
        fresh: bool,
    ) -> Result<Filled, ChunkError> {
        if live.chunks.is_none() {
            self.start(live, fresh)?;
        }
        let chunks = live.chunks.as_mut().expect("start put it there");
        let filled = chunks.fill(chunk);
        self.n_rows = chunks.n_rows();
        filled
    }

    /// Returns `true` if the query should be executed again on a new connection. This is the case
    /// if an idle connection of the pool was used and `error` may mean that this connection was
    /// lost while it was idle.
    fn may_be_stale(&self, error: &ChunkError) -> bool {
        let stopped = lock(&self.run.control).stopped.is_some();
        let of_database = error.source.downcast_ref::<Error>();
        let broken = of_database.is_some_and(|e| e.is_transient || e.kind == ErrorKind::Internal);
        self.reused && !self.filled && !stopped && broken
    }

    /// Releases the resources of the run: first its row stream, then its connection, and last its
    /// slot. The connection is closed, unless it was returned to the pool before.
    fn end(&self, mut live: Live) {
        lock(&self.run.control).handle = None;
        live.chunks = None;
        drop(live);
        // The mark of a stuck slot is dropped last, because the drops above may wait for the driver
        // too.
        let held = lock(&self.run.control).held.take();
        drop(held);
    }
}

impl Drop for QuerySource {
    fn drop(&mut self) {
        self.watch.remove(&self.run);
        // The resources are dropped here and not by the last `Arc` of the run, which the thread of
        // the time limits may have.
        let live = lock(&self.run.live).take();
        if let Some(live) = live {
            self.end(live);
        }
    }
}

impl ChunkSource for QuerySource {
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError> {
        let run = Arc::clone(&self.run);
        let mut guard = lock(&run.live);
        let Some(mut live) = guard.take() else {
            let why = lock(&run.control).stopped.unwrap_or(RunError::Stopped);
            return Err(run_error(why));
        };
        let mut result = self.step(&mut live, chunk, false);
        if result.as_ref().is_err_and(|error| self.may_be_stale(error)) {
            lock(&run.control).handle = None;
            live.chunks = None;
            live.connection = None;
            live.slot.drop_idle();
            chunk.clear();
            result = self.step(&mut live, chunk, true);
        }
        self.filled = true;
        // The reason of the stop is read here and not from the result of the driver, because
        // drivers respond to a cancel in different ways (MariaDB's `sleep` returns a row).
        let stopped = lock(&run.control).stopped;
        let result = stopped.map_or(result, |why| Err(run_error(why)));
        match result {
            Ok(Filled::More) => {
                *guard = Some(live);
                Ok(Filled::More)
            }
            Ok(Filled::Done) => {
                lock(&run.control).handle = None;
                live.chunks = None;
                if let Some(connection) = live.connection.take() {
                    live.slot.give_back(connection);
                }
                self.end(live);
                Ok(Filled::Done)
            }
            Err(error) => {
                self.end(live);
                Err(error)
            }
        }
    }

    fn cancel_handle(&self) -> CancelHandle {
        let (run, watch) = (Arc::clone(&self.run), self.watch.clone());
        CancelHandle::new(move || {
            run.stop(RunError::Stopped);
            watch.look_soon(&run);
        })
    }

    fn n_rows(&self) -> u64 {
        self.n_rows
    }
}

fn run_error(why: RunError) -> ChunkError {
    let kind = match why {
        RunError::TimeLimit { .. } => ChunkErrorKind::Limit,
        RunError::Stopped => ChunkErrorKind::Cancelled,
        RunError::NoRows | RunError::Writes => ChunkErrorKind::Source,
    };
    ChunkError {
        kind,
        source: Box::new(why),
    }
}
