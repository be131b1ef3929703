//! The header of a `str` since CPython 3.14, which `pyo3-ffi` leaves opaque.
//!
//! Source: `Include/cpython/unicodeobject.h` of 3.14 and 3.15, whose inline functions compile this layout into every
//! extension module; it is stable within a version of CPython.

use std::ffi::c_char;

use pyo3::ffi;

/// `PyCompactUnicodeObject`; the data of a compact ASCII `str` begins at `utf8_length`.
#[repr(C)]
struct CompactHeader {
    ob_base: ffi::PyObject,
    length: ffi::Py_ssize_t,
    hash: ffi::Py_hash_t,
    /// Bit fields: `interned`, `kind` (3 bits), `compact`, `ascii`, `statically_allocated`.
    state: u32,
    utf8_length: ffi::Py_ssize_t,
    utf8: *const c_char,
}

/// `interned` takes 2 bits, and a whole byte in free-threaded builds.
const INTERNED_BITS: u32 = if cfg!(Py_GIL_DISABLED) { 8 } else { 2 };
const COMPACT: u32 = 1 << (INTERNED_BITS + 3);
const ASCII: u32 = 1 << (INTERNED_BITS + 4);

/// Returns whether a `str` is compact and marked as ASCII.
///
/// # Safety
/// `at` is a `str`.
#[inline(always)]
pub(super) unsafe fn is_compact_ascii(at: *mut ffi::PyObject) -> bool {
    // SAFETY: every `str` begins with this header up to `state`, of which `compact` and `ascii` are set when it is made and
    // never change.
    let state = unsafe { (&raw const (*at.cast::<CompactHeader>()).state).read() };
    state & (COMPACT | ASCII) == COMPACT | ASCII
}

/// The UTF-8 cache of a `str`; `None` if it has none, and in free-threaded builds, where another thread may be making
/// it.
///
/// # Safety
/// `at` is a `str` that is not compact ASCII, and we are attached for as long as the slice is used.
#[inline]
pub(super) unsafe fn cached_utf8<'a>(at: *mut ffi::PyObject) -> Option<&'a [u8]> {
    if cfg!(Py_GIL_DISABLED) {
        return None;
    }
    // SAFETY: such a `str` has the whole header. Its cache is null, or `utf8_length` bytes that CPython wrote and frees with
    // the object; it is written only by a thread that holds the GIL, which we do.
    unsafe {
        let header = at.cast::<CompactHeader>();
        let n_bytes = usize::try_from((*header).utf8_length).unwrap_or(0);
        let utf8 = (*header).utf8;
        (!utf8.is_null()).then(|| std::slice::from_raw_parts(utf8.cast(), n_bytes))
    }
}
