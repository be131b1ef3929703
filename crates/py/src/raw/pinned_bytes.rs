//! `PinnedBytes`: a `bytes` object that a server sends without a copy.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::gil;

/// From this size on, a `bytes` is released right after it was sent, which requires the GIL. PyO3
/// releases a smaller one later.
const LET_GO_BYTES: usize = 64 << 10;

/// A reference to a `bytes`. Its data can be read without the GIL.
pub(crate) struct PinnedBytes {
    object: Option<Py<PyBytes>>,
    at: *const u8,
    len: usize,
}

// SAFETY: a `bytes` is immutable, and `object` keeps it alive. Its data does not move, and is only
// read.
unsafe impl Send for PinnedBytes {}
// SAFETY: threads only read the data, which no code writes.
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    pub(crate) fn new(bytes: Bound<'_, PyBytes>) -> PinnedBytes {
        // SAFETY: a `bytes`. The calls return the start and the length of its data.
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

/// Returns the reference count, which includes the caller's reference.
#[inline]
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

impl AsRef<[u8]> for PinnedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the data of the `bytes` that `object` keeps alive, of its length.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        // PyO3 releases a shorter `bytes` when a thread next acquires the GIL.
        if self.len >= LET_GO_BYTES {
            gil::try_attach(|_| drop(self.object.take()));
        }
    }
}
