//! Creates `bytes` objects. `BytesMemory` and `FreshBytes` create objects that can grow while they
//! are filled.

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

/// Creates a `bytes` object with the contents of `bytes`. Copies: the bytes are copied once.
#[inline]
pub(crate) fn make<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a valid slice (never longer than isize::MAX); the call copies it.
    unsafe {
        let made =
            ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Returns `true` for a `bytes` or a `bytearray`. Both are sequences of numbers, but callers treat
/// them as single values and not as columns.
pub(crate) fn is_bytes(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>() || object.is_instance_of::<pyo3::types::PyByteArray>()
}

/// Returns the data of a `bytes` object; an empty slice for any other object.
pub(crate) fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> &'a [u8] {
    object
        .cast::<PyBytes>()
        .map_or(&[], |bytes| bytes.as_bytes())
}

/// Creates a `bytes` object of length `len`, and calls `write` to fill its data.
pub(super) fn make_of(
    py: Python<'_>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> PyResult<Bound<'_, PyAny>> {
    if len < 2 {
        // CPython shares the `bytes` objects of up to one byte, so they must not be written to.
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

/// The largest size in bytes of a `bytes` object that grows by copying its data to a new object.
/// `realloc` would also copy the data of such a small object. If the new object cannot be
/// allocated, the old object still exists; `_PyBytes_Resize` would have freed it.
const COPIED_BYTES: usize = 128 << 10;

/// The memory of a [`Chunk`] inside a new `bytes` object, so that the written bytes become the
/// object's data without being copied.
pub(crate) struct BytesMemory {
    bytes: Option<Py<PyBytes>>,
    /// The minimum size in bytes to which the `bytes` object grows, even if a smaller size is
    /// requested; 0 for no minimum. If an object of this size cannot be allocated, the object grows
    /// only to the requested size.
    grown_bytes: usize,
}

/// If the initial size of the `bytes` object for a whole result is not sufficient, the object first
/// grows to this size in bytes. The allocator enlarges an object of this size by moving pages,
/// without copying bytes. The unused part of the object uses only address space, and is freed when
/// the result is complete.
const WHOLE_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

impl Drop for BytesMemory {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            gil::try_attach(|py| drop(bytes.into_bound(py)));
        }
    }
}

impl BytesMemory {
    /// Creates a chunk in a new `bytes` object with a capacity of `capacity_bytes`.
    pub(crate) fn chunk(capacity_bytes: usize) -> PyResult<Chunk> {
        BytesMemory::growing_to(0, capacity_bytes)
    }

    /// Creates a chunk for a result that may be long. If the result exceeds `capacity_bytes`, it is
    /// copied once, to memory of [`WHOLE_BYTES`], which can then grow without further copies.
    pub(crate) fn whole(capacity_bytes: usize) -> PyResult<Chunk> {
        BytesMemory::growing_to(WHOLE_BYTES, capacity_bytes)
    }

    /// Creates the second chunk of a result, for all bytes that follow its first chunk. Its
    /// capacity is [`WHOLE_BYTES`] from the start, so that it can grow without copies.
    pub(crate) fn longer(capacity_bytes: usize) -> PyResult<Chunk> {
        // If the system refuses that much address space, the requested capacity is used.
        BytesMemory::whole(WHOLE_BYTES).or_else(|_| BytesMemory::whole(capacity_bytes))
    }

    fn growing_to(grown_bytes: usize, capacity_bytes: usize) -> PyResult<Chunk> {
        let memory = BytesMemory {
            bytes: None,
            grown_bytes,
        };
        Chunk::in_memory(memory, capacity_bytes).map_err(|_| PyMemoryError::new_err(()))
    }

    /// Returns the `bytes` object that contains the memory of `chunk`, truncated to the written
    /// length.
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
        // A `Bound` is released at once. A `Py` would be released when PyO3 next acquires the GIL,
        // which a program that only calls the functions of `raw/function.rs` never does.
        let bytes = match self.bytes.take().map(|bytes| bytes.into_bound(py)) {
            Some(bytes) if len > COPIED_BYTES => resize(bytes, capacity).ok()?,
            before => {
                let made = match &before {
                    Some(_) if capacity < self.grown_bytes => {
                        // If the system refuses that much address space, the requested capacity is
                        // used.
                        blank(py, self.grown_bytes).or_else(|_| blank(py, capacity))
                    }
                    _ => blank(py, capacity.max(2)), // CPython shares shorter ones
                };
                let Ok(made) = made else {
                    self.bytes = before.map(Bound::unbind);
                    return None;
                };
                if let Some(before) = &before {
                    // SAFETY: two `bytes`, the new one larger than `len`; the old one holds `len`
                    // bytes that we have written (contract of `grow`).
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

// SAFETY: the area is the data of a `bytes` that only we refer to until `finish`; only `grow` moves
// it, and keeps its contents (PyBytes_Resize reallocates). The interpreter does not touch its
// storage meanwhile, so it may be written while detached.
unsafe impl ChunkMemory for BytesMemory {
    fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)> {
        // The GIL is acquired rarely: once per chunk, and again if a row is larger than the chunk.
        gil::attach(|py| self.grow_attached(py, len, capacity))
    }

    fn is_lost(&self) -> bool {
        self.bytes.is_none() // `_PyBytes_Resize` frees an object that it cannot resize
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The size in bytes to which the memory of a [`FreshBytes`] grows when a result does not fit into
/// the initial memory, [`Short`]. The allocator takes memory of this size from its heap, without
/// creating a memory mapping.
const MIDDLE_BYTES: usize = 120 << 10;

/// The memory for a result of up to 4096 bytes. Since a writer requires some free space before it
/// writes a value, a result of slightly fewer bytes may already not fit.
type Short = [MaybeUninit<u8>; 4096];

/// The static memory that a [`ShortBuffer`] points to.
struct ShortMemory(UnsafeCell<Short>);

// SAFETY: only the one `ShortBuffer` that `SHORT_IS_LENT` admits refers to it.
unsafe impl Sync for ShortMemory {}

static SHORT: ShortMemory = ShortMemory(UnsafeCell::new([MaybeUninit::uninit(); _]));
static SHORT_IS_LENT: AtomicBool = AtomicBool::new(false);

/// The buffer for a result that is probably short. It is in static memory, not on the stack,
/// because nested calls made by callbacks would need one buffer each and could overflow the stack.
/// All threads share one buffer, because access to thread-local storage of a shared library takes 5
/// ns.
pub(crate) struct ShortBuffer(*mut Short);

impl ShortBuffer {
    /// Returns the static buffer; `None` if another call is using it. The buffer becomes available
    /// again when the returned value is dropped.
    #[inline(always)]
    pub(crate) fn lend(_: Python<'_>) -> Option<ShortBuffer> {
        // The thread is attached, so with a GIL no other thread runs between the two accesses.
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

/// A new `bytes` object that is filled by code that holds the GIL. Such code uses a [`FreshBytes`]
/// instead of a [`Chunk`]. A [`Chunk`] would need an additional heap allocation, and would acquire
/// the GIL whenever it grows.
///
/// A short result is written to the [`ShortBuffer`], and then copied into a `bytes` object of its
/// size. Creating a `bytes` object with spare capacity and truncating it would take 60 ns longer,
/// because the allocator would split and join blocks.
pub(crate) struct FreshBytes<'s, 'py> {
    py: Python<'py>,
    memory: BytesMemory,
    at: *mut u8,
    len: usize,
    capacity: usize,
    moved_bytes: usize,
    /// The expected final size in bytes; 0 if the caller has not set it.
    expected_bytes: usize,
    buffer: PhantomData<&'s mut ShortBuffer>,
}

impl<'s, 'py> FreshBytes<'s, 'py> {
    /// Creates a buffer with a capacity of `capacity_bytes` for a result that may be long.
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

    /// Creates the memory for a result that is probably short. The result is written to `buffer`,
    /// and is moved to a `bytes` object when it no longer fits into `buffer`.
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

    /// Sets the expected size in bytes of the complete result. A long result grows directly to this
    /// size, so it is moved only once. Fewer holes of unused memory then remain in the heap.
    pub(crate) fn expect(&mut self, n_bytes: usize) {
        self.expected_bytes = n_bytes;
    }

    /// Returns the number of bytes that were moved because the memory was too small, like
    /// [`Chunk::take_moved_bytes`].
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
        // Memory with a mapping of its own costs 17 µs, so it is used only for larger sizes.
        let step = if wanted.max(self.expected_bytes) <= MIDDLE_BYTES {
            self.memory.grown_bytes = 0;
            MIDDLE_BYTES
        } else {
            self.memory.grown_bytes = WHOLE_BYTES;
            wanted.max(if is_short { WHOLE_BYTES } else { 0 })
        };
        let grown = self.memory.grow_attached(self.py, kept, step);
        // If the system refuses that much address space, the requested capacity is used.
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
                // An exception is set if the interpreter has no memory; the caller creates its own.
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

// SAFETY: the spare area follows the committed bytes in the data of one `bytes`, which only we
// refer to, or in the short buffer, which is borrowed mutably; commit only moves the end.
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

/// Creates a `bytes` object with uninitialised data.
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
    /// Resizes a `bytes` object. Declared here because pyo3-ffi does not declare it:
    /// <https://docs.python.org/3/c-api/bytes.html>.
    fn _PyBytes_Resize(
        bytes: *mut *mut ffi::PyObject,
        new_size: ffi::Py_ssize_t,
    ) -> std::ffi::c_int;
}

/// Truncates `bytes` to `len`, the written length. The caller must own the only reference to
/// `bytes`.
///
/// If the unused end of the object is short, it is not returned to the allocator. Otherwise small
/// allocations would use the few hundred bytes after each `bytes` of 128 KiB. The next `bytes` of
/// 128 KiB would then not fit into the memory of a freed one. (In a stream with one chunk at a
/// time, the heap then grew to 17 MB instead of 1 MB.)
fn finish_at(bytes: Bound<'_, PyBytes>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    // SAFETY: a `bytes`. (Its data is not read: the end of it was never written.)
    let size = unsafe { ffi::PyBytes_Size(bytes.as_ptr()) }.unsigned_abs();
    if len > size || size - len > size / 16 {
        return resize(bytes, len);
    }
    let at = bytes.as_ptr();
    // SAFETY: a `bytes` with one reference, ours, never hashed; `len` is at most its size, so the
    // terminator is written inside of its data area (which has a byte more than its size). Freeing
    // it does not depend on the size.
    unsafe {
        ffi::PyBytes_AsString(at).add(len).write(0);
        (*at.cast::<ffi::PyVarObject>()).ob_size = len as ffi::Py_ssize_t;
    }
    Ok(bytes)
}

/// Resizes `bytes` to the length `len`. If this fails, the object is freed. The caller must own the
/// only reference to `bytes`.
fn resize(bytes: Bound<'_, PyBytes>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    let py = bytes.py();
    let len = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    let mut at = bytes.into_ptr();
    // SAFETY: `at` is a `bytes` with one reference, ours (made in `grow`, never handed out before
    // `finish`). On failure the call frees it, sets `at` to null and sets an error.
    unsafe {
        if _PyBytes_Resize(&raw mut at, len) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, at).cast_into_unchecked())
    }
}
