//! [`Shared`]: the state that all threads of a server share, and the methods that end the server.
//! See `docs/decisions/0003-event-loop.md`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

use onecopy_wire::lock::lock;

use crate::accept_gate::AcceptGate;
use crate::awaited::ExpectPermits;
use crate::buffers::Buffers;
use crate::config::Config;
use crate::connection::{self, Connection};
use crate::handler::Handler;
use crate::poll_tokens;
use crate::scheduler::Scheduler;
use crate::signals::Signals;
use crate::slab::Slab;
use crate::sys::{Epoll, Interest, Listener};
use crate::timers::{PollTimers, millis};
use crate::workers::Workers;

/// The state that all threads of a server share.
pub(crate) struct Shared {
    pub(crate) handler: Box<dyn Handler>,
    /// The value that [`crate::Handler::begins_early`] returned for this handler. The server calls
    /// this method only once.
    pub(crate) begins_early: bool,
    pub(crate) config: Config,
    pub(crate) buffers: Buffers,
    pub(crate) workers: Workers<Connection>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) epoll: Epoll,
    pub(crate) scheduler: Scheduler<Connection>,
    pub(crate) connections: Mutex<Slab<Connection>>,
    /// The connections whose output queue is being used by a handler, and not by the server.
    pub(crate) borrowed_outputs: Mutex<Vec<Arc<Connection>>>,
    pub(crate) expect_permits: Arc<ExpectPermits>,
    pub(crate) gate: AcceptGate,
    /// The earliest time, in milliseconds of the server's clock, at which
    /// [`crate::Config::on_trouble`] may be called again.
    pub(crate) trouble_from_ms: AtomicU64,
    pub(crate) timers: Mutex<PollTimers>,
    stopping: AtomicBool,
    /// The time (in milliseconds of the server's clock) after which connections without a request
    /// are closed. Used only while the server stops.
    idle_until_ms: AtomicU64,
    cutting: AtomicBool,
    /// `true` while no handler can run. The server then closes connections that have no request,
    /// but it does not stop.
    closes_idle: AtomicBool,
    pub(crate) ending: Mutex<Ending>,
    pub(crate) ending_changed: Condvar,
}

/// The state of the server's shutdown. The thread that called [`crate::Server::run`] waits until
/// this state changes.
#[derive(Default)]
pub(crate) struct Ending {
    pub(crate) n_threads: usize,
    pub(crate) n_cut: usize,
    pub(crate) forced: bool,
    /// `true` when the server's threads end. From then on, no thread waits for events, and no timer
    /// is processed.
    pub(crate) finished: bool,
    pub(crate) error: Option<io::Error>,
}

impl Shared {
    pub(crate) fn new(
        listener: Option<Listener>,
        handler: Box<dyn Handler>,
        config: Config,
        signals: Arc<Signals>,
    ) -> io::Result<Shared> {
        let epoll = Epoll::new()?;
        let gate = AcceptGate::new(listener, &epoll)?;
        epoll.add(&signals.stop, poll_tokens::STOP, Interest::ReadLevel)?;
        epoll.add(&signals.wake, poll_tokens::WAKE, Interest::ReadLevel)?;
        let workers = config.workers.max(1);
        let expect_permits = Arc::new(ExpectPermits::new(config.handler_threads));
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
            borrowed_outputs: Mutex::default(),
            expect_permits,
            gate,
            trouble_from_ms: AtomicU64::new(0),
            timers: Mutex::default(),
            stopping: AtomicBool::new(false),
            idle_until_ms: AtomicU64::new(0),
            cutting: AtomicBool::new(false),
            closes_idle: AtomicBool::new(false),
            ending: Mutex::default(),
            ending_changed: Condvar::new(),
        })
    }

    /// Starts a thread of the server. The field `ending` counts the running threads, and this
    /// thread too until it ends.
    pub(crate) fn spawn(
        self: &Arc<Shared>,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        struct RunningThread(Arc<Shared>);
        impl Drop for RunningThread {
            fn drop(&mut self) {
                lock(&self.0.ending).n_threads -= 1;
                self.0.ending_changed.notify_all();
            }
        }
        lock(&self.ending).n_threads += 1;
        let counted = RunningThread(Arc::clone(self));
        (self.config.spawn)(
            name,
            Box::new(move || {
                let _counted = counted;
                run();
            }),
        )
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    /// Returns the time after which connections without a request are closed, while the server
    /// stops or while no handler can run. Returns `None` at any other time.
    pub(crate) fn idle_until_ms(&self) -> Option<u64> {
        if self.is_stopping() {
            return Some(self.idle_until_ms.load(SeqCst));
        }
        self.closes_idle.load(SeqCst).then_some(0)
    }

    /// If `yes` is `true`, connections without a request are closed from now on. If `yes` is
    /// `false`, they are kept open again.
    pub(crate) fn close_idle(&self, yes: bool) {
        if self.closes_idle.swap(yes, SeqCst) || !yes {
            return;
        }
        let connections = lock(&self.connections);
        let found = connections
            .iter()
            .filter(|c| c.raise(connection::flags::STOP));
        let found: Vec<Arc<Connection>> = found.cloned().collect();
        drop(connections);
        for connection in found {
            self.queue(connection);
        }
    }

    /// Sets the deadline of a connection. The calling thread must own the connection.
    pub(crate) fn set_deadline(&self, connection: &Connection, at_ms: u64) {
        connection.deadline_ms.store(at_ms, SeqCst);
        // The thread that removes entries stores `timer_at_ms` and then loads `deadline_ms`. This
        // thread stores `deadline_ms` and then loads `timer_at_ms`. Therefore at least one of them
        // sees the other's value, and no deadline is lost. If both add an entry, the second entry
        // is harmless.
        if at_ms < connection.timer_at_ms.load(SeqCst) {
            connection.timer_at_ms.store(at_ms, SeqCst);
            self.push_timer(at_ms, connection.token);
        }
    }

    pub(crate) fn push_timer(&self, at_ms: u64, token: u64) {
        let mut timers = lock(&self.timers);
        let is_first = timers.timers.push(at_ms, token);
        if is_first && at_ms < timers.poll_until_ms {
            self.signals.wake.add(1);
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.config.clock.now_ms()
    }

    /// Sets `flags` for `connection`. If no thread owns the connection, the connection is queued,
    /// so that a thread of the server handles the flags.
    pub(crate) fn signal(&self, connection: &Arc<Connection>, flags: u32) {
        if connection.raise(flags) {
            self.queue(Arc::clone(connection));
        }
    }

    /// Adds a connection to the queue of the scheduler. The caller must be the thread that owns the
    /// connection. The thread that takes the connection from the queue then owns it.
    pub(crate) fn queue(&self, connection: Arc<Connection>) {
        if self.scheduler.queue(connection) {
            self.signals.wake.add(1);
        }
    }

    /// Removes a closed connection from the server. If the server stops and this was its last
    /// connection, the server ends.
    pub(crate) fn forget(&self, connection: &Connection) {
        let mut connections = lock(&self.connections);
        connections.remove(connection.token);
        let n = connections.len();
        self.config.metrics.set_connections(n);
        drop(connections);
        self.gate.resume_where_full(n, &self.epoll);
        if n == 0 && self.is_stopping() {
            self.finish(false);
        }
    }

    pub(crate) fn begin_stop(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
        if self.is_stopping() {
            return; // Only the thread that waits in epoll calls this.
        }
        // For an immediate stop, the result 0 is earlier than any time of the clock.
        let grace_ms = self.signals.idle_grace_ms.load(SeqCst);
        let grace_ms = grace_ms.min(millis(self.config.limits.stop));
        let until_ms = if grace_ms == 0 { 0 } else { now_ms + grace_ms };
        self.idle_until_ms.store(until_ms, SeqCst);
        self.stopping.store(true, SeqCst);
        self.gate.close(&self.epoll);
        self.push_timer(
            now_ms + millis(self.config.limits.stop),
            poll_tokens::CUT_TIMER,
        );
        let connections = lock(&self.connections);
        found.extend(
            connections
                .iter()
                .filter(|c| c.raise(connection::flags::STOP))
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
            return; // The time for stopping may end after an immediate stop was requested.
        }
        lock(&self.ending).n_cut = connections.len();
        found.extend(
            connections
                .iter()
                .filter(|c| c.raise(connection::flags::CUT))
                .cloned(),
        );
        drop(connections);
        // A handler that does not return keeps its connection. The end of the server waits for it
        // only for the linger time.
        self.push_timer(
            now_ms + millis(self.config.limits.linger),
            poll_tokens::FORCE_TIMER,
        );
    }

    pub(crate) fn finish(&self, forced: bool) {
        let mut ending = lock(&self.ending);
        ending.finished = true;
        ending.forced |= forced;
        drop(ending);
        self.scheduler.finish();
        // After a failure of epoll, there are still connections, but no thread reads from them any
        // more.
        self.expect_permits.stop();
        for connection in lock(&self.connections).iter() {
            connection.wake_writer();
        }
        self.signals.wake.add(1);
        self.workers.stop();
        self.ending_changed.notify_all();
    }
}
