//! Creates `str` objects for characters that the caller writes later.
//!
//! A copied header replaces the slower call to `PyUnicode_New`. Up to Python 3.13, a compact `str`
//! is one allocation, and its header depends only on its kind and length. At import, the module
//! reads a header of each kind from objects of CPython. If the headers of one kind differ in more
//! than their length, this module calls `PyUnicode_New`.

use onecopy_text::Shape;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::pages;

/// Creates a `str` with the kind and length of `shape`, at least 1. The caller must write the
/// characters.
#[inline]
pub(crate) fn blank(py: Python<'_>, shape: Shape) -> PyResult<Bound<'_, PyAny>> {
    match Blanks::new(py).small(shape) {
        Some(made) => Ok(made),
        None => blank_by_cpython(py, shape),
    }
}

#[inline(never)]
fn blank_by_cpython(py: Python<'_>, shape: Shape) -> PyResult<Bound<'_, PyAny>> {
    let n = isize::try_from(shape.n_chars).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: attached; the length is not negative. CPython supports this max_char.
    let made = unsafe {
        let made = ffi::PyUnicode_New(n, shape.kind.max_char());
        Bound::from_owned_ptr_or_err(py, made)?
    };
    pages::ask(made.as_ptr(), shape.n_chars * shape.kind.unit_bytes());
    Ok(made)
}

/// Stores the header of a new `str` of each kind: see [`templates`]. The import of the module calls
/// this function.
pub(crate) fn take_headers(py: Python<'_>) -> PyResult<()> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    templates::take(py)?;
    let _ = py;
    Ok(())
}

/// Creates short `str` objects with the headers of [`take_headers`]. The address of the headers is
/// loaded only once.
#[derive(Clone, Copy)]
pub(crate) struct Blanks<'py> {
    py: Python<'py>,
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    headers: Option<&'static templates::Headers>,
}

impl<'py> Blanks<'py> {
    #[inline(always)]
    pub(crate) fn new(py: Python<'py>) -> Blanks<'py> {
        Blanks {
            py,
            #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
            headers: templates::headers(),
        }
    }

    /// Returns the token for a held GIL.
    pub(crate) fn py(self) -> Python<'py> {
        self.py
    }

    /// Creates a short `str` like [`blank`]. `None` if the allocation fails. With stored headers,
    /// also `None` for an empty or a large `str`.
    #[inline(always)]
    pub(crate) fn small(self, shape: Shape) -> Option<Bound<'py, PyAny>> {
        #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
        if let Some(headers) = self.headers {
            return templates::blank(self.py, headers, shape);
        }
        blank_by_cpython(self.py, shape).ok()
    }
}

#[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
mod templates {
    use std::mem::{MaybeUninit, offset_of};
    use std::sync::OnceLock;

    use onecopy_text::Kind;

    use super::*;

    /// The maximum size of CPython's small-object allocator. A larger object requires a slow
    /// `malloc`.
    const MOST_BYTES: usize = 512;

    const ASCII_BYTES: usize = size_of::<ffi::PyASCIIObject>();
    const OTHER_BYTES: usize = size_of::<ffi::PyCompactUnicodeObject>();
    const LENGTH_AT: usize = offset_of!(ffi::PyASCIIObject, length);
    /// The offset of seven unused bytes in the header of a `str`. A comparison of headers ignores
    /// them.
    const UNUSED_AT: usize = LENGTH_AT + 2 * size_of::<ffi::Py_ssize_t>() + 1;

    /// The header of a new `str` of each kind, with a length of 0.
    pub(super) struct Headers {
        ascii: [u8; ASCII_BYTES],
        latin1: [u8; OTHER_BYTES],
        ucs2: [u8; OTHER_BYTES],
        ucs4: [u8; OTHER_BYTES],
    }

    static HEADERS: OnceLock<Headers> = OnceLock::new();

    #[inline(always)]
    pub(super) fn headers() -> Option<&'static Headers> {
        HEADERS.get()
    }

    /// Creates a `str` from a stored header, like [`super::blank`]. `None` if `shape` is empty or
    /// exceeds [`MOST_BYTES`].
    #[inline(always)]
    pub(super) fn blank<'py>(
        py: Python<'py>,
        headers: &Headers,
        shape: Shape,
    ) -> Option<Bound<'py, PyAny>> {
        let Shape { kind, n_chars } = shape;
        if n_chars == 0 || n_chars > MOST_BYTES {
            return None;
        }
        // SAFETY: the headers are those of these kinds; a short text of at least one character.
        unsafe {
            match kind {
                Kind::Ascii => with_header::<ASCII_BYTES, 1>(py, &headers.ascii, n_chars),
                Kind::Latin1 => with_header::<OTHER_BYTES, 1>(py, &headers.latin1, n_chars),
                Kind::Ucs2 => with_header::<OTHER_BYTES, 2>(py, &headers.ucs2, n_chars),
                Kind::Ucs4 => with_header::<OTHER_BYTES, 4>(py, &headers.ucs4, n_chars),
            }
        }
    }

    /// Creates a `str` with a copy of `header`.
    ///
    /// # Safety
    /// `header` must be the header of a new compact `str` whose code units have `UNIT` bytes.
    #[inline(always)]
    unsafe fn with_header<'py, const N: usize, const UNIT: usize>(
        py: Python<'py>,
        header: &[u8; N],
        n_chars: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let size = N + (n_chars + 1) * UNIT;
        if size > MOST_BYTES {
            return None;
        }
        // SAFETY: attached. The memory has the size that PyUnicode_New requests: header, units, a
        // terminating unit. It gets a fresh header (one reference, no hash, no cache; the type is
        // static and not counted) with this length, and the terminator. The comparison in `take`
        // proves that PyUnicode_New has the same result.
        unsafe {
            let at = ffi::PyObject_Malloc(size).cast::<u8>();
            if at.is_null() {
                return None;
            }
            at.cast::<[u8; N]>().write_unaligned(*header);
            at.add(LENGTH_AT)
                .cast::<ffi::Py_ssize_t>()
                .write(n_chars as ffi::Py_ssize_t);
            if let Some(shared) = shared::<UNIT>() {
                let data = at.add(N);
                at.add(shared.data_at).cast::<*mut u8>().write(data);
                at.add(shared.length_at)
                    .cast::<ffi::Py_ssize_t>()
                    .write(n_chars as ffi::Py_ssize_t);
            }
            let end = at.add(N + n_chars * UNIT);
            end.cast::<[u8; UNIT]>().write([0; UNIT]);
            Some(Bound::from_owned_ptr(py, at.cast()))
        }
    }

    /// The header offsets of the `wchar_t` pointer and of its length.
    #[derive(Clone, Copy)]
    struct Shared {
        data_at: usize,
        length_at: usize,
    }

    /// Returns the offsets of `wstr` and its length, if a header has these fields. Up to Python
    /// 3.11, `wstr` points to the `wchar_t` form of the `str` (PEP 393).
    #[inline(always)]
    fn shared<const UNIT: usize>() -> Option<Shared> {
        #[cfg(not(Py_3_12))]
        if UNIT > 1 && UNIT == size_of::<libc::wchar_t>() {
            return Some(Shared {
                data_at: offset_of!(ffi::PyASCIIObject, wstr),
                length_at: offset_of!(ffi::PyCompactUnicodeObject, wstr_length),
            });
        }
        None
    }

    /// Reads headers of CPython's `str` objects. Stores them in [`HEADERS`] if those of each kind
    /// differ only in the length.
    pub(super) fn take(py: Python<'_>) -> PyResult<()> {
        // A debug build counts new objects in `PyUnicode_New`.
        if py.import("sys")?.hasattr("gettotalrefcount")? {
            return Ok(());
        }
        let ascii = header::<ASCII_BYTES, 1>(py, Kind::Ascii)?;
        let latin1 = header::<OTHER_BYTES, 1>(py, Kind::Latin1)?;
        let ucs2 = header::<OTHER_BYTES, 2>(py, Kind::Ucs2)?;
        let ucs4 = header::<OTHER_BYTES, 4>(py, Kind::Ucs4)?;
        if let (Some(ascii), Some(latin1), Some(ucs2), Some(ucs4)) = (ascii, latin1, ucs2, ucs4) {
            // A second import in the same process reads the same headers.
            let _ = HEADERS.set(Headers {
                ascii,
                latin1,
                ucs2,
                ucs4,
            });
        }
        Ok(())
    }

    /// Returns the header of a new `str` of this kind. `None` for headers with other differences
    /// than the length.
    fn header<const N: usize, const UNIT: usize>(
        py: Python<'_>,
        kind: Kind,
    ) -> PyResult<Option<[u8; N]>> {
        let of = |n_chars: usize| -> PyResult<Option<[u8; N]>> {
            let made = blank_by_cpython(py, Shape { kind, n_chars })?;
            let at = made.as_ptr().cast::<u8>();
            let mut header = MaybeUninit::<[u8; N]>::uninit();
            // SAFETY: a compact `str` with a header of N bytes. PyUnicode_New writes all but the
            // unused ones, which are set to zeros in both copies. (`[u8; 7]` may be at any
            // address.)
            unsafe {
                // The drop of this `str` requires initialised characters.
                let data = ffi::PyUnicode_DATA(made.as_ptr()).cast::<u8>();
                std::ptr::write_bytes(data, b'x', n_chars * UNIT);
                let to = header.as_mut_ptr().cast::<u8>();
                std::ptr::copy_nonoverlapping(at, to, N);
                let mut is_known = data == at.add(N) && take_word(to.add(LENGTH_AT)) == n_chars;
                to.add(UNUSED_AT).cast::<[u8; 7]>().write([0; 7]);
                if let Some(shared) = shared::<UNIT>() {
                    is_known &= take_word(to.add(shared.data_at)) == data as usize;
                    is_known &= take_word(to.add(shared.length_at)) == n_chars;
                }
                Ok(is_known.then(|| header.assume_init()))
            }
        };
        let (a, b, c) = (of(3)?, of(3)?, of(17)?);
        Ok(if a == b && b == c { a } else { None })
    }

    /// Reads the word at an address, and sets it to 0.
    ///
    /// # Safety
    /// A word at `at` must be readable and writable.
    unsafe fn take_word(at: *mut u8) -> usize {
        let at = at.cast::<usize>();
        // SAFETY: the caller guarantees the requirements.
        unsafe {
            let word = at.read_unaligned();
            at.write_unaligned(0);
            word
        }
    }
}
