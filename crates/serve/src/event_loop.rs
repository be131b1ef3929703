//! The threads of a server, and its end. See `docs/decisions/0003-event-loop.md`.

use std::io;
use std::sync::{Arc, PoisonError};

use crate::connection::{drive, flush_lent};
use crate::lock;
use crate::poll::poll;
use crate::scheduler::Task;
use crate::shared::Shared;
use crate::signals::Stopped;
use crate::sys::Event;
use crate::thread_kit::ThreadKit;
use crate::watchdog;

/// Bytes read at once from a connection.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Starts the loop's threads: one for each handler that may run at once, one that keeps the poll, and the watch.
pub(crate) fn start(server: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(server);
    server.spawn("onecopy-watch".to_owned(), move || {
        shared.scheduler.watch(|| flush_lent(&shared));
    })?;
    if let Some(watchdog) = server.config.watchdog.clone() {
        let shared = Arc::clone(server);
        server.spawn("onecopy-watchdog".to_owned(), move || {
            watchdog::run(&shared, &watchdog);
        })?;
    }
    for i in 0..=server.config.handler_threads.max(1) {
        let shared = Arc::clone(server);
        server.spawn(format!("onecopy-loop-{i}"), move || run_thread(&shared))?;
    }
    Ok(())
}

/// Waits until all threads have ended, or until those that have not are inside a handler or a source and the stop
/// no longer waits for them.
pub(crate) fn join(shared: &Shared) -> (Stopped, Option<io::Error>) {
    let mut waited_in_vain = false;
    let mut ending = loop {
        // Before `ending` is locked: who starts a worker holds the workers' lock and waits for `ending` (`spawn`).
        let n_busy = shared.scheduler.n_handling() + shared.workers.n_filling();
        let ending = lock(&shared.ending);
        let only_busy = ending.n_threads <= n_busy;
        if ending.n_threads == 0 || only_busy && (ending.forced || waited_in_vain) {
            break ending;
        }
        if !ending.finished {
            drop(shared.ending_changed.wait(ending));
            continue;
        }
        // Clients are gone: what is left ends just now, or is a source that obeys no cancel. Looked at again after a
        // while, since a count taken before the lock may be old.
        let linger = shared.config.limits.linger;
        let woken = shared.ending_changed.wait_timeout(ending, linger);
        let (guard, waited) = woken.unwrap_or_else(PoisonError::into_inner);
        waited_in_vain = waited.timed_out();
        drop(guard);
    };
    let stopped = Stopped {
        n_cut: ending.n_cut,
        n_left: ending.n_threads,
    };
    (stopped, ending.error.take())
}

fn run_thread(shared: &Arc<Shared>) {
    let mut kit = ThreadKit::with_scratch(SCRATCH_BYTES);
    let mut events = [Event::NONE; 256];
    shared.scheduler.join();
    loop {
        match shared
            .scheduler
            .next(|found| poll(shared, &mut events, found))
        {
            Task::Ready(connection) => drive(shared, &connection, &mut kit),
            Task::Finished => return,
            Task::Broken(error) => {
                // Without a poll nothing can go on. This is a bug or a kernel out of memory.
                lock(&shared.ending).error = Some(error);
                return shared.finish(true);
            }
        }
    }
}
