//! `Pages`: memory from `mmap`, initially zero. It grows by remapping its pages, without copying
//! bytes.

use std::ptr::NonNull;

/// A private anonymous mapping of memory.
#[derive(Debug)]
pub(crate) struct Pages {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs only to this value, and is plain memory.
unsafe impl Send for Pages {}
// SAFETY: shared access only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `len` zeroed bytes; `len` must be above 0. Returns `None` if the system cannot provide
    /// the memory.
    pub(crate) fn new(len: usize) -> Option<Pages> {
        // SAFETY: a new private mapping at an address that the system chooses touches no other
        // memory.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        Some(Pages {
            at: mapped(at)?,
            len,
        })
    }

    /// Resizes the mapping to `len` bytes (above 0) without copying bytes. Bytes within the new
    /// length keep their values, new bytes are zero. If the system cannot provide the memory, the
    /// mapping does not change and the result is `false`.
    #[must_use]
    pub(crate) fn resize(&mut self, len: usize) -> bool {
        let (before, may_move) = (self.at.as_ptr().cast(), libc::MREMAP_MAYMOVE);
        // SAFETY: `at` and `len` describe a mapping that this value owns, and `&mut self` excludes
        // other references to it; the mapping may be moved, and only its new address is used
        // afterwards.
        let at = unsafe { libc::mremap(before, self.len, len, may_move) };
        let Some(at) = mapped(at) else {
            return false;
        };
        (self.at, self.len) = (at, len);
        true
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has `len` readable bytes, all initialised (zeros of the system, or
        // bytes that were written later). `self` owns it, and is borrowed for as long as the slice.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the memory is writable; `&mut self` excludes any other borrow.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and no reference to it is left.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

/// Returns the address `at`, which `mmap` or `mremap` returned, as a pointer; `None` if the call
/// failed.
fn mapped(at: *mut libc::c_void) -> Option<NonNull<u8>> {
    NonNull::new(at.cast::<u8>()).filter(|at| at.as_ptr().cast() != libc::MAP_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_held_stays_and_what_is_new_is_zero() {
        let mut pages = Pages::new(5000).unwrap();
        assert_eq!(pages.at.as_ptr() as usize % 4096, 0);
        pages.bytes_mut().fill(7);
        // The mapping grows so much that the addresses after it are probably not free.
        assert!(pages.resize(100_000_000));
        assert!(pages.bytes()[..5000].iter().all(|b| *b == 7));
        // The rest of the first mapping was zero before; all bytes after it are new.
        assert!(pages.bytes()[8192..1 << 20].iter().all(|b| *b == 0));
        assert!(pages.resize(4096));
        assert_eq!(pages.bytes(), [7; 4096]);
        assert!(!pages.resize(1 << 62), "no machine has as much");
        assert_eq!(pages.bytes(), [7; 4096]);
        assert!(Pages::new(1 << 62).is_none());
    }
}
