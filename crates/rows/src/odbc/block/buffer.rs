//! `Buffer`: memory to which a driver writes. It is aligned for every C type of ODBC, has a fixed
//! address, and is always initialised.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::Once;

use crate::error::Error;

/// The alignment of every buffer in bytes: the largest alignment of a C type of ODBC.
const ALIGN: usize = 8;

/// The size in bytes of the allocation that [`keep_freed_pages`] makes and frees. From then on, the
/// C library keeps freed memory of up to twice this size. Allocations of 1 MiB and more still use
/// `mmap`, so they grow by remapping pages, without copying bytes.
const LARGEST_FREED: usize = 512 << 10;

/// Makes the C library keep about 1 MiB of freed memory instead of returning it to the system after
/// each statement. Calls after the first have no effect.
///
/// glibc returns the end of its heap to the system as soon as 128 KiB are free there. When a larger
/// allocation is freed, glibc raises this threshold to twice the size of the allocation ("dynamic
/// mmap threshold", `mallopt(3)`). This function makes and frees such an allocation. The buffers of
/// this crate are seldom freed, because later statements reuse them, so they rarely raise the
/// threshold. The threshold matters for psqlodbc, which allocates each cell. With the initial
/// threshold, a query of 1,000 rows had 117 page faults (5 to 7 % of its CPU time) in heap that the
/// previous query had returned to the system. C libraries other than glibc may not have this
/// threshold; the allocation then has no effect.
pub(crate) fn keep_freed_pages() {
    static ONCE: Once = Once::new();
    // `black_box` keeps the compiler from removing the allocation. Its pages are never written.
    ONCE.call_once(|| drop(std::hint::black_box(Buffer::zeroed(LARGEST_FREED))));
}

/// A zeroed allocation whose address does not change.
#[derive(Debug)]
pub(crate) struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: only the buffer owns its memory; writes through `ptr` are ordered by the statement's
// exclusive access.
unsafe impl Send for Buffer {}
// SAFETY: only the buffer owns its memory, and shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `len` zeroed bytes. Pages of the buffer that are never written use no memory.
    ///
    /// # Errors
    /// The allocation failed, for example because a driver reports a huge length for a column.
    pub(crate) fn zeroed(len: usize) -> Result<Buffer, Error> {
        let layout = Buffer::layout(len).ok_or_else(|| Error::no_memory(len))?;
        // SAFETY: the layout's size is at least `ALIGN`, so it is not zero.
        let ptr = unsafe { alloc::alloc_zeroed(layout) };
        let ptr = NonNull::new(ptr).ok_or_else(|| Error::no_memory(len))?;
        Ok(Buffer { ptr, len })
    }

    /// Returns a buffer of at least `len` bytes. If `spare` is large enough, it is returned with
    /// its old contents; otherwise the buffer is new and zeroed.
    ///
    /// # Errors
    /// The errors of [`Buffer::zeroed`].
    pub(crate) fn reuse(spare: Option<Buffer>, len: usize) -> Result<Buffer, Error> {
        match spare.filter(|b| b.len >= len) {
            Some(buffer) => Ok(buffer),
            None => Buffer::zeroed(len),
        }
    }

    /// Returns the size of the buffer in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(ALIGN), ALIGN).ok()
    }

    /// Returns the address of the first byte, to pass it to the driver. A write through the pointer
    /// requires exclusive access to the owner of the buffer.
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Returns all bytes of the buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes (zeroed at the start, later written by the driver), to
        // which nothing writes while `self` is borrowed: a driver writes only in calls for which
        // the statement is borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// Returns all bytes of the buffer for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = Buffer::layout(self.len) {
            // SAFETY: `zeroed` allocated the memory with this layout, which depends only on `len`.
            unsafe { alloc::dealloc(self.ptr.as_ptr(), layout) };
        }
    }
}
