//! `Growing`: a buffer for the bytes of a text or binary column of a batch. When it grows, its
//! memory pages are remapped, so no byte is copied.

use std::mem::MaybeUninit;

use onecopy_text::{ByteSink, SinkFull};

use super::memory::Memory;
use crate::pages::Pages;

/// The initial capacity of the buffer in bytes. It is sufficient for a short result.
const FIRST_BYTES: usize = 64 << 10;

/// The smallest number of bytes by which the capacity grows. If a quarter of the capacity is more
/// than this number, the capacity grows by this quarter.
const STEP_BYTES: usize = 1 << 20;

/// A [`ByteSink`] in memory that was mapped from the system. Capacity that was not written to uses
/// address space, but no physical memory.
#[derive(Debug, Default)]
pub struct Growing {
    pages: Option<Pages>,
    len: usize,
}

impl Growing {
    /// Converts the buffer to memory that arrays can share, without copying the bytes. The unused
    /// pages of the buffer are returned to the system.
    #[must_use]
    pub fn into_memory(self) -> Memory {
        match self.pages {
            Some(mut pages) if self.len > 0 => {
                // If this fails, the unused pages stay mapped.
                let _ = pages.resize(self.len);
                let at = pages.bytes().as_ptr();
                // SAFETY: the mapping has `len` bytes, all initialised; it keeps its address when
                // its owner is moved, and nothing writes to it afterwards.
                unsafe { Memory::foreign(at, self.len, std::sync::Arc::new(pages)) }
            }
            _ => Memory::empty(),
        }
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) -> Result<(), SinkFull> {
        let full = SinkFull {
            requested_bytes: n_bytes,
        };
        let wanted = self.len.checked_add(n_bytes).ok_or(full)?;
        isize::try_from(wanted).map_err(|_| full)?;
        match &mut self.pages {
            Some(pages) => {
                let before = pages.bytes().len();
                let with_a_step = wanted.max(before + STEP_BYTES.max(before / 4));
                if !pages.resize(with_a_step) && !pages.resize(wanted) {
                    return Err(full);
                }
            }
            None => self.pages = Some(Pages::new(wanted.max(FIRST_BYTES)).ok_or(full)?),
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.bytes().len())
    }
}

// SAFETY: the spare bytes follow the committed bytes in the same mapping, growth keeps the
// committed bytes, and `commit` only moves the end.
unsafe impl ByteSink for Growing {
    #[inline]
    fn committed(&self) -> &[u8] {
        self.pages.as_ref().map_or(&[], |p| &p.bytes()[..self.len])
    }

    #[inline]
    fn committed_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        let pages = self.pages.as_mut();
        pages.map_or(&mut [], |p| &mut p.bytes_mut()[..len])
    }

    #[inline]
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if self.capacity() - self.len < n_bytes {
            self.grow(n_bytes)?;
        }
        let len = self.len;
        let spare = match &mut self.pages {
            Some(pages) => &mut pages.bytes_mut()[len..],
            None => &mut [],
        };
        // SAFETY: the same bytes with the same borrow; an initialised byte is also a valid
        // `MaybeUninit<u8>`, and users of `spare` only write bytes.
        Ok(unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), spare.len()) })
    }

    #[inline]
    unsafe fn commit(&mut self, n_bytes: usize) {
        debug_assert!(self.len + n_bytes <= self.capacity());
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

    #[test]
    fn what_was_put_stays_while_it_grows_and_becomes_memory() {
        let mut growing = Growing::default();
        let mut expected = Vec::new();
        for k in 0..3000_u32 {
            let part = k.to_le_bytes().repeat(1 + k as usize % 500);
            growing.put(&part).unwrap();
            expected.extend_from_slice(&part);
        }
        assert_eq!(growing.committed(), expected);
        growing.cut(expected.len() - 3);
        let memory = growing.into_memory();
        assert_eq!(memory.bytes(), &expected[..expected.len() - 3]);
    }

    #[test]
    fn nothing_put_takes_no_memory() {
        let mut growing = Growing::default();
        growing.put(b"").unwrap();
        assert!(growing.pages.is_none() && growing.committed().is_empty());
        assert!(growing.into_memory().bytes().is_empty());
        assert!(Growing::default().spare(usize::MAX).is_err());
    }
}
