//! `TupleBuilder`: builds the row tuples of a result.

use std::ptr::NonNull;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Builds the row tuples of a result. The items may be set in any order.
///
/// A new tuple is untracked from the garbage collector, so no other code can access it. A complete
/// tuple remains untracked unless it contains a list, because other cells cannot be part of a
/// reference cycle. Therefore the collector does not traverse a large result.
pub(crate) struct TupleBuilder<'py> {
    py: Python<'py>,
    rows: Vec<NonNull<ffi::PyObject>>,
    n_columns: usize,
    /// The number of complete rows, which precede the incomplete ones.
    n_complete: usize,
    /// `true` if an item is a list. The garbage collector then tracks complete rows.
    is_tracked: bool,
}

impl<'py> TupleBuilder<'py> {
    /// Creates a builder without rows.
    pub(crate) fn new(py: Python<'py>, n_columns: usize) -> TupleBuilder<'py> {
        TupleBuilder {
            py,
            rows: Vec::new(),
            n_columns,
            n_complete: 0,
            is_tracked: false,
        }
    }

    /// Makes the garbage collector track later tuples. Must be called if an item is a list.
    pub(crate) fn track(&mut self) {
        self.is_tracked = true;
    }

    /// Adds `n_rows` tuples without items.
    #[inline]
    pub(crate) fn grow(&mut self, n_rows: usize) -> PyResult<()> {
        let reserved = self.rows.try_reserve(n_rows);
        reserved.map_err(|_| PyMemoryError::new_err("no memory for so many rows"))?;
        for _ in 0..n_rows {
            // SAFETY: attached. The length is the number of columns. A new tuple contains null
            // items, and its deallocator accepts them.
            let made = unsafe { ffi::PyTuple_New(self.n_columns as ffi::Py_ssize_t) };
            let Some(made) = NonNull::new(made) else {
                return Err(PyErr::fetch(self.py));
            };
            if self.n_columns > 0 {
                // SAFETY: a tuple with items is a tracked object of ours; the empty one is shared
                // and stays tracked. It is not part of a cycle, see above.
                unsafe { ffi::PyObject_GC_UnTrack(made.as_ptr().cast()) };
            }
            self.rows.push(made);
        }
        Ok(())
    }

    /// Sets the item of `row` and `column` (both from 0).
    ///
    /// # Panics
    /// If the row or column does not exist.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, column: usize, item: Bound<'py, PyAny>) {
        let tuple = self.rows[row];
        assert!(column < self.n_columns);
        // SAFETY: the tuple has no other reference, and `column` is less than n_columns, as checked
        // above. The old value of the item is released; it is null unless it was set before.
        unsafe {
            let items = (&raw mut (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_item)
                .cast::<*mut ffi::PyObject>();
            let old = items.add(column).replace(item.into_ptr());
            ffi::Py_XDECREF(old);
        }
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns the number of rows, including incomplete ones.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Marks all rows as complete. All items must be set.
    ///
    /// # Panics
    /// If an item is not set, which violates the contract of `RowSink`.
    #[inline]
    pub(crate) fn complete(&mut self) {
        for row in &self.rows[self.n_complete..] {
            // SAFETY: a tuple of n_columns items without another reference.
            let items = unsafe {
                let first = (&raw const (*row.as_ptr().cast::<ffi::PyTupleObject>()).ob_item)
                    .cast::<*mut ffi::PyObject>();
                std::slice::from_raw_parts(first, self.n_columns)
            };
            assert!(items.iter().all(|i| !i.is_null()), "a cell was not given");
            if self.is_tracked && self.n_columns > 0 {
                // SAFETY: `grow` untracked this tuple, and all its items are set.
                unsafe { ffi::PyObject_GC_Track(row.as_ptr().cast()) };
            }
        }
        self.n_complete = self.rows.len();
    }

    /// Returns the number of complete rows.
    pub(crate) fn n_complete(&self) -> usize {
        self.n_complete
    }

    /// Drops all rows.
    pub(crate) fn clear(&mut self) {
        self.n_complete = 0;
        self.cut_incomplete();
    }

    /// Drops the incomplete rows.
    pub(crate) fn cut_incomplete(&mut self) {
        for row in self.rows.drain(self.n_complete..) {
            // SAFETY: we own one reference to each.
            unsafe { ffi::Py_DECREF(row.as_ptr()) };
        }
    }

    /// Returns the complete rows, in order, and drops the others.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Bound<'py, PyTuple>> + use<'py> {
        self.cut_incomplete();
        self.n_complete = 0;
        let py = self.py;
        // SAFETY: a tuple, and the reference is ours.
        std::mem::take(&mut self.rows)
            .into_iter()
            // SAFETY: a tuple, and the reference is ours.
            .map(move |row| unsafe {
                Bound::from_owned_ptr(py, row.as_ptr()).cast_into_unchecked()
            })
    }

    /// Appends the complete rows to `list`, and drops the others.
    pub(crate) fn append_to(&mut self, list: &Bound<'py, PyList>) -> PyResult<()> {
        self.cut_incomplete();
        self.n_complete = 0;
        let mut rows = self.rows.drain(..);
        for row in &mut rows {
            // SAFETY: a live list and a live tuple. The list takes its own reference, and ours is
            // released.
            let failed = unsafe {
                let failed = ffi::PyList_Append(list.as_ptr(), row.as_ptr());
                ffi::Py_DECREF(row.as_ptr());
                failed
            };
            if failed != 0 {
                for row in rows {
                    // SAFETY: we own one reference to each.
                    unsafe { ffi::Py_DECREF(row.as_ptr()) };
                }
                return Err(PyErr::fetch(self.py));
            }
        }
        Ok(())
    }
}

impl Drop for TupleBuilder<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
