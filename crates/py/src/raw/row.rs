//! Row tuples under construction.

use std::ptr::NonNull;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Tuples of one width whose items are set in any order; handed out when all items are set.
///
/// While it stands nobody else sees the tuples: they are taken off the garbage collector's list at once. They stay off
/// it: what a cell becomes (`int`, `str`, `Decimal`, …) can never be part of a cycle. So a large result gives the
/// collector nothing to walk (anchors: rows, section 6).
pub(crate) struct Rows<'py> {
    py: Python<'py>,
    rows: Vec<NonNull<ffi::PyObject>>,
    n_columns: usize,
    /// Rows of which every item is set (those before this index).
    n_complete: usize,
}

impl<'py> Rows<'py> {
    /// No rows yet, of `n_columns` columns.
    pub(crate) fn new(py: Python<'py>, n_columns: usize) -> Rows<'py> {
        Rows {
            py,
            rows: Vec::new(),
            n_columns,
            n_complete: 0,
        }
    }

    /// Adds `n_rows` empty tuples.
    #[inline]
    pub(crate) fn grow(&mut self, n_rows: usize) -> PyResult<()> {
        let reserved = self.rows.try_reserve(n_rows);
        reserved.map_err(|_| PyMemoryError::new_err("no memory for so many rows"))?;
        for _ in 0..n_rows {
            // SAFETY: attached (we hold a token); the length is that of a result's columns. A new tuple has every item
            // null, and its deallocator takes null items.
            let made = unsafe { ffi::PyTuple_New(self.n_columns as ffi::Py_ssize_t) };
            let Some(made) = NonNull::new(made) else {
                return Err(PyErr::fetch(self.py));
            };
            if self.n_columns > 0 {
                // SAFETY: a tuple with items is a tracked GC object of ours (the empty one is shared and stays as it
                // is). No cycle can pass through it, see above.
                unsafe { ffi::PyObject_GC_UnTrack(made.as_ptr().cast()) };
            }
            self.rows.push(made);
        }
        Ok(())
    }

    /// Sets the item of `row` and `column` (both from 0).
    ///
    /// # Panics
    /// Outside the tuples that stand here: a bug of the caller.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, column: usize, item: Bound<'py, PyAny>) {
        let tuple = self.rows[row];
        assert!(column < self.n_columns);
        // SAFETY: the tuple is ours alone, has n_columns items, and column is below that (checked on the line above).
        // The item's old value is released (null, but for a caller that sets twice).
        unsafe {
            let items = (&raw mut (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_item)
                .cast::<*mut ffi::PyObject>();
            let old = items.add(column).replace(item.into_ptr());
            ffi::Py_XDECREF(old);
        }
    }

    /// Number of items of each.
    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Number of rows, complete or not.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Notes that all rows so far have all their items.
    ///
    /// # Panics
    /// Where an item was not set: a source that breaks the contract of `RowSink`.
    #[inline]
    pub(crate) fn complete(&mut self) {
        for row in &self.rows[self.n_complete..] {
            // SAFETY: each is a tuple of n_columns items that is ours alone.
            let items = unsafe {
                let first = (&raw const (*row.as_ptr().cast::<ffi::PyTupleObject>()).ob_item)
                    .cast::<*mut ffi::PyObject>();
                std::slice::from_raw_parts(first, self.n_columns)
            };
            assert!(items.iter().all(|i| !i.is_null()), "a cell was not given");
        }
        self.n_complete = self.rows.len();
    }

    /// Number of rows of which every item is set.
    pub(crate) fn n_complete(&self) -> usize {
        self.n_complete
    }

    /// Drops all rows.
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

    /// Hands the complete rows out, in order; the others are dropped.
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

    /// Appends the complete rows to `list`; the others are dropped.
    pub(crate) fn append_to(&mut self, list: &Bound<'py, PyList>) -> PyResult<()> {
        self.cut_incomplete();
        self.n_complete = 0;
        let mut rows = self.rows.drain(..);
        for row in &mut rows {
            // SAFETY: a list and a tuple, both alive; the list takes a reference of its own, ours is released.
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

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
