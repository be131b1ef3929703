//! Lists and dicts of the values that wait for them.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// Values with a reference of ours each, which whoever takes them must pass on.
pub(super) struct Pending<'a>(&'a mut [*mut ffi::PyObject]);

impl<'a> Pending<'a> {
    /// Those from `start` on.
    #[inline(always)]
    pub(super) fn take(waiting: &'a mut Vec<*mut ffi::PyObject>, start: usize) -> Pending<'a> {
        let (at, n) = (waiting.as_mut_ptr(), waiting.len());
        assert!(start <= n);
        waiting.truncate(start);
        // SAFETY: pointers that were initialised; the vector is borrowed and does not look behind its end.
        Pending(unsafe { std::slice::from_raw_parts_mut(at.add(start), n - start) })
    }

    /// The values.
    #[inline(always)]
    pub(super) fn items(&self) -> &[*mut ffi::PyObject] {
        self.0
    }

    /// Gives all of them up.
    #[cold]
    fn give_up(self) {
        for &mut value in self.0 {
            // SAFETY: null, or an object with a reference of ours; who holds one is attached.
            unsafe { ffi::Py_XDECREF(value) };
        }
    }
}

/// A list of what was put into `container`, where it is not null, and of what waits.
///
/// # Safety
/// Every value is an object with a reference of ours; the container is null or a list of ours from [`put_in_list`].
#[inline(always)]
pub(super) unsafe fn list<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    let n = pending.0.len();
    // SAFETY: attached; a new list of n items, all null, is ours alone, and takes as many references.
    unsafe {
        if container.is_null() {
            let list = ffi::PyList_New(n as ffi::Py_ssize_t);
            if list.is_null() {
                pending.give_up();
                return Err(PyErr::fetch(py));
            }
            let items = (*list.cast::<ffi::PyListObject>()).ob_item;
            if n > 0 {
                std::ptr::copy_nonoverlapping(pending.0.as_ptr(), items, n);
            }
            return Ok(Bound::from_owned_ptr(py, list));
        }
        grown_list(py, pending, container)
    }
}

/// # Safety
/// As [`list`], with a container.
#[cold]
unsafe fn grown_list<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the duty of the caller.
    unsafe {
        if let Err(e) = put_in_list(py, container, pending.0) {
            pending.give_up();
            ffi::Py_DECREF(container);
            return Err(e);
        }
        trim(container);
        Ok(Bound::from_owned_ptr(py, container))
    }
}

/// Puts values at the end of a list, a new one where it is null. They are null then.
///
/// # Safety
/// As [`list`].
pub(super) unsafe fn put_in_list(
    py: Python<'_>,
    container: *mut ffi::PyObject,
    values: &mut [*mut ffi::PyObject],
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: attached. A list of ours that nobody else changes meanwhile: no foreign code runs here. Its items lie in memory
    // of PyMem_Realloc, room for `allocated` of them, `ob_size` of which are set.
    unsafe {
        let list = if container.is_null() {
            let list = ffi::PyList_New(0);
            if list.is_null() {
                return Err(PyErr::fetch(py));
            }
            list
        } else {
            container
        };
        #[cfg(Py_GIL_DISABLED)]
        for value in values {
            let failed = ffi::PyList_Append(list, *value);
            if failed != 0 {
                return Err(PyErr::fetch(py));
            }
            ffi::Py_DECREF(std::mem::replace(value, null_mut()));
        }
        #[cfg(not(Py_GIL_DISABLED))]
        {
            let n = ffi::PyList_GET_SIZE(list).unsigned_abs();
            let n_all = n + values.len();
            let fields = list.cast::<ffi::PyListObject>();
            if (*fields).allocated.unsigned_abs() < n_all {
                // A sixteenth more, of which the pages that are not used are never touched: a long list grows by its pages, or in
                // place, and is seldom copied.
                let room = n_all + n_all / 16;
                let at = (*fields).ob_item.cast();
                let at = ffi::PyMem_Realloc(at, room * size_of::<*mut ffi::PyObject>());
                if at.is_null() {
                    if container.is_null() {
                        ffi::Py_DECREF(list);
                    }
                    return Err(pyo3::exceptions::PyMemoryError::new_err(()));
                }
                (*fields).ob_item = at.cast();
                (*fields).allocated = room as ffi::Py_ssize_t;
            }
            let to = (*fields).ob_item.add(n);
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
            values.fill(null_mut());
            (*list.cast::<ffi::PyVarObject>()).ob_size = n_all as ffi::Py_ssize_t;
        }
        Ok(list)
    }
}

/// Gives back the room that a list does not use.
///
/// # Safety
/// A list of ours, with items.
unsafe fn trim(list: *mut ffi::PyObject) {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a list of ours that nobody else changes meanwhile, whose items lie in memory of PyMem_Realloc. Where the
    // memory cannot be made smaller it stays as it is.
    unsafe {
        let fields = list.cast::<ffi::PyListObject>();
        let n = ffi::PyList_GET_SIZE(list).unsigned_abs();
        let at = (*fields).ob_item.cast();
        let at = ffi::PyMem_Realloc(at, n.max(1) * size_of::<*mut ffi::PyObject>());
        if !at.is_null() {
            (*fields).ob_item = at.cast();
            (*fields).allocated = n as ffi::Py_ssize_t;
        }
    }
    #[cfg(Py_GIL_DISABLED)]
    let _ = list;
}

#[cfg(not(Py_3_14))]
// SAFETY: functions that CPython exports up to 3.13, as its headers declare them.
unsafe extern "C" {
    fn _PyDict_NewPresized(n: ffi::Py_ssize_t) -> *mut ffi::PyObject;
    fn _PyDict_SetItem_KnownHash(
        dict: *mut ffi::PyObject,
        key: *mut ffi::PyObject,
        value: *mut ffi::PyObject,
        hash: ffi::Py_hash_t,
    ) -> std::ffi::c_int;
}

/// A dict for so many keys.
///
/// # Safety
/// Attached.
unsafe fn new_dict(n: usize) -> *mut ffi::PyObject {
    #[cfg(not(Py_3_14))]
    // SAFETY: the duty of the caller; of CPython up to 3.13 it is known that it has the function.
    return unsafe { _PyDict_NewPresized(n as ffi::Py_ssize_t) };
    #[cfg(Py_3_14)]
    // SAFETY: the duty of the caller.
    unsafe {
        let _ = n;
        ffi::PyDict_New()
    }
}

/// # Safety
/// A dict, a `str` and an object; attached.
#[inline(always)]
unsafe fn set_item(
    dict: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> bool {
    // SAFETY: the duty of the caller. A `str` knows its hash once it was asked for it.
    unsafe {
        #[cfg(not(Py_3_14))]
        {
            let mut hash = (*key.cast::<ffi::PyASCIIObject>()).hash;
            if hash == -1 {
                hash = ffi::PyObject_Hash(key);
            }
            _PyDict_SetItem_KnownHash(dict, key, value, hash) == 0
        }
        #[cfg(Py_3_14)]
        {
            ffi::PyDict_SetItem(dict, key, value) == 0
        }
    }
}

/// A dict of what was put into `container`, where it is not null, `n_put` times, and of what waits, keys and values by turns;
/// and whether a key stood in it twice.
///
/// # Safety
/// Every value is an object with a reference of ours, every other one a `str`; the container is null or a dict of ours from
/// [`put_in_dict`].
#[inline(always)]
pub(super) unsafe fn dict<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
    n_put: usize,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let n = pending.0.len() / 2;
    // SAFETY: the duty of the caller.
    unsafe {
        let made = match put_in_dict(py, container, pending.0) {
            Ok(made) => Bound::from_owned_ptr(py, made),
            Err(e) => {
                pending.give_up();
                ffi::Py_XDECREF(container);
                return Err(e);
            }
        };
        let n_keys = ffi::PyDict_Size(made.as_ptr());
        Ok((made, n_keys.unsigned_abs() != n + n_put))
    }
}

/// Puts keys and values into a dict, a new one where it is null. They are null then.
///
/// # Safety
/// As [`dict`].
#[inline(always)]
pub(super) unsafe fn put_in_dict(
    py: Python<'_>,
    container: *mut ffi::PyObject,
    items: &mut [*mut ffi::PyObject],
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: attached; keys are `str`, whose hash and comparison run no foreign code. The dict takes references of its own.
    unsafe {
        let dict = if container.is_null() {
            let dict = new_dict(items.len() / 2);
            if dict.is_null() {
                return Err(PyErr::fetch(py));
            }
            dict
        } else {
            container
        };
        for pair in items.as_chunks_mut::<2>().0 {
            let [key, value] = *pair;
            if !set_item(dict, key, value) {
                if container.is_null() {
                    ffi::Py_DECREF(dict);
                }
                return Err(PyErr::fetch(py));
            }
            *pair = [null_mut(); 2];
            ffi::Py_DECREF(key);
            ffi::Py_DECREF(value);
        }
        Ok(dict)
    }
}
