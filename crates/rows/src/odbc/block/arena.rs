//! `Arena`: the memory for the values of a block of rows that are longer than their slots in the
//! block. It is one buffer that grows, and that is cleared before each fetch.

use std::ops::Range;

use crate::error::Error;
use crate::pages::Pages;

/// Memory for values, aligned for 16-bit text. A value is addressed by its offset, which stays
/// valid while the arena grows.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Memory for a few values that are slightly longer than their slots; empty if `pages` is used.
    /// It consists of 8-byte words, so that a value that begins at a multiple of 8 is aligned.
    words: Vec<u64>,
    /// Memory from the system, if the values do not fit in `words`; otherwise `None`.
    pages: Option<Pages>,
    len: usize,
    /// The complete values: the slot and the byte range of each. The index of a value in this
    /// vector is stored in the indicator of the value's slot.
    cells: Vec<(usize, Range<usize>)>,
    /// The number of bytes that were moved when the arena grew, since the last call to
    /// `take_moved_bytes`.
    moved_bytes: usize,
}

/// The largest capacity of `words` in bytes. An arena that needs more memory uses `pages`.
const FIRST_BYTES: usize = 64 << 10;

/// The initial capacity of `pages` in bytes. It suffices for the values of one block of the largest
/// size ([`crate::source::Budget`]), plus one part of a further value. Pages that were not written
/// use only address space.
const BLOCK_BYTES: usize = 1 << 20;

/// If the capacity of an arena exceeds this number of bytes, the arena frees the excess when it is
/// cleared for the next fetch. The memory of a 50 MB value is thus freed after its row.
const KEEP_BYTES: usize = 2 * BLOCK_BYTES;

impl Arena {
    /// Creates an empty arena for another block of the same statement. If this arena has large
    /// memory from the system (`pages`), the new arena allocates such memory too.
    pub(crate) fn another(&self) -> Arena {
        Arena {
            pages: self.pages.as_ref().and_then(|_| Pages::new(BLOCK_BYTES)),
            ..Arena::default()
        }
    }

    /// Removes all values. If the capacity exceeds [`KEEP_BYTES`], frees memory, so that the
    /// capacity is [`BLOCK_BYTES`].
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.cells.clear();
        if let Some(pages) = &mut self.pages
            && pages.bytes().len() > KEEP_BYTES
        {
            // If the memory cannot be returned to the system, it stays allocated.
            let _ = pages.resize(BLOCK_BYTES);
        }
    }

    /// Returns the number of bytes that the arena contains. This includes the bytes of a value that
    /// is still being read.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes that were moved because the arena grew, since the last call; the
    /// `Ledger` counts these bytes as copied.
    pub(crate) fn take_moved_bytes(&mut self) -> usize {
        std::mem::take(&mut self.moved_bytes)
    }

    /// Begins a value in the arena, at the next offset that is a multiple of 8; returns this
    /// offset.
    pub(crate) fn begin(&mut self) -> usize {
        self.len = self.len.next_multiple_of(8);
        self.len
    }

    /// Returns a window, that is, the buffer for one call to `SQLGetData`. It consists of the `n`
    /// writable bytes that follow the values in the arena.
    ///
    /// # Errors
    /// The allocation failed. `n` may be wrong, because it can be a length that a driver reports.
    pub(crate) fn window(&mut self, n: usize) -> Result<&mut [u8], Error> {
        let end = self.len.saturating_add(n);
        if self.bytes().len() < end {
            self.grow(end).ok_or_else(|| Error::no_memory(n))?;
        }
        let len = self.len;
        Ok(&mut self.bytes_mut()[len..end])
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) -> Option<()> {
        if let Some(pages) = &mut self.pages {
            let doubled = 2 * pages.bytes().len();
            let is_grown = pages.resize(n_bytes.max(doubled)) || pages.resize(n_bytes);
            return is_grown.then_some(());
        }
        if n_bytes <= FIRST_BYTES {
            self.words.try_reserve_exact(FIRST_BYTES / 8).ok()?;
            self.words.resize(FIRST_BYTES / 8, 0);
            return Some(());
        }
        let mut pages = Pages::new(n_bytes.max(BLOCK_BYTES))?;
        pages.bytes_mut()[..self.len].copy_from_slice(&self.bytes()[..self.len]);
        self.moved_bytes += self.len;
        (self.words, self.pages) = (Vec::new(), Some(pages));
        Some(())
    }

    /// Adds the first `n` bytes of the most recent window (the buffer of one `SQLGetData` call) to
    /// the contents of the arena.
    pub(crate) fn commit(&mut self, n: usize) {
        self.len += n;
        debug_assert!(self.len <= self.bytes().len());
    }

    /// Ends the value that belongs to `slot` and began at offset `start`. Returns the value's
    /// number, with which [`Arena::cell`] returns its bytes.
    pub(crate) fn end_cell(&mut self, slot: usize, start: usize) -> usize {
        self.cells.push((slot, start..self.len));
        self.cells.len() - 1
    }

    /// Returns the bytes of value `number`; `None` if the value does not belong to `slot`. The
    /// number must be checked, because it comes from an indicator, which a driver may overwrite.
    pub(crate) fn cell(&self, slot: usize, number: usize) -> Option<&[u8]> {
        let (_, range) = self.cells.get(number).filter(|(of, _)| *of == slot)?;
        self.bytes().get(range.clone())
    }

    /// Rewrites the last value of the arena, a driver-specific text of a decimal, as a plain
    /// decimal, by calling `tidy`. The value begins at offset `start`, and may become one byte
    /// longer.
    ///
    /// # Errors
    /// The allocation failed.
    pub(crate) fn tidy(
        &mut self,
        start: usize,
        tidy: fn(&mut [u8], usize) -> usize,
    ) -> Result<(), Error> {
        self.window(1)?;
        let len = self.len - start;
        let end = self.len + 1;
        self.len = start + tidy(&mut self.bytes_mut()[start..end], len);
        Ok(())
    }

    /// Returns the bytes of the arena at the offsets `range`.
    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes()[range]
    }

    fn bytes(&self) -> &[u8] {
        match &self.pages {
            Some(pages) => pages.bytes(),
            // SAFETY: a `u64` word consists of initialised bytes; the length is that of all words.
            None => unsafe {
                std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8)
            },
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.pages {
            Some(pages) => pages.bytes_mut(),
            // SAFETY: as in `bytes`; every byte pattern is a valid `u64`, and `self` is borrowed
            // mutably.
            None => unsafe {
                std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.words.len() * 8)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_where_they_are_while_the_arena_grows() {
        let mut arena = Arena::default();
        let mut numbers = Vec::new();
        for i in 0..100u8 {
            let start = arena.begin();
            assert_eq!(start % 8, 0);
            arena.window(usize::from(i) + 3).unwrap().fill(i);
            arena.commit(usize::from(i));
            numbers.push(arena.end_cell(10 * usize::from(i), start));
        }
        assert_eq!(arena.take_moved_bytes(), 0, "its capacity was sufficient");
        let held = arena.len();
        arena.window(FIRST_BYTES).unwrap();
        assert_eq!(arena.take_moved_bytes(), held);
        arena.window(BLOCK_BYTES - held).unwrap();
        assert_eq!(
            arena.take_moved_bytes(),
            0,
            "it grew once for the whole block"
        );
        let mut another = arena.another();
        another.window(FIRST_BYTES + 1).unwrap();
        assert_eq!((another.len(), another.take_moved_bytes()), (0, 0));
        for (i, number) in numbers.into_iter().enumerate() {
            assert_eq!(arena.cell(10 * i, number), Some(&vec![i as u8; i][..]));
            assert_eq!(
                arena.cell(10 * i + 1, number),
                None,
                "the cell of another slot"
            );
        }
        assert_eq!(arena.cell(0, 100), None);
    }

    #[test]
    fn a_window_of_a_length_that_no_machine_has_is_an_error() {
        let mut arena = Arena::default();
        for held in [0, 100, FIRST_BYTES + 1] {
            arena.window(held).unwrap().fill(7);
            arena.commit(held);
            for n in [1 << 60, isize::MAX as usize, usize::MAX] {
                let error = arena.window(n).map(|_| ()).unwrap_err();
                assert!(error.message.starts_with("out of memory"), "{error}");
            }
            assert!(
                arena.at(0..held).iter().all(|b| *b == 7),
                "what it held stays"
            );
        }
    }
}
