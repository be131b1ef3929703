//! The object header of a Python `str` (PEP 393): its flags, kind, length and UTF-8 cache.
//!
//! Up to CPython 3.13, `pyo3-ffi` declares the layout of this header; from 3.14 on, this module
//! declares it. Source: `Include/cpython/unicodeobject.h` of 3.14 and 3.15. The layout is stable
//! within a version of CPython, because extension modules contain it. At import, [`is_known`]
//! compares it with the results of CPython's functions.

use std::ffi::{c_uint, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[cfg(Py_3_14)]
use since_3_14::CompactHeader;
#[cfg(Py_3_14)]
pub(super) use since_3_14::{
    ASCII_HEADER_BYTES, COMPACT_HEADER_BYTES, is_ascii, is_compact, is_compact_ascii, kind,
};
#[cfg(not(Py_3_14))]
use up_to_3_13::CompactHeader;
#[cfg(not(Py_3_14))]
pub(super) use up_to_3_13::{
    ASCII_HEADER_BYTES, COMPACT_HEADER_BYTES, is_ascii, is_compact, is_compact_ascii, kind,
};

/// Returns the address of the separate characters of a `str`.
///
/// # Safety
/// `at` must be a ready `str` (PEP 393) that is not compact.
#[inline(always)]
pub(super) unsafe fn separate_data(at: *mut ffi::PyObject) -> *const c_void {
    // SAFETY: such a `str` has a pointer to its data after the header of a compact one.
    unsafe {
        at.byte_add(COMPACT_HEADER_BYTES)
            .cast::<*const c_void>()
            .read()
    }
}

/// Returns the UTF-8 cache of a `str`. `None` without a cache, and in free-threaded builds.
///
/// # Safety
/// `at` must be a ready `str` (PEP 393) that is not compact ASCII. The GIL must be held during the
/// use of the slice.
#[inline(always)]
pub(super) unsafe fn cached_utf8<'a>(at: *mut ffi::PyObject) -> Option<&'a [u8]> {
    if cfg!(Py_GIL_DISABLED) {
        return None;
    }
    // SAFETY: such a `str` has the whole header. Its cache is null, or `utf8_length` bytes that
    // CPython frees with the object. Only a thread that holds the GIL writes it, and we hold the
    // GIL.
    unsafe {
        let header = at.cast::<CompactHeader>();
        let utf8 = (*header).utf8;
        let n_bytes = (*header).utf8_length.unsigned_abs();
        (!utf8.is_null()).then(|| std::slice::from_raw_parts(utf8.cast(), n_bytes))
    }
}

/// Returns `true` if this interpreter's `str` objects have the declared layout. The import of the
/// module calls this function.
pub(super) fn is_known(py: Python<'_>) -> PyResult<bool> {
    let code = c"
class C(str): pass
texts = ['', 'a', 'ab' * 40, chr(0xE9) * 9, chr(0x436) * 9, chr(0x1F600) * 9]
samples = texts + [C(text) for text in texts]
for text in samples: type(text, (), {})  # makes the UTF-8 cache of its name
";
    let globals = pyo3::types::PyDict::new(py);
    py.run(code, Some(&globals), None)?;
    let samples = globals.get_item("samples")?;
    let samples = samples.map(|list| list.extract::<Vec<Bound<'_, PyAny>>>());
    for sample in samples.transpose()?.unwrap_or_default() {
        let is_ascii_by_cpython: bool = sample.call_method0("isascii")?.extract()?;
        let at = sample.as_ptr();
        let encoded = sample.call_method0("encode")?;
        let encoded = encoded.cast::<PyBytes>()?.as_bytes();
        // SAFETY: an owned `str`, ready since its creation. With another layout, only the fields of
        // every `str` are read.
        let is_same = unsafe {
            let data = ffi::PyUnicode_DATA(at).cast_const();
            let read = match (is_compact(at), is_compact_ascii(at)) {
                (_, true) => at.byte_add(ASCII_HEADER_BYTES).cast(),
                (true, false) => at.byte_add(COMPACT_HEADER_BYTES).cast(),
                (false, false) => separate_data(at),
            };
            kind(at) == ffi::PyUnicode_KIND(at)
                && is_ascii(at) == is_ascii_by_cpython
                && std::ptr::eq(read, data)
                && (is_compact_ascii(at)
                    || cfg!(Py_GIL_DISABLED)
                    || cached_utf8(at) == Some(encoded))
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(not(Py_3_14))]
mod up_to_3_13 {
    use super::{c_uint, ffi};

    pub(super) use ffi::PyCompactUnicodeObject as CompactHeader;

    /// The number of header bytes of a compact ASCII `str`.
    pub(in crate::raw) const ASCII_HEADER_BYTES: usize = size_of::<ffi::PyASCIIObject>();
    /// The number of header bytes of a compact non-ASCII `str`.
    pub(in crate::raw) const COMPACT_HEADER_BYTES: usize = size_of::<CompactHeader>();

    /// Returns `true` if a `str` is compact and has the ASCII flag.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn is_compact_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a ready `str`.
        unsafe { ffi::PyUnicode_IS_COMPACT_ASCII(at) != 0 }
    }

    /// Returns `true` if a `str` is compact: one allocation for the header and the characters.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn is_compact(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`.
        unsafe { ffi::PyUnicode_IS_COMPACT(at) != 0 }
    }

    /// Returns `true` if a `str` has the ASCII flag.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn is_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a ready `str`.
        unsafe { ffi::PyUnicode_IS_ASCII(at) != 0 }
    }

    /// Returns the kind of a `str`, such as `PyUnicode_1BYTE_KIND`.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn kind(at: *mut ffi::PyObject) -> c_uint {
        // SAFETY: a ready `str`.
        unsafe { ffi::PyUnicode_KIND(at) }
    }
}

#[cfg(Py_3_14)]
mod since_3_14 {
    use std::ffi::c_char;
    use std::mem::offset_of;

    use super::{c_uint, ffi};

    /// The layout of `PyCompactUnicodeObject`. Compact ASCII characters begin at the field
    /// `utf8_length`.
    #[repr(C)]
    pub(super) struct CompactHeader {
        ob_base: ffi::PyObject,
        length: ffi::Py_ssize_t,
        hash: ffi::Py_hash_t,
        /// The bit fields: `interned`, `kind` (3 bits), `compact`, `ascii`, `statically_allocated`.
        state: u32,
        pub(super) utf8_length: ffi::Py_ssize_t,
        pub(super) utf8: *const c_char,
    }

    /// The number of header bytes of a compact ASCII `str`.
    pub(in crate::raw) const ASCII_HEADER_BYTES: usize = offset_of!(CompactHeader, utf8_length);
    /// The number of header bytes of a compact non-ASCII `str`.
    pub(in crate::raw) const COMPACT_HEADER_BYTES: usize = size_of::<CompactHeader>();

    /// The number of bits of the field `interned`.
    const INTERNED_BITS: u32 = if cfg!(Py_GIL_DISABLED) { 8 } else { 2 };
    const COMPACT: u32 = 1 << (INTERNED_BITS + 3);
    const ASCII: u32 = 1 << (INTERNED_BITS + 4);

    /// Returns the bit fields of a `str`. Only `interned` may change later.
    ///
    /// # Safety
    /// `at` must be a `str`.
    #[inline(always)]
    unsafe fn state(at: *mut ffi::PyObject) -> u32 {
        // SAFETY: every `str` begins with this header up to `state`.
        unsafe { (&raw const (*at.cast::<CompactHeader>()).state).read() }
    }

    /// Returns `true` if a `str` is compact and has the ASCII flag.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn is_compact_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a ready `str`.
        unsafe { state(at) & (COMPACT | ASCII) == COMPACT | ASCII }
    }

    /// Returns `true` if a `str` is compact: one allocation for the header and the characters.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn is_compact(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`.
        unsafe { state(at) & COMPACT != 0 }
    }

    /// Returns `true` if a `str` has the ASCII flag.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn is_ascii(at: *mut ffi::PyObject) -> bool {
        // SAFETY: a `str`.
        unsafe { state(at) & ASCII != 0 }
    }

    /// Returns the kind of a `str`, such as `PyUnicode_1BYTE_KIND`.
    ///
    /// # Safety
    /// `at` must be a ready `str` (PEP 393).
    #[inline(always)]
    pub(in crate::raw) unsafe fn kind(at: *mut ffi::PyObject) -> c_uint {
        // SAFETY: a `str`.
        unsafe { state(at) >> INTERNED_BITS & 7 }
    }
}
