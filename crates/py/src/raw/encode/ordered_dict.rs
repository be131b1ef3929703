//! Checks whether a `collections.OrderedDict` has the order of its underlying `dict`. For example,
//! the orders differ after `move_to_end`.
//!
//! The head of a linked list of keys follows the `dict` in memory (CPython's
//! `Objects/odictobject.c`). The layout is the same from CPython 3.10 to 3.15, and is tested by
//! [`is_known`]. With another layout, `items()` is called.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// A node of the list of keys.
#[repr(C)]
struct Node {
    key: *mut ffi::PyObject,
    hash: isize,
    next: *mut Node,
    previous: *mut Node,
}

/// The fields of an `OrderedDict` after its `dict`.
#[repr(C)]
struct List {
    first: *mut Node,
    last: *mut Node,
    fast_nodes: *mut *mut Node,
    n_fast_nodes: isize,
    resize_sentinel: *mut u8,
    state: usize,
    attributes: *mut ffi::PyObject,
    weak_references: *mut ffi::PyObject,
}

/// Returns the address of the list of an `OrderedDict`.
///
/// # Safety
/// `object` must be alive, and an `OrderedDict` of the size that [`is_known`] checks.
unsafe fn list(object: *mut ffi::PyObject) -> *const List {
    // SAFETY: the fields of the `dict` are followed by those of the list.
    unsafe {
        let n_dict_bytes = (*ptr::addr_of!(ffi::PyDict_Type)).tp_basicsize;
        object.byte_offset(n_dict_bytes).cast()
    }
}

/// Returns `true` if the list of an `OrderedDict` has the keys of its `dict` in order.
///
/// # Safety
/// `object` must be alive. Its class or a base of it must have passed [`is_known`].
pub(super) unsafe fn has_order_of_dict(object: *mut ffi::PyObject) -> bool {
    let (mut position, mut key) = (0, ptr::null_mut());
    // SAFETY: the layout of `is_known`: the list follows the `dict`, and each node in the list is
    // alive. No Python code runs that could change the object.
    unsafe {
        let mut node = (*list(object)).first;
        while ffi::PyDict_Next(object, &mut position, &mut key, ptr::null_mut()) != 0 {
            if node.is_null() || (*node).key != key {
                return false;
            }
            node = (*node).next;
        }
        node.is_null()
    }
}

/// Returns `true` if `collections.OrderedDict` has the memory layout of [`has_order_of_dict`].
pub(super) fn is_known(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    let n_bytes = |class: &Bound<'_, PyType>| -> PyResult<usize> {
        class
            .getattr(pyo3::intern!(py, "__basicsize__"))?
            .extract::<usize>()
    };
    // An `OrderedDict` of the implementation in Python has another size.
    let n_dict_bytes = n_bytes(&py.get_type::<PyDict>())?;
    if cfg!(Py_GIL_DISABLED) || n_bytes(class)? != n_dict_bytes + size_of::<List>() {
        return Ok(false);
    }
    let sample = class.call0()?;
    // SAFETY: an instance that we hold, of the size that these fields have.
    let ends = || unsafe {
        (
            (*list(sample.as_ptr())).first,
            (*list(sample.as_ptr())).last,
        )
    };
    if ends() != (ptr::null_mut(), ptr::null_mut()) {
        return Ok(false);
    }
    sample.set_item("a", "a")?;
    let (first, last) = ends();
    if first != last || first.is_null() || !first.is_aligned() {
        return Ok(false);
    }
    let mut found = Vec::new();
    for (method, key) in [
        ("setdefault", "b"),
        ("setdefault", "c"),
        ("move_to_end", "c"),
        ("move_to_end", "a"),
        ("pop", "a"),
    ] {
        sample.call_method1(method, (key,))?;
        // SAFETY: an instance that we hold. Both ends of the list of one key were one address, that
        // of its node.
        found.push(unsafe { has_order_of_dict(sample.as_ptr()) });
    }
    Ok(found == [true, true, true, false, true])
}
