//! Counters of a process that another one reads, also after the first has crashed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::sys::SharedWords;

/// Counters in memory that goes with its descriptor: [`crate::Socket::lend`] passes them to the
/// process that serves. Clones are the same counters.
#[derive(Clone, Debug)]
pub struct SharedCounters(Arc<SharedWords>);

impl SharedCounters {
    /// `n_counters` counters at 0; at least one.
    ///
    /// # Errors
    /// As memfd_create(2) and mmap(2).
    pub fn new(n_counters: usize) -> io::Result<SharedCounters> {
        let words = SharedWords::create(n_counters.max(1))?;
        Ok(SharedCounters(Arc::new(words)))
    }

    pub(crate) fn of_descriptor(descriptor: OwnedFd) -> io::Result<SharedCounters> {
        let words = SharedWords::of_descriptor(descriptor)?;
        Ok(SharedCounters(Arc::new(words)))
    }

    /// Adds 1 to the counter at `index`, if it exists.
    pub fn increment(&self, index: usize) {
        if let Some(word) = self.0.words().get(index) {
            word.fetch_add(1, SeqCst);
        }
    }

    /// Takes 1 from the counter at `index`, which [`SharedCounters::increment`] has added.
    pub fn decrement(&self, index: usize) {
        if let Some(word) = self.0.words().get(index) {
            word.fetch_sub(1, SeqCst);
        }
    }

    /// Returns the counter at `index`; 0 if it does not exist.
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
