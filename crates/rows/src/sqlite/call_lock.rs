//! The lock that driver calls on one connection exclude each other by.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

/// A lock that knows its holder: the same thread coming again (from a callback) is told so instead of hanging, and who
/// must not wait can ask. Uncontended it costs two atomic operations. Waiters are served in order.
#[derive(Debug, Default)]
pub(super) struct CallLock {
    /// Token of the holding thread, 0 where it is free.
    holder: AtomicUsize,
    waiters: AtomicUsize,
    queue: Mutex<Queue>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    next_ticket: u64,
    serving: u64,
}

/// Why [`CallLock::try_lock`] did not get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Another thread holds it or waits for it.
    Contended,
    /// This thread holds it already.
    Reentered,
}

/// A number that no other living thread has, never 0: the address of a thread-local.
fn thread_token() -> usize {
    thread_local! { static ANCHOR: u8 = const { 0 } }
    ANCHOR.with(|a| std::ptr::from_ref(a).addr())
}

impl CallLock {
    /// Takes the lock without waiting.
    pub(super) fn try_lock(&self) -> Result<(), Refused> {
        let me = thread_token();
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

    /// Takes the lock, waiting in line; `false` where this thread holds it already.
    pub(super) fn lock(&self) -> bool {
        match self.try_lock() {
            Ok(()) => return true,
            Err(Refused::Reentered) => return false,
            Err(Refused::Contended) => {}
        }
        let me = thread_token();
        // Counted before the lock is looked at: a holder that frees it after our look sees us and notifies.
        self.waiters.fetch_add(1, SeqCst);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        while queue.serving != ticket
            || self.holder.compare_exchange(0, me, SeqCst, SeqCst).is_err()
        {
            queue = self
                .freed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.serving += 1;
        self.waiters.fetch_sub(1, SeqCst);
        true
    }

    /// Frees the lock, which the calling thread must hold.
    pub(super) fn unlock(&self) {
        debug_assert_eq!(self.holder.load(SeqCst), thread_token());
        self.holder.store(0, SeqCst);
        if self.waiters.load(SeqCst) > 0 {
            drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner));
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
        let lock = Arc::new(CallLock::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (lock, inside) = (lock.clone(), inside.clone());
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        assert!(lock.lock());
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
    fn the_holder_coming_again_is_told_and_others_are_refused() {
        let lock = Arc::new(CallLock::default());
        assert!(lock.lock());
        assert_eq!(lock.try_lock(), Err(Refused::Reentered));
        assert!(!lock.lock());
        let other = lock.clone();
        let refused = std::thread::spawn(move || other.try_lock()).join().unwrap();
        assert_eq!(refused, Err(Refused::Contended));
        lock.unlock();
    }
}
