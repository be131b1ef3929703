//! `ListBuilder`: builds a list of a known length.

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Builds a list of a known length. The items are set in order.
///
/// Unset items are null, so the garbage collector tracks only the complete list. Dropping the
/// builder frees the list and its items.
pub(crate) struct ListBuilder<'py> {
    list: Bound<'py, PyList>,
    /// The address of the items. The list is never resized.
    items: *mut *mut ffi::PyObject,
    n: usize,
    n_set: usize,
}

impl<'py> ListBuilder<'py> {
    /// Creates a list with space for `n` items.
    #[inline]
    pub(crate) fn new(py: Python<'py>, n: usize) -> PyResult<ListBuilder<'py>> {
        let size = isize::try_from(n).map_err(|_| PyMemoryError::new_err(()))?;
        // SAFETY: attached; the length is not negative. A new list has only null items, which its
        // deallocator accepts, and no other reference. The collector ignores it until `finish`.
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

    /// Returns the number of set items.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.n_set
    }

    /// Sets the next item of the list.
    ///
    /// # Panics
    /// If all items are set.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: Bound<'py, PyAny>) {
        assert!(self.n_set < self.n);
        // SAFETY: inside the list, as checked above; the item there is null. The list takes our
        // reference.
        unsafe { self.items.add(self.n_set).write(item.into_ptr()) };
        self.n_set += 1;
    }

    /// Sets the next item to the object at index `at`.
    ///
    /// # Panics
    /// If the item at `at` is not set, or all items are set.
    #[inline(always)]
    pub(crate) fn push_again(&mut self, at: usize) {
        assert!(at < self.n_set && self.n_set < self.n);
        // SAFETY: both are inside the list, as checked above. The first one is set, and the list
        // gets its own reference.
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
    /// If an item is not set.
    pub(crate) fn finish(self) -> Bound<'py, PyList> {
        assert_eq!(self.n_set, self.n, "an item was not set");
        // SAFETY: a whole list that is not on the collector's list.
        unsafe { ffi::PyObject_GC_Track(self.list.as_ptr().cast()) };
        self.list
    }
}
