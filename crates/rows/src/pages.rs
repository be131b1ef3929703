//! Memory straight from the system: it grows by moving its pages, never its bytes, and comes as zeros that nobody wrote.

use std::ptr::NonNull;

/// A mapping of our own.
#[derive(Debug)]
pub(crate) struct Pages {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, and is plain memory.
unsafe impl Send for Pages {}
// SAFETY: shared access only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes (above 0) of zeros; `None` without memory. Copies: none.
    pub(crate) fn new(len: usize) -> Option<Pages> {
        // SAFETY: a new private mapping at a place of the system's choice touches no other memory.
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

    /// Makes it `len` bytes (above 0): what it held stays, what is new is zeros. Without memory
    /// nothing changes, and it returns `false`. Copies: none.
    #[must_use]
    pub(crate) fn resize(&mut self, len: usize) -> bool {
        let (before, may_move) = (self.at.as_ptr().cast(), libc::MREMAP_MAYMOVE);
        // SAFETY: at and len are those of a mapping of ours, to which nobody has a reference (`&mut self`); it may be
        // moved, and is known by its new place from here on.
        let at = unsafe { libc::mremap(before, self.len, len, may_move) };
        let Some(at) = mapped(at) else {
            return false;
        };
        (self.at, self.len) = (at, len);
        true
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a mapping of len readable bytes, all initialised (zeros of the system or written since), ours while
        // `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`, and writable; borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: a mapping of ours, to which no reference is left.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

/// The address that a call returned; `None` if it failed.
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
        // More than is likely to be free after it.
        assert!(pages.resize(100_000_000));
        assert!(pages.bytes()[..5000].iter().all(|b| *b == 7));
        // The rest of the first pages was there before; past them all is new.
        assert!(pages.bytes()[8192..1 << 20].iter().all(|b| *b == 0));
        assert!(pages.resize(4096));
        assert_eq!(pages.bytes(), [7; 4096]);
        assert!(!pages.resize(1 << 62), "no machine has as much");
        assert_eq!(pages.bytes(), [7; 4096]);
        assert!(Pages::new(1 << 62).is_none());
    }
}
