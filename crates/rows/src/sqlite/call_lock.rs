//! `CallLock`: the lock that prevents concurrent calls on one connection.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};

use onecopy_wire::lock::{lock, unpoisoned};

use crate::deadlock::{self, Deadlock, thread_number};
use crate::error::{Error, ErrorKind};

/// A lock that records the thread that holds it. A thread gets an error, instead of blocking
/// forever, if it already holds the lock (in a callback), or if the wait would cause a deadlock.
/// Without contention, locking costs two atomic operations. Waiting threads acquire the lock in the
/// order of their arrival.
#[derive(Debug)]
pub(super) struct CallLock {
    /// The number of the thread that holds the lock; 0 if the lock is free.
    holder: AtomicU64,
    waiters: AtomicUsize,
    queue: Mutex<Queue>,
    freed: Condvar,
}

#[derive(Debug)]
struct Queue {
    next_ticket: u64,
    serving: u64,
}

/// The reason why a [`CallLock`] was not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Another thread holds the lock, or waits for it.
    Contended,
    /// This thread already holds the lock.
    Reentered,
    /// The holder of the lock waits for this thread, so a wait would never end.
    Deadlock,
}

impl Refused {
    /// Returns the error with which a call on the connection fails if it cannot acquire the lock.
    pub(super) fn error(self) -> Error {
        Error::new(
            ErrorKind::Interface,
            match self {
                Refused::Contended => "another thread uses the connection",
                Refused::Reentered => {
                    "the connection is in the middle of a call of this thread\n\
                     use another connection in a callback or a signal handler"
                }
                Refused::Deadlock => Deadlock::MESSAGE,
            },
        )
    }
}

impl CallLock {
    /// Creates a free lock.
    pub(super) const fn new() -> CallLock {
        CallLock {
            holder: AtomicU64::new(0),
            waiters: AtomicUsize::new(0),
            queue: Mutex::new(Queue {
                next_ticket: 0,
                serving: 0,
            }),
            freed: Condvar::new(),
        }
    }

    /// Acquires the lock if it is free and no thread waits for it; never waits.
    pub(super) fn try_lock(&self) -> Result<(), Refused> {
        let me = thread_number();
        if self.waiters.load(SeqCst) == 0
            && self.holder.compare_exchange(0, me, SeqCst, SeqCst).is_ok()
        {
            return Ok(());
        }
        if self.holder.load(SeqCst) == me {
            return Err(Refused::Reentered);
        }
        Err(Refused::Contended)
    }

    /// Acquires the lock; waits if necessary. Threads acquire it in the order of their arrival.
    ///
    /// # Errors
    /// [`Refused::Reentered`] and [`Refused::Deadlock`].
    pub(super) fn lock(&self) -> Result<(), Refused> {
        match self.try_lock() {
            Err(Refused::Contended) => {}
            done => return done,
        }
        deadlock::wait(&self.holder, || self.wait_in_line()).map_err(|Deadlock| Refused::Deadlock)
    }

    fn wait_in_line(&self) {
        let me = thread_number();
        // The counter is incremented before the lock is checked. A holder that releases the lock
        // after this check therefore sees the counter, and notifies this thread.
        self.waiters.fetch_add(1, SeqCst);
        let mut queue = lock(&self.queue);
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        while queue.serving != ticket
            || self.holder.compare_exchange(0, me, SeqCst, SeqCst).is_err()
        {
            queue = unpoisoned(self.freed.wait(queue));
        }
        queue.serving += 1;
        self.waiters.fetch_sub(1, SeqCst);
    }

    /// Releases the lock, which the calling thread must hold.
    pub(super) fn unlock(&self) {
        debug_assert_eq!(self.holder.load(SeqCst), thread_number());
        self.holder.store(0, SeqCst);
        if self.waiters.load(SeqCst) > 0 {
            drop(lock(&self.queue));
            self.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn many_threads_exclude_each_other() {
        let lock = Arc::new(CallLock::new());
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (lock, inside) = (lock.clone(), inside.clone());
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        assert_eq!(lock.lock(), Ok(()));
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                        lock.unlock();
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(lock.try_lock(), Ok(()));
    }

    #[test]
    fn the_holder_coming_again_and_others_that_do_not_wait_are_refused() {
        let lock = Arc::new(CallLock::new());
        assert_eq!(lock.lock(), Ok(()));
        assert_eq!(lock.try_lock(), Err(Refused::Reentered));
        assert_eq!(lock.lock(), Err(Refused::Reentered));
        let other = lock.clone();
        let refused = std::thread::spawn(move || other.try_lock()).join().unwrap();
        assert_eq!(refused, Err(Refused::Contended));
        lock.unlock();
    }
}
