//! Memory that a driver writes into: aligned for every C type of ODBC, at a fixed place, always initialised.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::Once;

use crate::error::Error;

/// Alignment of every buffer: that of the widest C type bound.
const ALIGN: usize = 8;

/// Size of the block that [`keep_freed_pages`] frees. Twice this is kept; results are gathered in memory of 1 MiB and above,
/// which is to come from `mmap` still, where growing moves pages instead of bytes.
const LARGEST_FREED: usize = 512 << 10;

/// Lets the C library keep about 1 MiB of freed memory instead of giving it back after each statement: once a process.
///
/// glibc trims its heap as soon as 128 KiB are free at its end, until it has seen a larger block freed; then it keeps twice
/// that block's size ("dynamic mmap threshold", `mallopt(3)`). Blocks of this room would teach it, but they go on from
/// statement to statement and are freed last. psqlodbc allocates each cell: of a query of 1,000 rows 117 page faults were
/// the heap that the query before had given back, 5 to 7 % of its CPU time. Elsewhere this is an allocation like any other.
pub(crate) fn keep_freed_pages() {
    static ONCE: Once = Once::new();
    // Not elided, and its pages are never touched.
    ONCE.call_once(|| drop(std::hint::black_box(Buffer::zeroed(LARGEST_FREED))));
}

/// A zeroed allocation whose address does not change.
#[derive(Debug)]
pub(crate) struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone; who writes through `ptr` is ordered by the statement's exclusive access.
unsafe impl Send for Buffer {}
// SAFETY: the buffer owns its memory alone, and shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeroed bytes (pages that are never touched cost nothing).
    ///
    /// # Errors
    /// Without memory: the length may come from a driver's description of a column.
    pub(crate) fn zeroed(len: usize) -> Result<Buffer, Error> {
        let layout = Buffer::layout(len).ok_or_else(|| Error::no_memory(len))?;
        // SAFETY: the layout's size is at least `ALIGN`, hence not zero.
        let ptr = unsafe { alloc::alloc_zeroed(layout) };
        let ptr = NonNull::new(ptr).ok_or_else(|| Error::no_memory(len))?;
        Ok(Buffer { ptr, len })
    }

    /// At least `len` bytes: `spare` where it is large enough (with what it held), else a fresh one.
    ///
    /// # Errors
    /// As [`Buffer::zeroed`].
    pub(crate) fn reuse(spare: Option<Buffer>, len: usize) -> Result<Buffer, Error> {
        match spare.filter(|b| b.len >= len) {
            Some(buffer) => Ok(buffer),
            None => Buffer::zeroed(len),
        }
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(ALIGN), ALIGN).ok()
    }

    /// The start, for binding. Writing through it needs exclusive access to the buffer's owner.
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes (zeroed at the start, later written by the driver), not written while `self`
        // is borrowed: a driver writes only inside calls made with the statement borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// All bytes, to write.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = Buffer::layout(self.len) {
            // SAFETY: allocated by `zeroed` with this same layout, which there was then.
            unsafe { alloc::dealloc(self.ptr.as_ptr(), layout) };
        }
    }
}
