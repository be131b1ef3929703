//! Fresh `str` objects whose data is yet to be written.
//!
//! `PyUnicode_New` is a third of what a short text costs. Up to Python 3.13 a compact `str` is an allocation and a header that
//! is the same for all of a kind but for the length: the headers are taken from objects that CPython made, when the module
//! is imported, and copied. Where two objects of CPython's differ in anything but their length (a debug build, a layout that
//! we do not know) `PyUnicode_New` is called as ever. Kind 4 always is: its header may hold a pointer to its own data.

use onecopy_text::{Kind, Shape};
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A `str` of this shape, of at least one character; its data is yet to be written.
#[inline]
pub(crate) fn blank(py: Python<'_>, shape: Shape) -> PyResult<Bound<'_, PyAny>> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    if let Some(made) = templates::blank(py, shape) {
        return Ok(made);
    }
    blank_by_cpython(py, shape)
}

#[inline(never)]
fn blank_by_cpython(py: Python<'_>, shape: Shape) -> PyResult<Bound<'_, PyAny>> {
    let n = isize::try_from(shape.n_chars).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: attached; the length is not negative and max_char is one that CPython knows.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyUnicode_New(n, shape.kind.max_char())) }
}

/// Takes the headers; called when the module is imported.
pub(crate) fn take_headers(py: Python<'_>) -> PyResult<()> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    templates::take(py)?;
    let _ = py;
    Ok(())
}

#[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
mod templates {
    use std::mem::{MaybeUninit, offset_of};
    use std::sync::OnceLock;

    use super::*;

    /// Longer ones are no small objects: what is saved is nothing beside their data.
    const MOST_CHARS: usize = 200;

    const ASCII_BYTES: usize = size_of::<ffi::PyASCIIObject>();
    const OTHER_BYTES: usize = size_of::<ffi::PyCompactUnicodeObject>();
    const LENGTH_AT: usize = offset_of!(ffi::PyASCIIObject, length);
    /// Behind length and hash stands a byte with the bits of the state (interned, kind, compact, ascii); seven follow that
    /// nobody writes or reads: 24 bits without a name, and padding.
    const UNUSED_AT: usize = LENGTH_AT + 2 * size_of::<ffi::Py_ssize_t>() + 1;

    struct Headers {
        ascii: [u8; ASCII_BYTES],
        latin1: [u8; OTHER_BYTES],
        ucs2: [u8; OTHER_BYTES],
    }

    static HEADERS: OnceLock<Headers> = OnceLock::new();

    /// As [`super::blank`], where the headers are known and the text is short.
    #[inline]
    pub(super) fn blank(py: Python<'_>, shape: Shape) -> Option<Bound<'_, PyAny>> {
        let Shape { kind, n_chars } = shape;
        if n_chars == 0 || n_chars > MOST_CHARS {
            return None;
        }
        let headers = HEADERS.get()?;
        // SAFETY: the headers are those of these kinds; a short text of at least one character.
        unsafe {
            match kind {
                Kind::Ascii => with_header::<ASCII_BYTES, 1>(py, &headers.ascii, n_chars),
                Kind::Latin1 => with_header::<OTHER_BYTES, 1>(py, &headers.latin1, n_chars),
                Kind::Ucs2 => with_header::<OTHER_BYTES, 2>(py, &headers.ucs2, n_chars),
                Kind::Ucs4 => None,
            }
        }
    }

    /// # Safety
    /// `header` is that of a fresh compact `str` of units of `UNIT` bytes.
    #[inline]
    unsafe fn with_header<'py, const N: usize, const UNIT: usize>(
        py: Python<'py>,
        header: &[u8; N],
        n_chars: usize,
    ) -> Option<Bound<'py, PyAny>> {
        // SAFETY: attached. The place is as large as PyUnicode_New makes it: header, units, a terminating unit. It gets the
        // bytes of a fresh header (one reference, no hash, no cache; the type is static and not counted) with this length,
        // and the terminator: what PyUnicode_New gives, by the comparison in `take`.
        unsafe {
            let at = ffi::PyObject_Malloc(N + (n_chars + 1) * UNIT).cast::<u8>();
            if at.is_null() {
                return None;
            }
            at.cast::<[u8; N]>().write_unaligned(*header);
            at.add(LENGTH_AT)
                .cast::<ffi::Py_ssize_t>()
                .write(n_chars as ffi::Py_ssize_t);
            let end = at.add(N + n_chars * UNIT);
            for i in 0..UNIT {
                end.add(i).write(0);
            }
            Some(Bound::from_owned_ptr(py, at.cast()))
        }
    }

    /// Takes the headers, where copies of them are as good as CPython's.
    pub(super) fn take(py: Python<'_>) -> PyResult<()> {
        // A build that counts all references does so in PyUnicode_New.
        if py.import("sys")?.hasattr("gettotalrefcount")? {
            return Ok(());
        }
        let ascii = header(py, Kind::Ascii)?;
        let latin1 = header(py, Kind::Latin1)?;
        let ucs2 = header(py, Kind::Ucs2)?;
        if let (Some(ascii), Some(latin1), Some(ucs2)) = (ascii, latin1, ucs2) {
            // A second import in this process finds the same.
            let _ = HEADERS.set(Headers {
                ascii,
                latin1,
                ucs2,
            });
        }
        Ok(())
    }

    /// The header of a fresh `str` of this kind; `None` where two of them differ in more than their length.
    fn header<const N: usize>(py: Python<'_>, kind: Kind) -> PyResult<Option<[u8; N]>> {
        let of = |n_chars| -> PyResult<[u8; N]> {
            let made = blank_by_cpython(py, Shape { kind, n_chars })?;
            let mut header = MaybeUninit::<[u8; N]>::uninit();
            // SAFETY: a compact `str`, whose header has N bytes, all written by PyUnicode_New but for those
            // that are unused: they are set to zeros, and so is the length. (`[u8; 7]` stands at any address.)
            unsafe {
                let to = header.as_mut_ptr().cast::<u8>();
                std::ptr::copy_nonoverlapping(made.as_ptr().cast::<u8>(), to, N);
                to.add(LENGTH_AT)
                    .cast::<ffi::Py_ssize_t>()
                    .write_unaligned(0);
                to.add(UNUSED_AT).cast::<[u8; 7]>().write([0; 7]);
                // Its data is initialised too: the object is dropped as a `str` like any other.
                std::ptr::write_bytes(
                    ffi::PyUnicode_DATA(made.as_ptr()).cast::<u8>(),
                    b'x',
                    n_chars,
                );
                Ok(header.assume_init())
            }
        };
        let (a, b, c) = (of(3)?, of(3)?, of(17)?);
        Ok((a == b && b == c).then_some(a))
    }
}
