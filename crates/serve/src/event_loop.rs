//! [`start`] starts the threads of a server, and [`join`] waits for their end. See
//! `docs/decisions/0003-event-loop.md`.

use std::io;
use std::sync::Arc;

use onecopy_wire::lock::{lock, unpoisoned};

use crate::connection::{drive, flush_borrowed_outputs};
use crate::poll::poll;
use crate::scheduler::Task;
use crate::shared::Shared;
use crate::signals::Stopped;
use crate::sys::Event;
use crate::thread_kit::ThreadKit;
use crate::watchdog;

/// The size in bytes of the buffer for one read from a connection.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Starts the threads of a server. There is one thread for each handler that may run at the same
/// time, and one more that can wait in epoll meanwhile. Another thread runs
/// [`crate::scheduler::Scheduler::watch`]. If a [`crate::Watchdog`] is configured, it runs on its
/// own thread.
pub(crate) fn start(server: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(server);
    server.spawn("onecopy-watch".to_owned(), move || {
        shared.scheduler.watch(|| flush_borrowed_outputs(&shared));
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

/// Waits until all threads of the server have ended. A thread in a handler, or in the source of a
/// row stream, may never return. If only such threads remain, this function returns when the time
/// limit for stopping has ended, or when [`crate::Limits::linger`] has passed since the last
/// connection was closed.
pub(crate) fn join(shared: &Shared) -> (Stopped, Option<io::Error>) {
    let mut waited_in_vain = false;
    let mut ending = loop {
        // The busy threads are counted before `ending` is locked, to prevent a deadlock: a thread
        // that starts a worker holds the lock of the workers and waits for `ending` (`spawn`).
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
        // All clients are disconnected. A remaining worker is about to end, or its source ignores
        // the cancellation. The count was taken before the lock, so it may be outdated. Therefore
        // it is taken again after a while.
        let linger = shared.config.limits.linger;
        let woken = shared.ending_changed.wait_timeout(ending, linger);
        let (guard, waited) = unpoisoned(woken);
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
                // The server cannot continue if epoll_wait(2) fails. The reason is a bug, or a
                // kernel without free memory.
                lock(&shared.ending).error = Some(error);
                return shared.finish(true);
            }
        }
    }
}
