//! Requests large memory pages for large new objects.
//!
//! For each object of more than 32 MiB, glibc creates a new memory mapping, so the first write to
//! each page of 4 KiB causes a page fault. For 40 MB the page faults take 25 ms, which is three to
//! five times as long as most conversions of a string of this size. With large pages of 2 MiB there
//! are 512 times fewer page faults, and they take 5 to 8 ms.

/// The minimum size in bytes of an object for which large pages are requested.
#[cfg(target_os = "linux")]
const LARGE_BYTES: usize = 32 << 20;

/// Requests large pages for a new object of `len` bytes if it has at least 32 MiB and the system is
/// Linux. If the request fails, the object keeps its normal pages.
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
    // SAFETY: MADV_HUGEPAGE changes no contents and no addresses, of this object or of others on
    // its first and last page; it is a hint for the pages of the range. It fails if there is no
    // such memory.
    unsafe {
        let from = object.wrapping_sub(before);
        libc::madvise(from.cast(), before + len, libc::MADV_HUGEPAGE);
    }
}
