//! `TupleBuilder`: builds the row tuples of a result.

use std::ptr::NonNull;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Builds tuples of the same length, one for each row of a result. The items may be set in any
/// order. A tuple is returned when all its items are set.
///
/// No other code can access a tuple before all its items are set, because each tuple is untracked
/// from the garbage collector as soon as it is created. A complete tuple remains untracked unless
/// an item is a list, because the other types of cells (`int`, `str`, `Decimal`, …) can never be
/// part of a reference cycle. Therefore the collector does not have to traverse a large result.
pub(crate) struct TupleBuilder<'py> {
    py: Python<'py>,
    rows: Vec<NonNull<ffi::PyObject>>,
    n_columns: usize,
    /// The number of complete rows, whose items are all set. They precede the incomplete rows.
    n_complete: usize,
    /// `true` if an item is a list, which can be part of a reference cycle. The garbage collector
    /// then tracks each row as soon as it is complete.
    is_tracked: bool,
}

impl<'py> TupleBuilder<'py> {
    /// Creates a builder without rows, for `n_columns` columns.
    pub(crate) fn new(py: Python<'py>, n_columns: usize) -> TupleBuilder<'py> {
        TupleBuilder {
            py,
            rows: Vec::new(),
            n_columns,
            n_complete: 0,
            is_tracked: false,
        }
    }

    /// Makes the garbage collector track all tuples that are completed after this call. The caller
    /// must call this function if an item is a list.
    pub(crate) fn track(&mut self) {
        self.is_tracked = true;
    }

    /// Adds `n_rows` tuples, whose items are not set yet.
    #[inline]
    pub(crate) fn grow(&mut self, n_rows: usize) -> PyResult<()> {
        let reserved = self.rows.try_reserve(n_rows);
        reserved.map_err(|_| PyMemoryError::new_err("no memory for so many rows"))?;
        for _ in 0..n_rows {
            // SAFETY: attached (we hold a token); the length is that of a result's columns. A new
            // tuple has every item null, and its deallocator accepts null items.
            let made = unsafe { ffi::PyTuple_New(self.n_columns as ffi::Py_ssize_t) };
            let Some(made) = NonNull::new(made) else {
                return Err(PyErr::fetch(self.py));
            };
            if self.n_columns > 0 {
                // SAFETY: a tuple with items is a tracked GC object of ours (the empty one is
                // shared and stays tracked). No cycle can pass through it, see above.
                unsafe { ffi::PyObject_GC_UnTrack(made.as_ptr().cast()) };
            }
            self.rows.push(made);
        }
        Ok(())
    }

    /// Sets the item of `row` and `column` (both from 0).
    ///
    /// # Panics
    /// Panics if the row or column does not exist, which is a bug in the caller.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, column: usize, item: Bound<'py, PyAny>) {
        let tuple = self.rows[row];
        assert!(column < self.n_columns);
        // SAFETY: the tuple has no other reference and n_columns items, and column is below that
        // (checked on the line above). The item's old value is released (null, unless a caller sets
        // it twice).
        unsafe {
            let items = (&raw mut (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_item)
                .cast::<*mut ffi::PyObject>();
            let old = items.add(column).replace(item.into_ptr());
            ffi::Py_XDECREF(old);
        }
    }

    /// Returns the number of items of each tuple.
    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns the number of rows, including those that are not complete.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Marks all rows that have been added as complete. All of their items must be set.
    ///
    /// # Panics
    /// Panics if an item is not set. The source of the rows then violates the contract of
    /// `RowSink`.
    #[inline]
    pub(crate) fn complete(&mut self) {
        for row in &self.rows[self.n_complete..] {
            // SAFETY: each is a tuple of n_columns items without another reference.
            let items = unsafe {
                let first = (&raw const (*row.as_ptr().cast::<ffi::PyTupleObject>()).ob_item)
                    .cast::<*mut ffi::PyObject>();
                std::slice::from_raw_parts(first, self.n_columns)
            };
            assert!(items.iter().all(|i| !i.is_null()), "a cell was not given");
            if self.is_tracked && self.n_columns > 0 {
                // SAFETY: `grow` took this tuple, which has items, off the collector's list; all of
                // its items are set.
                unsafe { ffi::PyObject_GC_Track(row.as_ptr().cast()) };
            }
        }
        self.n_complete = self.rows.len();
    }

    /// Returns the number of rows that [`TupleBuilder::complete`] has marked as complete.
    pub(crate) fn n_complete(&self) -> usize {
        self.n_complete
    }

    /// Drops all rows, complete or not.
    pub(crate) fn clear(&mut self) {
        self.n_complete = 0;
        self.cut_incomplete();
    }

    /// Drops the rows that are not complete.
    pub(crate) fn cut_incomplete(&mut self) {
        for row in self.rows.drain(self.n_complete..) {
            // SAFETY: we own one reference to each.
            unsafe { ffi::Py_DECREF(row.as_ptr()) };
        }
    }

    /// Returns an iterator over the complete rows, in order, and drops the other rows.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Bound<'py, PyTuple>> + use<'py> {
        self.cut_incomplete();
        self.n_complete = 0;
        let py = self.py;
        // SAFETY: each is a tuple, and we pass our reference on.
        std::mem::take(&mut self.rows)
            .into_iter()
            // SAFETY: each is a tuple, and we pass our reference on.
            .map(move |row| unsafe {
                Bound::from_owned_ptr(py, row.as_ptr()).cast_into_unchecked()
            })
    }

    /// Appends the complete rows to `list`, and drops the other rows.
    pub(crate) fn append_to(&mut self, list: &Bound<'py, PyList>) -> PyResult<()> {
        self.cut_incomplete();
        self.n_complete = 0;
        let mut rows = self.rows.drain(..);
        for row in &mut rows {
            // SAFETY: a list and a tuple, both alive; the list takes a reference of its own, ours
            // is released.
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
