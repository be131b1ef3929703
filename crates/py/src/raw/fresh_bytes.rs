//! Fresh `bytes` objects whose data is yet to be written: as in [`super::fresh`], a short one is an allocation and a header
//! that is the same for all but for the length.

use std::mem::MaybeUninit;

use onecopy_text::convert::NewBytes;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A new `bytes` of `len`, which `write` fills. Copies: none.
#[inline]
pub(crate) fn make_with<'py>(
    py: Python<'py>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> PyResult<Bound<'py, PyAny>> {
    let size = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: attached; a null source makes a `bytes` whose data is left to us. It is ours alone (an empty one is shared,
    // and has nothing to write), and its data area takes `len` bytes.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        super::pages::ask(made.as_ptr(), len);
        let data = ffi::PyBytes_AsString(made.as_ptr());
        write(std::slice::from_raw_parts_mut(data.cast(), len));
        Ok(made)
    }
}

/// Takes the header; called when the module is imported.
pub(crate) fn take_header(py: Python<'_>) -> PyResult<()> {
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    template::take(py)?;
    let _ = py;
    Ok(())
}

/// Makes short `bytes`. Where there is no memory, who asks goes the way of any text, which says so.
pub(crate) struct SmallBytes<'py>(pub(crate) Python<'py>);

impl<'py> NewBytes for SmallBytes<'py> {
    type Bytes = Bound<'py, PyAny>;
    type Error = ();

    #[inline(always)]
    fn new_bytes(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Result<Bound<'py, PyAny>, ()> {
        #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
        if let Some(header) = template::header() {
            return template::make_with(self.0, header, len, write).ok_or(());
        }
        make_with(self.0, len, write).map_err(|_| ())
    }
}

#[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
mod template {
    use std::mem::{MaybeUninit, offset_of};
    use std::sync::OnceLock;

    use pyo3::ffi;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    /// Longer ones are no small objects: what is saved is nothing beside their data.
    const MOST_BYTES: usize = 400;

    #[allow(deprecated)]
    const DATA_AT: usize = offset_of!(ffi::PyBytesObject, ob_sval);
    const LENGTH_AT: usize = offset_of!(ffi::PyVarObject, ob_size);

    /// The header of a fresh `bytes`, with a length of 0.
    type Header = [u8; DATA_AT];

    static HEADER: OnceLock<Header> = OnceLock::new();

    #[inline(always)]
    pub(super) fn header() -> Option<&'static Header> {
        HEADER.get()
    }

    /// As [`super::make_with`], for short ones that are not shared.
    #[inline(always)]
    pub(super) fn make_with<'py>(
        py: Python<'py>,
        header: &Header,
        len: usize,
        write: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Option<Bound<'py, PyAny>> {
        if len <= 1 || len > MOST_BYTES {
            return None;
        }
        // SAFETY: attached. The place is as large as PyBytes_FromStringAndSize makes it: header, bytes, a terminator. It gets
        // the bytes of a fresh header (one reference, no hash; the type is static and not counted) with this length, and the
        // terminator: what that call gives, by the comparison in `take`. The data is ours alone.
        unsafe {
            let at = ffi::PyObject_Malloc(DATA_AT + len + 1).cast::<u8>();
            if at.is_null() {
                return None;
            }
            at.cast::<Header>().write_unaligned(*header);
            at.add(LENGTH_AT)
                .cast::<ffi::Py_ssize_t>()
                .write(len as ffi::Py_ssize_t);
            let data = at.add(DATA_AT);
            data.add(len).write(0);
            let made = Bound::from_owned_ptr(py, at.cast());
            write(std::slice::from_raw_parts_mut(data.cast(), len));
            Some(made)
        }
    }

    /// Takes the header, where a copy of it is as good as CPython's.
    pub(super) fn take(py: Python<'_>) -> PyResult<()> {
        // A build that counts all references does so in PyBytes_FromStringAndSize.
        if py.import("sys")?.hasattr("gettotalrefcount")? {
            return Ok(());
        }
        let of = |data: &[u8]| {
            let made = PyBytes::new(py, data);
            // SAFETY: a `bytes` of a length above 1, made a moment ago: its header of DATA_AT bytes is written, and its data
            // behind that.
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
            // A second import in this process finds the same.
            let _ = HEADER.set(header);
        }
        Ok(())
    }
}
