//! Deadlock detection: refuses a wait for a lock that would complete a cycle of waiting threads.
//!
//! A lock may be held while Python code runs (an SQL function, a row factory, an iterable of
//! parameters). If that code then waits for a lock whose holder waits for the first lock, both
//! threads would wait forever. Such locks therefore publish the number of the thread that holds
//! them, and each thread that waits is registered. A thread that acquires a free lock is not
//! registered.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use onecopy_wire::lock::lock;

/// Returns a number that identifies this thread. It is never 0, and never reused.
#[inline]
#[must_use]
pub fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! { static NUMBER: Cell<u64> = const { Cell::new(0) } }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// A thread that waits for a lock. `holder` points to an atomic integer in the lock: the number of
/// the thread that holds the lock.
struct Waiting {
    thread: u64,
    holder: NonNull<AtomicU64>,
}

// SAFETY: an atomic may be read by any thread, and lives until the entry is removed (`wait`).
unsafe impl Send for Waiting {}

static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

fn waiting() -> MutexGuard<'static, Vec<Waiting>> {
    lock(&WAITING)
}

/// The error of a wait that would never end, because the holder of the lock waits for this thread,
/// directly or through other waiting threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlock;

impl Deadlock {
    /// The message of this error, followed by a remedy for the user.
    pub const MESSAGE: &str = "deadlock: a thread that waits for this one uses it\n\
        in a callback, use connections and cursors that no other thread's callback uses";
}

/// Calls `wait`, which waits for a lock. `holder` contains the number of the thread that holds the
/// lock, or 0 while the lock is free. A thread must store its number there after it acquires the
/// lock, and 0 before it releases the lock.
///
/// # Errors
/// [`Deadlock`] if this wait would complete a cycle of waiting threads; `wait` was then not called.
pub fn wait<T>(holder: &AtomicU64, wait: impl FnOnce() -> T) -> Result<T, Deadlock> {
    /// A guard that removes the thread's entry from the list of waiting threads when it is dropped,
    /// also after a panic.
    struct Registered(u64);
    impl Drop for Registered {
        fn drop(&mut self) {
            let mut all = waiting();
            // A signal handler may wait while its thread waits already. The last entry of the
            // thread is then that of the inner wait.
            if let Some(at) = all.iter().rposition(|entry| entry.thread == self.0) {
                all.swap_remove(at);
            }
        }
    }
    let me = thread_number();
    let _registered = {
        let mut all = waiting();
        if leads_to(&all, holder, me) {
            return Err(Deadlock);
        }
        all.push(Waiting {
            thread: me,
            holder: NonNull::from(holder),
        });
        Registered(me)
    };
    Ok(wait())
}

/// Returns `true` if the thread whose number is in `holder` is the thread `thread`, or waits for
/// `thread` directly or through other waiting threads.
fn leads_to(all: &[Waiting], holder: &AtomicU64, thread: u64) -> bool {
    let mut number = holder.load(SeqCst);
    // A thread that has just acquired its lock may still be registered. The chain of threads may
    // then be endless, so the loop is limited.
    for _ in 0..=all.len() {
        if number == thread {
            return true;
        }
        let Some(entry) = all.iter().rfind(|entry| entry.thread == number) else {
            return false;
        };
        // SAFETY: the entry is in the list, so `wait`, which borrows the holder, has not returned;
        // the list is locked, so the entry is not removed meanwhile.
        number = unsafe { entry.holder.as_ref() }.load(SeqCst);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    /// A lock for these tests. Like the locks that use this module, it publishes the number of the
    /// thread that holds it.
    #[derive(Default)]
    struct Lock {
        state: Mutex<()>,
        holder: AtomicU64,
    }

    impl Lock {
        fn with(&self, work: impl FnOnce()) -> Result<(), Deadlock> {
            let guard = wait(&self.holder, || self.state.lock().unwrap())?;
            self.holder.store(thread_number(), SeqCst);
            work();
            self.holder.store(0, SeqCst);
            drop(guard);
            Ok(())
        }
    }

    #[test]
    fn the_last_thread_of_a_circle_is_refused_and_the_others_go_on() {
        for n_threads in 2..6 {
            let locks: Arc<Vec<Lock>> = Arc::new((0..n_threads).map(|_| Lock::default()).collect());
            let all_hold = Arc::new(Barrier::new(n_threads));
            let threads: Vec<_> = (0..n_threads)
                .map(|at| {
                    let (locks, all_hold) = (locks.clone(), all_hold.clone());
                    std::thread::spawn(move || {
                        let mut inner = Ok(());
                        let outer = locks[at].with(|| {
                            all_hold.wait();
                            inner = locks[(at + 1) % n_threads].with(|| ());
                        });
                        assert_eq!(outer, Ok(()));
                        inner
                    })
                })
                .collect();
            let ended: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            assert_eq!(ended.iter().filter(|inner| inner.is_err()).count(), 1);
        }
    }

    #[test]
    fn a_lock_that_this_thread_holds_is_refused() {
        let lock = Lock::default();
        let mut inner = Ok(());
        assert_eq!(lock.with(|| inner = lock.with(|| ())), Ok(()));
        assert_eq!(inner, Err(Deadlock));
    }

    #[test]
    fn chains_without_a_circle_are_waited_for() {
        let locks: Arc<[Lock; 3]> = Arc::default();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let locks = locks.clone();
                std::thread::spawn(move || {
                    for _ in 0..500 {
                        // Each thread acquires its two locks in ascending order, so no cycle is
                        // possible.
                        let [first, second] = [[0, 1], [0, 2], [1, 2]][number % 3];
                        locks[first]
                            .with(|| locks[second].with(std::thread::yield_now).unwrap())
                            .unwrap();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
