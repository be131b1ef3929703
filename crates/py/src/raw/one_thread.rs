//! Values in Python objects that only one thread may use.

use std::mem::ManuallyDrop;

use onecopy_rows::deadlock::thread_number;

/// A value that only the creating thread may use. Another thread leaks it instead of dropping it.
pub(crate) struct OfOneThread<T> {
    value: ManuallyDrop<T>,
    thread: u64,
}

// SAFETY: `get` and `drop` access the value only on its creating thread. Thread numbers are unique.
unsafe impl<T> Send for OfOneThread<T> {}
// SAFETY: by a shared reference, only `get` accesses the value, on its creating thread.
unsafe impl<T> Sync for OfOneThread<T> {}

impl<T> OfOneThread<T> {
    pub(crate) fn new(value: T) -> OfOneThread<T> {
        OfOneThread {
            value: ManuallyDrop::new(value),
            thread: thread_number(),
        }
    }

    /// Returns the value on its creating thread, otherwise `None`.
    pub(crate) fn get(&self) -> Option<&T> {
        (self.thread == thread_number()).then_some(&*self.value)
    }
}

impl<T> Drop for OfOneThread<T> {
    fn drop(&mut self) {
        if self.thread == thread_number() {
            // SAFETY: this is the value's thread, and nothing uses the value after this.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn another_thread_can_neither_use_nor_drop_it() {
        let counter = Rc::new(());
        let (one, other) = (
            OfOneThread::new(Rc::clone(&counter)),
            OfOneThread::new(Rc::clone(&counter)),
        );
        assert!(one.get().is_some());
        let found = std::thread::spawn(move || other.get().is_none()).join();
        assert!(found.is_ok_and(|is_none| is_none));
        drop(one);
        assert_eq!(Rc::strong_count(&counter), 2);
    }
}
