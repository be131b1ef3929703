//! Where values land that do not fit their place in the block: one growing buffer, emptied at each fetch.

use std::ops::Range;

/// Bytes aligned for 16-bit text, in pieces that stay valid by their offsets while the arena grows.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// 8-byte words, so that every piece that begins at a multiple of 8 is aligned.
    words: Vec<u64>,
    len: usize,
    /// Finished cells, by the number that their indicator carries.
    cells: Vec<Range<usize>>,
    /// Bytes that growing has moved since they were last asked for.
    moved_bytes: usize,
}

/// Room that an arena begins with: a few values that are only a little too long.
const FIRST_BYTES: usize = 64 << 10;

/// Room that it has next: a block full of long values ([`crate::source::Budget`]) with one more part, so that it grows once
/// and not each time it doubles. Memory that is not written to is only address space.
const BLOCK_BYTES: usize = 1 << 20;

/// An arena that has grown beyond this is given back at the next fetch: one 50 MB cell must not stay for ever.
const KEEP_BYTES: usize = 2 * BLOCK_BYTES;

impl Arena {
    /// Forgets all that it holds.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.cells.clear();
        if self.words.capacity() * 8 > KEEP_BYTES {
            self.words = Vec::new();
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
    pub(crate) fn window(&mut self, n: usize) -> &mut [u8] {
        if self.words.len() * 8 < self.len + n {
            self.grow(self.len + n);
        }
        let len = self.len;
        &mut self.bytes_mut()[len..len + n]
    }

    #[cold]
    fn grow(&mut self, n_bytes: usize) {
        let room = if n_bytes <= FIRST_BYTES {
            FIRST_BYTES
        } else if n_bytes <= BLOCK_BYTES {
            BLOCK_BYTES
        } else {
            n_bytes.max(self.words.len() * 8 * 2)
        };
        // Fresh zeros come from the system as they are; those of a vector that grows are written one by one.
        let mut larger = vec![0; room.div_ceil(8)];
        let held = self.len.div_ceil(8);
        larger[..held].copy_from_slice(&self.words[..held]);
        self.words = larger;
        self.moved_bytes += self.len;
    }

    /// Keeps the first `n` bytes of the last window.
    pub(crate) fn commit(&mut self, n: usize) {
        self.len += n;
        debug_assert!(self.len <= self.words.len() * 8);
    }

    /// Ends a cell that began at `start`; returns its number.
    pub(crate) fn end_cell(&mut self, start: usize) -> usize {
        self.cells.push(start..self.len);
        self.cells.len() - 1
    }

    /// The bytes of cell `number`.
    pub(crate) fn cell(&self, number: usize) -> &[u8] {
        &self.bytes()[self.cells[number].clone()]
    }

    /// Length of cell `number`; 0 where there is none.
    pub(crate) fn cell_len(&self, number: usize) -> usize {
        self.cells.get(number).map_or(0, Range::len)
    }

    /// Puts the value that began at `start` right in place; it may grow by one byte.
    pub(crate) fn tidy(&mut self, start: usize, tidy: fn(&mut [u8], usize) -> usize) {
        self.window(1);
        let len = self.len - start;
        let end = self.len + 1;
        self.len = start + tidy(&mut self.bytes_mut()[start..end], len);
    }

    /// The bytes at `range`.
    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes()[range]
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `u64` words are initialised bytes; the length is theirs.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`; every byte pattern is a `u64`.
        unsafe {
            std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.words.len() * 8)
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
            arena.window(usize::from(i) + 3).fill(i);
            arena.commit(usize::from(i));
            numbers.push(arena.end_cell(start));
        }
        assert_eq!(arena.take_moved_bytes(), 0, "it had room for all");
        let held = arena.len();
        arena.window(FIRST_BYTES);
        assert_eq!(arena.take_moved_bytes(), held);
        arena.window(BLOCK_BYTES - held);
        assert_eq!(
            arena.take_moved_bytes(),
            0,
            "it grew once for the whole block"
        );
        for (i, number) in numbers.into_iter().enumerate() {
            assert_eq!(arena.cell(number), vec![i as u8; i]);
        }
    }
}
