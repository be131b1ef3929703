//! Large pages for large fresh objects.
//!
//! Memory past 32 MiB is mapped anew for each object and given back with it (glibc's highest threshold for that), so each of
//! its pages of 4 KiB is a fault when it is first written: 25 ms for 40 MB, three to five times what most conversions of as
//! much text take. Where the system grants large pages on request, there are a five-hundredth as many faults: 5 to 8 ms.

/// From this many bytes on.
#[cfg(target_os = "linux")]
const LARGE_BYTES: usize = 32 << 20;

/// Asks for large pages behind a fresh object of `len` bytes, where it is as large. The request may be refused, which
/// changes nothing.
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
    // SAFETY: the call asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page @ 1..) = usize::try_from(page) else {
        return;
    };
    let before = object.addr() % page;
    // SAFETY: MADV_HUGEPAGE changes no contents and no addresses, of this object or of what shares its first and last page; it
    // tells the system how to back the range. It fails where there is no such memory.
    unsafe {
        let from = object.wrapping_sub(before);
        libc::madvise(from.cast(), before + len, libc::MADV_HUGEPAGE);
    }
}
