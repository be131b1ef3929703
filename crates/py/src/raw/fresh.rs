//! Fresh `str` objects whose data is yet to be written.
//!
//! `PyUnicode_New` is a third of what a short text costs. Up to Python 3.13 a compact `str` is an allocation and a header that
//! is the same for all of a kind but for the length: the headers are taken from objects that CPython made, when the module
//! is imported, and copied. Where two objects of CPython's differ in anything but their length (a debug build, a layout that
//! we do not know) `PyUnicode_New` is called as ever.

use onecopy_text::Shape;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::pages;

/// A `str` of this shape, of at least one character; its data is yet to be written.
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
    // SAFETY: attached; the length is not negative and max_char is one that CPython knows.
    let made = unsafe {
        let made = ffi::PyUnicode_New(n, shape.kind.max_char());
        Bound::from_owned_ptr_or_err(py, made)?
    };
    pages::ask(made.as_ptr(), shape.n_chars * shape.kind.unit_bytes());
    Ok(made)
}

/// Takes the headers; called when the module is imported.
pub(crate) fn take_headers(py: Python<'_>) -> PyResult<()> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    templates::take(py)?;
    let _ = py;
    Ok(())
}

/// A maker of small `str` objects: the headers are looked up once for all that it makes.
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

    /// Proof that we are attached.
    pub(crate) fn py(self) -> Python<'py> {
        self.py
    }

    /// As [`blank`], for a short text; `None` for a longer one, and where there is no memory.
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

    /// Larger ones are no small objects of CPython's allocator, which hands them on to the C library: what is saved is little
    /// beside that.
    const MOST_BYTES: usize = 512;

    const ASCII_BYTES: usize = size_of::<ffi::PyASCIIObject>();
    const OTHER_BYTES: usize = size_of::<ffi::PyCompactUnicodeObject>();
    const LENGTH_AT: usize = offset_of!(ffi::PyASCIIObject, length);
    /// Behind length and hash stands a byte with the bits of the state (interned, kind, compact, ascii); seven follow that
    /// nobody writes or reads: 24 bits without a name, and padding.
    const UNUSED_AT: usize = LENGTH_AT + 2 * size_of::<ffi::Py_ssize_t>() + 1;

    /// Headers of fresh `str` objects, with a length of 0.
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

    /// As [`super::blank`], where the text is short.
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

    /// # Safety
    /// `header` is that of a fresh compact `str` of units of `UNIT` bytes.
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
        // SAFETY: attached. The place is as large as PyUnicode_New makes it: header, units, a terminating unit. It gets the
        // bytes of a fresh header (one reference, no hash, no cache; the type is static and not counted) with this length,
        // and the terminator: what PyUnicode_New gives, by the comparison in `take`.
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

    /// Where a header holds a pointer to its own data and its length, for units as wide as `wchar_t` is here.
    #[derive(Clone, Copy)]
    struct Shared {
        data_at: usize,
        length_at: usize,
    }

    /// Up to Python 3.11 a `str` may be read as `wchar_t` (PEP 393, `wstr`): its own data, where that is as wide.
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

    /// Takes the headers, where copies of them are as good as CPython's.
    pub(super) fn take(py: Python<'_>) -> PyResult<()> {
        // A build that counts all references does so in PyUnicode_New.
        if py.import("sys")?.hasattr("gettotalrefcount")? {
            return Ok(());
        }
        let ascii = header::<ASCII_BYTES, 1>(py, Kind::Ascii)?;
        let latin1 = header::<OTHER_BYTES, 1>(py, Kind::Latin1)?;
        let ucs2 = header::<OTHER_BYTES, 2>(py, Kind::Ucs2)?;
        let ucs4 = header::<OTHER_BYTES, 4>(py, Kind::Ucs4)?;
        if let (Some(ascii), Some(latin1), Some(ucs2), Some(ucs4)) = (ascii, latin1, ucs2, ucs4) {
            // A second import in this process finds the same.
            let _ = HEADERS.set(Headers {
                ascii,
                latin1,
                ucs2,
                ucs4,
            });
        }
        Ok(())
    }

    /// The header of a fresh `str` of this kind; `None` where two of them differ in more than their length, or have their data
    /// elsewhere than we write it.
    fn header<const N: usize, const UNIT: usize>(
        py: Python<'_>,
        kind: Kind,
    ) -> PyResult<Option<[u8; N]>> {
        let of = |n_chars: usize| -> PyResult<Option<[u8; N]>> {
            let made = blank_by_cpython(py, Shape { kind, n_chars })?;
            let at = made.as_ptr().cast::<u8>();
            let mut header = MaybeUninit::<[u8; N]>::uninit();
            // SAFETY: a compact `str`, whose header has N bytes, all written by PyUnicode_New but for those
            // that are unused: they are set to zeros, and so is what is written for each. (`[u8; 7]` stands at any address.)
            unsafe {
                // Its data is initialised too: the object is dropped as a `str` like any other.
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

    /// Reads a word and sets it to 0.
    ///
    /// # Safety
    /// `at` is readable and writable for a word.
    unsafe fn take_word(at: *mut u8) -> usize {
        let at = at.cast::<usize>();
        // SAFETY: the duty of the caller.
        unsafe {
            let word = at.read_unaligned();
            at.write_unaligned(0);
            word
        }
    }
}
