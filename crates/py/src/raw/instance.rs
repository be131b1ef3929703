//! Creates instances of Python classes without Python code.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

/// Calls `object.__new__(class)` without `__init__`. The caller must set the attributes.
///
/// # Errors
/// `TypeError` if the class, or a base other than `object`, is not defined in Python.
#[inline]
pub(crate) fn new<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let empty = PyTuple::empty(py);
    // SAFETY: attached. `object.__new__` accepts a class without a base in C other than `object`,
    // which the walk has checked. A new reference, or null with an error.
    unsafe {
        let object = &raw mut ffi::PyBaseObject_Type;
        let Some(make) = (*object).tp_new.filter(|_| is_plain(class)) else {
            return Err(PyTypeError::new_err("the class is none of Python's own"));
        };
        let made = make(class.as_type_ptr(), empty.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Returns `true` if the class and its bases except `object` are defined in Python.
#[inline]
fn is_plain(class: &Bound<'_, PyType>) -> bool {
    let mut at = class.as_type_ptr();
    // SAFETY: a type that we hold, and its bases, which it holds; `object` has none.
    unsafe {
        while ffi::PyType_HasFeature(at, ffi::Py_TPFLAGS_HEAPTYPE) != 0 {
            at = (*at).tp_base;
        }
        at == &raw mut ffi::PyBaseObject_Type
    }
}

/// Sets an attribute with `object.__setattr__`. The class's own `__setattr__` is not called.
#[inline]
pub(crate) fn set(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: three objects that we hold; the call sets through the descriptors of the object's
    // class.
    match unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(object.py())),
    }
}
