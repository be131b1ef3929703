//! Functions that lock a mutex even if it is poisoned. `std` marks a mutex as poisoned when a
//! thread panics while it holds the lock. Every later call to `Mutex::lock` then returns an error.
//!
//! In this project, each thread and each `extern "C"` function catches panics. Code that holds a
//! lock leaves the locked value consistent after each statement, so the value can be used after a
//! panic.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks a mutex. If the mutex is poisoned, the poison is ignored.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Returns the guard from the result of locking a mutex, or of waiting for a `Condvar`. If the
/// mutex is poisoned, the poison is ignored.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_is_locked_after_a_panic_under_its_lock() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = mutex.lock();
                panic!("under the lock");
            });
            holder.join()
        });
        assert!(panicked.is_err() && mutex.is_poisoned());
        *lock(&mutex) += 1;
        assert_eq!(*lock(&mutex), 2);
    }
}
