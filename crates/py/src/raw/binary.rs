//! Creates `bytes` objects. `BytesMemory` and `FreshBytes` grow while they are filled.

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use onecopy_text::{ByteSink, Chunk, ChunkMemory, MOVED_BY_PAGES_BYTES, SinkFull};
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::gil;

/// Creates a `bytes` object with a copy of `bytes`.
#[inline]
pub(crate) fn make<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a valid slice (never longer than isize::MAX); the call copies it.
    unsafe {
        let made =
            ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Returns `true` for a `bytes` or a `bytearray`.
pub(crate) fn is_bytes(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>() || object.is_instance_of::<pyo3::types::PyByteArray>()
}

/// Returns the data of a `bytes` object; empty for any other object.
pub(crate) fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> &'a [u8] {
    object
        .cast::<PyBytes>()
        .map_or(&[], |bytes| bytes.as_bytes())
}

/// Creates a `bytes` object of length `len`, which `write` fills.
pub(super) fn make_of(
    py: Python<'_>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> PyResult<Bound<'_, PyAny>> {
    if len < 2 {
        // CPython shares the `bytes` objects of up to one byte. They must not be written to.
        let mut data = [MaybeUninit::new(0)];
        write(&mut data[..len]);
        // SAFETY: initialised above, and a write leaves bytes too.
        return make(py, unsafe {
            std::slice::from_raw_parts(data.as_ptr().cast(), len)
        });
    }
    let made = blank(py, len)?;
    // SAFETY: a `bytes` of this length that nobody else has seen; it is not a shared one.
    write(unsafe {
        let data = ffi::PyBytes_AsString(made.as_ptr()).cast();
        std::slice::from_raw_parts_mut(data, len)
    });
    Ok(made.into_any())
}

/// The maximum size in bytes of a `bytes` object that grows by a copy. If the allocation fails, the
/// old object is still valid; `_PyBytes_Resize` would free it.
const COPIED_BYTES: usize = 128 << 10;

/// The memory of a [`Chunk`] inside a `bytes` object. The chunk becomes the object without a copy.
pub(crate) struct BytesMemory {
    bytes: Option<Py<PyBytes>>,
    /// The minimum size in bytes to which the object grows; 0 for none. If the allocation fails,
    /// the object grows to the requested size.
    grown_bytes: usize,
}

/// The size in bytes to which the buffer of a whole result first grows. The allocator enlarges
/// memory of this size without copies. The unused part is only address space.
const WHOLE_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

impl Drop for BytesMemory {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            gil::try_attach(|py| drop(bytes.into_bound(py)));
        }
    }
}

impl BytesMemory {
    /// Creates a chunk in a new `bytes` object.
    pub(crate) fn chunk(capacity_bytes: usize) -> PyResult<Chunk> {
        BytesMemory::growing_to(0, capacity_bytes)
    }

    /// Creates a chunk for a result that may be long. A result above `capacity_bytes` is copied
    /// once.
    pub(crate) fn whole(capacity_bytes: usize) -> PyResult<Chunk> {
        BytesMemory::growing_to(WHOLE_BYTES, capacity_bytes)
    }

    /// Creates the second chunk of a result. It has [`WHOLE_BYTES`] and grows without copies.
    pub(crate) fn longer(capacity_bytes: usize) -> PyResult<Chunk> {
        // If the system refuses the size, use the requested capacity.
        BytesMemory::whole(WHOLE_BYTES).or_else(|_| BytesMemory::whole(capacity_bytes))
    }

    fn growing_to(grown_bytes: usize, capacity_bytes: usize) -> PyResult<Chunk> {
        let memory = BytesMemory {
            bytes: None,
            grown_bytes,
        };
        Chunk::in_memory(memory, capacity_bytes).map_err(|_| PyMemoryError::new_err(()))
    }

    /// Returns the `bytes` object of `chunk`, truncated to the written length.
    pub(crate) fn finish(py: Python<'_>, chunk: Chunk) -> PyResult<Bound<'_, PyBytes>> {
        let memory = chunk.into_memory().and_then(|(memory, len)| {
            let mut memory = memory.downcast::<BytesMemory>().ok()?;
            Some((memory.bytes.take()?, len))
        });
        match memory {
            Some((bytes, len)) => finish_at(bytes.into_bound(py), len),
            None => Ok(PyBytes::new(py, b"")),
        }
    }

    /// Implements [`ChunkMemory::grow`] while the GIL is held.
    fn grow_attached(
        &mut self,
        py: Python<'_>,
        len: usize,
        capacity: usize,
    ) -> Option<(*mut u8, usize)> {
        // A `Bound` is released at once. A `Py` would wait until PyO3 next acquires the GIL.
        let bytes = match self.bytes.take().map(|bytes| bytes.into_bound(py)) {
            Some(bytes) if len > COPIED_BYTES => resize(bytes, capacity).ok()?,
            before => {
                let made = match &before {
                    Some(_) if capacity < self.grown_bytes => {
                        // If the system refuses the size, use the requested capacity.
                        blank(py, self.grown_bytes).or_else(|_| blank(py, capacity))
                    }
                    _ => blank(py, capacity.max(2)), // CPython shares shorter ones
                };
                let Ok(made) = made else {
                    self.bytes = before.map(Bound::unbind);
                    return None;
                };
                if let Some(before) = &before {
                    // SAFETY: two `bytes`; the new one is larger than `len`. The old one holds
                    // `len` written bytes (contract of `grow`).
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            ffi::PyBytes_AsString(before.as_ptr()),
                            ffi::PyBytes_AsString(made.as_ptr()),
                            len,
                        );
                    }
                }
                made
            }
        };
        // SAFETY: a `bytes`; the calls give the start of its data area and how long that is.
        let (at, size) = unsafe {
            let at = ffi::PyBytes_AsString(bytes.as_ptr()).cast::<u8>();
            (at, ffi::PyBytes_Size(bytes.as_ptr()).unsigned_abs())
        };
        self.bytes = Some(bytes.unbind());
        Some((at, size))
    }
}

// SAFETY: the area is the data of a `bytes` that only we refer to until `finish`. Only `grow` moves
// the area, and keeps its contents. The interpreter does not use the area, so a detached thread may
// write to it.
unsafe impl ChunkMemory for BytesMemory {
    fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)> {
        // The GIL is acquired rarely: once per chunk, and again for a row longer than the chunk.
        gil::attach(|py| self.grow_attached(py, len, capacity))
    }

    fn is_lost(&self) -> bool {
        self.bytes.is_none() // `_PyBytes_Resize` frees an object that it cannot resize
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The size in bytes to which a [`FreshBytes`] grows after [`Short`]. The allocator needs no memory
/// mapping for it.
const MIDDLE_BYTES: usize = 120 << 10;

/// The memory for a result of up to 4096 bytes.
type Short = [MaybeUninit<u8>; 4096];

/// The static memory that a [`ShortBuffer`] points to.
struct ShortMemory(UnsafeCell<Short>);

// SAFETY: only the one `ShortBuffer` that `SHORT_IS_LENT` admits refers to it.
unsafe impl Sync for ShortMemory {}

static SHORT: ShortMemory = ShortMemory(UnsafeCell::new([MaybeUninit::uninit(); _]));
static SHORT_IS_LENT: AtomicBool = AtomicBool::new(false);

/// The static buffer for a result that is probably short. On the stack, the buffers of nested calls
/// could cause an overflow.
pub(crate) struct ShortBuffer(*mut Short);

impl ShortBuffer {
    /// Returns the static buffer; `None` if another call uses it. Dropping the result releases the
    /// buffer.
    #[inline(always)]
    pub(crate) fn lend(_: Python<'_>) -> Option<ShortBuffer> {
        // The thread is attached: with a GIL, no other thread runs between the accesses.
        let is_lent = match cfg!(Py_GIL_DISABLED) {
            true => SHORT_IS_LENT.swap(true, Ordering::Acquire),
            false => SHORT_IS_LENT.load(Ordering::Relaxed),
        };
        if is_lent {
            return None;
        }
        SHORT_IS_LENT.store(true, Ordering::Relaxed);
        Some(ShortBuffer(SHORT.0.get()))
    }
}

impl Drop for ShortBuffer {
    #[inline(always)]
    fn drop(&mut self) {
        SHORT_IS_LENT.store(false, Ordering::Release);
    }
}

/// A new `bytes` object that is filled with the GIL held. Unlike a [`Chunk`], it needs no separate
/// heap allocation.
///
/// A short result is written to the [`ShortBuffer`], and then copied to a `bytes` of its size.
pub(crate) struct FreshBytes<'s, 'py> {
    py: Python<'py>,
    memory: BytesMemory,
    at: *mut u8,
    len: usize,
    capacity: usize,
    moved_bytes: usize,
    /// The expected final size in bytes; 0 if it is not set.
    expected_bytes: usize,
    buffer: PhantomData<&'s mut ShortBuffer>,
}

impl<'s, 'py> FreshBytes<'s, 'py> {
    /// Creates a buffer for a result that may be long.
    #[inline]
    pub(crate) fn new(py: Python<'py>, capacity_bytes: usize) -> PyResult<FreshBytes<'s, 'py>> {
        let bytes = blank(py, capacity_bytes.max(2))?; // CPython shares shorter ones
        Ok(FreshBytes {
            py,
            // SAFETY: a `bytes` made on the line above.
            at: unsafe { ffi::PyBytes_AsString(bytes.as_ptr()).cast() },
            len: 0,
            capacity: capacity_bytes.max(2),
            moved_bytes: 0,
            expected_bytes: 0,
            memory: BytesMemory {
                bytes: Some(bytes.unbind()),
                grown_bytes: WHOLE_BYTES,
            },
            buffer: PhantomData,
        })
    }

    /// Creates the memory for a result that is probably short. A result that exceeds `buffer` moves
    /// to a `bytes` object.
    #[inline]
    pub(crate) fn short(py: Python<'py>, buffer: &'s mut ShortBuffer) -> FreshBytes<'s, 'py> {
        FreshBytes {
            py,
            at: buffer.0.cast(),
            len: 0,
            capacity: size_of::<Short>(),
            moved_bytes: 0,
            expected_bytes: 0,
            memory: BytesMemory {
                bytes: None,
                grown_bytes: WHOLE_BYTES,
            },
            buffer: PhantomData,
        }
    }

    /// Sets the expected size of the complete result in bytes. A long result grows directly to this
    /// size.
    pub(crate) fn expect(&mut self, n_bytes: usize) {
        self.expected_bytes = n_bytes;
    }

    /// Returns the number of moved bytes, like [`Chunk::take_moved_bytes`].
    pub(crate) fn moved_bytes(&self) -> usize {
        match self.memory.bytes {
            Some(_) => self.moved_bytes,
            None => self.len, // `finish` copies them
        }
    }

    /// Returns the `bytes` object, truncated to the written length.
    #[inline(always)]
    pub(crate) fn finish(mut self) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(bytes) = self.memory.bytes.take() {
            return finish_at(bytes.into_bound(self.py), self.len);
        }
        let made = make(self.py, self.committed())?;
        // SAFETY: `make` makes a `bytes`.
        Ok(unsafe { made.cast_into_unchecked() })
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) -> Result<(), SinkFull> {
        let full = SinkFull {
            requested_bytes: n_bytes,
        };
        let wanted = self.len.checked_add(n_bytes).ok_or(full)?;
        let wanted = wanted.max(self.capacity.saturating_mul(2));
        let (before, capacity_before) = (self.at, self.capacity);
        let is_short = self.memory.bytes.is_none();
        let kept = if is_short { 0 } else { self.len };
        // A separate mapping costs 17 µs, so only larger sizes use one.
        let step = if wanted.max(self.expected_bytes) <= MIDDLE_BYTES {
            self.memory.grown_bytes = 0;
            MIDDLE_BYTES
        } else {
            self.memory.grown_bytes = WHOLE_BYTES;
            wanted.max(if is_short { WHOLE_BYTES } else { 0 })
        };
        let grown = self.memory.grow_attached(self.py, kept, step);
        // If the system refuses the size, use the requested capacity.
        let grown = match grown {
            None if is_short => self.memory.grow_attached(self.py, 0, wanted),
            grown => grown,
        };
        match grown {
            Some((at, capacity)) => {
                if is_short {
                    // SAFETY: the new area is larger than the contents of the short buffer, and
                    // does not overlap it.
                    unsafe { at.copy_from_nonoverlapping(self.at, self.len) };
                }
                (self.at, self.capacity) = (at, capacity);
            }
            None => {
                if self.memory.is_lost() && !is_short {
                    (self.at, self.len, self.capacity) = (std::ptr::dangling_mut(), 0, 0);
                }
                // The caller creates an exception, so the exception of the interpreter is dropped.
                drop(PyErr::take(self.py));
                return Err(full);
            }
        }
        if self.at != before && capacity_before < MOVED_BY_PAGES_BYTES {
            self.moved_bytes += self.len;
        }
        Ok(())
    }
}

// SAFETY: the spare area follows the committed bytes, in a `bytes` that only we refer to or in the
// borrowed short buffer. A commit only moves the end.
unsafe impl ByteSink for FreshBytes<'_, '_> {
    #[inline]
    fn committed(&self) -> &[u8] {
        // SAFETY: the first len bytes were initialised by commits.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    #[inline]
    fn committed_mut(&mut self) -> &mut [u8] {
        // SAFETY: commits have initialised the first len bytes, and only we refer to the `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    #[inline]
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if self.capacity - self.len < n_bytes {
            self.grow(n_bytes)?;
        }
        // SAFETY: the area has capacity bytes, of which len are committed; MaybeUninit requires no
        // initialisation.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(self.at.add(self.len).cast(), self.capacity - self.len)
        })
    }

    #[inline]
    unsafe fn commit(&mut self, n_bytes: usize) {
        debug_assert!(self.len + n_bytes <= self.capacity);
        self.len += n_bytes;
    }

    #[inline]
    fn cut(&mut self, len_bytes: usize) {
        self.len = self.len.min(len_bytes);
    }
}

fn blank(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    let len = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: attached; a null source makes a `bytes` (or NULL and an error) whose data is not
    // written.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

// SAFETY: declared as in CPython's cpython/bytesobject.h, and part of every CPython that this is
// built for.
unsafe extern "C" {
    /// Resizes a `bytes` object; pyo3-ffi does not declare it:
    /// <https://docs.python.org/3/c-api/bytes.html>.
    fn _PyBytes_Resize(
        bytes: *mut *mut ffi::PyObject,
        new_size: ffi::Py_ssize_t,
    ) -> std::ffi::c_int;
}

/// Truncates `bytes` to `len`. The caller must own the only reference to `bytes`.
///
/// A short unused end is not freed. Small allocations would fill it, and prevent reuse of the
/// memory for another `bytes` of 128 KiB.
fn finish_at(bytes: Bound<'_, PyBytes>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    // SAFETY: a `bytes`. (Its data is not read: the end of it was never written.)
    let size = unsafe { ffi::PyBytes_Size(bytes.as_ptr()) }.unsigned_abs();
    if len > size || size - len > size / 16 {
        return resize(bytes, len);
    }
    let at = bytes.as_ptr();
    // SAFETY: a `bytes` with one reference, ours, never hashed. `len` is at most its size, so the
    // terminator is inside of its data area. Freeing it does not depend on the size.
    unsafe {
        ffi::PyBytes_AsString(at).add(len).write(0);
        (*at.cast::<ffi::PyVarObject>()).ob_size = len as ffi::Py_ssize_t;
    }
    Ok(bytes)
}

/// Resizes `bytes` to `len`, or frees it if this fails. The caller must own the only reference to
/// `bytes`.
fn resize(bytes: Bound<'_, PyBytes>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    let py = bytes.py();
    let len = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    let mut at = bytes.into_ptr();
    // SAFETY: `at` is a `bytes` with one reference, ours (made in `grow`). On failure, the call
    // frees it, sets `at` to null and sets an error.
    unsafe {
        if _PyBytes_Resize(&raw mut at, len) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, at).cast_into_unchecked())
    }
}
