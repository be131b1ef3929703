//! One run of a query: the stream that a request is answered with.
//!
//! Nothing happens until the first fill, which is on a worker: it connects, executes and fills. So a slow database
//! never holds the thread that reads requests, and its error comes while the status is still open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onecopy_rows::Format;
use onecopy_rows::connect::Connection;
use onecopy_rows::{Error, ErrorKind, Value};
use onecopy_serve::Breaker;
use onecopy_text::{Chunk, Ledger};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

use crate::pool::{Held, Pool, Slot, lock};
use crate::run_error::RunError;
use crate::watch::Watch;

/// The SQL of a query, shared by its runs.
pub(crate) struct Sql {
    /// The query's name.
    pub(crate) name: String,
    /// With `?` for each parameter.
    pub(crate) text: String,
    /// Whether the database tells, before it runs a statement, that it writes.
    pub(crate) can_tell: bool,
    /// It told that this one does not.
    pub(crate) reads: AtomicBool,
}

impl Sql {
    /// Refuses a statement that writes, by the database's own word, where it has one. Read-only connections refuse it
    /// too; here it is told as what it is, a fault of the configuration.
    fn check(&self, connection: &Connection) -> Result<(), ChunkError> {
        if self.can_tell && !self.reads.load(Ordering::Acquire) {
            let prepared = connection.prepare_check(&self.text)?;
            if prepared.read_only == Some(false) {
                return Err(run_error(RunError::Writes));
            }
            self.reads.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// What outlives a fill, for those who stop it from other threads.
pub(crate) struct Run {
    limit: Duration,
    deadline: Instant,
    control: Mutex<Control>,
    /// What the run holds; locked while it is filled. Nothing: it ended.
    live: Mutex<Option<Live>>,
    /// Answers the client while the driver does not come back.
    breaker: Breaker,
    sql: Arc<Sql>,
    pool: Arc<Pool>,
}

/// Looks at a stopped run before it is taken for one whose driver obeys no cancel, at one each 100 ms. The client does
/// not wait for that: it has its answer at the second look.
const N_LOOKS_TO_HELD: u32 = 10;

#[derive(Default)]
struct Control {
    stopped: Option<RunError>,
    /// Stops what runs on the connection; nothing while there is no connection, or it is no longer ours.
    handle: Option<CancelHandle>,
    /// How often it was looked at since it was stopped.
    n_looks: u32,
    /// The driver does not come back.
    held: Option<Held>,
}

/// In the order in which they must be dropped.
struct Live {
    chunks: Option<Box<dyn ChunkSource>>,
    connection: Option<Connection>,
    slot: Slot,
}

impl Run {
    /// Stops it for `why`, if nothing did before.
    fn stop(&self, why: RunError) {
        let mut control = lock(&self.control);
        control.stopped.get_or_insert(why);
        // Under the lock: the handle must not reach the connection once another run has it.
        if let Some(handle) = &control.handle {
            handle.cancel();
        }
    }

    /// Says what a stop cancels from now on.
    fn stops(&self, handle: CancelHandle) -> Result<(), ChunkError> {
        let mut control = lock(&self.control);
        control.handle = Some(handle);
        control.stopped.map_or(Ok(()), |why| Err(run_error(why)))
    }

    /// Looks whether its time is up, and stops it (again) if so or if it was stopped. Returns when to look next.
    ///
    /// Again, because a stop that comes between two steps of the driver stops nothing.
    pub(crate) fn look(&self, now: Instant, again: Duration) -> Option<Instant> {
        let stopped = lock(&self.control).stopped;
        match stopped {
            None if now < self.deadline => return Some(self.deadline),
            None => self.stop(RunError::TimeLimit { limit: self.limit }),
            Some(why) => self.stop(why),
        }
        // Not under way: it waits for a slow client, which must hold neither slot nor connection.
        if let Ok(mut live) = self.live.try_lock() {
            if let Some(live) = live.take() {
                lock(&self.control).handle = None;
                // Closing a connection may wait for the network, and others wait for this thread.
                drop(std::thread::spawn(move || drop(live)));
            }
            return None;
        }
        self.wait_no_more();
        Some(now + again)
    }

    /// A worker is with the driver, which was cancelled and has not come back yet.
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

/// The rows of a query as a stream of bytes.
pub(crate) struct QuerySource {
    run: Arc<Run>,
    watch: Watch,
    values: Arc<[Value]>,
    format: Format,
    ledger: Ledger,
    n_rows: u64,
    reused: bool,
    /// Something was handed out, so nothing can be tried again.
    filled: bool,
}

impl QuerySource {
    /// A run that starts at its first fill; its time starts now.
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

    /// What ends the stream of this source when its time is up and the driver does not come back.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.run.breaker
    }

    /// Connects and executes.
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
        if statement.schema().n_columns() == 0 {
            return Err(run_error(RunError::NoRows));
        }
        let chunks = statement.into_chunks(self.format, &self.ledger)?;
        // From here on a stop is remembered by the stream, wherever it comes.
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

    /// Whether a failure may be that of a connection that died while it was idle.
    fn may_be_stale(&self, error: &ChunkError) -> bool {
        let stopped = lock(&self.run.control).stopped.is_some();
        let of_database = error.source.downcast_ref::<Error>();
        let broken = of_database.is_some_and(|e| e.is_transient || e.kind == ErrorKind::Internal);
        self.reused && !self.filled && !stopped && broken
    }

    /// Lets go of everything; a connection is closed unless it was taken out before.
    fn end(&self, mut live: Live) {
        lock(&self.run.control).handle = None;
        live.chunks = None;
        drop(live);
        // After that: closing may wait too.
        let held = lock(&self.run.control).held.take();
        drop(held);
    }
}

impl Drop for QuerySource {
    fn drop(&mut self) {
        self.watch.remove(&self.run);
        // Here, not where the last handle to the run is dropped, which may be the watch's thread.
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
        // Why it was stopped is known here, and what the driver makes of it differs: MariaDB's `sleep` gives a row.
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
