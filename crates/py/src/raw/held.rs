//! Objects that a server holds: `bytes` that are sent from where they lie, and how many hold an object.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::ending;

/// From this size on a `bytes` that was sent is let go at once; shorter ones when Python runs next.
const LET_GO_BYTES: usize = 64 << 10;

/// The bytes of a `bytes`, readable while detached, for as long as this lives.
pub(crate) struct HeldBytes {
    object: Option<Py<PyBytes>>,
    at: *const u8,
    len: usize,
}

// SAFETY: a `bytes` is immutable, and its data stays where it is while the object lives, which `object` keeps; the pointer is
// only read through.
unsafe impl Send for HeldBytes {}
// SAFETY: threads that share it only read the data, which nobody writes.
unsafe impl Sync for HeldBytes {}

impl HeldBytes {
    pub(crate) fn new(bytes: Bound<'_, PyBytes>) -> HeldBytes {
        // SAFETY: a `bytes`; the calls give the start of its data area and how long that is.
        let (at, len) = unsafe {
            let at = ffi::PyBytes_AsString(bytes.as_ptr()).cast::<u8>();
            (at, ffi::PyBytes_Size(bytes.as_ptr()).unsigned_abs())
        };
        HeldBytes {
            object: Some(bytes.unbind()),
            at,
            len,
        }
    }
}

/// References to an object: those that others hold, and the one that it is looked at through.
#[inline]
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: an object that is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the data of the `bytes` that `object` keeps, as long as its size says.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        // Else it is let go where this thread, or another one, is attached next.
        if self.len >= LET_GO_BYTES {
            ending::try_attach(|_| drop(self.object.take()));
        }
    }
}
