//! The header of a `str` (PEP 393): flags, kind, length, and the UTF-8 cache.
//!
//! Up to CPython 3.13 `pyo3-ffi` declares it. Since 3.14 it is opaque there and is declared here. Source:
//! `Include/cpython/unicodeobject.h` of 3.14 and 3.15, whose inline functions compile this layout into every extension
//! module; it is stable within a version of CPython.

use std::ffi::{c_uint, c_void};

use pyo3::ffi;

#[cfg(Py_3_14)]
use since_3_14 as version;
#[cfg(not(Py_3_14))]
use up_to_3_13 as version;

/// Bytes before the data of a compact ASCII `str`.
pub(super) const ASCII_HEADER_BYTES: usize = version::ASCII_HEADER_BYTES;
/// Bytes before the data of a compact `str` that is not ASCII.
pub(super) const COMPACT_HEADER_BYTES: usize = version::COMPACT_HEADER_BYTES;

/// Returns whether a `str` is compact and marked as ASCII.
///
/// # Safety
/// `at` is a ready `str` (so for all below).
#[inline(always)]
pub(super) unsafe fn is_compact_ascii(at: *mut ffi::PyObject) -> bool {
    // SAFETY: a ready `str`; its flags are set when it is made and never change.
    unsafe { version::is_compact_ascii(at) }
}

/// Returns whether the data of a `str` follows its header.
///
/// # Safety
/// As [`is_compact_ascii`].
#[inline(always)]
pub(super) unsafe fn is_compact(at: *mut ffi::PyObject) -> bool {
    // SAFETY: as in `is_compact_ascii`.
    unsafe { version::is_compact(at) }
}

/// Returns whether a `str` is marked as ASCII, compact or not.
///
/// # Safety
/// As [`is_compact_ascii`].
#[inline(always)]
pub(super) unsafe fn is_ascii(at: *mut ffi::PyObject) -> bool {
    // SAFETY: as in `is_compact_ascii`.
    unsafe { version::is_ascii(at) }
}

/// The width of the units of a `str`: `PyUnicode_1BYTE_KIND` and so on.
///
/// # Safety
/// As [`is_compact_ascii`].
#[inline(always)]
pub(super) unsafe fn kind(at: *mut ffi::PyObject) -> c_uint {
    // SAFETY: as in `is_compact_ascii`.
    unsafe { version::kind(at) }
}

/// The data of a `str` that is not compact.
///
/// # Safety
/// As [`is_compact_ascii`]; it is not compact.
#[cfg(not(Py_GIL_DISABLED))]
#[inline(always)]
pub(super) unsafe fn separate_data(at: *mut ffi::PyObject) -> *const c_void {
    // SAFETY: such a `str` has a pointer to its data after the header of a compact one.
    unsafe {
        at.byte_add(COMPACT_HEADER_BYTES)
            .cast::<*const c_void>()
            .read()
    }
}

/// The UTF-8 cache of a `str`; `None` if it has none, and in free-threaded builds, where another thread may be making
/// it.
///
/// # Safety
/// `at` is a ready `str` that is not compact ASCII, and we are attached for as long as the slice is used.
#[inline(always)]
pub(super) unsafe fn cached_utf8<'a>(at: *mut ffi::PyObject) -> Option<&'a [u8]> {
    if cfg!(Py_GIL_DISABLED) {
        return None;
    }
    // SAFETY: such a `str` has the whole header. Its cache is null, or `utf8_length` bytes that CPython wrote and frees with
    // the object; it is written only by a thread that holds the GIL, which we do.
    unsafe {
        let header = at.cast::<version::CompactHeader>();
        let utf8 = (*header).utf8;
        let n_bytes = (*header).utf8_length.unsigned_abs();
        (!utf8.is_null()).then(|| std::slice::from_raw_parts(utf8.cast(), n_bytes))
    }
}

#[cfg(not(Py_3_14))]
mod up_to_3_13 {
    use super::{c_uint, ffi};

    pub(super) use ffi::PyCompactUnicodeObject as CompactHeader;

    pub(super) const ASCII_HEADER_BYTES: usize = size_of::<ffi::PyASCIIObject>();
    pub(super) const COMPACT_HEADER_BYTES: usize = size_of::<CompactHeader>();

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn is_compact_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`, by the caller's word (so below).
        unsafe { ffi::PyUnicode_IS_COMPACT_ASCII(at) != 0 }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn is_compact(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`.
        unsafe { ffi::PyUnicode_IS_COMPACT(at) != 0 }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn is_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a ready `str`.
        unsafe { ffi::PyUnicode_IS_ASCII(at) != 0 }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn kind(at: *mut ffi::PyObject) -> c_uint {
        // SAFETY: a ready `str`.
        unsafe { ffi::PyUnicode_KIND(at) }
    }
}

#[cfg(Py_3_14)]
mod since_3_14 {
    use std::ffi::c_char;
    use std::mem::offset_of;

    use super::{c_uint, ffi};

    /// `PyCompactUnicodeObject`; the data of a compact ASCII `str` begins at `utf8_length`.
    #[repr(C)]
    pub(super) struct CompactHeader {
        ob_base: ffi::PyObject,
        length: ffi::Py_ssize_t,
        hash: ffi::Py_hash_t,
        /// Bit fields: `interned`, `kind` (3 bits), `compact`, `ascii`, `statically_allocated`.
        state: u32,
        pub(super) utf8_length: ffi::Py_ssize_t,
        pub(super) utf8: *const c_char,
    }

    pub(super) const ASCII_HEADER_BYTES: usize = offset_of!(CompactHeader, utf8_length);
    pub(super) const COMPACT_HEADER_BYTES: usize = size_of::<CompactHeader>();

    /// `interned` takes 2 bits, and a whole byte in free-threaded builds.
    const INTERNED_BITS: u32 = if cfg!(Py_GIL_DISABLED) { 8 } else { 2 };
    const COMPACT: u32 = 1 << (INTERNED_BITS + 3);
    const ASCII: u32 = 1 << (INTERNED_BITS + 4);

    /// The bit fields; `interned` may change, the others are set when the `str` is made.
    ///
    /// # Safety
    /// `at` is a `str`.
    #[inline(always)]
    unsafe fn state(at: *mut ffi::PyObject) -> u32 {
        // SAFETY: every `str` begins with this header up to `state`.
        unsafe { (&raw const (*at.cast::<CompactHeader>()).state).read() }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn is_compact_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`, by the caller's word (so below).
        unsafe { state(at) & (COMPACT | ASCII) == COMPACT | ASCII }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn is_compact(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`.
        unsafe { state(at) & COMPACT != 0 }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn is_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`.
        unsafe { state(at) & ASCII != 0 }
    }

    /// # Safety
    /// `at` is a ready `str`.
    #[inline(always)]
    pub(super) unsafe fn kind(at: *mut ffi::PyObject) -> c_uint {
        // SAFETY: a `str`.
        unsafe { state(at) >> INTERNED_BITS & 7 }
    }
}
