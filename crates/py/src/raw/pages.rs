//! Requests large memory pages for large new objects.
//!
//! glibc creates a new memory mapping for each object of more than 32 MiB. The first write to each
//! page of 4 KiB then causes a page fault. Large pages of 2 MiB have 512 times fewer page faults.

/// The minimum size in bytes of an object with large pages.
#[cfg(target_os = "linux")]
const LARGE_BYTES: usize = 32 << 20;

/// Requests large pages on Linux for an object of at least 32 MiB. After a failure, the object
/// keeps its normal pages.
#[inline]
pub(super) fn ask<T>(object: *mut T, len: usize) {
    #[cfg(target_os = "linux")]
    if len >= LARGE_BYTES {
        ask_system(object.cast(), len);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (object, len);
}

#[cfg(target_os = "linux")]
#[cold]
fn ask_system(object: *mut u8, len: usize) {
    // SAFETY: the call returns a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page @ 1..) = usize::try_from(page) else {
        return;
    };
    let before = object.addr() % page;
    // SAFETY: MADV_HUGEPAGE is a hint for the pages of the range. It changes no contents and no
    // addresses of this object or of others on its first and last page. It fails if there is no
    // such memory.
    unsafe {
        let from = object.wrapping_sub(before);
        libc::madvise(from.cast(), before + len, libc::MADV_HUGEPAGE);
    }
}
