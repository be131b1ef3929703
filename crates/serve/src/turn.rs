//! Who polls and who works: the queue all loop threads take from, and the poll that one of them holds.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::connection::Connection;
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

/// The turns of the loop's threads.
pub(crate) struct Turns {
    turn: Mutex<Turn>,
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
#[derive(Default)]
struct Turn {
    /// Connections with something to do. Their `OWNED` flag is set: whoever takes one has it alone.
    ready: VecDeque<Arc<Connection>>,
    /// Connections whose request waits for a handler to end; owned too.
    deferred: VecDeque<Arc<Connection>>,
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

/// What a thread gets to do.
pub(crate) enum Next {
    /// Go on with this connection, which the thread owns now.
    Connection(Arc<Connection>),
    /// The server has ended.
    Finished,
    /// The poll failed.
    Broken(io::Error),
}

impl Turns {
    pub(crate) fn new(n_handlers_max: usize, is_quick: bool, metrics: Metrics) -> Turns {
        Turns {
            turn: Mutex::default(),
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

    /// Counts a thread that is going to call [`Turns::next`].
    pub(crate) fn join(&self) {
        lock(&self.turn).n_active += 1;
    }

    /// The next connection with something to do; polls where nobody does.
    pub(crate) fn next(
        &self,
        mut poll: impl FnMut(&mut Vec<Arc<Connection>>) -> io::Result<()>,
    ) -> Next {
        let mut turn = lock(&self.turn);
        // A thread whose handler was late finds that others have gone on. More of them than
        // processors only interrupt each other.
        let mut rests = turn.n_active.saturating_sub(turn.n_handling) > self.n_processors;
        loop {
            if turn.finished {
                return Next::Finished;
            }
            if std::mem::take(&mut rests) {
                turn = self.rest(turn);
                continue;
            }
            if turn.n_handling < self.n_handlers_max
                && let Some(connection) = turn.deferred.pop_front()
            {
                self.tell(&turn);
                return Next::Connection(connection);
            }
            if let Some(connection) = turn.ready.pop_front() {
                return Next::Connection(connection);
            }
            if turn.polling {
                turn = self.rest(turn);
                continue;
            }
            turn.polling = true;
            drop(turn);
            let mut found = Vec::new();
            let polled = poll(&mut found);
            turn = lock(&self.turn);
            turn.polling = false;
            turn.ready.extend(found);
            if let Err(error) = polled {
                return Next::Broken(error);
            }
        }
    }

    fn rest<'a>(&self, mut turn: MutexGuard<'a, Turn>) -> MutexGuard<'a, Turn> {
        turn.n_idle += 1;
        turn.n_active -= 1;
        let woken = self.changed.wait(turn);
        turn = woken.unwrap_or_else(PoisonError::into_inner);
        turn.n_idle -= 1;
        turn.n_active += 1;
        turn
    }

    /// Called by a thread before it runs a handler for `connection`. `false` if no thread would be left for the poll, should it
    /// take long; the connection then waits, still owned, and comes again from [`Turns::next`].
    pub(crate) fn enter_handler(&self, connection: &Arc<Connection>) -> bool {
        let mut turn = lock(&self.turn);
        if turn.n_handling >= self.n_handlers_max {
            turn.deferred.push_back(Arc::clone(connection));
            self.tell(&turn);
            return false;
        }
        turn.n_handling += 1;
        turn.n_moves += 1;
        self.tell(&turn);
        if !turn.watching {
            turn.watching = true;
            self.watch.notify_one();
        }
        true
    }

    /// The counterpart of [`Turns::enter_handler`].
    pub(crate) fn leave_handler(&self) {
        let mut turn = lock(&self.turn);
        turn.n_handling -= 1;
        turn.n_moves += 1;
        self.tell(&turn);
        if turn.wakes_watchdog {
            self.watchdog.notify_one();
        }
        if !turn.deferred.is_empty() && turn.n_idle > 0 {
            self.changed.notify_one();
        }
    }

    /// A handler has sent a part of its body.
    pub(crate) fn count_part(&self) {
        self.n_parts.fetch_add(1, Relaxed);
    }

    /// Runs `wait`, in which a handler waits for its client.
    pub(crate) fn wait_for_client<T>(&self, wait: impl FnOnce() -> T) -> T {
        lock(&self.turn).n_sending += 1;
        let waited = wait();
        lock(&self.turn).n_sending -= 1;
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
        let mut turn = lock(&self.turn);
        turn.wakes_watchdog = until_return;
        if !turn.finished {
            let woken = self.watchdog.wait_timeout(turn, interval);
            turn = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        turn.wakes_watchdog = false;
        let n_moves = turn.n_moves + self.n_parts.load(Relaxed);
        let all_busy = turn.n_handling - turn.n_sending >= self.n_handlers_max;
        (!turn.finished).then_some((n_moves, all_busy))
    }

    /// Until the server ends: wakes a thread for the poll where all are in handlers, or wait, and none has moved for a tick. Calls
    /// `tick` while handlers run.
    pub(crate) fn watch(&self, mut tick: impl FnMut()) {
        let mut turn = lock(&self.turn);
        let mut n_quiet = 0;
        let mut wait = self.tick;
        while !turn.finished {
            if n_quiet > QUIET_TICKS {
                turn.watching = false;
                while !turn.watching && !turn.finished {
                    let woken = self.watch.wait(turn);
                    turn = woken.unwrap_or_else(PoisonError::into_inner);
                }
                n_quiet = 0;
            }
            let n_moves = turn.n_moves;
            let woken = self.watch.wait_timeout(turn, wait);
            turn = woken.unwrap_or_else(PoisonError::into_inner).0;
            let is_busy = turn.n_moves - n_moves >= BUSY_MOVES;
            wait = if is_busy {
                self.tick.max(BUSY_TICK)
            } else {
                self.tick
            };
            n_quiet = if turn.n_moves == n_moves && turn.n_handling == 0 {
                n_quiet + 1
            } else {
                0
            };
            if turn.n_handling > 0 {
                if turn.n_moves == n_moves && !turn.polling && turn.n_idle > 0 {
                    self.changed.notify_one();
                }
                drop(turn);
                tick();
                turn = lock(&self.turn);
            }
        }
    }

    /// Puts a connection that is owned by the caller before the loop's threads. `true` if all of them may be waiting in
    /// the poll, which is then to be woken.
    pub(crate) fn queue(&self, connection: Arc<Connection>) -> bool {
        let mut turn = lock(&self.turn);
        turn.ready.push_back(connection);
        if !turn.polling && turn.n_idle > 0 {
            self.changed.notify_one();
        }
        turn.polling
    }

    /// For the metrics: two stores, under the lock of whoever changed the numbers.
    fn tell(&self, turn: &Turn) {
        self.metrics
            .set_handlers(turn.n_handling, turn.deferred.len());
    }

    /// Threads inside a handler.
    pub(crate) fn n_handling(&self) -> usize {
        lock(&self.turn).n_handling
    }

    /// True if the server has ended.
    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.turn).finished
    }

    /// Lets all threads end; the one in the poll is to be woken.
    pub(crate) fn finish(&self) {
        lock(&self.turn).finished = true;
        self.changed.notify_all();
        self.watch.notify_all();
        self.watchdog.notify_all();
    }
}
