//! [`Workers`]: the threads that fill chunks. Only these threads wait for the source of a row
//! stream, for example for a database.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_text::Chunk;
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{ChunkError, ChunkSource, Filled};

use crate::guard;

/// The object that receives filled chunks. The server implements this trait for a connection.
pub(crate) trait FillTarget: Send + Sync + 'static {
    /// Stores the result of a [`Job::Fill`].
    fn put_fill(&self, fill: Fill);
}

/// The object that owns the worker threads. The server implements this trait for
/// [`crate::shared::Shared`].
pub(crate) trait FillHost: Send + Sync + 'static {
    type Target: FillTarget;
    /// The buffers and caches that one worker reuses.
    type Kit;

    fn workers(&self) -> &Workers<Self::Target>;

    /// Starts a worker thread with the name `name`, which calls `run`.
    fn spawn_worker(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()>;

    fn worker_kit() -> Self::Kit;

    /// Queues `target` for a thread of the server, after a worker has filled a chunk for `target`.
    fn signal_fill(&self, target: &Arc<Self::Target>);

    /// Performs the next steps of `target` on the calling worker, which has just filled a chunk for
    /// it. Does nothing if another thread owns `target`.
    fn drive_fill(self: &Arc<Self>, target: &Arc<Self::Target>, kit: &mut Self::Kit);
}

/// A job for a worker thread. The job may wait for the source of a row stream, for example for a
/// database.
pub(crate) enum Job<T> {
    /// Fills `chunk` from the row stream `source`, and then notifies `target`, the connection that
    /// sends the chunk.
    Fill {
        target: Arc<T>,
        source: Box<dyn ChunkSource>,
        chunk: Chunk,
    },
    /// Drops a source that is no longer needed, and then calls `then`. The drop may close a
    /// database statement.
    Drop {
        source: Box<dyn ChunkSource>,
        then: Box<dyn FnOnce() + Send>,
    },
}

/// The result of a [`Job::Fill`]: the filled chunk, and the source from which it was filled.
pub(crate) struct Fill {
    /// The source; `None` if it has ended and was dropped.
    pub(crate) source: Option<Box<dyn ChunkSource>>,
    pub(crate) chunk: Chunk,
    /// The number of rows that the source has reported so far.
    pub(crate) n_rows: u64,
    pub(crate) result: FillResult,
}

pub(crate) enum FillResult {
    More,
    Done,
    Failed(ChunkError),
    Panicked,
}

/// A pool of at most `n_max` threads. A job fills only one chunk, and jobs run in the order in
/// which they were queued. Therefore row streams share the threads fairly.
pub(crate) struct Workers<T> {
    state: Mutex<WorkerState<T>>,
    job_or_stop: Condvar,
    n_max: usize,
}

struct WorkerState<T> {
    jobs: VecDeque<Job<T>>,
    n_threads: usize,
    n_idle: usize,
    n_filling: usize,
    stop: bool,
}

impl<T: FillTarget> Workers<T> {
    pub(crate) fn new(n_max: usize) -> Workers<T> {
        Workers {
            state: Mutex::new(WorkerState {
                jobs: VecDeque::new(),
                n_threads: 0,
                n_idle: 0,
                n_filling: 0,
                stop: false,
            }),
            job_or_stop: Condvar::new(),
            n_max: n_max.max(1),
        }
    }

    /// Queues `job`, and starts a worker thread if none is idle. If no thread can be created and
    /// there is no worker, the job fails.
    pub(crate) fn submit<H: FillHost<Target = T>>(&self, host: &Arc<H>, job: Job<T>) {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        if state.n_idle >= state.jobs.len() || state.n_threads == self.n_max {
            self.job_or_stop.notify_one();
            return;
        }
        state.n_threads += 1;
        let name = format!("onecopy-fill-{}", state.n_threads);
        let of_thread = Arc::clone(host);
        let started = host.spawn_worker(name, move || of_thread.workers().run(&of_thread));
        if let Err(error) = started {
            state.n_threads -= 1;
            let failed = if state.n_threads == 0 {
                state.jobs.pop_back()
            } else {
                None // The existing workers will run it.
            };
            drop(state);
            match failed {
                None => {}
                Some(Job::Drop { source, then }) => {
                    drop_source(source);
                    guard(then);
                }
                Some(Job::Fill {
                    target,
                    source,
                    chunk,
                }) => {
                    let error = ChunkError {
                        kind: ChunkErrorKind::Source,
                        source: Box::new(error),
                    };
                    target.put_fill(Fill {
                        source: drop_source(source),
                        chunk,
                        n_rows: 0,
                        result: FillResult::Failed(error),
                    });
                    host.signal_fill(&target);
                }
            }
        }
    }

    /// Makes each worker thread end as soon as no job is queued.
    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.job_or_stop.notify_all();
    }

    /// Returns the number of workers that run a job. They may be waiting for a source.
    pub(crate) fn n_filling(&self) -> usize {
        lock(&self.state).n_filling
    }

    fn run<H: FillHost<Target = T>>(&self, host: &Arc<H>) {
        let mut kit = H::worker_kit();
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.n_filling += 1;
                drop(state);
                let filled = match job {
                    Job::Fill {
                        target,
                        source,
                        chunk,
                    } => {
                        target.put_fill(fill(source, chunk));
                        Some(target)
                    }
                    Job::Drop { source, then } => {
                        drop_source(source);
                        guard(then);
                        None
                    }
                };
                lock(&self.state).n_filling -= 1;
                if let Some(target) = filled {
                    host.drive_fill(&target, &mut kit);
                }
                state = lock(&self.state);
            } else if state.stop {
                state.n_threads -= 1;
                return;
            } else {
                state.n_idle += 1;
                let woken = self.job_or_stop.wait(state);
                state = unpoisoned(woken);
                state.n_idle -= 1;
            }
        }
    }
}

fn fill(mut source: Box<dyn ChunkSource>, mut chunk: Chunk) -> Fill {
    // After a panic, the source is dropped and the chunk is cleared, so no caller sees incomplete
    // data.
    let filled = catch_unwind(AssertUnwindSafe(|| {
        let filled = source.fill(&mut chunk);
        (filled, source.n_rows())
    }));
    let (result, n_rows) = match filled {
        Ok((Ok(Filled::More), n_rows)) => (FillResult::More, n_rows),
        Ok((Ok(Filled::Done), n_rows)) => (FillResult::Done, n_rows),
        Ok((Err(error), n_rows)) => (FillResult::Failed(error), n_rows),
        Err(_) => (FillResult::Panicked, 0),
    };
    let source = match result {
        FillResult::More => Some(source),
        // The source is dropped here, on a worker thread, because closing a statement may wait for
        // the database.
        _ => drop_source(source),
    };
    Fill {
        source,
        chunk,
        n_rows,
        result,
    }
}

/// Drops a source. It is called on a worker thread, because dropping a source may close a
/// statement, which may wait for the database. Returns `None`, which the caller stores instead of
/// the source.
fn drop_source(source: Box<dyn ChunkSource>) -> Option<Box<dyn ChunkSource>> {
    guard(|| drop(source));
    None
}
