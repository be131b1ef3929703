//! `PinnedBytes`: a `bytes` object whose data a server sends without copying it. The module also
//! contains [`references`], which returns the reference count of an object.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::gil;

/// The size from which a `bytes` object is released as soon as it was sent, although the release
/// requires the GIL. A smaller `bytes` object is released when a thread next acquires the GIL.
const LET_GO_BYTES: usize = 64 << 10;

/// A reference to a `bytes` object. While this value exists, the object is not freed, so that its
/// data can be read without the GIL.
pub(crate) struct PinnedBytes {
    object: Option<Py<PyBytes>>,
    at: *const u8,
    len: usize,
}

// SAFETY: a `bytes` is immutable, and its data does not move while the object is alive, which
// `object` refers to; the pointer is only read through.
unsafe impl Send for PinnedBytes {}
// SAFETY: threads that share it only read the data, which nobody writes.
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    pub(crate) fn new(bytes: Bound<'_, PyBytes>) -> PinnedBytes {
        // SAFETY: a `bytes`; the calls give the start of its data area and how long that is.
        let (at, len) = unsafe {
            let at = ffi::PyBytes_AsString(bytes.as_ptr()).cast::<u8>();
            (at, ffi::PyBytes_Size(bytes.as_ptr()).unsigned_abs())
        };
        PinnedBytes {
            object: Some(bytes.unbind()),
            at,
            len,
        }
    }
}

/// Returns the number of references to an object, including the caller's reference.
#[inline]
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: an object that is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

impl AsRef<[u8]> for PinnedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the data of the `bytes` that `object` keeps, as long as its size says.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        // PyO3 releases a shorter `bytes` when this thread or another one next acquires the GIL.
        if self.len >= LET_GO_BYTES {
            gil::try_attach(|_| drop(self.object.take()));
        }
    }
}
