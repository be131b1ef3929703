//! Borrows or copies the bytes of Python objects with a buffer (PEP 3118, PEP 688).
//!
//! Only the data of a `bytes` never changes. Other threads and processes may write to any other
//! buffer. Such a buffer is read as [`VolatileBytes`], or first copied to private memory.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use onecopy_text::convert::VolatileBytes;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use pyo3::{Borrowed, ffi};

use super::binary;
use super::private_bytes::PrivateBytes;

/// The bytes of a Python object. They do not change during the borrow.
pub(crate) enum BufferBytes<'a, 'py> {
    /// The data of a `bytes`, which never moves or changes.
    Immutable(&'a [u8], PhantomData<Python<'py>>),
    /// A slice of a `bytes`; `_owner` keeps the `bytes` alive.
    Part {
        _owner: Bound<'py, PyAny>,
        part: *const [u8],
    },
    /// A private copy of any other buffer, in C order.
    Copied(PrivateBytes),
}

/// A buffer from `PyObject_GetBuffer`. Dropping this value releases the buffer.
struct View<'v, 'py>(&'v mut ffi::Py_buffer, PhantomData<Python<'py>>);

impl Drop for View<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: filled by PyObject_GetBuffer, released here only, attached ('py).
        unsafe { ffi::PyBuffer_Release(self.0) }
    }
}

impl View<'_, '_> {
    fn len(&self) -> usize {
        usize::try_from(self.0.len).unwrap_or(0)
    }

    /// Returns the memory of a contiguous buffer, requested with `PyBUF_SIMPLE`.
    fn bytes(&self) -> VolatileBytes<'_> {
        let at = match self.len() {
            0 => std::ptr::dangling(),
            _ => self.0.buf.cast_const().cast(),
        };
        // SAFETY: a contiguous buffer of `len` bytes (requested with PyBUF_SIMPLE). Its owner does
        // not move or free it before `drop`. An empty one is not read.
        unsafe { VolatileBytes::new(at, self.len()) }
    }
}

/// The borrowed bytes of a Python object.
pub(crate) enum BorrowedBytes<'a> {
    /// Bytes that never change.
    Stable(&'a [u8]),
    /// Bytes that other code may change at the same time.
    Volatile(VolatileBytes<'a>),
}

/// Calls `read` with the bytes of an object. Copies: none for a contiguous buffer; any other buffer
/// is copied once.
///
/// # Errors
/// `TypeError` for an object without a buffer; `MemoryError` if the allocation fails; the exception
/// of the buffer request; the error of `read`.
#[inline]
pub(crate) fn with_source<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    read: impl FnOnce(BorrowedBytes<'_>) -> PyResult<R>,
) -> PyResult<R> {
    match of_bytes(object) {
        Some(bytes) => read(BorrowedBytes::Stable(bytes)),
        None => with_other_source(object, read),
    }
}

fn with_other_source<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    read: impl FnOnce(BorrowedBytes<'_>) -> PyResult<R>,
) -> PyResult<R> {
    check(object)?;
    let mut place = MaybeUninit::zeroed();
    match view(object, ffi::PyBUF_SIMPLE, &mut place) {
        Ok(view) => match part_of_bytes(object, &view)? {
            // SAFETY: a part of the data of a `bytes`, which the view keeps alive.
            Some((_bytes, part)) => read(BorrowedBytes::Stable(unsafe { &*part })),
            None => read(BorrowedBytes::Volatile(view.bytes())),
        },
        Err(e) if e.is_instance_of::<PyBufferError>(object.py()) => {
            let copy = gathered(object)?;
            read(BorrowedBytes::Stable(&copy))
        }
        Err(e) => Err(e),
    }
}

/// Returns the `bytes` under a read-only memoryview and the visible slice. `None` for other
/// objects.
fn part_of_bytes<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    view: &View<'_, 'py>,
) -> PyResult<Option<(Bound<'py, PyAny>, *const [u8])>> {
    if view.0.readonly == 0 || !object.is_exact_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    let owner = object.getattr(intern!(object.py(), "obj"))?;
    if !owner.is_exact_instance_of::<PyBytes>() {
        return Ok(None);
    }
    let part = std::ptr::slice_from_raw_parts(view.0.buf.cast_const().cast(), view.len());
    Ok(Some((owner, part)))
}

/// Checks that an object has a buffer.
///
/// # Errors
/// `TypeError` for an object without a buffer.
fn check(object: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
    if BufferBytes::is_buffer(object) {
        return Ok(());
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a bytes-like object is required, not '{kind}'"
    )))
}

/// Returns the data of a `bytes` object; `None` for any other object.
#[inline]
pub(crate) fn of_bytes<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    let at = object.as_ptr();
    // SAFETY: the `Py_SIZE` bytes of a `bytes` are valid and do not move. 'a borrows the object.
    unsafe {
        if ffi::PyBytes_CheckExact(at) == 0 {
            return None;
        }
        let len = ffi::Py_SIZE(at).unsigned_abs();
        let data = ffi::PyBytes_AS_STRING(at);
        Some(slice::from_raw_parts(data.cast(), len))
    }
}

/// Requests the buffer of an object and stores it in `place`.
fn view<'v, 'py>(
    object: Borrowed<'_, 'py, PyAny>,
    flags: i32,
    place: &'v mut MaybeUninit<ffi::Py_buffer>,
) -> PyResult<View<'v, 'py>> {
    // SAFETY: the call accepts any object. A result of 0 means a filled `place`, which the view
    // borrows.
    unsafe {
        if ffi::PyObject_GetBuffer(object.as_ptr(), place.as_mut_ptr(), flags) != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(View(place.assume_init_mut(), PhantomData))
    }
}

impl<'a, 'py> BufferBytes<'a, 'py> {
    /// Returns the bytes of an object. Copies: none for a `bytes` or a memoryview of one; any other
    /// buffer is copied once.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer; `MemoryError` if the allocation fails; the
    /// exception of the buffer request.
    #[inline]
    pub(crate) fn of(object: Borrowed<'a, 'py, PyAny>) -> PyResult<BufferBytes<'a, 'py>> {
        if let Some(bytes) = of_bytes(object) {
            return Ok(BufferBytes::Immutable(bytes, PhantomData));
        }
        BufferBytes::of_other(object)
    }

    #[inline(never)]
    fn of_other(object: Borrowed<'a, 'py, PyAny>) -> PyResult<BufferBytes<'a, 'py>> {
        check(object)?;
        let mut place = MaybeUninit::zeroed();
        match view(object, ffi::PyBUF_SIMPLE, &mut place) {
            Ok(view) => match part_of_bytes(object, &view)? {
                Some((_owner, part)) => Ok(BufferBytes::Part { _owner, part }),
                None => PrivateBytes::copy_of(view.bytes()).map(BufferBytes::Copied),
            },
            Err(e) if e.is_instance_of::<PyBufferError>(object.py()) => {
                Ok(BufferBytes::Copied(PrivateBytes::of(gathered(object)?)))
            }
            Err(e) => Err(e),
        }
    }

    /// Returns `true` if the object has a buffer (PEP 3118).
    pub(crate) fn is_buffer(object: Borrowed<'_, '_, PyAny>) -> bool {
        // SAFETY: the check accepts any object.
        unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
    }

    /// Returns the bytes of the object.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            BufferBytes::Immutable(bytes, _) => bytes,
            // SAFETY: a part of the `bytes`, which is alive during the borrow.
            BufferBytes::Part { part, .. } => unsafe { &**part },
            BufferBytes::Copied(bytes) => bytes.as_slice(),
        }
    }
}

/// Returns a copy of an object's bytes; `None` without a buffer. Copies: the bytes are copied once.
///
/// # Errors
/// `MemoryError` if the allocation fails; the exception of the buffer request.
pub(crate) fn copy_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if !BufferBytes::is_buffer(object) {
        return Ok(None);
    }
    with_source(object, |source| {
        let len = match &source {
            BorrowedBytes::Stable(bytes) => bytes.len(),
            BorrowedBytes::Volatile(bytes) => bytes.len(),
        };
        let mut copy = Vec::new();
        copy.try_reserve_exact(len)
            .map_err(|_| PyMemoryError::new_err(()))?;
        match source {
            BorrowedBytes::Stable(bytes) => copy.extend_from_slice(bytes),
            BorrowedBytes::Volatile(bytes) => bytes.append_to(&mut copy),
        }
        Ok(Some(copy))
    })
}

/// Returns an object whose bytes never change. Copies: none for a `bytes` or a memoryview of one,
/// otherwise one into a new `bytes`.
///
/// # Errors
/// The errors of [`with_source`], except for that of `read`.
pub(crate) fn immutable<'py>(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if of_bytes(object).is_some() {
        return Ok(object.to_owned());
    }
    check(object)?;
    let mut place = MaybeUninit::zeroed();
    match view(object, ffi::PyBUF_SIMPLE, &mut place) {
        // The caller may release its memoryview, so this is a new one.
        Ok(view) if part_of_bytes(object, &view)?.is_some() => {
            Ok(PyMemoryView::from(&object)?.into_any())
        }
        Ok(view) => {
            let bytes = view.bytes();
            binary::make_of(py, bytes.len(), |data| _ = bytes.copy_to(0, data))
        }
        Err(e) if e.is_instance_of::<PyBufferError>(py) => binary::make(py, &gathered(object)?),
        Err(e) => Err(e),
    }
}

/// Returns the items of an object's buffer in C order (the last dimension varies fastest). Copies:
/// each item is copied once.
fn gathered(object: Borrowed<'_, '_, PyAny>) -> PyResult<Vec<u8>> {
    let mut place = MaybeUninit::zeroed();
    items(
        &mut view(object, ffi::PyBUF_FULL_RO, &mut place)?,
        object.py(),
    )
}

/// Returns the items of `view` in C order. Copies: each item is copied once.
fn items(view: &mut View<'_, '_>, py: Python<'_>) -> PyResult<Vec<u8>> {
    let len = view.len();
    let mut bytes: Vec<u8> = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| PyMemoryError::new_err(()))?;
    if len > 0 {
        // SAFETY: the capacity is `len` bytes. CPython accepts the order 'C' and writes each byte.
        unsafe {
            let (n, order) = (view.0.len, b'C' as std::ffi::c_char);
            let to = bytes.as_mut_ptr().cast();
            if ffi::PyBuffer_ToContiguous(to, view.0, n, order) != 0 {
                return Err(PyErr::fetch(py));
            }
            bytes.set_len(len);
        }
    }
    Ok(bytes)
}

/// Calls `write` with the memory of a writable, contiguous buffer.
///
/// # Errors
/// `BufferError` for a read-only or not contiguous buffer; `TypeError` for an object without a
/// buffer; the error of `write`.
pub(crate) fn with_writable<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> PyResult<R>,
) -> PyResult<R> {
    let mut place = MaybeUninit::zeroed();
    let view = view(object, ffi::PyBUF_WRITABLE, &mut place)?;
    let len = view.len();
    if len == 0 {
        return write(&mut []);
    }
    // SAFETY: a writable contiguous buffer of `len` bytes, released after the call. Other code may
    // write to it too, which a slice does not allow: `write` only stores there and relies on no
    // byte that it reads. The source text is in a `str` or in private memory.
    write(unsafe { slice::from_raw_parts_mut(view.0.buf.cast(), len) })
}

/// The address and length of a writable buffer, in bytes.
pub(crate) struct WritableBuffer<'a> {
    pub(super) at: *mut u8,
    pub(super) len: usize,
    lent: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

impl WritableBuffer<'_> {
    /// Returns the memory after the first `n` bytes; `None` if it is shorter.
    pub(crate) fn without_first(mut self, n: usize) -> Option<Self> {
        self.len = self.len.checked_sub(n)?;
        // SAFETY: inside of the buffer, or right after its end.
        self.at = unsafe { self.at.add(n) };
        Some(self)
    }
}

/// Calls `write` with the address of a writable, contiguous buffer. Other code may write to this
/// memory at the same time.
///
/// # Errors
/// `BufferError` for a read-only or not contiguous buffer; `TypeError` for an object without a
/// buffer; the error of `write`.
pub(crate) fn with_place<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    write: impl FnOnce(WritableBuffer<'_>) -> PyResult<R>,
) -> PyResult<R> {
    let mut memory = MaybeUninit::zeroed();
    let view = view(object, ffi::PyBUF_WRITABLE, &mut memory)?;
    let len = view.len();
    let at = if len == 0 {
        std::ptr::dangling_mut()
    } else {
        view.0.buf.cast()
    };
    write(WritableBuffer {
        at,
        len,
        lent: PhantomData,
    })
}

/// Returns the bytes as code units of type `U`. `None` if the address or the length does not fit.
#[inline(always)]
pub(crate) fn as_units<U: AnyBits>(bytes: &[u8]) -> Option<&[U]> {
    if !bytes.len().is_multiple_of(size_of::<U>()) || !bytes.as_ptr().cast::<U>().is_aligned() {
        return None;
    }
    // SAFETY: aligned and whole, checked above; any bits are a good unit.
    Some(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<U>()) })
}

/// A code unit type without invalid bit patterns.
pub(crate) trait AnyBits: Copy {}
impl AnyBits for u16 {}
impl AnyBits for u32 {}
impl AnyBits for i64 {}

/// Copies `bytes` into uninitialised memory of the same size.
#[inline]
pub(crate) fn put(out: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    // SAFETY: MaybeUninit<u8> has the layout of u8, and any byte is a valid value of it.
    out.copy_from_slice(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) });
}

/// Returns the element format of a buffer in the syntax of PEP 3118. The default is `B`, unsigned
/// bytes.
pub(crate) fn format_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let mut place = MaybeUninit::zeroed();
    let view = view(object, ffi::PyBUF_FORMAT | ffi::PyBUF_ND, &mut place)?;
    if view.0.format.is_null() {
        return Ok("B".to_owned());
    }
    // SAFETY: not null: a C string, valid as long as the view.
    let format = unsafe { std::ffi::CStr::from_ptr(view.0.format) };
    Ok(format.to_string_lossy().into_owned())
}

/// The items of a buffer, copied in C order.
pub(crate) struct BufferItems {
    /// The format of an item, in the syntax of the module `struct`.
    pub(crate) format: String,
    pub(crate) item_bytes: usize,
    pub(crate) n_dimensions: usize,
    pub(crate) bytes: Vec<u8>,
}

/// Returns the items of a buffer in C order. Copies: each item is copied once.
///
/// # Errors
/// The exception of the buffer request.
pub(crate) fn items_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<BufferItems> {
    let mut place = MaybeUninit::zeroed();
    let mut view = view(object, ffi::PyBUF_FULL_RO, &mut place)?;
    let format = match view.0.format.is_null() {
        true => "B".to_owned(),
        // SAFETY: not null: a C string, valid as long as the view.
        false => unsafe { std::ffi::CStr::from_ptr(view.0.format) }
            .to_string_lossy()
            .into_owned(),
    };
    let item_bytes = usize::try_from(view.0.itemsize).unwrap_or(0);
    let n_dimensions = usize::try_from(view.0.ndim).unwrap_or(0);
    let bytes = items(&mut view, object.py())?;
    Ok(BufferItems {
        format,
        item_bytes,
        n_dimensions,
        bytes,
    })
}
