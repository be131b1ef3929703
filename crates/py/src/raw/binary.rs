//! `bytes`, and any object with a buffer (PEP 3118).

use pyo3::ffi;
use pyo3::prelude::*;

/// A new `bytes`. Copies: one, into it.
#[inline]
pub(crate) fn make<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a valid slice (never longer than isize::MAX); the call copies it.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// The bytes of any object with a contiguous buffer, or `None` for an object that has no buffer. Copies: one.
pub(crate) fn copy_of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    // SAFETY: any object may be asked.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Ok(None);
    }
    let mut view = std::mem::MaybeUninit::<ffi::Py_buffer>::uninit();
    // SAFETY: PyObject_GetBuffer fills `view` where it returns 0. PyBUF_SIMPLE gives a contiguous block of `len` bytes
    // that stays where it is until the release below; it is copied while we are attached.
    unsafe {
        if ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_SIMPLE) != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        let mut view = view.assume_init();
        let len = usize::try_from(view.len).unwrap_or(0);
        let copy = if len == 0 {
            Vec::new()
        } else {
            std::slice::from_raw_parts(view.buf.cast::<u8>(), len).to_vec()
        };
        ffi::PyBuffer_Release(&raw mut view);
        Ok(Some(copy))
    }
}
