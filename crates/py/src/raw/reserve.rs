//! The global allocator of the extension module. It frees reserved memory if the system has no
//! memory left.
//!
//! Large allocations return an error or raise `MemoryError`. A failed small allocation in Rust,
//! such as a `Box`, would abort the process. The allocator therefore reserves some memory at
//! import, and frees it when a small allocation fails. The next large allocation or Python object
//! then causes a `MemoryError`. Later, [`refill`] reserves memory again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};

/// The maximum size in bytes of an allocation that may use reserved memory.
const SMALL_BYTES: usize = 16 << 10;

const BLOCK: Layout = match Layout::from_size_align(SMALL_BYTES, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

static BLOCKS: [AtomicPtr<u8>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(true);

struct Reserving;

#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

// SAFETY: each call is passed to the system's allocator as it is.
unsafe impl GlobalAlloc for Reserving {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees the requirements.
        let at = unsafe { System.alloc(layout) };
        if !at.is_null() {
            return at;
        }
        // SAFETY: the caller guarantees the requirements.
        retry(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees the requirements.
        unsafe { System.dealloc(at, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees the requirements.
        let at = unsafe { System.alloc_zeroed(layout) };
        if !at.is_null() {
            return at;
        }
        // SAFETY: the caller guarantees the requirements.
        retry(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, n_bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees the requirements.
        let moved = unsafe { System.realloc(at, layout, n_bytes) };
        if !moved.is_null() {
            return moved;
        }
        // SAFETY: the caller guarantees the requirements; a failure has left the old memory
        // unchanged.
        retry(n_bytes, || unsafe { System.realloc(at, layout, n_bytes) })
    }
}

/// Frees reserved blocks until the allocation succeeds. Returns null if `n_bytes` exceeds
/// [`SMALL_BYTES`] or no block is left.
#[cold]
fn retry(n_bytes: usize, again: impl Fn() -> *mut u8) -> *mut u8 {
    if n_bytes > SMALL_BYTES {
        return null_mut();
    }
    for block in &BLOCKS {
        let block = block.swap(null_mut(), SeqCst);
        if block.is_null() {
            continue;
        }
        IS_INCOMPLETE.store(true, Relaxed);
        // SAFETY: allocated with this layout. Only this thread has removed it from the table.
        unsafe { System.dealloc(block, BLOCK) };
        let at = again();
        if !at.is_null() {
            return at;
        }
    }
    null_mut()
}

/// Replaces the freed blocks. After a failure, the next call tries again.
#[inline]
pub(crate) fn refill() {
    if IS_INCOMPLETE.load(Relaxed) {
        fill();
    }
}

#[cold]
fn fill() {
    IS_INCOMPLETE.store(false, Relaxed);
    for place in &BLOCKS {
        if !place.load(SeqCst).is_null() {
            continue;
        }
        // SAFETY: a layout of some bytes.
        let block = unsafe { System.alloc(BLOCK) };
        if block.is_null() {
            IS_INCOMPLETE.store(true, Relaxed);
            return;
        }
        if place
            .compare_exchange(null_mut(), block, SeqCst, SeqCst)
            .is_err()
        {
            // SAFETY: just allocated with this layout, without another owner.
            unsafe { System.dealloc(block, BLOCK) };
        }
    }
}
