//! [`SharedCounters`]: counters in shared memory. Another process can read them even after the
//! process that counts has crashed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::sys::SharedWords;

/// Counters in shared memory. [`crate::Socket::lend`] passes the file descriptor of the memory to
/// the process that serves. Clones refer to the same counters.
#[derive(Clone, Debug)]
pub struct SharedCounters(Arc<SharedWords>);

impl SharedCounters {
    /// Creates `n_counters` counters, but at least one, with the value 0.
    ///
    /// # Errors
    /// The error of memfd_create(2) or mmap(2).
    pub fn new(n_counters: usize) -> io::Result<SharedCounters> {
        let words = SharedWords::create(n_counters.max(1))?;
        Ok(SharedCounters(Arc::new(words)))
    }

    pub(crate) fn of_descriptor(descriptor: OwnedFd) -> io::Result<SharedCounters> {
        let words = SharedWords::of_descriptor(descriptor)?;
        Ok(SharedCounters(Arc::new(words)))
    }

    /// Adds 1 to the counter with the index `index`. Has no effect if there is no such counter.
    pub fn increment(&self, index: usize) {
        if let Some(word) = self.0.words().get(index) {
            word.fetch_add(1, SeqCst);
        }
    }

    /// Subtracts 1 from the counter with the index `index`. An earlier call to
    /// [`SharedCounters::increment`] must have incremented this counter.
    pub fn decrement(&self, index: usize) {
        if let Some(word) = self.0.words().get(index) {
            word.fetch_sub(1, SeqCst);
        }
    }

    /// Returns the value of the counter with the index `index`; 0 if there is no such counter.
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.0
            .words()
            .get(index)
            .map_or(0, |word| word.load(SeqCst))
    }

    /// Sets all counters to 0.
    pub fn clear(&self) {
        for word in self.0.words() {
            word.store(0, SeqCst);
        }
    }
}

impl AsFd for SharedCounters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
