//! Buffers of other objects (PEP 3118, PEP 688), borrowed.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use onecopy_text::convert::VolatileBytes;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use pyo3::{Borrowed, ffi};

/// The bytes of an object as they were at one moment.
pub(crate) enum Bytes<'a, 'py> {
    /// The data of a `bytes`, which never moves or changes.
    Immutable(&'a [u8], PhantomData<Python<'py>>),
    /// A contiguous view of a `bytes`.
    View(Held<'py>),
    /// A private copy of any other buffer, in the order of its elements. Its owner, another thread or another process may
    /// write to the buffer at any time: `readinto`, `recv_into` and `preadv` do so without the GIL.
    Copied(Vec<u8>),
}

/// A buffer that is released when this is dropped.
pub(crate) struct Held<'py>(Box<ffi::Py_buffer>, PhantomData<Python<'py>>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: filled by PyObject_GetBuffer, released here alone, attached ('py).
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
    }
}

impl Held<'_> {
    fn len(&self) -> usize {
        usize::try_from(self.0.len).unwrap_or(0)
    }

    /// The data of a contiguous view of a `bytes`.
    fn stable_bytes(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: as many bytes of a `bytes`, which nobody may change; the view keeps it alive.
        unsafe { slice::from_raw_parts(self.0.buf.cast(), self.len()) }
    }

    /// The memory of a contiguous buffer.
    fn bytes(&self) -> VolatileBytes<'_> {
        let at = match self.len() {
            0 => std::ptr::dangling(),
            _ => self.0.buf.cast_const().cast(),
        };
        // SAFETY: a contiguous buffer of `len` bytes (requested with PyBUF_SIMPLE), whose owner neither moves nor frees it
        // before it is released, in `drop`. An empty one is not read.
        unsafe { VolatileBytes::new(at, self.len()) }
    }
}

/// Whether the object is a memoryview of a `bytes`, whose data never changes.
fn is_view_of_bytes(object: Borrowed<'_, '_, PyAny>) -> PyResult<bool> {
    Ok(object.is_exact_instance_of::<PyMemoryView>()
        && object.getattr("obj")?.is_exact_instance_of::<PyBytes>())
}

/// A contiguous buffer that anybody may write to while it is borrowed.
pub(crate) struct VolatileBuffer<'py>(Held<'py>);

impl<'py> VolatileBuffer<'py> {
    /// The buffer of any object that has one; `None` of a `bytes`, and of a buffer that is not contiguous.
    pub(crate) fn of(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Option<Self>> {
        // SAFETY: any object may be checked.
        let is_stable = unsafe {
            ffi::PyBytes_CheckExact(object.as_ptr()) != 0
                || ffi::PyObject_CheckBuffer(object.as_ptr()) == 0
        };
        if is_stable || is_view_of_bytes(object)? {
            return Ok(None);
        }
        match view(object, ffi::PyBUF_SIMPLE) {
            Ok(view) => Ok(Some(VolatileBuffer(view))),
            Err(e) if e.is_instance_of::<PyBufferError>(object.py()) => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn bytes(&self) -> VolatileBytes<'_> {
        self.0.bytes()
    }
}

/// The data of a `bytes`; `None` of any other object.
#[inline]
pub(crate) fn of_bytes<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    let at = object.as_ptr();
    // SAFETY: a `bytes`, whose data of `Py_SIZE` bytes lives and stays as long as the object, which 'a borrows.
    unsafe {
        if ffi::PyBytes_CheckExact(at) == 0 {
            return None;
        }
        let len = ffi::Py_SIZE(at).unsigned_abs();
        let data = ffi::PyBytes_AS_STRING(at);
        Some(slice::from_raw_parts(data.cast(), len))
    }
}

fn view<'py>(object: Borrowed<'_, 'py, PyAny>, flags: i32) -> PyResult<Held<'py>> {
    // SAFETY: a Py_buffer of zeros is a valid place for PyObject_GetBuffer to fill.
    let mut view = unsafe { Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed().assume_init()) };
    // SAFETY: any object may be asked; the view is filled where 0 comes back.
    if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) } != 0 {
        return Err(PyErr::fetch(object.py()));
    }
    Ok(Held(view, PhantomData))
}

impl<'a, 'py> Bytes<'a, 'py> {
    /// The bytes of any object with a buffer. Copies: none of a `bytes`, else one.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer, `MemoryError`; what the object raises.
    #[inline]
    pub(crate) fn of(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Bytes<'a, 'py>> {
        if let Some(bytes) = of_bytes(object) {
            return Ok(Bytes::Immutable(bytes, PhantomData));
        }
        Bytes::of_other(object)
    }

    #[inline(never)]
    fn of_other(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Bytes<'a, 'py>> {
        let py = object.py();
        // SAFETY: any object may be asked.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a bytes-like object is required, not '{kind}'"
            )));
        }
        match view(object, ffi::PyBUF_SIMPLE) {
            Ok(view) if is_view_of_bytes(object)? => return Ok(Bytes::View(view)),
            Ok(view) => {
                let bytes = view.bytes().to_vec();
                let bytes = bytes.ok_or_else(|| PyMemoryError::new_err(()))?;
                return Ok(Bytes::Copied(bytes));
            }
            Err(e) if e.is_instance_of::<PyBufferError>(py) => {}
            Err(e) => return Err(e),
        }
        gathered(view(object, ffi::PyBUF_FULL_RO)?, py).map(Bytes::Copied)
    }

    /// Whether the object has a buffer.
    pub(crate) fn is_buffer(object: Borrowed<'_, '_, PyAny>) -> bool {
        // SAFETY: any object may be asked.
        unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
    }

    /// The bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Immutable(bytes, _) => bytes,
            Bytes::View(view) => view.stable_bytes(),
            Bytes::Copied(bytes) => bytes,
        }
    }
}

/// The items of a buffer, in the order of its elements. Copies: one.
fn gathered(mut view: Held<'_>, py: Python<'_>) -> PyResult<Vec<u8>> {
    let len = view.len();
    let mut bytes: Vec<u8> = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| PyMemoryError::new_err(()))?;
    if len > 0 {
        // SAFETY: the capacity takes `len` bytes, and 'C' is an order that CPython knows; it writes each of them.
        unsafe {
            let (n, order) = (view.0.len, b'C' as std::ffi::c_char);
            let to = bytes.as_mut_ptr().cast();
            if ffi::PyBuffer_ToContiguous(to, &raw mut *view.0, n, order) != 0 {
                return Err(PyErr::fetch(py));
            }
            bytes.set_len(len);
        }
    }
    Ok(bytes)
}

/// Writes into a writable, contiguous buffer; `write` gets all of it.
///
/// # Errors
/// `BufferError` where it is read-only or in pieces, `TypeError` where there is no buffer.
pub(crate) fn with_writable<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> PyResult<R>,
) -> PyResult<R> {
    let view = view(object, ffi::PyBUF_WRITABLE)?;
    let len = usize::try_from(view.0.len).unwrap_or(0);
    if len == 0 {
        return write(&mut []);
    }
    // SAFETY: a writable contiguous buffer of `len` bytes, held by us; nothing else runs meanwhile that is attached, and
    // the text that is written comes from a `str`, whose data is no buffer.
    write(unsafe { slice::from_raw_parts_mut(view.0.buf.cast(), len) })
}

/// A writable place that a buffer lends.
pub(crate) struct Place<'a> {
    pub(super) at: *mut u8,
    pub(super) len: usize,
    lent: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

impl Place<'_> {
    /// The same without its first `n` bytes; `None` where it has not as many.
    pub(crate) fn behind(mut self, n: usize) -> Option<Self> {
        self.len = self.len.checked_sub(n)?;
        // SAFETY: inside of the place, or right behind it.
        self.at = unsafe { self.at.add(n) };
        Some(self)
    }
}

/// Lends a writable, contiguous buffer, in which other code may write too meanwhile.
///
/// # Errors
/// As [`with_writable`].
pub(crate) fn with_place<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    write: impl FnOnce(Place<'_>) -> PyResult<R>,
) -> PyResult<R> {
    let view = view(object, ffi::PyBUF_WRITABLE)?;
    let len = usize::try_from(view.0.len).unwrap_or(0);
    let at = if len == 0 {
        std::ptr::dangling_mut()
    } else {
        view.0.buf.cast()
    };
    write(Place {
        at,
        len,
        lent: PhantomData,
    })
}

/// The bytes as units of a wider size, where they stand at a place for such.
#[inline(always)]
pub(crate) fn as_units<U: Unit>(bytes: &[u8]) -> Option<&[U]> {
    if !bytes.len().is_multiple_of(size_of::<U>()) || !bytes.as_ptr().cast::<U>().is_aligned() {
        return None;
    }
    // SAFETY: aligned and whole, checked above; any bits are a good unit.
    Some(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<U>()) })
}

/// A unit of any bits.
pub(crate) trait Unit: Copy {}
impl Unit for u16 {}
impl Unit for u32 {}
impl Unit for i64 {}

/// Copies bytes into a place of their size.
#[inline]
pub(crate) fn put(out: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    // SAFETY: MaybeUninit<u8> has the layout of u8, and any byte is a good value of it.
    out.copy_from_slice(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) });
}

/// The format of an object's elements (PEP 3118); `B` where it gives none.
pub(crate) fn format_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let view = view(object, ffi::PyBUF_FORMAT | ffi::PyBUF_ND)?;
    if view.0.format.is_null() {
        return Ok("B".to_owned());
    }
    // SAFETY: not null: a C string that lives as long as the view.
    let format = unsafe { std::ffi::CStr::from_ptr(view.0.format) };
    Ok(format.to_string_lossy().into_owned())
}

/// The items of a buffer, in the order of its elements.
pub(crate) struct Items {
    /// The format of an item, as `struct` has it.
    pub(crate) format: String,
    pub(crate) item_bytes: usize,
    pub(crate) n_dimensions: usize,
    pub(crate) bytes: Vec<u8>,
}

/// The items of an object's buffer. Copies: one.
///
/// # Errors
/// What the object raises where it lends none.
pub(crate) fn items_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<Items> {
    let view = view(object, ffi::PyBUF_FULL_RO)?;
    let format = match view.0.format.is_null() {
        true => "B".to_owned(),
        // SAFETY: not null: a C string that lives as long as the view.
        false => unsafe { std::ffi::CStr::from_ptr(view.0.format) }
            .to_string_lossy()
            .into_owned(),
    };
    let item_bytes = usize::try_from(view.0.itemsize).unwrap_or(0);
    let n_dimensions = usize::try_from(view.0.ndim).unwrap_or(0);
    let bytes = gathered(view, object.py())?;
    Ok(Items {
        format,
        item_bytes,
        n_dimensions,
        bytes,
    })
}
