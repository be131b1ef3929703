//! Who polls and who works: the queue all loop threads take from, and the poll that one of them holds.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::connection::Connection;
use crate::lock;

/// The turns of the loop's threads.
pub(crate) struct Turns {
    turn: Mutex<Turn>,
    changed: Condvar,
    n_handlers_max: usize,
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
    pub(crate) fn new(n_handlers_max: usize) -> Turns {
        Turns {
            turn: Mutex::default(),
            changed: Condvar::new(),
            n_handlers_max,
        }
    }

    /// The next connection with something to do; polls where nobody does.
    pub(crate) fn next(
        &self,
        mut poll: impl FnMut(&mut Vec<Arc<Connection>>) -> io::Result<()>,
    ) -> Next {
        let mut turn = lock(&self.turn);
        loop {
            if turn.finished {
                return Next::Finished;
            }
            if turn.n_handling < self.n_handlers_max
                && let Some(connection) = turn.deferred.pop_front()
            {
                return Next::Connection(connection);
            }
            if let Some(connection) = turn.ready.pop_front() {
                return Next::Connection(connection);
            }
            if turn.polling {
                turn.n_idle += 1;
                let woken = self.changed.wait(turn);
                turn = woken.unwrap_or_else(PoisonError::into_inner);
                turn.n_idle -= 1;
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

    /// Hands the poll over: called by a thread before it runs a handler for `connection`. `false` if no thread would be
    /// left for the poll; the connection then waits, still owned, and comes again from [`Turns::next`].
    pub(crate) fn enter_handler(&self, connection: &Arc<Connection>) -> bool {
        let mut turn = lock(&self.turn);
        if turn.n_handling >= self.n_handlers_max {
            turn.deferred.push_back(Arc::clone(connection));
            return false;
        }
        turn.n_handling += 1;
        if !turn.polling && turn.n_idle > 0 {
            self.changed.notify_one();
        }
        true
    }

    /// The counterpart of [`Turns::enter_handler`].
    pub(crate) fn leave_handler(&self) {
        let mut turn = lock(&self.turn);
        turn.n_handling -= 1;
        if !turn.deferred.is_empty() && turn.n_idle > 0 {
            self.changed.notify_one();
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

    /// Threads inside a handler.
    pub(crate) fn n_handling(&self) -> usize {
        lock(&self.turn).n_handling
    }

    /// Lets all threads end; the one in the poll is to be woken.
    pub(crate) fn finish(&self) {
        lock(&self.turn).finished = true;
        self.changed.notify_all();
    }
}
