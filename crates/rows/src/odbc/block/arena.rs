//! Where values land that do not fit their place in the block: one growing buffer, emptied at each fetch.

use std::ops::Range;

use crate::error::Error;
use crate::pages::Pages;

/// Bytes aligned for 16-bit text, in pieces that stay valid by their offsets while the arena grows.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Room for a few values that are only a little too long, in 8-byte words, so that every piece that begins at a
    /// multiple of 8 is aligned; empty where there are pages.
    words: Vec<u64>,
    /// Room for more.
    pages: Option<Pages>,
    len: usize,
    /// Finished cells, by the number that their indicator carries, each with its slot.
    cells: Vec<(usize, Range<usize>)>,
    /// Bytes that growing has moved since they were last asked for.
    moved_bytes: usize,
}

/// Room in words, in bytes.
const FIRST_BYTES: usize = 64 << 10;

/// Room in pages at first: a block full of long values ([`crate::source::Budget`]) with one more part. Pages that are not
/// written to are only address space.
const BLOCK_BYTES: usize = 1 << 20;

/// An arena that has grown beyond this gives the rest back at the next fetch: one 50 MB cell must not stay for ever.
const KEEP_BYTES: usize = 2 * BLOCK_BYTES;

impl Arena {
    /// One for more of the same, which need not grow as this one had to.
    pub(crate) fn another(&self) -> Arena {
        Arena {
            pages: self.pages.as_ref().and_then(|_| Pages::new(BLOCK_BYTES)),
            ..Arena::default()
        }
    }

    /// Forgets all that it holds.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.cells.clear();
        if let Some(pages) = &mut self.pages
            && pages.bytes().len() > KEEP_BYTES
        {
            // To give memory back may fail like any call; then it stays.
            let _ = pages.resize(BLOCK_BYTES);
        }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that were moved since this was last asked, because the arena grew: what the ledger counts as copied.
    pub(crate) fn take_moved_bytes(&mut self) -> usize {
        std::mem::take(&mut self.moved_bytes)
    }

    /// Begins a piece: an aligned place.
    pub(crate) fn begin(&mut self) -> usize {
        self.len = self.len.next_multiple_of(8);
        self.len
    }

    /// A window of `n` bytes at the end of what is held.
    ///
    /// # Errors
    /// Without memory: a driver may report any length.
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

    /// Keeps the first `n` bytes of the last window.
    pub(crate) fn commit(&mut self, n: usize) {
        self.len += n;
        debug_assert!(self.len <= self.bytes().len());
    }

    /// Ends a cell of `slot` that began at `start`; returns its number.
    pub(crate) fn end_cell(&mut self, slot: usize, start: usize) -> usize {
        self.cells.push((slot, start..self.len));
        self.cells.len() - 1
    }

    /// The bytes of cell `number`; `None` unless it is one of `slot`. The number is in memory that
    /// a driver may write to.
    pub(crate) fn cell(&self, slot: usize, number: usize) -> Option<&[u8]> {
        let (_, range) = self.cells.get(number).filter(|(of, _)| *of == slot)?;
        self.bytes().get(range.clone())
    }

    /// Corrects the form of the value that began at `start`; it may grow by one byte.
    ///
    /// # Errors
    /// Without memory.
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

    /// The bytes at `range`.
    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes()[range]
    }

    fn bytes(&self) -> &[u8] {
        match &self.pages {
            Some(pages) => pages.bytes(),
            // SAFETY: `u64` words are initialised bytes; the length is theirs.
            None => unsafe {
                std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8)
            },
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.pages {
            Some(pages) => pages.bytes_mut(),
            // SAFETY: as `bytes`; every byte pattern is a `u64`.
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
        assert_eq!(arena.take_moved_bytes(), 0, "it had room for all");
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
