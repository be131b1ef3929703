//! Creates lists and dicts from the pending values of `Building`.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// Values that were created and are not yet in their list or dict. Each one is an owned reference,
/// which must be passed on or released.
pub(super) struct Pending<'a>(&'a mut [*mut ffi::PyObject]);

impl<'a> Pending<'a> {
    /// Removes the values from index `start` on from `waiting`, and returns them.
    #[inline(always)]
    pub(super) fn take(waiting: &'a mut Vec<*mut ffi::PyObject>, start: usize) -> Pending<'a> {
        let (at, n) = (waiting.as_mut_ptr(), waiting.len());
        assert!(start <= n);
        waiting.truncate(start);
        // SAFETY: initialised pointers; the vector is borrowed, and the range ends with it.
        Pending(unsafe { std::slice::from_raw_parts_mut(at.add(start), n - start) })
    }

    /// Returns the values. For the members of a dict, keys and values alternate.
    #[inline(always)]
    pub(super) fn items(&self) -> &[*mut ffi::PyObject] {
        self.0
    }

    /// Releases the references to all values. The caller calls this method after an exception.
    #[cold]
    fn give_up(self) {
        for &mut value in self.0 {
            // SAFETY: null, or an object with a reference of ours; who holds one is attached.
            unsafe { ffi::Py_XDECREF(value) };
        }
    }
}

/// Creates a list from the pending values. If `container` is not null, appends the values to this
/// list instead.
///
/// # Safety
/// Every value must be an object with an owned reference; the container must be null, or a list
/// from [`put_in_list`].
#[inline(always)]
pub(super) unsafe fn list<'py>(
    py: Python<'py>,
    pending: Pending<'_>,
    container: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyAny>> {
    let n = pending.0.len();
    // SAFETY: attached; a new list of n items, all null, has no other reference, and takes as many
    // references.
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

/// Appends the pending values to the list `container`, frees the unused capacity of the list, and
/// returns the list.
///
/// # Safety
/// The same requirements as for [`list`]; `container` must be a container that [`list`] accepts.
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

/// Appends `values` to the list `container`, or to a new list if `container` is null, and returns
/// the list. Each entry of `values` is set to null, because the list now owns its reference.
///
/// # Safety
/// The same requirements as for [`list`].
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
    // SAFETY: a list of ours that nobody else changes meanwhile; the caller's reference to its own
    // container stays with it.
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

/// Appends `values` to a list, and sets each entry of `values` to null. This implementation is for
/// free-threaded interpreters, in which only CPython's functions may change a list.
///
/// # Safety
/// The GIL must be held. `list` must be owned, and each value must be an object with an owned
/// reference.
#[cfg(Py_GIL_DISABLED)]
unsafe fn append(list: *mut ffi::PyObject, values: &mut [*mut ffi::PyObject]) -> PyResult<()> {
    for value in values {
        // SAFETY: the caller guarantees the requirements; the list has a reference of its own.
        unsafe {
            if ffi::PyList_Append(list, *value) != 0 {
                return Err(PyErr::fetch(Python::assume_attached()));
            }
            ffi::Py_DECREF(std::mem::replace(value, null_mut()));
        }
    }
    Ok(())
}

/// Appends `values` to a list by moving their references, and sets each entry of `values` to null.
///
/// # Safety
/// The GIL must be held. `list` must be owned, and each value must be an object with an owned
/// reference. No Python code of the user runs in this function.
#[cfg(not(Py_GIL_DISABLED))]
unsafe fn append(list: *mut ffi::PyObject, values: &mut [*mut ffi::PyObject]) -> PyResult<()> {
    // SAFETY: a list, of which nobody else has a reference to its fields.
    let fields = unsafe { &mut *list.cast::<ffi::PyListObject>() };
    let n = fields.ob_base.ob_size.unsigned_abs();
    let n_all = n + values.len();
    if fields.allocated.unsigned_abs() < n_all {
        // The capacity is a sixteenth larger than required; pages that are not used are never
        // written to. A long list grows by moving pages or in place, so it is rarely copied.
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
    // SAFETY: there is space for as many after the items that are set, as made sure above.
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
    // SAFETY: a list of ours that no other code changes meanwhile, whose items are in memory of
    // PyMem_Realloc. If the memory cannot be made smaller it is unchanged.
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

/// Creates a dict with space for `n` keys. From Python 3.14 on, no space is reserved, because
/// CPython does not export the required function.
///
/// # Safety
/// The GIL must be held.
unsafe fn new_dict(n: usize) -> *mut ffi::PyObject {
    #[cfg(not(Py_3_14))]
    // SAFETY: the caller guarantees the requirements; of CPython up to 3.13 it is known that it has
    // the function.
    return unsafe { _PyDict_NewPresized(n as ffi::Py_ssize_t) };
    #[cfg(Py_3_14)]
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        let _ = n;
        ffi::PyDict_New()
    }
}

/// Sets the value of a key in a dict. Returns `false` if this fails; CPython has then set an
/// exception.
///
/// # Safety
/// The arguments must be a dict, a `str` and an object, and the GIL must be held.
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

/// Creates a dict from the pending keys and values, which alternate. If `container` is not null,
/// adds them to this dict instead; `n_put` is the number of keys that were added to it before. The
/// second item of the result is `true` if a key occurs more than once.
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

/// Adds keys and values to the dict `container`, or to a new dict if `container` is null, and
/// returns the dict. Each entry of `items` is set to null, because this function has released its
/// reference.
///
/// # Safety
/// The same requirements as for [`dict`].
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
        // SAFETY: keys are `str`, whose hash and comparison run no foreign code. The dict has
        // references of its own.
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
