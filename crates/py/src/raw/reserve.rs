//! The allocator of this module: a small allocation gets memory that was kept back when the system has none left.
//!
//! Large buffers are allocated fallibly, and CPython's objects raise `MemoryError`. A small allocation of Rust (a message, a box)
//! cannot fail: the process is aborted. So that it does not come to that, some memory is allocated when the module is imported,
//! and given up when the system refuses a small allocation; the `MemoryError` of the next large one, or of the next object, ends
//! the call. [`refill`] keeps memory back again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};

/// The largest allocation that gets kept memory.
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
        // SAFETY: the duty of the caller.
        let at = unsafe { System.alloc(layout) };
        if !at.is_null() {
            return at;
        }
        // SAFETY: the duty of the caller.
        retry(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the duty of the caller.
        unsafe { System.dealloc(at, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the duty of the caller.
        let at = unsafe { System.alloc_zeroed(layout) };
        if !at.is_null() {
            return at;
        }
        // SAFETY: the duty of the caller.
        retry(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, n_bytes: usize) -> *mut u8 {
        // SAFETY: the duty of the caller.
        let moved = unsafe { System.realloc(at, layout, n_bytes) };
        if !moved.is_null() {
            return moved;
        }
        // SAFETY: the duty of the caller; what failed has left the old memory as it was.
        retry(n_bytes, || unsafe { System.realloc(at, layout, n_bytes) })
    }
}

/// Gives kept blocks up until the allocation succeeds; null if it does not.
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
        // SAFETY: allocated with this layout, and taken out of the table by this thread only.
        unsafe { System.dealloc(block, BLOCK) };
        let at = again();
        if !at.is_null() {
            return at;
        }
    }
    null_mut()
}

/// Keeps memory back, as much as there is.
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
            // SAFETY: just allocated with this layout, and nobody else has it.
            unsafe { System.dealloc(block, BLOCK) };
        }
    }
}
