//! `uuid.UUID` without its Python-level constructor.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// `uuid.UUID`, imported once.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")
}

/// A `UUID` of these bytes (RFC 9562 order).
///
/// `UUID.__init__` parses its arguments in Python code for over a microsecond and ends in two calls of
/// `object.__setattr__`, for `int` and `is_safe`; these two are made here. Nothing is written past the class's own
/// descriptors, so a change of its layout cannot make this unsound.
pub(crate) fn make(py: Python<'_>, bytes: [u8; 16]) -> PyResult<Bound<'_, PyAny>> {
    static UNKNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = class(py)?;
    let unknown = UNKNOWN.get_or_try_init(py, || -> PyResult<_> {
        Ok(py
            .import("uuid")?
            .getattr("SafeUUID")?
            .getattr("unknown")?
            .unbind())
    })?;
    let value = u128::from_be_bytes(bytes).into_pyobject(py)?;
    // SAFETY: the class is a heap type without a tp_new of its own; PyType_GenericAlloc gives an instance of it with
    // empty slots, as object.__new__ does.
    let made = unsafe {
        let made = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    for (name, value) in [
        (pyo3::intern!(py, "int"), value.as_any()),
        (pyo3::intern!(py, "is_safe"), unknown.bind(py)),
    ] {
        set_attribute(&made, name, value)?;
    }
    Ok(made)
}

/// `object.__setattr__`, which goes round the class's own `__setattr__` that makes it immutable.
fn set_attribute(
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
