//! `bytes`, and any object with a buffer (PEP 3118).

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

use super::ending;

/// A new `bytes`. Copies: one, into it.
#[inline]
pub(crate) fn make<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a valid slice (never longer than isize::MAX); the call copies it.
    unsafe {
        let made =
            ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Whether it is a `bytes` or a `bytearray`: one value, not a column of them.
pub(crate) fn is_bytes(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>() || object.is_instance_of::<pyo3::types::PyByteArray>()
}

/// The bytes of a `bytes`; nothing of another object.
pub(crate) fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> &'a [u8] {
    object
        .cast::<PyBytes>()
        .map_or(&[], |bytes| bytes.as_bytes())
}

/// A new `bytes` of this length, whose data `write` fills.
pub(super) fn make_of(
    py: Python<'_>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> PyResult<Bound<'_, PyAny>> {
    if len < 2 {
        // Shared objects.
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

/// Up to this many bytes are copied into a larger `bytes` where they have to move: `realloc` would copy them too, and this
/// way they stay where they are when no larger one can be had.
const COPIED_BYTES: usize = 128 << 10;

/// A fresh `bytes` that a [`Chunk`] is filled in: what the stream wrote is then the object, with no copy made.
pub(crate) struct BytesMemory {
    bytes: Option<Py<PyBytes>>,
    /// What it grows to at least, where that much can be had.
    grown_bytes: usize,
}

/// Size that a `bytes` for a whole answer grows to where its first size is not enough: past the one from which growing
/// moves pages instead of bytes. It is address space until it is written to, and what is left over goes back in the end.
const WHOLE_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

impl BytesMemory {
    /// A chunk in a fresh `bytes` with room for `capacity_bytes`.
    pub(crate) fn chunk(capacity_bytes: usize) -> PyResult<Chunk> {
        BytesMemory::growing_to(0, capacity_bytes)
    }

    /// As [`BytesMemory::chunk`], for an answer that may turn out long: it grows once from there, and then by its pages.
    pub(crate) fn whole(capacity_bytes: usize) -> PyResult<Chunk> {
        BytesMemory::growing_to(WHOLE_BYTES, capacity_bytes)
    }

    /// As [`BytesMemory::whole`], for an answer that is known to be longer than its first chunk: that is not moved again.
    pub(crate) fn longer(capacity_bytes: usize) -> PyResult<Chunk> {
        // Where address space is short, what is asked for has to do.
        BytesMemory::whole(WHOLE_BYTES).or_else(|_| BytesMemory::whole(capacity_bytes))
    }

    fn growing_to(grown_bytes: usize, capacity_bytes: usize) -> PyResult<Chunk> {
        let memory = BytesMemory {
            bytes: None,
            grown_bytes,
        };
        Chunk::in_memory(memory, capacity_bytes).map_err(|_| PyMemoryError::new_err(()))
    }

    /// The `bytes` that `chunk` was filled in, cut to what was written.
    pub(crate) fn finish(py: Python<'_>, chunk: Chunk) -> PyResult<Bound<'_, PyBytes>> {
        let memory = chunk.into_memory().and_then(|(memory, len)| {
            let memory = memory.downcast::<BytesMemory>().ok()?;
            Some((memory.bytes?, len))
        });
        match memory {
            Some((bytes, len)) => finish_at(bytes.into_bound(py), len),
            None => Ok(PyBytes::new(py, b"")),
        }
    }

    /// [`ChunkMemory::grow`].
    fn grow_attached(
        &mut self,
        py: Python<'_>,
        len: usize,
        capacity: usize,
    ) -> Option<(*mut u8, usize)> {
        let bytes = match self.bytes.take() {
            Some(bytes) if len > COPIED_BYTES => resize(bytes.into_bound(py), capacity).ok()?,
            before => {
                let made = match &before {
                    Some(_) if capacity < self.grown_bytes => {
                        // Where address space is short, what is asked for has to do.
                        blank(py, self.grown_bytes).or_else(|_| blank(py, capacity))
                    }
                    _ => blank(py, capacity.max(2)), // shorter ones are shared objects
                };
                let Ok(made) = made else {
                    self.bytes = before;
                    return None;
                };
                if let Some(before) = &before {
                    // SAFETY: two `bytes`, the new one larger than `len`, which the old one holds and we have written
                    // (contract of `grow`).
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

// SAFETY: the area is the data of a `bytes` that nobody but us refers to until `finish`; it is moved by `grow` alone,
// which keeps its contents (PyBytes_Resize reallocates). Its storage is not touched by the interpreter meanwhile, so it
// may be written while detached.
unsafe impl ChunkMemory for BytesMemory {
    fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)> {
        // Rare: once per chunk, and again where one row is larger than the chunk.
        ending::attach(|py| self.grow_attached(py, len, capacity))
    }

    fn is_lost(&self) -> bool {
        self.bytes.is_none() // `_PyBytes_Resize` frees what it cannot resize
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Size that a place which turns out too small grows to first: the allocator has it at hand.
const MIDDLE_BYTES: usize = 120 << 10;

/// Bytes of a short result, and what a writer wants to have free before each of its steps.
type Short = [MaybeUninit<u8>; 4096];

/// The memory of [`ShortBuffer`].
struct Shared(UnsafeCell<Short>);

// SAFETY: only the one `ShortBuffer` that `SHORT_IS_LENT` admits refers to it.
unsafe impl Sync for Shared {}

static SHORT: Shared = Shared(UnsafeCell::new([MaybeUninit::uninit(); _]));
static SHORT_IS_LENT: AtomicBool = AtomicBool::new(false);

/// A buffer for a result that is likely short: it is too large for the stack of calls that callbacks may nest. (One for all
/// threads: the thread-local storage of a shared library costs 5 ns.)
pub(crate) struct ShortBuffer(*mut Short);

impl ShortBuffer {
    /// The buffer, where no other call has it.
    #[inline(always)]
    pub(crate) fn lend(_: Python<'_>) -> Option<ShortBuffer> {
        // Attached: with a GIL no other thread comes between the two.
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

/// A fresh `bytes` that is filled while attached: as a [`Chunk`] in one, without the box and the look for the interpreter.
///
/// A short one is filled in the [`ShortBuffer`] and then copied into a `bytes` of its size: one that is made with room to spare
/// and cut costs 60 ns, for the allocator splits and joins blocks of its own.
pub(crate) struct FreshBytes<'s, 'py> {
    py: Python<'py>,
    memory: BytesMemory,
    at: *mut u8,
    len: usize,
    capacity: usize,
    moved_bytes: usize,
    /// What it is thought to hold in the end, where somebody has said so.
    expected_bytes: usize,
    buffer: PhantomData<&'s mut ShortBuffer>,
}

impl<'s, 'py> FreshBytes<'s, 'py> {
    /// One with room for `capacity_bytes`, which may turn out long.
    #[inline]
    pub(crate) fn new(py: Python<'py>, capacity_bytes: usize) -> PyResult<FreshBytes<'s, 'py>> {
        let bytes = blank(py, capacity_bytes.max(2))?; // shorter ones are shared objects
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

    /// One that is likely short.
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

    /// Says how many bytes it will hold in the end: a long one grows at once to where it can stay, and leaves no smaller place behind.
    pub(crate) fn expect(&mut self, n_bytes: usize) {
        self.expected_bytes = n_bytes;
    }

    /// Bytes that were moved because their place was too small, as of [`Chunk::take_moved_bytes`].
    pub(crate) fn moved_bytes(&self) -> usize {
        match self.memory.bytes {
            Some(_) => self.moved_bytes,
            None => self.len, // by `finish`
        }
    }

    /// The `bytes`, cut to what was written.
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
            asked_bytes: n_bytes,
        };
        let wanted = self.len.checked_add(n_bytes).ok_or(full)?;
        let wanted = wanted.max(self.capacity.saturating_mul(2));
        let (before, capacity_before) = (self.at, self.capacity);
        let is_short = self.memory.bytes.is_none();
        let kept = if is_short { 0 } else { self.len };
        // A mapping of its own costs 17 us: only what is past this is worth it.
        let step = if wanted.max(self.expected_bytes) <= MIDDLE_BYTES {
            self.memory.grown_bytes = 0;
            MIDDLE_BYTES
        } else {
            self.memory.grown_bytes = WHOLE_BYTES;
            wanted.max(if is_short { WHOLE_BYTES } else { 0 })
        };
        let grown = self.memory.grow_attached(self.py, kept, step);
        // Where address space is short, what is asked for has to do.
        let grown = match grown {
            None if is_short => self.memory.grow_attached(self.py, 0, wanted),
            grown => grown,
        };
        match grown {
            Some((at, capacity)) => {
                if is_short {
                    // SAFETY: the new area is larger than what the short place holds, and apart from it.
                    unsafe { at.copy_from_nonoverlapping(self.at, self.len) };
                }
                (self.at, self.capacity) = (at, capacity);
            }
            None => {
                if self.memory.is_lost() && !is_short {
                    (self.at, self.len, self.capacity) = (std::ptr::dangling_mut(), 0, 0);
                }
                // An error is set where the interpreter had no memory.
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

// SAFETY: the spare area follows the committed bytes in the data of one `bytes`, which is ours alone, or in the short place, which
// is borrowed mutably; commit only moves the end.
unsafe impl ByteSink for FreshBytes<'_, '_> {
    #[inline]
    fn committed(&self) -> &[u8] {
        // SAFETY: the first len bytes were initialised by commits.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    #[inline]
    fn committed_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first len bytes were initialised by commits, and the `bytes` is ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    #[inline]
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if self.capacity - self.len < n_bytes {
            self.grow(n_bytes)?;
        }
        // SAFETY: the area has capacity bytes, of which len are committed; MaybeUninit asks for no initialisation.
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

/// A new `bytes` whose data is left to us.
fn blank(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    let len = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    // SAFETY: attached; a null source makes a `bytes` (or NULL and an error) whose data is not written.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

// SAFETY: declared as in CPython's cpython/bytesobject.h, and part of every CPython that this is built for.
unsafe extern "C" {
    /// <https://docs.python.org/3/c-api/bytes.html>; pyo3-ffi leaves it out.
    fn _PyBytes_Resize(
        bytes: *mut *mut ffi::PyObject,
        new_size: ffi::Py_ssize_t,
    ) -> std::ffi::c_int;
}

/// Cuts `bytes` to what was written. It must be ours alone.
///
/// A short rest stays with the object: giving back a few hundred bytes at the end of each block of 128 KiB lets small
/// allocations settle there, so that no later block fits into the hole (17 MB of heap for a stream that holds one chunk;
/// 1 MB this way).
fn finish_at(bytes: Bound<'_, PyBytes>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    // SAFETY: a `bytes`. (Its data is not looked at: the end of it was never written.)
    let room = unsafe { ffi::PyBytes_Size(bytes.as_ptr()) }.unsigned_abs();
    if len > room || room - len > room / 16 {
        return resize(bytes, len);
    }
    let at = bytes.as_ptr();
    // SAFETY: a `bytes` with one reference, ours, never hashed; `len` is at most its size, so the terminator lands in
    // its data area (which has a byte more than its size). Freeing it does not depend on the size.
    unsafe {
        ffi::PyBytes_AsString(at).add(len).write(0);
        (*at.cast::<ffi::PyVarObject>()).ob_size = len as ffi::Py_ssize_t;
    }
    Ok(bytes)
}

/// Makes `bytes` this long. It must be ours alone.
fn resize(bytes: Bound<'_, PyBytes>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    let py = bytes.py();
    let len = isize::try_from(len).map_err(|_| PyMemoryError::new_err(()))?;
    let mut at = bytes.into_ptr();
    // SAFETY: `at` is a `bytes` with one reference, ours (made in `grow`, never handed out before `finish`). On failure
    // the call frees it, sets `at` to null and sets an error.
    unsafe {
        if _PyBytes_Resize(&raw mut at, len) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, at).cast_into_unchecked())
    }
}
