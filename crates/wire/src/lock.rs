//! Functions that lock a mutex even if it is poisoned. `std` marks a mutex as poisoned if a thread
//! panicked while it held the lock; every later call of `Mutex::lock` then returns an error.
//!
//! Each panic is caught where a thread or an `extern "C"` function of this project begins. The code
//! that holds a lock leaves the locked value consistent after each statement, so a later caller may
//! use the value.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also if it is poisoned.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Returns the guard of a lock, or of a wait with a `Condvar`, also if the mutex is poisoned.
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
