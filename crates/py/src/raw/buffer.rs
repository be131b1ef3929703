//! Buffers of other objects (PEP 3118, PEP 688), borrowed.
//!
//! Only the data of a `bytes` never changes. The owner of any other buffer, another thread or
//! another process may write to it at any time: `readinto`, `recv_into` and `preadv` do so without
//! the GIL. Such a buffer is read as [`VolatileBytes`], or copied to private memory first.

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
use super::private::PrivateBytes;

/// The bytes of an object as they were at one moment.
pub(crate) enum Bytes<'a, 'py> {
    /// The data of a `bytes`, which never moves or changes.
    Immutable(&'a [u8], PhantomData<Python<'py>>),
    /// A part of the data of a `bytes`, which is kept alive.
    Part {
        _owner: Bound<'py, PyAny>,
        part: *const [u8],
    },
    /// A private copy of any other buffer, in the order of its elements.
    Copied(PrivateBytes),
}

/// A buffer, filled by PyObject_GetBuffer in memory that does not move before it is released.
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

/// The bytes of an object, borrowed while its buffer is not released.
pub(crate) enum Source<'a> {
    /// Bytes that nobody writes to.
    Stable(&'a [u8]),
    /// Bytes that others may write to.
    Volatile(VolatileBytes<'a>),
}

/// Lends the bytes of any object with a buffer. Copies: none; one of a buffer that is not
/// contiguous.
///
/// # Errors
/// `TypeError` for an object without a buffer, `MemoryError`; those of `read`, and what the object
/// raises.
#[inline]
pub(crate) fn with_source<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    read: impl FnOnce(Source<'_>) -> PyResult<R>,
) -> PyResult<R> {
    match of_bytes(object) {
        Some(bytes) => read(Source::Stable(bytes)),
        None => with_other_source(object, read),
    }
}

fn with_other_source<'py, R>(
    object: Borrowed<'_, 'py, PyAny>,
    read: impl FnOnce(Source<'_>) -> PyResult<R>,
) -> PyResult<R> {
    check(object)?;
    let mut place = MaybeUninit::zeroed();
    match view(object, ffi::PyBUF_SIMPLE, &mut place) {
        Ok(view) => match part_of_bytes(object, &view)? {
            // SAFETY: a part of the data of a `bytes`, which the view keeps alive.
            Some((_bytes, part)) => read(Source::Stable(unsafe { &*part })),
            None => read(Source::Volatile(view.bytes())),
        },
        Err(e) if e.is_instance_of::<PyBufferError>(object.py()) => {
            let copy = gathered(object)?;
            read(Source::Stable(&copy))
        }
        Err(e) => Err(e),
    }
}

/// The `bytes` that a contiguous memoryview is of, and the part of it; `None` of any other object.
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

/// # Errors
/// `TypeError` for an object without a buffer.
fn check(object: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
    if Bytes::is_buffer(object) {
        return Ok(());
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a bytes-like object is required, not '{kind}'"
    )))
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

/// The buffer of an object, in `place`.
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
        check(object)?;
        let mut place = MaybeUninit::zeroed();
        match view(object, ffi::PyBUF_SIMPLE, &mut place) {
            Ok(view) => match part_of_bytes(object, &view)? {
                Some((_owner, part)) => Ok(Bytes::Part { _owner, part }),
                None => PrivateBytes::copy_of(view.bytes()).map(Bytes::Copied),
            },
            Err(e) if e.is_instance_of::<PyBufferError>(object.py()) => {
                Ok(Bytes::Copied(PrivateBytes::of(gathered(object)?)))
            }
            Err(e) => Err(e),
        }
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
            // SAFETY: a part of the data of the `bytes`, which is alive as long as this is.
            Bytes::Part { part, .. } => unsafe { &**part },
            Bytes::Copied(bytes) => bytes.as_slice(),
        }
    }
}

/// A copy of the bytes of an object that is kept; `None` of an object without a buffer. Copies:
/// one.
///
/// # Errors
/// `MemoryError`; what the object raises.
pub(crate) fn copy_of(object: Borrowed<'_, '_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if !Bytes::is_buffer(object) {
        return Ok(None);
    }
    with_source(object, |source| {
        let len = match &source {
            Source::Stable(bytes) => bytes.len(),
            Source::Volatile(bytes) => bytes.len(),
        };
        let mut copy = Vec::new();
        copy.try_reserve_exact(len)
            .map_err(|_| PyMemoryError::new_err(()))?;
        match source {
            Source::Stable(bytes) => copy.extend_from_slice(bytes),
            Source::Volatile(bytes) => bytes.append_to(&mut copy),
        }
        Ok(Some(copy))
    })
}

/// The `bytes` of any object with a buffer that never change: the object where it is a `bytes` or a
/// memoryview of one, else a new `bytes`. Copies: none of the former, else one.
///
/// # Errors
/// As [`with_source`].
pub(crate) fn immutable<'py>(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if of_bytes(object).is_some() {
        return Ok(object.to_owned());
    }
    check(object)?;
    let mut place = MaybeUninit::zeroed();
    match view(object, ffi::PyBUF_SIMPLE, &mut place) {
        // A view of its own: the other one may be released.
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

/// The items of a buffer, in the order of its elements. Copies: one.
fn gathered(object: Borrowed<'_, '_, PyAny>) -> PyResult<Vec<u8>> {
    let mut place = MaybeUninit::zeroed();
    items(
        &mut view(object, ffi::PyBUF_FULL_RO, &mut place)?,
        object.py(),
    )
}

/// As [`gathered`], of a view.
fn items(view: &mut View<'_, '_>, py: Python<'_>) -> PyResult<Vec<u8>> {
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
            if ffi::PyBuffer_ToContiguous(to, view.0, n, order) != 0 {
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
    let mut memory = MaybeUninit::zeroed();
    let view = view(object, ffi::PyBUF_WRITABLE, &mut memory)?;
    let len = view.len();
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
    let mut place = MaybeUninit::zeroed();
    let view = view(object, ffi::PyBUF_FORMAT | ffi::PyBUF_ND, &mut place)?;
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
    Ok(Items {
        format,
        item_bytes,
        n_dimensions,
        bytes,
    })
}
