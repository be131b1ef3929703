//! Who polls, who works: the threads that take events and run handlers. See `docs/decisions/0003-event-loop.md`.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::buffers::Buffers;
use crate::config::Config;
use crate::connection::{self, Connection};
use crate::date::Date;
use crate::handler::Handler;
use crate::lock;
use crate::server::{Signals, Stopped};
use crate::slab::Slab;
use crate::sys::{self, Epoll, Event, Interest};
use crate::timers::{NEVER, Timers};
use crate::workers::Workers;

/// Tokens of what is no connection; connections count up from 0.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const WAKE: u64 = u64::MAX - 2;
const CUT_TIMER: u64 = u64::MAX - 3;
const FORCE_TIMER: u64 = u64::MAX - 4;
const ACCEPT_TIMER: u64 = u64::MAX - 5;

/// Connections past the limit that are still accepted, to be told so with a 503.
const N_REFUSED_AT_ONCE: usize = 64;
/// How long accepting rests when the process is out of descriptors or memory.
const ACCEPT_PAUSE_MS: u64 = 250;
/// Bytes read at once from a connection.
const SCRATCH_BYTES: usize = 64 * 1024;

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) config: Config,
    pub(crate) buffers: Buffers,
    pub(crate) workers: Workers,
    signals: Arc<Signals>,
    epoll: Epoll,
    turn: Mutex<Turn>,
    turn_changed: Condvar,
    connections: Mutex<Slab>,
    n_connections_max: usize,
    timers: Mutex<PollTimers>,
    listener: Mutex<Option<TcpListener>>,
    stopping: AtomicBool,
    cutting: AtomicBool,
    ending: Mutex<Ending>,
    ending_changed: Condvar,
}

/// Who does what. The thread that holds the poll waits for events and puts connections into `ready`; it then takes from
/// there like all others. Before a thread enters a handler it makes sure that another one comes for the rest.
#[derive(Default)]
struct Turn {
    /// Connections with something to do. Their `OWNED` flag is set: whoever takes one has it alone.
    ready: VecDeque<Arc<Connection>>,
    /// Connections whose request waits for a handler to end; owned too.
    deferred: VecDeque<Arc<Connection>>,
    polling: bool,
    n_idle: usize,
    n_handling: usize,
    finished: bool,
}

#[derive(Default)]
struct PollTimers {
    timers: Timers,
    /// When the poll under way returns by itself; 0 while nobody polls.
    poll_until_ms: u64,
}

/// The end of the server, counted for the thread that called run.
#[derive(Default)]
struct Ending {
    n_threads: usize,
    n_cut: usize,
    forced: bool,
    error: Option<io::Error>,
}

/// What a thread keeps for itself.
pub(crate) struct ThreadKit {
    /// Room to read into; empty on workers, which never read requests.
    pub(crate) scratch: Vec<u8>,
    pub(crate) date: Date,
    pub(crate) now_ms: u64,
}

impl ThreadKit {
    pub(crate) fn of_worker() -> ThreadKit {
        ThreadKit {
            scratch: Vec::new(),
            date: Date::new(),
            now_ms: 0,
        }
    }

    /// Whether this thread may read requests and run handlers.
    pub(crate) fn is_of_loop(&self) -> bool {
        !self.scratch.is_empty()
    }
}

impl Shared {
    pub(crate) fn new(
        listener: TcpListener,
        handler: Box<dyn Handler>,
        config: Config,
        signals: Arc<Signals>,
    ) -> io::Result<Shared> {
        let epoll = Epoll::new()?;
        epoll.add(&listener, LISTENER, Interest::ReadLevel)?;
        epoll.add(&signals.stop, STOP, Interest::ReadLevel)?;
        epoll.add(&signals.wake, WAKE, Interest::ReadLevel)?;
        // Descriptors are also needed for databases, logs and the loop itself.
        let files = sys::max_open_files()?;
        let n_connections_max = config
            .limits
            .n_connections
            .min(files.saturating_sub(N_REFUSED_AT_ONCE + files / 8).max(1));
        let workers = config.workers.max(1);
        Ok(Shared {
            handler,
            buffers: Buffers::new(config.chunk_bytes.max(1), 2 * workers),
            workers: Workers::new(workers),
            config,
            signals,
            epoll,
            turn: Mutex::default(),
            turn_changed: Condvar::new(),
            connections: Mutex::default(),
            n_connections_max,
            timers: Mutex::default(),
            listener: Mutex::new(Some(listener)),
            stopping: AtomicBool::new(false),
            cutting: AtomicBool::new(false),
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

    /// Starts the loop's threads: one for each handler that may run at once and one that keeps the poll.
    pub(crate) fn start(self: &Arc<Shared>) -> io::Result<()> {
        for i in 0..=self.config.handler_threads.max(1) {
            let shared = Arc::clone(self);
            self.spawn(format!("onecopy-loop-{i}"), move || shared.run_thread())?;
        }
        Ok(())
    }

    /// Waits until all threads have ended, or until those that have not are inside a handler or a source and the stop
    /// no longer waits for them.
    pub(crate) fn join(&self) -> (Stopped, Option<io::Error>) {
        let mut ending = lock(&self.ending);
        while ending.n_threads > 0 {
            if ending.forced {
                let n_busy = lock(&self.turn).n_handling + self.workers.n_filling();
                if ending.n_threads <= n_busy {
                    break;
                }
            }
            let woken = self.ending_changed.wait(ending);
            ending = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let stopped = Stopped {
            n_cut: ending.n_cut,
            n_left: ending.n_threads,
        };
        (stopped, ending.error.take())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.config.clock.now_ms()
    }

    fn run_thread(self: &Arc<Shared>) {
        let mut kit = ThreadKit {
            scratch: vec![0; SCRATCH_BYTES],
            date: Date::new(),
            now_ms: 0,
        };
        let mut events = [Event::NONE; 256];
        while let Some(connection) = self.next(&mut events) {
            connection::drive(self, &connection, &mut kit);
        }
    }

    /// The next connection with something to do; polls where nobody does. `None` when the server has ended.
    fn next(self: &Arc<Shared>, events: &mut [Event]) -> Option<Arc<Connection>> {
        let mut turn = lock(&self.turn);
        loop {
            if turn.finished {
                return None;
            }
            if turn.n_handling < self.config.handler_threads.max(1) {
                if let Some(connection) = turn.deferred.pop_front() {
                    return Some(connection);
                }
            }
            if let Some(connection) = turn.ready.pop_front() {
                return Some(connection);
            }
            if turn.polling {
                turn.n_idle += 1;
                let woken = self.turn_changed.wait(turn);
                turn = woken.unwrap_or_else(PoisonError::into_inner);
                turn.n_idle -= 1;
                continue;
            }
            turn.polling = true;
            drop(turn);
            let mut found = Vec::new();
            let polled = self.poll(events, &mut found);
            turn = lock(&self.turn);
            turn.polling = false;
            turn.ready.extend(found);
            if let Err(error) = polled {
                // Without a poll nothing can go on. This is a bug or a kernel out of memory.
                drop(turn);
                lock(&self.ending).error = Some(error);
                self.finish(true);
                return None;
            }
        }
    }

    /// Hands the poll over: called by a thread before it runs a handler for `connection`. `false` if no thread would be
    /// left for the poll; the connection then waits, still owned, and comes again from [`Shared::next`].
    pub(crate) fn enter_handler(&self, connection: &Arc<Connection>) -> bool {
        let mut turn = lock(&self.turn);
        if turn.n_handling >= self.config.handler_threads.max(1) {
            turn.deferred.push_back(Arc::clone(connection));
            return false;
        }
        turn.n_handling += 1;
        if !turn.polling && turn.n_idle > 0 {
            self.turn_changed.notify_one();
        }
        true
    }

    /// The counterpart of [`Shared::enter_handler`].
    pub(crate) fn leave_handler(&self) {
        let mut turn = lock(&self.turn);
        turn.n_handling -= 1;
        if !turn.deferred.is_empty() && turn.n_idle > 0 {
            self.turn_changed.notify_one();
        }
        if turn.finished {
            self.ending_changed.notify_all();
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
        let mut turn = lock(&self.turn);
        turn.ready.push_back(connection);
        if turn.polling {
            self.signals.wake.add(1);
        } else if turn.n_idle > 0 {
            self.turn_changed.notify_one();
        }
    }

    /// Sets the deadline of a connection, for the thread that owns it.
    pub(crate) fn set_deadline(&self, connection: &Connection, at_ms: u64) {
        connection.deadline_ms.store(at_ms, SeqCst);
        // The thread that takes entries out stores `timer_at_ms` before it loads `deadline_ms`, the reverse order, so
        // one of the two sees the other and no deadline is lost. A second entry does no harm.
        if at_ms < connection.timer_at_ms.load(SeqCst) {
            connection.timer_at_ms.store(at_ms, SeqCst);
            self.push_timer(at_ms, connection.token);
        }
    }

    fn push_timer(&self, at_ms: u64, token: u64) {
        let mut timers = lock(&self.timers);
        let is_first = timers.timers.push(at_ms, token);
        if is_first && at_ms < timers.poll_until_ms {
            self.signals.wake.add(1);
        }
    }

    /// Waits for events and due timers; `found` gets the connections they are for.
    fn poll(&self, events: &mut [Event], found: &mut Vec<Arc<Connection>>) -> io::Result<()> {
        let timeout_ms = {
            let mut timers = lock(&self.timers);
            let first = timers.timers.first();
            timers.poll_until_ms = first.unwrap_or(NEVER);
            first.map(|at| at.saturating_sub(self.now_ms()))
        };
        let n = self.epoll.wait(events, timeout_ms)?;
        lock(&self.timers).poll_until_ms = 0;
        let (mut accept, mut stop) = (false, false);
        {
            let connections = lock(&self.connections);
            for event in &events[..n] {
                match event.token() {
                    LISTENER => accept = true,
                    WAKE => drop(self.signals.wake.drain()),
                    STOP => stop = true,
                    token => {
                        if let Some(connection) = connections.get(token) {
                            if connection.raise(connection::flags_of(event)) {
                                found.push(Arc::clone(connection));
                            }
                        }
                    }
                }
            }
        }
        let now_ms = self.now_ms();
        self.take_due_timers(now_ms, found);
        if stop {
            let n_asked = self.signals.stop.drain();
            let was_stopping = self.is_stopping();
            self.begin_stop(now_ms, found);
            if was_stopping || n_asked > 1 {
                self.cut(now_ms, found);
            }
        }
        if accept {
            self.accept(now_ms);
        }
        Ok(())
    }

    fn take_due_timers(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
        loop {
            let Some(token) = lock(&self.timers).timers.pop_due(now_ms) else {
                return;
            };
            match token {
                CUT_TIMER => self.cut(now_ms, found),
                FORCE_TIMER => self.finish(true),
                ACCEPT_TIMER => {
                    if let Some(listener) = lock(&self.listener).as_ref() {
                        let _ = self.epoll.add(listener, LISTENER, Interest::ReadLevel);
                    }
                }
                token => {
                    let Some(connection) = lock(&self.connections).get(token).cloned() else {
                        continue;
                    };
                    connection.timer_at_ms.store(NEVER, SeqCst);
                    let at_ms = connection.deadline_ms.load(SeqCst);
                    if at_ms <= now_ms {
                        if connection.raise(connection::TIMER) {
                            found.push(connection);
                        }
                    } else if at_ms != NEVER {
                        connection.timer_at_ms.store(at_ms, SeqCst);
                        self.push_timer(at_ms, token);
                    }
                }
            }
        }
    }

    fn accept(&self, now_ms: u64) {
        let listener = lock(&self.listener);
        let Some(listener) = listener.as_ref() else {
            return;
        };
        loop {
            let (stream, peer) = match sys::accept(listener) {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => match e.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        // The listener stays readable: without a rest this would spin.
                        let _ = self.epoll.remove(listener);
                        self.push_timer(now_ms + ACCEPT_PAUSE_MS, ACCEPT_TIMER);
                        return;
                    }
                    // The peer has left, or the network has said something about it: the next one.
                    _ => continue,
                },
            };
            let mut connections = lock(&self.connections);
            let n = connections.len();
            if n >= self.n_connections_max + N_REFUSED_AT_ONCE {
                continue; // Dropped: closed.
            }
            let Ok(local) = stream.local_addr() else {
                continue;
            };
            let busy = n >= self.n_connections_max;
            let connection = connections.insert(|token| {
                Arc::new(Connection::new(
                    token,
                    peer,
                    local,
                    &self.config.limits,
                    busy,
                ))
            });
            drop(connections);
            let deadline_ms = now_ms + millis(self.config.limits.head);
            if connection.open(stream, &self.epoll, deadline_ms).is_err() {
                lock(&self.connections).remove(connection.token);
                continue;
            }
            self.set_deadline(&connection, deadline_ms);
        }
    }

    /// Forgets a connection that was closed; the last one of a server that stops ends the server.
    pub(crate) fn forget(&self, connection: &Connection) {
        let mut connections = lock(&self.connections);
        connections.remove(connection.token);
        if connections.len() == 0 && self.is_stopping() {
            drop(connections);
            self.finish(false);
        }
    }

    fn begin_stop(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
        if self.stopping.swap(true, SeqCst) {
            return;
        }
        *lock(&self.listener) = None; // Closed; epoll forgets it.
        self.push_timer(now_ms + millis(self.config.limits.stop), CUT_TIMER);
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

    fn cut(&self, now_ms: u64, found: &mut Vec<Arc<Connection>>) {
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
        self.push_timer(now_ms + millis(self.config.limits.linger), FORCE_TIMER);
    }

    pub(crate) fn finish(&self, forced: bool) {
        if forced {
            lock(&self.ending).forced = true;
        }
        lock(&self.turn).finished = true;
        self.turn_changed.notify_all();
        self.signals.wake.add(1);
        self.workers.stop();
        self.ending_changed.notify_all();
    }
}

/// A limit in the clock's unit.
pub(crate) fn millis(limit: std::time::Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(NEVER / 4)
}
