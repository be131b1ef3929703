//! `Chunk`: a growing buffer of bytes, which is passed to its consumer without a copy.

use std::any::Any;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;

use crate::{ByteSink, SinkFull};

/// Memory that a caller provides for a [`Chunk`], such as that of a new Python `bytes`.
///
/// # Safety
///
/// `grow` must return a pointer to at least `capacity` writable bytes. They must begin with the
/// first `len` bytes of the previous area (0 in the first call). Nothing else may read, write or
/// free these bytes as long as the memory exists.
pub unsafe trait ChunkMemory: Any + Send {
    /// Enlarges the memory to at least `capacity` bytes and keeps its first `len` bytes. Returns
    /// its address and its new capacity. Returns `None` on failure. The memory is then unchanged,
    /// or [`ChunkMemory::is_lost`] returns `true`.
    fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)>;

    /// Returns `true` if a failed [`ChunkMemory::grow`] has freed the memory.
    fn is_lost(&self) -> bool {
        false
    }

    /// Converts the memory to `Any`, for a downcast to its concrete type.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// A growing buffer of bytes, on the heap or in memory of the caller ([`ChunkMemory`]). It
/// dereferences to its bytes.
///
/// A stream clears its chunk after sending it, and fills it again without an allocation.
pub struct Chunk {
    ptr: *mut u8,
    len: usize,
    capacity: usize,
    /// The memory of the caller. `None` on the heap: the other fields are the parts of a `Vec<u8>`.
    memory: Option<Box<dyn ChunkMemory>>,
    /// The number of bytes copied by growth since [`Chunk::take_moved_bytes`].
    moved_bytes: usize,
}

/// The size in bytes from which a memory block can grow without a copy. glibc enlarges such a block
/// by mremap(2). The size is `DEFAULT_MMAP_THRESHOLD_MAX` of glibc on 64-bit systems.
pub const MOVED_BY_PAGES_BYTES: usize = 32 << 20;

/// The additional bytes when a chunk grows. After a long text, they have space for the closing
/// quote and the next short values.
const EXTRA_BYTES: usize = 256;

// SAFETY: only the chunk refers to its memory. A `Vec<u8>` and a `ChunkMemory` are `Send`.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Creates an empty chunk on the heap with space for `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Chunk {
        Chunk::from(Vec::with_capacity(capacity))
    }

    /// Creates an empty chunk in `memory` with space for `capacity` bytes.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the memory cannot provide `capacity` bytes.
    pub fn in_memory(memory: impl ChunkMemory, capacity: usize) -> Result<Chunk, SinkFull> {
        let mut memory = Box::new(memory);
        let (ptr, capacity) = memory.grow(0, capacity).ok_or(SinkFull {
            requested_bytes: capacity,
        })?;
        Ok(Chunk {
            ptr,
            len: 0,
            capacity,
            memory: Some(memory),
            moved_bytes: 0,
        })
    }

    /// Returns the bytes as a `Vec`. Bytes in memory of the caller ([`ChunkMemory`]) are copied
    /// once.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        if self.memory.is_some() {
            return self.to_vec();
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: without `memory`, the fields are the parts of a `Vec<u8>`. `this` is not dropped.
        unsafe { Vec::from_raw_parts(this.ptr, this.len, this.capacity) }
    }

    /// Returns the memory of the caller ([`ChunkMemory`]) and the number of written bytes. If the
    /// chunk is on the heap, drops its bytes and returns `None`.
    #[must_use]
    pub fn into_memory(mut self) -> Option<(Box<dyn Any>, usize)> {
        let memory = self.memory.take()?;
        let this = ManuallyDrop::new(self);
        Some((memory.into_any(), this.len))
    }

    /// Removes all bytes, but keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of bytes copied by growth since the last call. The copy counters
    /// (`Ledger`) include these bytes. The number is an upper bound: the allocator may move pages
    /// without a copy.
    pub fn take_moved_bytes(&mut self) -> usize {
        std::mem::take(&mut self.moved_bytes)
    }

    /// Returns the written bytes as a mutable slice.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `len` bytes are initialised, and only this chunk refers to the area.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) -> Result<(), SinkFull> {
        let full = SinkFull {
            requested_bytes: n_bytes,
        };
        let wanted = self
            .len
            .checked_add(n_bytes)
            .ok_or(full)?
            .saturating_add(EXTRA_BYTES)
            .max(self.capacity.saturating_mul(2));
        let (before, capacity_before) = (self.ptr, self.capacity);
        let grown = self.grow_to(wanted, full);
        if self.ptr != before && capacity_before < MOVED_BY_PAGES_BYTES {
            self.moved_bytes += self.len;
        }
        grown
    }

    fn grow_to(&mut self, wanted: usize, full: SinkFull) -> Result<(), SinkFull> {
        if let Some(memory) = &mut self.memory {
            let Some((ptr, capacity)) = memory.grow(self.len, wanted) else {
                if memory.is_lost() {
                    (self.ptr, self.len, self.capacity) = (std::ptr::dangling_mut(), 0, 0);
                }
                return Err(full);
            };
            (self.ptr, self.capacity) = (ptr, capacity);
            return Ok(());
        }
        let mut vec =
            // SAFETY: without `memory`, the fields are the parts of a `Vec<u8>`. They are updated
            // below, also on failure.
            ManuallyDrop::new(unsafe { Vec::from_raw_parts(self.ptr, self.len, self.capacity) });
        let done = vec.try_reserve_exact(wanted - self.len).map_err(|_| full);
        (self.ptr, self.capacity) = (vec.as_mut_ptr(), vec.capacity());
        done
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(vec: Vec<u8>) -> Chunk {
        let mut vec = ManuallyDrop::new(vec);
        Chunk {
            ptr: vec.as_mut_ptr(),
            len: vec.len(),
            capacity: vec.capacity(),
            memory: None,
            moved_bytes: 0,
        }
    }
}

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk::from(Vec::new())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.memory.is_none() {
            // SAFETY: without `memory`, the fields are the parts of a `Vec<u8>`. It is dropped only
            // here.
            drop(unsafe { Vec::from_raw_parts(self.ptr, self.len, self.capacity) });
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised, and only this chunk refers to the area.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

// SAFETY: the spare bytes follow the committed bytes, and `commit` only increases the length.
unsafe impl ByteSink for Chunk {
    #[inline]
    fn committed(&self) -> &[u8] {
        self
    }

    #[inline]
    fn committed_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }

    #[inline]
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if self.capacity - self.len < n_bytes {
            self.grow(n_bytes)?;
        }
        // SAFETY: the area has `capacity` bytes (contract of `grow`), and `len` is at most
        // `capacity`. `MaybeUninit` needs no initialisation.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(self.ptr.add(self.len).cast(), self.capacity - self.len)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory for tests, and the largest capacity that `grow` permits.
    struct Slab(Box<[u8]>, usize);

    // SAFETY: only `grow` reallocates the box and keeps its first bytes. Nothing else reads it.
    unsafe impl ChunkMemory for Slab {
        fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)> {
            if capacity > self.1 {
                return None;
            }
            let mut larger = vec![0; capacity].into_boxed_slice();
            larger[..len].copy_from_slice(&self.0[..len]);
            self.0 = larger;
            Some((self.0.as_mut_ptr(), capacity))
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self
        }
    }

    #[test]
    fn heap_chunk_grows_and_gives_its_bytes_back_without_a_copy() {
        let mut chunk = Chunk::default();
        for _ in 0..100 {
            chunk.put(b"0123456789").expect("memory");
        }
        let at = chunk.as_ptr();
        let vec = chunk.into_vec();
        assert_eq!(vec.as_ptr(), at);
        assert_eq!(vec, b"0123456789".repeat(100));
    }

    #[test]
    fn chunk_in_other_memory_is_filled_in_place() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 4096), 8).expect("it fits");
        chunk.put(b"hello, ").expect("it fits");
        chunk.put(b"world").expect("it grows");
        let (memory, len) = chunk.into_memory().expect("it has a memory");
        let slab = memory.downcast::<Slab>().expect("it is ours");
        assert_eq!(&slab.0[..len], b"hello, world");
    }

    #[test]
    fn bytes_after_a_long_text_do_not_move_it() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 8192), 64).expect("it fits");
        chunk.put(&[1; 3000]).expect("it grows");
        chunk.put(b"\",\"n\":1}]").expect("it fits");
        assert_eq!(chunk.take_moved_bytes(), 0);
    }

    #[test]
    fn bytes_moved_by_growth_are_counted_until_they_are_taken() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 4096), 64).expect("it fits");
        chunk.put(&[1; 64]).expect("it fits");
        assert_eq!(chunk.take_moved_bytes(), 0, "it fits");
        chunk.put(b"x").expect("it grows");
        chunk.put(&[2; 400]).expect("it grows again");
        assert_eq!(chunk.take_moved_bytes(), 64 + 65);
        assert_eq!(chunk.take_moved_bytes(), 0);
    }

    #[test]
    fn memory_that_is_lost_while_it_grows_leaves_an_empty_chunk() {
        struct Lost(Slab, bool);
        // SAFETY: the area is `Slab`'s. After its loss, `grow` returns no area.
        unsafe impl ChunkMemory for Lost {
            fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)> {
                let grown = self.0.grow(len, capacity);
                if grown.is_none() {
                    self.0.0 = Box::default();
                    self.1 = true;
                }
                grown
            }

            fn is_lost(&self) -> bool {
                self.1
            }

            fn into_any(self: Box<Self>) -> Box<dyn Any> {
                self
            }
        }
        let memory = Lost(Slab(Box::default(), 100), false);
        let mut chunk = Chunk::in_memory(memory, 8).expect("it fits");
        chunk.put(b"gone").expect("it fits");
        assert!(chunk.put(&[0; 200]).is_err());
        assert!(chunk.is_empty() && chunk.capacity() == 0);
    }

    #[test]
    fn refused_growth_keeps_what_was_written() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 100), 8).expect("it fits");
        chunk.put(b"kept").expect("it fits");
        assert_eq!(
            chunk.put(&[0; 200]),
            Err(SinkFull {
                requested_bytes: 200
            })
        );
        assert_eq!(&*chunk, b"kept");
    }
}
