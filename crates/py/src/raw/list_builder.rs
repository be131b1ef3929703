//! `ListBuilder`: builds a list whose length is known in advance.

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Builds a list whose length is known in advance. The items are set in order, from the first to
/// the last.
///
/// An item that is not set is null. Other code must not access a list with such items, so the
/// garbage collector does not track the list until it is complete. If the builder is dropped, the
/// list and its items are freed.
pub(crate) struct ListBuilder<'py> {
    list: Bound<'py, PyList>,
    /// The address of the list's items. It does not change, because the list is never resized.
    items: *mut *mut ffi::PyObject,
    n: usize,
    n_set: usize,
}

impl<'py> ListBuilder<'py> {
    /// Creates a list with space for `n` items, none of which is set yet.
    #[inline]
    pub(crate) fn new(py: Python<'py>, n: usize) -> PyResult<ListBuilder<'py>> {
        let size = isize::try_from(n).map_err(|_| PyMemoryError::new_err(()))?;
        // SAFETY: attached; the length is not negative. A new list has every item null, which its
        // deallocator accepts, and no other reference. It is taken off the collector's list, and
        // `finish` puts it back.
        unsafe {
            let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(size))?;
            ffi::PyObject_GC_UnTrack(list.as_ptr().cast());
            let items = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
            Ok(ListBuilder {
                list: list.cast_into_unchecked(),
                items,
                n,
                n_set: 0,
            })
        }
    }

    /// Returns the number of items that have been set.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.n_set
    }

    /// Sets the next item of the list.
    ///
    /// # Panics
    /// Panics if all items are already set, which is a bug in the caller.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: Bound<'py, PyAny>) {
        assert!(self.n_set < self.n);
        // SAFETY: inside the list, as checked above; the item there is null. The list takes our
        // reference.
        unsafe { self.items.add(self.n_set).write(item.into_ptr()) };
        self.n_set += 1;
    }

    /// Sets the next item of the list to the same object as the item at index `at`.
    ///
    /// # Panics
    /// If the item at `at` is not set, or all items are set, which is a bug of the caller.
    #[inline(always)]
    pub(crate) fn push_again(&mut self, at: usize) {
        assert!(at < self.n_set && self.n_set < self.n);
        // SAFETY: both inside the list, as checked above; the first one is set, and the list gets a
        // reference of its own.
        unsafe {
            let item = self.items.add(at).read();
            ffi::Py_INCREF(item);
            self.items.add(self.n_set).write(item);
        }
        self.n_set += 1;
    }

    /// Returns the complete list.
    ///
    /// # Panics
    /// If an item is not set, which is a bug of the caller.
    pub(crate) fn finish(self) -> Bound<'py, PyList> {
        assert_eq!(self.n_set, self.n, "an item was not set");
        // SAFETY: a whole list that is not on the collector's list.
        unsafe { ffi::PyObject_GC_Track(self.list.as_ptr().cast()) };
        self.list
    }
}
