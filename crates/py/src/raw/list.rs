//! A list under construction.

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A list of a length known before, filled from its start.
///
/// Until it is handed out nobody else sees it, not even by way of the garbage collector: the items not yet set are null. What
/// was set lives as long as this does. Where it is given up half-way, the list is dropped with what it has.
pub(crate) struct Items<'py> {
    list: Bound<'py, PyList>,
    /// The items of the list, which stay where they are: it is never resized.
    items: *mut *mut ffi::PyObject,
    n: usize,
    n_set: usize,
}

impl<'py> Items<'py> {
    /// A list of `n` items, none set.
    #[inline]
    pub(crate) fn new(py: Python<'py>, n: usize) -> PyResult<Items<'py>> {
        let size = isize::try_from(n).map_err(|_| PyMemoryError::new_err(()))?;
        // SAFETY: attached; the length is not negative. A new list has every item null, which its deallocator takes, and is
        // ours alone: to be taken off the collector's list, on which `finish` puts it back.
        unsafe {
            let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(size))?;
            ffi::PyObject_GC_UnTrack(list.as_ptr().cast());
            let items = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
            Ok(Items {
                list: list.cast_into_unchecked(),
                items,
                n,
                n_set: 0,
            })
        }
    }

    /// Items that are set.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.n_set
    }

    /// Sets the next item.
    ///
    /// # Panics
    /// Behind the end: a bug of the caller.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: Bound<'py, PyAny>) {
        assert!(self.n_set < self.n);
        // SAFETY: inside the list, checked above; the item there is null. The list takes our reference.
        unsafe { self.items.add(self.n_set).write(item.into_ptr()) };
        self.n_set += 1;
    }

    /// Sets the next item to the one at `at`.
    ///
    /// # Panics
    /// Where that is not set: a bug of the caller.
    #[inline(always)]
    pub(crate) fn push_again(&mut self, at: usize) {
        assert!(at < self.n_set && self.n_set < self.n);
        // SAFETY: both inside the list, checked above; the first one is set, and the list gets a reference of its own.
        unsafe {
            let item = self.items.add(at).read();
            ffi::Py_INCREF(item);
            self.items.add(self.n_set).write(item);
        }
        self.n_set += 1;
    }

    /// The list.
    ///
    /// # Panics
    /// Where an item was not set: a bug of the caller.
    pub(crate) fn finish(self) -> Bound<'py, PyList> {
        assert_eq!(self.n_set, self.n, "an item was not set");
        // SAFETY: a whole list that is not on the collector's list.
        unsafe { ffi::PyObject_GC_Track(self.list.as_ptr().cast()) };
        self.list
    }
}
