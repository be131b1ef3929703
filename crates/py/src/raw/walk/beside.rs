//! Text of 16-bit units that goes past the chunk of bytes, straight into the `str` that it becomes.
//!
//! ```text
//!  chunk, Latin-1    … "id":7,"name":"  ",  …          what stands in front of a text is widened when the text comes
//!                                     ▲
//!  str, UCS-2        … "id":7,"name":"Цюрих
//! ```

use std::cell::Cell;
use std::ptr::null;
use std::ptr::null_mut;

use onecopy_text::Pen;
use onecopy_text::convert::{JSON_PLAIN_UNITS, Kernels};

/// Where such text goes, and how far the chunk has gone there.
pub(crate) struct Beside {
    /// Bytes of the chunk from here on are not in the `str` yet.
    from: Cell<*const u8>,
    /// The place in the `str` where they belong, and its end; null where there is no such `str`.
    at: Cell<*mut u16>,
    end: Cell<*mut u16>,
    /// Units that the next room is to have, besides what the chunk holds.
    wanted: Cell<usize>,
    /// Whether a unit past Latin-1 was put: of a text of surrogates all may be escapes.
    is_wide: Cell<bool>,
}

impl Beside {
    /// No place yet.
    pub(crate) const fn new() -> Beside {
        Beside {
            from: Cell::new(null()),
            at: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            wanted: Cell::new(0),
            is_wide: Cell::new(false),
        }
    }

    /// The first byte of the chunk that is not in the `str` yet; null before there is one.
    #[inline(always)]
    pub(crate) fn from(&self) -> *const u8 {
        self.from.get()
    }

    /// Where the next unit goes; null where there is no place.
    pub(crate) fn at(&self) -> *mut u16 {
        self.at.get()
    }

    /// Whether a unit past Latin-1 was put.
    pub(crate) fn is_wide(&self) -> bool {
        self.is_wide.get()
    }

    /// Takes the units that were asked for.
    pub(crate) fn take_wanted(&self) -> usize {
        self.wanted.take()
    }

    /// Tells the chunk to make room for so many units with its next spare place, and to leave no byte behind.
    pub(super) fn want(&self, n_units: usize) {
        self.wanted.set(n_units);
    }

    /// Sets the places.
    ///
    /// # Safety
    /// From `from` on stand the bytes of the chunk that are not in the `str`. `at` to `end` are places of it, which stay writable
    /// until this is called again, and which nobody else writes to; or null, both.
    pub(crate) unsafe fn place(&self, from: *const u8, at: *mut u16, end: *mut u16) {
        self.from.set(from);
        self.at.set(at);
        self.end.set(end);
    }

    fn room(&self) -> usize {
        (self.end.get().addr() - self.at.get().addr()) / 2
    }

    /// Puts what the chunk holds up to the pen, where there is room for it and `n_units` more.
    ///
    /// # Safety
    /// The pen is that of the chunk.
    pub(super) unsafe fn put_before(&self, n_units: usize, pen: &Pen<'_>) -> bool {
        let from = self.from.get();
        let n_before = pen.at().addr() - from.addr();
        if self.at.get().is_null() || self.room() < n_before.saturating_add(n_units) {
            return false;
        }
        // SAFETY: the bytes are written, up to the pen; there is room, as checked above.
        unsafe { self.widen(from, n_before) };
        true
    }

    /// Puts `n` bytes at `from`, which are those that are due.
    ///
    /// # Safety
    /// They are written, and there is room for them.
    #[inline(always)]
    unsafe fn widen(&self, from: *const u8, n: usize) {
        let at = self.at.get();
        // SAFETY: the duty of the caller.
        unsafe {
            for i in 0..n {
                at.add(i).write(u16::from(from.add(i).read()));
            }
            self.at.set(at.add(n));
            self.from.set(from.add(n));
        }
    }

    /// Puts a short text, with what stands in front of it up to the pen and one byte more; `false`, and nothing put, where it is
    /// not short, there is no room, or it is not to be written as it is.
    ///
    /// # Safety
    /// The pen is that of the chunk, whose bytes up to the pen and one behind are written.
    #[inline(always)]
    pub(super) unsafe fn put_short<K: Kernels>(
        &self,
        kernels: K,
        u: &[u16],
        pen: &Pen<'_>,
    ) -> bool {
        let from = self.from.get();
        let n_before = pen.at().addr() + 1 - from.addr();
        if u.len() > JSON_PLAIN_UNITS || self.room() < n_before + JSON_PLAIN_UNITS {
            return false;
        }
        // SAFETY: the bytes are written, by the caller's word, and are no part of the `str`; it has room for them and for as many
        // units as the kernel may write.
        unsafe {
            let text = self.at.get().add(n_before);
            if !kernels.json_copy_ucs2(u, text) {
                return false;
            }
            self.widen(from, n_before);
            self.at.set(text.add(u.len()));
        }
        // All of a text is put, and none is wider than it must be.
        self.is_wide.set(true);
        true
    }

    /// Notes whether units are past Latin-1.
    fn see(&self, u: &[u16]) {
        if !self.is_wide.get() {
            self.is_wide.set(u.iter().any(|&unit| unit > 0xFF));
        }
    }

    /// Puts one unit.
    ///
    /// # Panics
    /// Where there is no room: that was asked for before.
    pub(super) fn put(&self, unit: u16) {
        assert!(self.room() > 0);
        let at = self.at.get();
        // SAFETY: inside of the place, checked above.
        unsafe {
            at.write(unit);
            self.at.set(at.add(1));
        }
        self.see(&[unit]);
    }

    /// Puts units, at most [`JSON_PLAIN_UNITS`], where none is escaped and none is half of a pair; `false`, and nothing put, where one
    /// is.
    ///
    /// # Panics
    /// Where there is no room for as many.
    pub(super) fn put_plain<K: Kernels>(&self, kernels: K, u: &[u16]) -> bool {
        assert!(u.len() <= JSON_PLAIN_UNITS && self.room() >= JSON_PLAIN_UNITS);
        // SAFETY: room for as many units as the kernel may write, checked above.
        unsafe {
            let is_plain = kernels.json_copy_ucs2(u, self.at.get());
            if is_plain {
                self.at.set(self.at.get().add(u.len()));
                self.see(u);
            }
            is_plain
        }
    }
}
