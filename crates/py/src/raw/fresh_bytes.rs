//! Creates `bytes` objects for data that the caller writes later. A short object gets a copy of a
//! stored header, as in [`super::fresh`].

use std::mem::{MaybeUninit, offset_of};

use onecopy_text::convert::NewBytes;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The offset of the data in a `bytes` object, in bytes.
#[allow(deprecated)]
const DATA_AT: usize = offset_of!(ffi::PyBytesObject, ob_sval);

/// Creates a `bytes` object of length `len`. `write` fills its data. Copies: none.
#[inline]
pub(crate) fn make_with<'py>(
    py: Python<'py>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> PyResult<Bound<'py, PyAny>> {
    let made = blank(py, len)?;
    // SAFETY: a `bytes` of this length without other references. An empty one is shared, and has no
    // byte to write.
    write(unsafe { std::slice::from_raw_parts_mut(data_of(&made), len) });
    Ok(made)
}

fn blank(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyAny>> {
    let size = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: attached; a null source makes a `bytes` without initialised data.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        super::pages::ask(made.as_ptr(), len);
        Ok(made)
    }
}

/// Stores the header for [`SmallBytes`]. The import of the module calls this function.
pub(crate) fn take_header(py: Python<'_>) -> PyResult<()> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    template::take(py)?;
    let _ = py;
    Ok(())
}

/// Creates short `bytes` objects. After a failure, the caller must call
/// `PyBytes_FromStringAndSize`, which sets the exception.
pub(crate) struct SmallBytes<'py>(pub(crate) Python<'py>);

impl<'py> NewBytes for SmallBytes<'py> {
    type Bytes = (Bound<'py, PyAny>, usize);
    type Error = ();

    #[inline(always)]
    fn new_bytes(&mut self, len: usize) -> Result<Self::Bytes, ()> {
        #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
        if let Some(header) = template::header() {
            return Ok((template::blank(self.0, header, len).ok_or(())?, len));
        }
        Ok((blank(self.0, len).map_err(|_| ())?, len))
    }

    #[inline(always)]
    fn data<'a>(&self, (made, len): &'a mut Self::Bytes) -> &'a mut [MaybeUninit<u8>] {
        // SAFETY: a new `bytes` of this length without other references. An empty one is shared,
        // and has no byte to write.
        unsafe { std::slice::from_raw_parts_mut(data_of(made), *len) }
    }
}

/// Returns the address of the data of a `bytes` object.
///
/// # Safety
/// `made` must be a `bytes`.
#[inline(always)]
unsafe fn data_of(made: &Bound<'_, PyAny>) -> *mut MaybeUninit<u8> {
    // SAFETY: the caller guarantees the requirements.
    unsafe { made.as_ptr().byte_add(DATA_AT).cast() }
}

#[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
mod template {
    use std::mem::offset_of;
    use std::sync::OnceLock;

    use pyo3::ffi;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    use super::DATA_AT;

    /// The maximum length of a `bytes` in CPython's small-object allocator.
    const MOST_BYTES: usize = 512 - DATA_AT - 1;

    const LENGTH_AT: usize = offset_of!(ffi::PyVarObject, ob_size);

    /// The header of a new `bytes` object, with a length of 0.
    type Header = [u8; DATA_AT];

    static HEADER: OnceLock<Header> = OnceLock::new();

    #[inline(always)]
    pub(super) fn header() -> Option<&'static Header> {
        HEADER.get()
    }

    /// Creates a `bytes` object from `header`. `None` if `len` is above `MOST_BYTES`, 0 or 1.
    /// CPython shares the shortest objects.
    #[inline(always)]
    pub(super) fn blank<'py>(
        py: Python<'py>,
        header: &Header,
        len: usize,
    ) -> Option<Bound<'py, PyAny>> {
        if len <= 1 || len > MOST_BYTES {
            return None;
        }
        // SAFETY: attached. The memory has the size that PyBytes_FromStringAndSize requests:
        // header, bytes, a terminator. It gets a fresh header (one reference, no hash; the type is
        // static and not counted) with this length, and the terminator. The comparison in `take`
        // proves that the call has the same result.
        unsafe {
            let at = ffi::PyObject_Malloc(DATA_AT + len + 1).cast::<u8>();
            if at.is_null() {
                return None;
            }
            at.cast::<Header>().write_unaligned(*header);
            at.add(LENGTH_AT)
                .cast::<ffi::Py_ssize_t>()
                .write(len as ffi::Py_ssize_t);
            at.add(DATA_AT + len).write(0);
            Some(Bound::from_owned_ptr(py, at.cast()))
        }
    }

    /// Reads headers of CPython's `bytes` objects. Stores one in [`HEADER`] if they differ only in
    /// the length.
    pub(super) fn take(py: Python<'_>) -> PyResult<()> {
        // A debug build counts new objects in `PyBytes_FromStringAndSize`.
        if py.import("sys")?.hasattr("gettotalrefcount")? {
            return Ok(());
        }
        let of = |data: &[u8]| {
            let made = PyBytes::new(py, data);
            // SAFETY: a new `bytes` of a length above 1. Its header of DATA_AT bytes is written,
            // and its data follows.
            let (mut header, is_known) = unsafe {
                let at = made.as_ptr().cast::<u8>();
                let is_known = ffi::PyBytes_AsString(made.as_ptr()).cast::<u8>() == at.add(DATA_AT);
                (at.cast::<Header>().read_unaligned(), is_known)
            };
            let (_, from) = header.split_at_mut(LENGTH_AT);
            let (length, _) = from.split_at_mut(size_of::<usize>());
            let is_known = is_known && *length == data.len().to_ne_bytes();
            length.fill(0);
            is_known.then_some(header)
        };
        let (a, b) = (of(b"abc"), of(b"a longer one"));
        if let Some(header) = a
            && a == b
        {
            // A second import in the same process reads the same header.
            let _ = HEADER.set(header);
        }
        Ok(())
    }
}
