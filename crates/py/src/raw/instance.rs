//! Instances of Python's classes, made without running their code.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

/// `object.__new__(class)`: an instance whose attributes are yet to be set.
///
/// # Errors
/// `TypeError` where the class has a `__new__` of C code of its own.
#[inline]
pub(crate) fn new<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let empty = PyTuple::empty(py);
    // SAFETY: attached. `object.__new__` takes any class whose instances are laid out by Python's own means: its base of C code,
    // which a class finds by `tp_base`, is `object`, checked by the walk. A new reference or null with an error.
    unsafe {
        let object = &raw mut ffi::PyBaseObject_Type;
        let Some(make) = (*object).tp_new.filter(|_| is_plain(class)) else {
            return Err(PyTypeError::new_err("the class is none of Python's own"));
        };
        let made = make(class.as_type_ptr(), empty.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Whether all classes that it derives from are of Python code, but for `object`.
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

/// `object.__setattr__`, which goes round what the class says of setting.
#[inline]
pub(crate) fn set(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: three objects that we hold; the call sets through the descriptors of the object's class.
    match unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(object.py())),
    }
}
