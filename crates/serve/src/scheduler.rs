//! [`Scheduler`]: leader/follower scheduling of the server's threads. One thread at a time, the
//! leader, waits in epoll. All threads take tasks, which are connections with an event, from a
//! shared queue.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use onecopy_wire::lock::{lock, unpoisoned};

use crate::metrics::Metrics;

/// The time between two checks by [`Scheduler::watch`]. If a handler runs for one to two ticks and
/// no thread waits in epoll, `watch` wakes another thread, which then waits in epoll.
const TICK: Duration = Duration::from_millis(1);
/// The time between two checks if handlers wait only for a disk ([`crate::Handler::is_quick`]).
/// Each check wakes a thread. At a few hundred requests for files per second, checks at intervals
/// of [`TICK`] would take a significant part of the processor time.
const QUICK_TICK: Duration = Duration::from_millis(25);
/// The time between two checks under load ([`BUSY_MOVES`]). Each check costs time, because it
/// interrupts a running handler. Under load fewer checks suffice: dozens of handlers return per
/// tick, so no handler has run for long.
const BUSY_TICK: Duration = Duration::from_millis(4);
/// The server is under load if at least this number of handler calls start or end between two
/// checks. Under load there are fewer checks, because a check takes tens of microseconds on a busy
/// processor. Clients then wait some milliseconds longer if a handler runs for long.
const BUSY_MOVES: u64 = 4;
/// The number of ticks for which [`Scheduler::watch`] continues to check after the last handler has
/// returned. If a request arrives in this time, the thread of `watch` is still awake. Waking the
/// thread would cost more than these checks.
const QUIET_TICKS: u32 = 100;

/// Distributes tasks (connections with an event) and the wait in epoll to the threads of a server.
pub(crate) struct Scheduler<T> {
    state: Mutex<SchedulerState<T>>,
    changed: Condvar,
    watch: Condvar,
    watchdog: Condvar,
    /// The number of parts of response bodies that handlers have sent, from which the watchdog
    /// detects progress.
    n_parts: AtomicU64,
    n_handlers_max: usize,
    /// The number of processors that this process may use.
    n_processors: usize,
    tick: Duration,
    metrics: Metrics,
}

/// The state of the scheduler. The thread that waits in epoll (the leader) adds connections with
/// events to `ready`. It then stops waiting, takes tasks from `ready` like the other threads, and
/// runs handlers itself. If a handler runs for long, [`Scheduler::watch`] wakes another thread,
/// which becomes the leader. The leader does not wake a thread before each handler, because waking
/// takes longer than most handlers run.
struct SchedulerState<T> {
    /// The tasks that wait for a thread. Each task is in the queue at most once, and the thread
    /// that takes it becomes its owner.
    ready: VecDeque<Arc<T>>,
    /// The tasks that wait until a handler returns, because the permitted number of handlers is
    /// running. Their connections remain marked as owned, so no other thread processes these
    /// connections.
    deferred: VecDeque<Arc<T>>,
    polling: bool,
    n_idle: usize,
    /// The number of threads that do not wait for a task. These threads run a handler, process the
    /// events of a connection, or wait in epoll.
    n_active: usize,
    n_handling: usize,
    /// The number of running handlers that wait until their client has read bytes of the response.
    n_sending: usize,
    /// A counter of progress: the number of handler calls that have started, plus the number of
    /// handler calls that have ended.
    n_moves: u64,
    /// `true` while the thread of [`Scheduler::watch`] wakes up at each tick. `false` while it
    /// sleeps until a handler runs.
    watching: bool,
    /// `true` if the watchdog's thread in [`Scheduler::wait_for_look`] must be woken when the next
    /// handler returns.
    wakes_watchdog: bool,
    finished: bool,
}

/// The result of [`Scheduler::next`], which determines what the calling thread does next.
pub(crate) enum Task<T> {
    /// The thread performs this task, which it now owns.
    Ready(Arc<T>),
    /// The thread ends, because the server has ended.
    Finished,
    /// Waiting for events with epoll failed with this error.
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

    /// Counts the calling thread as active. The thread must then call [`Scheduler::next`].
    pub(crate) fn join(&self) {
        lock(&self.state).n_active += 1;
    }

    /// Waits for the next task and returns it. If no other thread waits in epoll, the calling
    /// thread waits in epoll by calling `poll`.
    pub(crate) fn next(&self, mut poll: impl FnMut(&mut Vec<Arc<T>>) -> io::Result<()>) -> Task<T> {
        let mut state = lock(&self.state);
        // If a handler has run for long, other threads have taken over its thread's work. If there
        // are now more active threads than processors, this thread pauses, because the threads
        // would only interrupt each other.
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
        state = unpoisoned(woken);
        state.n_idle -= 1;
        state.n_active += 1;
        state
    }

    /// Reserves the calling thread for a handler of `connection`. Returns `false` if the permitted
    /// number of handlers is already running. In this case, [`Scheduler::next`] returns the
    /// connection again after one of these handlers has returned, and the connection keeps its
    /// owner until then.
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

    /// Ends the reservation that [`Scheduler::enter_handler`] made. It must be called after the
    /// handler has returned.
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

    /// Counts one more part of a response body that was sent by a handler. The watchdog regards it
    /// as progress of the handler.
    pub(crate) fn count_part(&self) {
        self.n_parts.fetch_add(1, Relaxed);
    }

    /// Runs `wait`, in which a handler waits for its client, and returns the result of `wait`.
    /// During this time, the watchdog does not count the handler as making no progress.
    pub(crate) fn wait_for_client<R>(&self, wait: impl FnOnce() -> R) -> R {
        lock(&self.state).n_sending += 1;
        let waited = wait();
        lock(&self.state).n_sending -= 1;
        waited
    }

    /// Waits for `interval`. If `until_return` is `true`, the wait also ends when a handler
    /// returns. Returns a pair, or `None` if the server has ended. The first value of the pair is
    /// the number of times that handlers have made progress so far. The second value is `true` if
    /// the permitted number of handlers is running and none of them waits for its client.
    pub(crate) fn wait_for_look(
        &self,
        interval: Duration,
        until_return: bool,
    ) -> Option<(u64, bool)> {
        let mut state = lock(&self.state);
        state.wakes_watchdog = until_return;
        if !state.finished {
            let woken = self.watchdog.wait_timeout(state, interval);
            state = unpoisoned(woken).0;
        }
        state.wakes_watchdog = false;
        let n_moves = state.n_moves + self.n_parts.load(Relaxed);
        let all_busy = state.n_handling - state.n_sending >= self.n_handlers_max;
        (!state.finished).then_some((n_moves, all_busy))
    }

    /// Runs until the server ends. While handlers run, calls `tick` at each tick of the clock. If
    /// no handler has started or returned since the last tick, and no thread waits in epoll, also
    /// wakes an idle thread, which then waits in epoll.
    pub(crate) fn watch(&self, mut tick: impl FnMut()) {
        let mut state = lock(&self.state);
        let mut n_quiet = 0;
        let mut wait = self.tick;
        while !state.finished {
            if n_quiet > QUIET_TICKS {
                state.watching = false;
                while !state.watching && !state.finished {
                    let woken = self.watch.wait(state);
                    state = unpoisoned(woken);
                }
                n_quiet = 0;
            }
            let n_moves = state.n_moves;
            let woken = self.watch.wait_timeout(state, wait);
            state = unpoisoned(woken).0;
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

    /// Queues a connection that the caller owns. Returns `true` if a thread waits in epoll. The
    /// caller must then wake this thread, because there may be no other free thread.
    pub(crate) fn queue(&self, connection: Arc<T>) -> bool {
        let mut state = lock(&self.state);
        state.ready.push_back(connection);
        if !state.polling && state.n_idle > 0 {
            self.changed.notify_one();
        }
        state.polling
    }

    /// Reports to the metrics how many handlers run, and how many requests wait until a handler
    /// returns. The caller must hold the lock of the state.
    fn report(&self, state: &SchedulerState<T>) {
        self.metrics
            .set_handlers(state.n_handling, state.deferred.len());
    }

    /// Returns the number of running handlers.
    pub(crate) fn n_handling(&self) -> usize {
        lock(&self.state).n_handling
    }

    /// Returns `true` after [`Scheduler::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Makes all threads of the server end. The caller must also wake the thread that waits in
    /// epoll.
    pub(crate) fn finish(&self) {
        lock(&self.state).finished = true;
        self.changed.notify_all();
        self.watch.notify_all();
        self.watchdog.notify_all();
    }
}
