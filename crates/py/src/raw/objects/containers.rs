//! Creates lists and dicts from the pending values of `Building`.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// Values that are not in a list or dict yet. Each one is an owned reference.
pub(super) struct Pending<'a>(&'a mut [*mut ffi::PyObject]);

impl<'a> Pending<'a> {
    /// Removes the values from index `start` on from `waiting`.
    #[inline(always)]
    pub(super) fn take(waiting: &'a mut Vec<*mut ffi::PyObject>, start: usize) -> Pending<'a> {
        let (at, n) = (waiting.as_mut_ptr(), waiting.len());
        assert!(start <= n);
        waiting.truncate(start);
        // SAFETY: initialised pointers; the vector is borrowed, and the range ends with it.
        Pending(unsafe { std::slice::from_raw_parts_mut(at.add(start), n - start) })
    }

    /// Returns the values. For a dict, keys and values alternate.
    #[inline(always)]
    pub(super) fn items(&self) -> &[*mut ffi::PyObject] {
        self.0
    }

    /// Releases all values after an exception.
    #[cold]
    fn give_up(self) {
        for &mut value in self.0 {
            // SAFETY: null, or an object with an owned reference; the owner is attached.
            unsafe { ffi::Py_XDECREF(value) };
        }
    }
}

/// Creates a list from the pending values, or appends them to `container`.
///
/// # Safety
/// Every value must be an object with an owned reference. The container must be null, or a list
/// from [`put_in_list`].
#[inline(always)]
pub(super) unsafe fn list<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    let n = pending.0.len();
    // SAFETY: attached. A new list of n null items has no other reference, and takes n references.
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

/// Appends the pending values to `container` and frees its unused capacity.
///
/// # Safety
/// The requirements of [`list`] with a container.
#[cold]
unsafe fn grown_list<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the caller guarantees the requirements.
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

/// Appends `values` to `container`, or to a new list. Each entry of `values` becomes null.
///
/// # Safety
/// The requirements of [`list`] apply.
pub(super) unsafe fn put_in_list(
    py: Python<'_>,
    container: *mut ffi::PyObject,
    values: &mut [*mut ffi::PyObject],
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: attached; a new list, or one of ours.
    let list = unsafe {
        match container.is_null() {
            true => Bound::from_owned_ptr_or_err(py, ffi::PyList_New(0))?,
            false => Bound::from_owned_ptr(py, container),
        }
    };
    // SAFETY: an owned list that no other code changes. The caller keeps its reference to its own
    // container.
    let done = unsafe { append(list.as_ptr(), values) };
    match done {
        Ok(()) => Ok(list.into_ptr()),
        Err(error) => {
            if !container.is_null() {
                let _ = list.into_ptr();
            }
            Err(error)
        }
    }
}

/// Appends `values` to a list with CPython's functions, for free-threaded interpreters. Each entry
/// of `values` becomes null.
///
/// # Safety
/// The GIL must be held. `list` must be owned, and each value must be an object with an owned
/// reference.
#[cfg(Py_GIL_DISABLED)]
unsafe fn append(list: *mut ffi::PyObject, values: &mut [*mut ffi::PyObject]) -> PyResult<()> {
    for value in values {
        // SAFETY: the caller guarantees the requirements; the list has its own reference.
        unsafe {
            if ffi::PyList_Append(list, *value) != 0 {
                return Err(PyErr::fetch(Python::assume_attached()));
            }
            ffi::Py_DECREF(std::mem::replace(value, null_mut()));
        }
    }
    Ok(())
}

/// Moves the references in `values` to the end of a list. Each entry of `values` becomes null.
///
/// # Safety
/// The GIL must be held. `list` must be owned, and each value must be an object with an owned
/// reference. No Python code of the user runs here.
#[cfg(not(Py_GIL_DISABLED))]
unsafe fn append(list: *mut ffi::PyObject, values: &mut [*mut ffi::PyObject]) -> PyResult<()> {
    // SAFETY: a list without other references to its fields.
    let fields = unsafe { &mut *list.cast::<ffi::PyListObject>() };
    let n = fields.ob_base.ob_size.unsigned_abs();
    let n_all = n + values.len();
    if fields.allocated.unsigned_abs() < n_all {
        // The additional capacity is a sixteenth; unused pages are never written.
        let capacity = n_all + n_all / 16;
        let n_bytes = capacity * size_of::<*mut ffi::PyObject>();
        // SAFETY: the items are in memory of `PyMem_Realloc`.
        let at = unsafe { ffi::PyMem_Realloc(fields.ob_item.cast(), n_bytes) };
        if at.is_null() {
            return Err(pyo3::exceptions::PyMemoryError::new_err(()));
        }
        fields.ob_item = at.cast();
        fields.allocated = capacity as ffi::Py_ssize_t;
    }
    // SAFETY: the code above has made space after the set items.
    unsafe {
        let to = fields.ob_item.add(n);
        std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
    }
    values.fill(null_mut());
    fields.ob_base.ob_size = n_all as ffi::Py_ssize_t;
    Ok(())
}

/// Frees the unused capacity of a list.
///
/// # Safety
/// `list` must be owned and not empty.
unsafe fn trim(list: *mut ffi::PyObject) {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: an owned list that no other code changes. Its items are in memory of PyMem_Realloc,
    // which is unchanged after a failure.
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

/// Creates a dict with space for `n` keys, or without space from Python 3.14 on.
///
/// # Safety
/// The GIL must be held.
unsafe fn new_dict(n: usize) -> *mut ffi::PyObject {
    #[cfg(not(Py_3_14))]
    // SAFETY: the caller guarantees the requirements; CPython up to 3.13 has the function.
    return unsafe { _PyDict_NewPresized(n as ffi::Py_ssize_t) };
    #[cfg(Py_3_14)]
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        let _ = n;
        ffi::PyDict_New()
    }
}

/// Sets the value of a key in a dict. Returns `false` after an exception.
///
/// # Safety
/// The arguments must be a dict, a `str` and an object. The GIL must be held.
#[inline(always)]
unsafe fn set_item(
    dict: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> bool {
    // SAFETY: the caller guarantees the requirements. A `str` caches its hash after the first call.
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

/// Creates a dict from alternating keys and values, or adds them to `container`. `n_put` is the
/// number of earlier keys. The returned `bool` is `true` if a key occurs twice.
///
/// # Safety
/// Every value must be an object with an owned reference. Every key must be a `str`. The container
/// must be null, or a dict from [`put_in_dict`].
#[inline(always)]
pub(super) unsafe fn dict<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
    n_put: usize,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let n = pending.0.len() / 2;
    // SAFETY: the caller guarantees the requirements.
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

/// Adds keys and values to `container`, or to a new dict. Each entry of `items` becomes null.
///
/// # Safety
/// The requirements of [`dict`] apply.
#[inline(always)]
pub(super) unsafe fn put_in_dict(
    py: Python<'_>,
    container: *mut ffi::PyObject,
    items: &mut [*mut ffi::PyObject],
) -> PyResult<*mut ffi::PyObject> {
    let mut dict = container;
    if dict.is_null() {
        // SAFETY: attached.
        dict = unsafe { new_dict(items.len() / 2) };
        if dict.is_null() {
            return Err(PyErr::fetch(py));
        }
    }
    for pair in items.as_chunks_mut::<2>().0 {
        let [key, value] = *pair;
        // SAFETY: keys are `str`, whose hash and comparison run no foreign code. The dict has its
        // own references.
        unsafe {
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
    }
    Ok(dict)
}
