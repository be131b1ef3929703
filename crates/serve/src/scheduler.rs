//! Leader/follower scheduler: one thread at a time polls; all threads take tasks that are ready from a shared queue.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::lock;
use crate::metrics::Metrics;

/// A handler that runs for longer than one to two of these is late: the poll is handed over.
const TICK: Duration = Duration::from_millis(1);
/// The same of a handler that waits for nothing but the disk. A tick costs a wake, which is much beside a few hundred files a second.
const QUICK_TICK: Duration = Duration::from_millis(25);
/// Between two looks where handlers come and go by dozens: none of them is late for long, and each look interrupts one.
const BUSY_TICK: Duration = Duration::from_millis(4);
/// So many handlers were entered and left between two looks, at least: the clients of one that is
/// late wait for some milliseconds more, and each look costs tens of microseconds on a busy
/// processor.
const BUSY_MOVES: u64 = 4;
/// The watch goes on so many ticks after the last handler: waking it costs more than it does.
const QUIET_TICKS: u32 = 100;

/// Distributes the tasks of the loop (its connections) and the poll among its threads.
pub(crate) struct Scheduler<T> {
    state: Mutex<SchedulerState<T>>,
    changed: Condvar,
    watch: Condvar,
    watchdog: Condvar,
    /// Parts of bodies that handlers have sent.
    n_parts: AtomicU64,
    n_handlers_max: usize,
    /// Processors that this process may use.
    n_processors: usize,
    tick: Duration,
    metrics: Metrics,
}

/// Who does what. The thread that holds the poll waits for events and puts connections into `ready`; it then takes from
/// there like all others, and runs handlers in place. The watch sees a handler that is late, and wakes another thread for the
/// poll and the rest: to wake one before each handler would take longer than most handlers run.
struct SchedulerState<T> {
    /// Tasks with something to do. Each is in here once, so that the thread that takes it owns it.
    ready: VecDeque<Arc<T>>,
    /// Tasks whose request waits for a handler to end; owned too.
    deferred: VecDeque<Arc<T>>,
    polling: bool,
    n_idle: usize,
    /// Threads that are not idle: in a handler, at a connection, or in the poll.
    n_active: usize,
    n_handling: usize,
    /// Of those: handlers that wait for their client to receive what they have sent.
    n_sending: usize,
    /// Handlers entered and left so far.
    n_moves: u64,
    /// The watch looks once a tick; else it sleeps until a handler runs.
    watching: bool,
    /// The watchdog is woken by the next handler that returns.
    wakes_watchdog: bool,
    finished: bool,
}

/// The next work of a thread.
pub(crate) enum Task<T> {
    /// Go on with this task, which the thread owns now.
    Ready(Arc<T>),
    /// The server has ended.
    Finished,
    /// The poll failed.
    Broken(io::Error),
}

impl<T> Scheduler<T> {
    pub(crate) fn new(n_handlers_max: usize, is_quick: bool, metrics: Metrics) -> Scheduler<T> {
        Scheduler {
            state: Mutex::new(SchedulerState {
                ready: VecDeque::new(),
                deferred: VecDeque::new(),
                polling: false,
                n_idle: 0,
                n_active: 0,
                n_handling: 0,
                n_sending: 0,
                n_moves: 0,
                watching: false,
                wakes_watchdog: false,
                finished: false,
            }),
            changed: Condvar::new(),
            watch: Condvar::new(),
            watchdog: Condvar::new(),
            n_parts: AtomicU64::new(0),
            n_handlers_max,
            n_processors: std::thread::available_parallelism().map_or(1, usize::from),
            tick: if is_quick { QUICK_TICK } else { TICK },
            metrics,
        }
    }

    /// Counts a thread that is going to call [`Scheduler::next`].
    pub(crate) fn join(&self) {
        lock(&self.state).n_active += 1;
    }

    /// Returns the next task; polls if no other thread does.
    pub(crate) fn next(&self, mut poll: impl FnMut(&mut Vec<Arc<T>>) -> io::Result<()>) -> Task<T> {
        let mut state = lock(&self.state);
        // A thread whose handler was late finds that others have gone on. More of them than
        // processors only interrupt each other.
        let mut rests = state.n_active.saturating_sub(state.n_handling) > self.n_processors;
        loop {
            if state.finished {
                return Task::Finished;
            }
            if std::mem::take(&mut rests) {
                state = self.rest(state);
                continue;
            }
            if state.n_handling < self.n_handlers_max
                && let Some(connection) = state.deferred.pop_front()
            {
                self.report(&state);
                return Task::Ready(connection);
            }
            if let Some(connection) = state.ready.pop_front() {
                return Task::Ready(connection);
            }
            if state.polling {
                state = self.rest(state);
                continue;
            }
            state.polling = true;
            drop(state);
            let mut found = Vec::new();
            let polled = poll(&mut found);
            state = lock(&self.state);
            state.polling = false;
            state.ready.extend(found);
            if let Err(error) = polled {
                return Task::Broken(error);
            }
        }
    }

    fn rest<'a>(
        &self,
        mut state: MutexGuard<'a, SchedulerState<T>>,
    ) -> MutexGuard<'a, SchedulerState<T>> {
        state.n_idle += 1;
        state.n_active -= 1;
        let woken = self.changed.wait(state);
        state = woken.unwrap_or_else(PoisonError::into_inner);
        state.n_idle -= 1;
        state.n_active += 1;
        state
    }

    /// Called by a thread before it runs a handler for `connection`. `false` if no thread would be left for the poll, should it
    /// take long; the connection then waits, still owned, and comes again from [`Scheduler::next`].
    pub(crate) fn enter_handler(&self, connection: &Arc<T>) -> bool {
        let mut state = lock(&self.state);
        if state.n_handling >= self.n_handlers_max {
            state.deferred.push_back(Arc::clone(connection));
            self.report(&state);
            return false;
        }
        state.n_handling += 1;
        state.n_moves += 1;
        self.report(&state);
        if !state.watching {
            state.watching = true;
            self.watch.notify_one();
        }
        true
    }

    /// The counterpart of [`Scheduler::enter_handler`].
    pub(crate) fn leave_handler(&self) {
        let mut state = lock(&self.state);
        state.n_handling -= 1;
        state.n_moves += 1;
        self.report(&state);
        if state.wakes_watchdog {
            self.watchdog.notify_one();
        }
        if !state.deferred.is_empty() && state.n_idle > 0 {
            self.changed.notify_one();
        }
    }

    /// A handler has sent a part of its body.
    pub(crate) fn count_part(&self) {
        self.n_parts.fetch_add(1, Relaxed);
    }

    /// Runs `wait`, in which a handler waits for its client.
    pub(crate) fn wait_for_client<R>(&self, wait: impl FnOnce() -> R) -> R {
        lock(&self.state).n_sending += 1;
        let waited = wait();
        lock(&self.state).n_sending -= 1;
        waited
    }

    /// Waits for `interval`, or with `until_return` for a handler that returns, whichever comes
    /// first. The moves of handlers so far, and whether all that may run at once are busy; `None`:
    /// the server has ended.
    pub(crate) fn wait_for_look(
        &self,
        interval: Duration,
        until_return: bool,
    ) -> Option<(u64, bool)> {
        let mut state = lock(&self.state);
        state.wakes_watchdog = until_return;
        if !state.finished {
            let woken = self.watchdog.wait_timeout(state, interval);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wakes_watchdog = false;
        let n_moves = state.n_moves + self.n_parts.load(Relaxed);
        let all_busy = state.n_handling - state.n_sending >= self.n_handlers_max;
        (!state.finished).then_some((n_moves, all_busy))
    }

    /// Until the server ends: wakes a thread for the poll where all are in handlers, or wait, and none has moved for a tick. Calls
    /// `tick` while handlers run.
    pub(crate) fn watch(&self, mut tick: impl FnMut()) {
        let mut state = lock(&self.state);
        let mut n_quiet = 0;
        let mut wait = self.tick;
        while !state.finished {
            if n_quiet > QUIET_TICKS {
                state.watching = false;
                while !state.watching && !state.finished {
                    let woken = self.watch.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
                n_quiet = 0;
            }
            let n_moves = state.n_moves;
            let woken = self.watch.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let is_busy = state.n_moves - n_moves >= BUSY_MOVES;
            wait = if is_busy {
                self.tick.max(BUSY_TICK)
            } else {
                self.tick
            };
            n_quiet = if state.n_moves == n_moves && state.n_handling == 0 {
                n_quiet + 1
            } else {
                0
            };
            if state.n_handling > 0 {
                if state.n_moves == n_moves && !state.polling && state.n_idle > 0 {
                    self.changed.notify_one();
                }
                drop(state);
                tick();
                state = lock(&self.state);
            }
        }
    }

    /// Puts a connection that is owned by the caller before the loop's threads. `true` if all of them may be waiting in
    /// the poll, which is then to be woken.
    pub(crate) fn queue(&self, connection: Arc<T>) -> bool {
        let mut state = lock(&self.state);
        state.ready.push_back(connection);
        if !state.polling && state.n_idle > 0 {
            self.changed.notify_one();
        }
        state.polling
    }

    /// For the metrics: two stores, under the lock of whoever changed the numbers.
    fn report(&self, state: &SchedulerState<T>) {
        self.metrics
            .set_handlers(state.n_handling, state.deferred.len());
    }

    /// Threads inside a handler.
    pub(crate) fn n_handling(&self) -> usize {
        lock(&self.state).n_handling
    }

    /// True if the server has ended.
    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Lets all threads end; the one in the poll is to be woken.
    pub(crate) fn finish(&self) {
        lock(&self.state).finished = true;
        self.changed.notify_all();
        self.watch.notify_all();
        self.watchdog.notify_all();
    }
}
