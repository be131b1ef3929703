//! What all threads of a server share, its threads, and its end. See `docs/decisions/0003-event-loop.md`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::accept::{Accepting, connections_for};
use crate::awaited::{Awaiting, BodyError};
use crate::buffers::Buffers;
use crate::config::Config;
use crate::connection::{self, Connection, Names};
use crate::date::Date;
use crate::handler::Handler;
use crate::lock;
use crate::poll::{self, PollTimers};
use crate::scheduler::{Scheduler, Task};
use crate::signals::{Signals, Stopped};
use crate::slab::Slab;
use crate::sys::{self, Epoll, Event, Interest, Listener};
use crate::timers::millis;
use crate::watchdog;
use crate::workers::Workers;

/// Bytes read at once from a connection.
const SCRATCH_BYTES: usize = 64 * 1024;

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) handler: Box<dyn Handler>,
    /// The result of [`Handler::begins_early`].
    pub(crate) begins_early: bool,
    pub(crate) config: Config,
    pub(crate) buffers: Buffers,
    pub(crate) workers: Workers,
    pub(crate) signals: Arc<Signals>,
    pub(crate) epoll: Epoll,
    pub(crate) scheduler: Scheduler<Connection>,
    pub(crate) connections: Mutex<Slab<Connection>>,
    /// Those that lend what waits to be sent, while a handler has them.
    pub(crate) lent: Mutex<Vec<Arc<Connection>>>,
    /// Of handlers that may wait for a request body.
    pub(crate) awaited: Mutex<Vec<Arc<Awaiting>>>,
    /// Connections that the limit of open files permits.
    pub(crate) n_files_max: usize,
    pub(crate) accepting: Accepting,
    pub(crate) timers: Mutex<PollTimers>,
    pub(crate) listener: Mutex<Option<Listener>>,
    stopping: AtomicBool,
    /// Of a server that stops: from then on connections without a request are closed.
    idle_until_ms: AtomicU64,
    cutting: AtomicBool,
    /// Connections without a request are closed, though the server does not stop: its handlers
    /// cannot run.
    closes_idle: AtomicBool,
    ending: Mutex<Ending>,
    ending_changed: Condvar,
}

/// The end of the server, counted for the thread that called run.
#[derive(Default)]
struct Ending {
    n_threads: usize,
    n_cut: usize,
    forced: bool,
    /// The loop's threads end: nothing is polled and no timer of the loop runs from here on.
    finished: bool,
    error: Option<io::Error>,
}

/// What a thread keeps for itself.
pub(crate) struct ThreadKit {
    /// Room to read into; empty on workers, which never read requests.
    pub(crate) scratch: Vec<u8>,
    pub(crate) date: Date,
    pub(crate) now_ms: u64,
    /// Memory for the access log's words.
    pub(crate) names: Vec<Names>,
}

impl ThreadKit {
    pub(crate) fn of_worker() -> ThreadKit {
        ThreadKit::with_room(0)
    }

    fn with_room(n_bytes: usize) -> ThreadKit {
        ThreadKit {
            scratch: vec![0; n_bytes],
            date: Date::new(),
            now_ms: 0,
            names: Vec::new(),
        }
    }

    /// Whether this thread may read requests and run handlers.
    pub(crate) fn is_of_loop(&self) -> bool {
        !self.scratch.is_empty()
    }
}

impl Shared {
    pub(crate) fn new(
        listener: Option<Listener>,
        handler: Box<dyn Handler>,
        config: Config,
        signals: Arc<Signals>,
    ) -> io::Result<Shared> {
        let epoll = Epoll::new()?;
        if let Some(listener) = &listener {
            epoll.add(listener, poll::LISTENER, Interest::ReadLevel)?;
        }
        epoll.add(&signals.stop, poll::STOP, Interest::ReadLevel)?;
        epoll.add(&signals.wake, poll::WAKE, Interest::ReadLevel)?;
        let n_files_max = connections_for(sys::max_open_files()?);
        let workers = config.workers.max(1);
        let n_handlers = config.handler_threads.max(1);
        let scheduler = Scheduler::new(n_handlers, handler.is_quick(), config.metrics.clone());
        Ok(Shared {
            begins_early: handler.begins_early(),
            handler,
            buffers: Buffers::new(config.chunk_bytes.max(1), 2 * workers),
            workers: Workers::new(workers),
            config,
            signals,
            epoll,
            scheduler,
            connections: Mutex::default(),
            lent: Mutex::default(),
            awaited: Mutex::default(),
            n_files_max,
            accepting: Accepting::default(),
            timers: Mutex::default(),
            listener: Mutex::new(listener),
            stopping: AtomicBool::new(false),
            idle_until_ms: AtomicU64::new(0),
            cutting: AtomicBool::new(false),
            closes_idle: AtomicBool::new(false),
            ending: Mutex::default(),
            ending_changed: Condvar::new(),
        })
    }

    /// Starts a thread and counts it until it ends.
    pub(crate) fn spawn(
        self: &Arc<Shared>,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        struct Counted(Arc<Shared>);
        impl Drop for Counted {
            fn drop(&mut self) {
                lock(&self.0.ending).n_threads -= 1;
                self.0.ending_changed.notify_all();
            }
        }
        lock(&self.ending).n_threads += 1;
        let counted = Counted(Arc::clone(self));
        (self.config.spawn)(
            name,
            Box::new(move || {
                let _counted = counted;
                run();
            }),
        )
    }

    /// Starts the loop's threads: one for each handler that may run at once, one that keeps the poll, and the watch.
    pub(crate) fn start(self: &Arc<Shared>) -> io::Result<()> {
        let shared = Arc::clone(self);
        self.spawn("onecopy-watch".to_owned(), move || {
            shared.scheduler.watch(|| shared.flush_lent());
        })?;
        if let Some(watchdog) = self.config.watchdog.clone() {
            let shared = Arc::clone(self);
            self.spawn("onecopy-watchdog".to_owned(), move || {
                watchdog::run(&shared, &watchdog);
            })?;
        }
        for i in 0..=self.config.handler_threads.max(1) {
            let shared = Arc::clone(self);
            self.spawn(format!("onecopy-loop-{i}"), move || shared.run_thread())?;
        }
        Ok(())
    }

    /// Waits until all threads have ended, or until those that have not are inside a handler or a source and the stop
    /// no longer waits for them.
    pub(crate) fn join(&self) -> (Stopped, Option<io::Error>) {
        let mut waited_in_vain = false;
        let mut ending = loop {
            // Before `ending` is locked: who starts a worker holds the workers' lock and waits for `ending` (`spawn`).
            let n_busy = self.scheduler.n_handling() + self.workers.n_filling();
            let ending = lock(&self.ending);
            let only_busy = ending.n_threads <= n_busy;
            if ending.n_threads == 0 || only_busy && (ending.forced || waited_in_vain) {
                break ending;
            }
            if !ending.finished {
                drop(self.ending_changed.wait(ending));
                continue;
            }
            // Clients are gone: what is left ends just now, or is a source that obeys no cancel. Looked at again after a
            // while, since a count taken before the lock may be old.
            let linger = self.config.limits.linger;
            let woken = self.ending_changed.wait_timeout(ending, linger);
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

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    /// When the server stops, or its handlers cannot run: the moment from which a connection
    /// without a request is to be closed.
    pub(crate) fn idle_until_ms(&self) -> Option<u64> {
        if self.is_stopping() {
            return Some(self.idle_until_ms.load(SeqCst));
        }
        self.closes_idle.load(SeqCst).then_some(0)
    }

    /// Has connections without a request closed from now on, or not any more.
    pub(crate) fn close_idle(&self, yes: bool) {
        if self.closes_idle.swap(yes, SeqCst) || !yes {
            return;
        }
        let connections = lock(&self.connections);
        let found = connections.iter().filter(|c| c.raise(connection::STOP));
        let found: Vec<Arc<Connection>> = found.cloned().collect();
        drop(connections);
        for connection in found {
            self.queue(connection);
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.config.clock.now_ms()
    }

    fn run_thread(self: &Arc<Shared>) {
        let mut kit = ThreadKit::with_room(SCRATCH_BYTES);
        let mut events = [Event::NONE; 256];
        self.scheduler.join();
        loop {
            match self.scheduler.next(|found| self.poll(&mut events, found)) {
                Task::Ready(connection) => connection::drive(self, &connection, &mut kit),
                Task::Finished => return,
                Task::Broken(error) => {
                    // Without a poll nothing can go on. This is a bug or a kernel out of memory.
                    lock(&self.ending).error = Some(error);
                    return self.finish(true);
                }
            }
        }
    }

    /// Tells `connection` that something happened; a loop thread comes to it, if none is there.
    pub(crate) fn signal(&self, connection: &Arc<Connection>, flags: u32) {
        if connection.raise(flags) {
            self.queue(Arc::clone(connection));
        }
    }

    /// Tells `connection` that something happened, and goes on with it here, if no thread is there.
    pub(crate) fn signal_and_drive(
        self: &Arc<Shared>,
        connection: &Arc<Connection>,
        flags: u32,
        kit: &mut ThreadKit,
    ) {
        if connection.raise(flags) {
            connection::drive(self, connection, kit);
        }
    }

    /// Puts a connection that is owned by the caller before the loop's threads.
    pub(crate) fn queue(&self, connection: Arc<Connection>) {
        if self.scheduler.queue(connection) {
            self.signals.wake.add(1);
        }
    }

    /// Forgets a connection that was closed; the last one of a server that stops ends the server.
    pub(crate) fn forget(&self, connection: &Connection) {
        let mut connections = lock(&self.connections);
        connections.remove(connection.token);
        let n = connections.len();
        self.config.metrics.set_connections(n);
        drop(connections);
        self.resume_where_full(n);
        if n == 0 && self.is_stopping() {
            self.finish(false);
        }
    }

    pub(crate) fn begin_stop(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
        if self.is_stopping() {
            return; // One thread has the poll, so no other one is here.
        }
        // A stop that is to be without delay is: 0 lies behind whatever the clock says.
        let grace_ms = self.signals.idle_grace_ms.load(SeqCst);
        let grace_ms = grace_ms.min(millis(self.config.limits.stop));
        let until_ms = if grace_ms == 0 { 0 } else { now_ms + grace_ms };
        self.idle_until_ms.store(until_ms, SeqCst);
        self.stopping.store(true, SeqCst);
        if let Some(listener) = lock(&self.listener).take() {
            // The poll would forget it by itself only once no process has it open.
            let _ = self.epoll.remove(&listener);
        }
        self.push_timer(now_ms + millis(self.config.limits.stop), poll::CUT_TIMER);
        let connections = lock(&self.connections);
        found.extend(
            connections
                .iter()
                .filter(|c| c.raise(connection::STOP))
                .cloned(),
        );
        if connections.len() == 0 {
            drop(connections);
            self.finish(false);
        }
    }

    pub(crate) fn cut(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
        let connections = lock(&self.connections);
        if connections.len() == 0 || self.cutting.swap(true, SeqCst) {
            return; // The time of the stop may pass after it was asked to end at once.
        }
        lock(&self.ending).n_cut = connections.len();
        found.extend(
            connections
                .iter()
                .filter(|c| c.raise(connection::CUT))
                .cloned(),
        );
        drop(connections);
        // A handler that does not return keeps its connection; the end does not wait for it much longer.
        self.push_timer(
            now_ms + millis(self.config.limits.linger),
            poll::FORCE_TIMER,
        );
    }

    pub(crate) fn finish(&self, forced: bool) {
        let mut ending = lock(&self.ending);
        ending.finished = true;
        ending.forced |= forced;
        drop(ending);
        self.scheduler.finish();
        // Where the poll broke, connections are there yet, and nobody reads from them any more.
        for awaiting in lock(&self.awaited).iter() {
            awaiting.settle(Err(BodyError::Stopped));
        }
        for connection in lock(&self.connections).iter() {
            connection.wake_writer();
        }
        self.signals.wake.add(1);
        self.workers.stop();
        self.ending_changed.notify_all();
    }
}
