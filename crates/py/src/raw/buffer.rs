//! The unsafe boundary of the buffer protocol (PEP 3118, PEP 688): borrows or copies the bytes of
//! Python objects.
//!
//! Only the data of a `bytes` never changes. Any other buffer may be written to at any time by its
//! owner, by another thread or by another process: `readinto`, `recv_into` and `preadv` write
//! without the GIL. Such a buffer is read as [`VolatileBytes`], or first copied to private memory.

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

/// The bytes of a Python object that has a buffer. They do not change while this value exists.
pub(crate) enum BufferBytes<'a, 'py> {
    /// The data of a `bytes`, which never moves or changes.
    Immutable(&'a [u8], PhantomData<Python<'py>>),
    /// A slice of the data of a `bytes`; `_owner` keeps the `bytes` alive.
    Part {
        _owner: Bound<'py, PyAny>,
        part: *const [u8],
    },
    /// A private copy of any other buffer, with its elements in C order.
    Copied(PrivateBytes),
}

/// A buffer that `PyObject_GetBuffer` has returned. Its memory does not move until this value is
/// dropped, which releases the buffer.
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

    /// Returns the memory of this buffer, which must be contiguous: the caller must have requested
    /// it with `PyBUF_SIMPLE`.
    fn bytes(&self) -> VolatileBytes<'_> {
        let at = match self.len() {
            0 => std::ptr::dangling(),
            _ => self.0.buf.cast_const().cast(),
        };
        // SAFETY: a contiguous buffer of `len` bytes (requested with PyBUF_SIMPLE), whose owner
        // neither moves nor frees it before it is released, in `drop`. An empty one is not read.
        unsafe { VolatileBytes::new(at, self.len()) }
    }
}

/// The bytes of a Python object, borrowed until the object's buffer is released.
pub(crate) enum BorrowedBytes<'a> {
    /// Bytes that no code changes: those of a `bytes` object or of a private copy.
    Stable(&'a [u8]),
    /// Bytes that other code may change while they are being read.
    Volatile(VolatileBytes<'a>),
}

/// Calls `read` with the bytes of any object that has a buffer. Copies: none for a contiguous
/// buffer; any other buffer is copied once.
///
/// # Errors
/// `TypeError` for an object without a buffer; `MemoryError` if the copy cannot be allocated; the
/// exception that the object raises when its buffer is requested; the error of `read`.
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

/// Returns the `bytes` object under a contiguous, read-only memoryview, and the slice of its data
/// that the memoryview exposes. Returns `None` for any other object, because its bytes may change.
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
    // SAFETY: a `bytes`, whose data of `Py_SIZE` bytes is valid and does not move as long as the
    // object is alive, which 'a borrows.
    unsafe {
        if ffi::PyBytes_CheckExact(at) == 0 {
            return None;
        }
        let len = ffi::Py_SIZE(at).unsigned_abs();
        let data = ffi::PyBytes_AS_STRING(at);
        Some(slice::from_raw_parts(data.cast(), len))
    }
}

/// Requests the buffer of an object with the `PyBUF_*` flags `flags`, and stores it in `place`.
fn view<'v, 'py>(
    object: Borrowed<'_, 'py, PyAny>,
    flags: i32,
    place: &'v mut MaybeUninit<ffi::Py_buffer>,
) -> PyResult<View<'v, 'py>> {
    // SAFETY: any object may be passed; `place` takes a Py_buffer, which is filled where 0 comes
    // back, and is borrowed as long as the view.
    unsafe {
        if ffi::PyObject_GetBuffer(object.as_ptr(), place.as_mut_ptr(), flags) != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(View(place.assume_init_mut(), PhantomData))
    }
}

impl<'a, 'py> BufferBytes<'a, 'py> {
    /// Returns the bytes of any object that has a buffer. Copies: none for a `bytes` or a
    /// memoryview of a `bytes`; any other buffer is copied once.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer; `MemoryError` if the copy cannot be allocated;
    /// the exception that the object raises when its buffer is requested.
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

    /// Returns `true` if the object has a buffer (PEP 3118), like `bytes`, `bytearray` and
    /// `memoryview`.
    pub(crate) fn is_buffer(object: Borrowed<'_, '_, PyAny>) -> bool {
        // SAFETY: the check accepts any object.
        unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
    }

    /// Returns the bytes of the object, which do not change while `self` exists.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            BufferBytes::Immutable(bytes, _) => bytes,
            // SAFETY: a part of the data of the `bytes`, which is alive as long as this is.
            BufferBytes::Part { part, .. } => unsafe { &**part },
            BufferBytes::Copied(bytes) => bytes.as_slice(),
        }
    }
}

/// Returns a copy of the bytes of an object; `None` for an object without a buffer. Copies: the
/// bytes are copied once.
///
/// # Errors
/// `MemoryError` if the copy cannot be allocated; the exception that the object raises when its
/// buffer is requested.
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

/// Returns an object whose bytes never change: the argument if it is a `bytes` or a memoryview of a
/// `bytes`, otherwise a new `bytes`. Copies: none, or one into the new `bytes`.
///
/// # Errors
/// The same errors as [`with_source`], except for that of `read`.
pub(crate) fn immutable<'py>(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if of_bytes(object).is_some() {
        return Ok(object.to_owned());
    }
    check(object)?;
    let mut place = MaybeUninit::zeroed();
    match view(object, ffi::PyBUF_SIMPLE, &mut place) {
        // A new memoryview is created, because the caller may release the one that was passed.
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

/// Returns the items of the buffer `view` in C order. Each item is copied once.
fn items(view: &mut View<'_, '_>, py: Python<'_>) -> PyResult<Vec<u8>> {
    let len = view.len();
    let mut bytes: Vec<u8> = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| PyMemoryError::new_err(()))?;
    if len > 0 {
        // SAFETY: the capacity is `len` bytes, and 'C' is an order of CPython's; it writes each of
        // them.
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

/// Calls `write` with the memory of a writable, contiguous buffer, as a slice.
///
/// # Errors
/// `BufferError` if the buffer is read-only or not contiguous, `TypeError` for an object without a
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
    // SAFETY: a writable contiguous buffer of `len` bytes, not released before the call has ended.
    // Others may write to it too, which a slice does not allow: `write` only stores there, and
    // relies on nothing that it reads. The text that is written comes from a `str` or private
    // memory.
    write(unsafe { slice::from_raw_parts_mut(view.0.buf.cast(), len) })
}

/// The memory of a writable buffer: its address and its length in bytes.
pub(crate) struct WritableBuffer<'a> {
    pub(super) at: *mut u8,
    pub(super) len: usize,
    lent: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

impl WritableBuffer<'_> {
    /// Returns the memory after the first `n` bytes; `None` if the memory has fewer than `n` bytes.
    pub(crate) fn without_first(mut self, n: usize) -> Option<Self> {
        self.len = self.len.checked_sub(n)?;
        // SAFETY: inside of the buffer, or right after its end.
        self.at = unsafe { self.at.add(n) };
        Some(self)
    }
}

/// Calls `write` with the memory of a writable, contiguous buffer. Unlike [`with_writable`], it
/// passes an address instead of a slice, because other code may write to this memory at the same
/// time.
///
/// # Errors
/// `BufferError` if the buffer is read-only or not contiguous, `TypeError` for an object without a
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

/// Returns the bytes as code units of type `U`; `None` if their address is not aligned for `U`, or
/// their length is not a multiple of the size of `U`.
#[inline(always)]
pub(crate) fn as_units<U: AnyBits>(bytes: &[u8]) -> Option<&[U]> {
    if !bytes.len().is_multiple_of(size_of::<U>()) || !bytes.as_ptr().cast::<U>().is_aligned() {
        return None;
    }
    // SAFETY: aligned and whole, checked above; any bits are a good unit.
    Some(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<U>()) })
}

/// A code unit type for which every bit pattern is valid.
pub(crate) trait AnyBits: Copy {}
impl AnyBits for u16 {}
impl AnyBits for u32 {}
impl AnyBits for i64 {}

/// Copies `bytes` into uninitialised memory of the same size.
#[inline]
pub(crate) fn put(out: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    // SAFETY: MaybeUninit<u8> has the layout of u8, and any byte is a good value of it.
    out.copy_from_slice(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) });
}

/// Returns the format of the elements in an object's buffer, in the syntax of PEP 3118. Returns `B`
/// (unsigned bytes) if the object reports no format, as PEP 3118 requires.
pub(crate) fn format_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let mut place = MaybeUninit::zeroed();
    let view = view(object, ffi::PyBUF_FORMAT | ffi::PyBUF_ND, &mut place)?;
    if view.0.format.is_null() {
        return Ok("B".to_owned());
    }
    // SAFETY: not null: a C string that lives as long as the view.
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

/// Returns the items of an object's buffer in C order. Copies: each item is copied once.
///
/// # Errors
/// The exception that the object raises if it does not export a buffer.
pub(crate) fn items_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<BufferItems> {
    let mut place = MaybeUninit::zeroed();
    let mut view = view(object, ffi::PyBUF_FULL_RO, &mut place)?;
    let format = match view.0.format.is_null() {
        true => "B".to_owned(),
        // SAFETY: not null: a C string that lives as long as the view.
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
