//! Threads that fill chunks: the only ones that wait for a source.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use onecopy_text::Chunk;
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{ChunkError, ChunkSource, Filled};

use crate::{guard, lock};

/// The receiver of what is filled: a connection.
pub(crate) trait FillTarget: Send + Sync + 'static {
    /// Receives the result of a [`Job::Fill`].
    fn put_fill(&self, fill: Fill);
}

/// The server of workers.
pub(crate) trait FillHost: Send + Sync + 'static {
    type Target: FillTarget;
    /// The memory of a worker.
    type Kit;

    fn workers(&self) -> &Workers<Self::Target>;

    /// Starts the thread of a worker.
    fn spawn_worker(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()>;

    fn worker_kit() -> Self::Kit;

    /// Notifies `target`, which has got its fill.
    fn signal_fill(&self, target: &Arc<Self::Target>);

    /// Notifies `target`, and goes on with it on this worker unless another thread is at it just now.
    fn drive_fill(self: &Arc<Self>, target: &Arc<Self::Target>, kit: &mut Self::Kit);
}

/// What may wait for a source.
pub(crate) enum Job<T> {
    /// Fill a chunk for a target, which is notified when it is filled.
    Fill {
        target: Arc<T>,
        source: Box<dyn ChunkSource>,
        chunk: Chunk,
    },
    /// Drop a source that nobody wants any more (it may close a statement), then do what waited for that.
    Drop {
        source: Box<dyn ChunkSource>,
        then: Box<dyn FnOnce() + Send>,
    },
}

/// What came of a [`Job::Fill`].
pub(crate) struct Fill {
    /// The source, while it may be filled again.
    pub(crate) source: Option<Box<dyn ChunkSource>>,
    pub(crate) chunk: Chunk,
    /// Rows so far, as the source counts them.
    pub(crate) n_rows: u64,
    pub(crate) result: FillResult,
}

pub(crate) enum FillResult {
    More,
    Done,
    Failed(ChunkError),
    Panicked,
}

/// A bounded pool. Jobs are taken in order, one chunk each, so that streams share fewer workers fairly.
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

    /// Has `job` done by a worker, which is started if none is idle. Where no thread can be had at all, the job fails.
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
                None // The workers there are will come to it.
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

    /// Lets idle workers end, and the others after the job they are at.
    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.job_or_stop.notify_all();
    }

    /// Workers inside a source.
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
                state = woken.unwrap_or_else(PoisonError::into_inner);
                state.n_idle -= 1;
            }
        }
    }
}

fn fill(mut source: Box<dyn ChunkSource>, mut chunk: Chunk) -> Fill {
    // The source and the chunk are dropped or cleared after a panic, so nobody sees what it left half done.
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
        // Dropped here, where closing a statement may wait for the database.
        _ => drop_source(source),
    };
    Fill {
        source,
        chunk,
        n_rows,
        result,
    }
}

/// Drops a source on the worker: it may close a statement, which waits for a database.
fn drop_source(source: Box<dyn ChunkSource>) -> Option<Box<dyn ChunkSource>> {
    guard(|| drop(source));
    None
}
