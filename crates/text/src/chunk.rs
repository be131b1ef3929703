//! A chunk that is filled once and handed on: in memory of its own, or in an object of somebody else.

use std::any::Any;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;

use crate::{ByteSink, SinkFull};

/// Memory that a [`Chunk`] can live in besides the heap: the data area of a fresh Python `bytes`, say. What the chunk
/// holds is then in its final place, and no copy is made to hand it on.
///
/// # Safety
///
/// `grow` returns a pointer to at least `capacity` writable bytes that nobody else reads, writes or frees while the
/// memory lives, with the first `len` bytes of the former area kept (the first call has `len` 0).
pub unsafe trait ChunkMemory: Any + Send {
    /// Makes the area at least `capacity` bytes large, keeping the first `len`. `None` where it cannot: the area stays as
    /// it was then, or [`ChunkMemory::is_lost`] says from now on that it is gone.
    fn grow(&mut self, len: usize, capacity: usize) -> Option<(*mut u8, usize)>;

    /// Whether a growth that failed has freed the area.
    fn is_lost(&self) -> bool {
        false
    }

    /// The memory as what it is, to take it back out of a chunk.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The current chunk of a stream: a [`ByteSink`] with static dispatch whatever memory is below it (only growth is a
/// dynamic call). It dereferences to the bytes written so far.
///
/// Whoever pumps a stream owns the chunk, clears and reuses it, so that a stream allocates nothing per chunk.
pub struct Chunk {
    ptr: *mut u8,
    len: usize,
    capacity: usize,
    /// `None`: the parts are those of a `Vec<u8>`.
    memory: Option<Box<dyn ChunkMemory>>,
    /// Bytes that growing has moved since they were last asked for.
    moved_bytes: usize,
}

/// From this size on a block that grows is moved by its pages and not byte by byte: glibc's `malloc` takes it from the
/// system whatever was freed before (its `DEFAULT_MMAP_THRESHOLD_MAX` on 64 bits), and its `realloc` then uses mremap(2).
pub const MOVED_BY_PAGES_BYTES: usize = 32 << 20;

/// Room that growing leaves behind what was asked for: a long text is measured, and must not move again for the quote behind it
/// and the numbers of its row.
const BEHIND_BYTES: usize = 256;

// SAFETY: the area is owned by the chunk alone (a Vec's, or by the contract of ChunkMemory, which is Send).
unsafe impl Send for Chunk {}

impl Chunk {
    /// An empty chunk on the heap with room for `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Chunk {
        Chunk::from(Vec::with_capacity(capacity))
    }

    /// An empty chunk in `memory`, with room for `capacity` bytes.
    ///
    /// # Errors
    /// [`SinkFull`] where the memory cannot give that much.
    pub fn in_memory(memory: impl ChunkMemory, capacity: usize) -> Result<Chunk, SinkFull> {
        let mut memory = Box::new(memory);
        let (ptr, capacity) = memory.grow(0, capacity).ok_or(SinkFull {
            asked_bytes: capacity,
        })?;
        Ok(Chunk {
            ptr,
            len: 0,
            capacity,
            memory: Some(memory),
            moved_bytes: 0,
        })
    }

    /// The bytes as a `Vec`. Copies: none for a chunk on the heap, one for a chunk in other memory.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        if self.memory.is_some() {
            return self.to_vec();
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: without a memory the parts are those of a Vec<u8>, and `this` is not dropped.
        unsafe { Vec::from_raw_parts(this.ptr, this.len, this.capacity) }
    }

    /// Takes the memory out, with the number of bytes written into it; `None` for a chunk on the heap (which is lost).
    #[must_use]
    pub fn into_memory(mut self) -> Option<(Box<dyn Any>, usize)> {
        let memory = self.memory.take()?;
        let this = ManuallyDrop::new(self);
        Some((memory.into_any(), this.len))
    }

    /// Forgets the bytes and keeps the room.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Bytes that fit before it has to grow.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that were moved since this was last asked, because the chunk grew and its place was too small: what the
    /// ledger counts as copied. At most that: a block of some hundred KiB may have been moved by its pages.
    pub fn take_moved_bytes(&mut self) -> usize {
        std::mem::take(&mut self.moved_bytes)
    }

    /// The same bytes, to be changed in place.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first len bytes were initialised by commits, and the area is ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) -> Result<(), SinkFull> {
        let full = SinkFull {
            asked_bytes: n_bytes,
        };
        let wanted = self
            .len
            .checked_add(n_bytes)
            .ok_or(full)?
            .saturating_add(BEHIND_BYTES)
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
            // SAFETY: without a memory the parts are those of a Vec<u8>; they are written back below, also on failure.
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
            // SAFETY: without a memory the parts are those of a Vec<u8>, dropped here once.
            drop(unsafe { Vec::from_raw_parts(self.ptr, self.len, self.capacity) });
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first len bytes were initialised by commits, and the area is ours alone.
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

// SAFETY: the spare area follows the committed bytes in the same memory, and commit only moves the end.
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
        // SAFETY: the area has capacity bytes (grow's contract), of which len are committed; MaybeUninit asks for
        // no initialisation.
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

    /// Memory that is a boxed slice, remembers how often it grew, and refuses past a limit.
    struct Slab(Box<[u8]>, usize);

    // SAFETY: the box is reallocated only inside grow, with its first bytes kept, and is read by nobody else.
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
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 4096), 8).expect("room");
        chunk.put(b"hello, ").expect("room");
        chunk.put(b"world").expect("it grows");
        let (memory, len) = chunk.into_memory().expect("it has a memory");
        let slab = memory.downcast::<Slab>().expect("it is ours");
        assert_eq!(&slab.0[..len], b"hello, world");
    }

    #[test]
    fn what_stands_behind_a_long_text_does_not_move_it() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 8192), 64).expect("room");
        chunk.put(&[1; 3000]).expect("it grows");
        chunk.put(b"\",\"n\":1}]").expect("it fits");
        assert_eq!(chunk.take_moved_bytes(), 0);
    }

    #[test]
    fn what_growing_moves_is_counted_until_it_is_asked_for() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 4096), 64).expect("room");
        chunk.put(&[1; 64]).expect("room");
        assert_eq!(chunk.take_moved_bytes(), 0, "it fits");
        chunk.put(b"x").expect("it grows");
        chunk.put(&[2; 400]).expect("it grows again");
        assert_eq!(chunk.take_moved_bytes(), 64 + 65);
        assert_eq!(chunk.take_moved_bytes(), 0);
    }

    #[test]
    fn memory_that_is_lost_while_it_grows_leaves_an_empty_chunk() {
        struct Lost(Slab, bool);
        // SAFETY: as Slab's; once it is lost it gives no area out.
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
        let mut chunk = Chunk::in_memory(memory, 8).expect("room");
        chunk.put(b"gone").expect("room");
        assert!(chunk.put(&[0; 200]).is_err());
        assert!(chunk.is_empty() && chunk.capacity() == 0);
    }

    #[test]
    fn refused_growth_keeps_what_was_written() {
        let mut chunk = Chunk::in_memory(Slab(Box::default(), 100), 8).expect("room");
        chunk.put(b"kept").expect("room");
        assert_eq!(chunk.put(&[0; 200]), Err(SinkFull { asked_bytes: 200 }));
        assert_eq!(&*chunk, b"kept");
    }
}
