//! `Ucs2Text`: the part of a new `str` to which the JSON encoder writes 16-bit text. Other output
//! is first written to a chunk of Latin-1 bytes.
//!
//! ```text
//!  chunk, Latin-1    … "id":7,"name":"  ",  …   widened and copied before the text is written
//!                                     ▲
//!  str, UCS-2        … "id":7,"name":"Цюрих
//! ```

use std::cell::Cell;
use std::ptr::null;
use std::ptr::null_mut;

use onecopy_text::Pen;
use onecopy_text::convert::{JSON_PLAIN_UNITS, Kernels};

/// The unused memory of the new `str`, and the start of the uncopied bytes in the chunk. The chunk
/// is the encoder's byte buffer.
pub(crate) struct Ucs2Text {
    /// The start of the uncopied bytes in the chunk.
    from: Cell<*const u8>,
    /// The address of the next code unit in the `str`; null without a `str`. `end` is the end of
    /// the `str`.
    at: Cell<*mut u16>,
    end: Cell<*mut u16>,
    /// The number of code units that `want` has requested. The next `spare` reserves space for
    /// them.
    wanted: Cell<usize>,
    /// `true` if a code unit outside of Latin-1 was written.
    is_wide: Cell<bool>,
}

impl Ucs2Text {
    /// Creates a `Ucs2Text` without memory (see [`Ucs2Text::place`]).
    pub(crate) const fn new() -> Ucs2Text {
        Ucs2Text {
            from: Cell::new(null()),
            at: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            wanted: Cell::new(0),
            is_wide: Cell::new(false),
        }
    }

    /// Returns the start of the uncopied bytes in the chunk; null without a `str`.
    #[inline(always)]
    pub(crate) fn from(&self) -> *const u8 {
        self.from.get()
    }

    /// Returns the address of the next code unit in the `str`; null without a `str`.
    pub(crate) fn at(&self) -> *mut u16 {
        self.at.get()
    }

    /// Returns `true` if a code unit outside of Latin-1 was written.
    pub(crate) fn is_wide(&self) -> bool {
        self.is_wide.get()
    }

    /// Returns and resets the number of requested code units.
    pub(crate) fn take_wanted(&self) -> usize {
        self.wanted.take()
    }

    /// Requests space in the `str` for `n_units` code units. The next `spare` moves the chunk into
    /// the `str`, and reserves the space.
    pub(super) fn want(&self, n_units: usize) {
        self.wanted.set(n_units);
    }

    /// Sets the addresses for direct writes. `from` is the first byte of the chunk that is not yet
    /// copied. The unused memory of the `str` extends from `at` to `end`.
    ///
    /// # Safety
    /// The bytes of the chunk that are not in the `str` must begin at `from`. `at` to `end` must be
    /// memory of the `str` that stays writable until the next call, without other writers. Or both
    /// must be null.
    pub(crate) unsafe fn place(&self, from: *const u8, at: *mut u16, end: *mut u16) {
        self.from.set(from);
        self.at.set(at);
        self.end.set(end);
    }

    fn remaining(&self) -> usize {
        (self.end.get().addr() - self.at.get().addr()) / 2
    }

    /// Copies the rest of the chunk, up to the position of `pen`, to the `str`. Returns `false` if
    /// the `str` has no space for it and `n_units` code units.
    ///
    /// # Safety
    /// `pen` must be the pen that writes to the chunk.
    pub(super) unsafe fn put_before(&self, n_units: usize, pen: &Pen<'_>) -> bool {
        let from = self.from.get();
        let n_before = pen.at().addr() - from.addr();
        if self.at.get().is_null() || self.remaining() < n_before.saturating_add(n_units) {
            return false;
        }
        // SAFETY: the bytes are written, up to the pen; there is space, as checked above.
        unsafe { self.widen(from, n_before) };
        true
    }

    /// Copies `n` Latin-1 bytes at `from` to the `str`, as 16-bit code units.
    ///
    /// # Safety
    /// The bytes must be initialised, and the `str` must have space for them.
    #[inline(always)]
    unsafe fn widen(&self, from: *const u8, n: usize) {
        let at = self.at.get();
        // SAFETY: the caller guarantees the requirements.
        unsafe {
            for i in 0..n {
                at.add(i).write(u16::from(from.add(i).read()));
            }
            self.at.set(at.add(n));
            self.from.set(from.add(n));
        }
    }

    /// Copies the rest of the chunk with the opening quote to the `str`, and then the string `u`.
    /// Returns `false` and copies nothing if `u` is long, needs escapes, or does not fit.
    ///
    /// # Safety
    /// `pen` must be the pen that writes to the chunk. The bytes of the chunk up to the write
    /// position, and one byte after it, must be initialised.
    #[inline(always)]
    pub(super) unsafe fn put_short<K: Kernels>(
        &self,
        kernels: K,
        u: &[u16],
        pen: &Pen<'_>,
    ) -> bool {
        let from = self.from.get();
        let n_before = pen.at().addr() + 1 - from.addr();
        if u.len() > JSON_PLAIN_UNITS || self.remaining() < n_before + JSON_PLAIN_UNITS {
            return false;
        }
        // SAFETY: the bytes are written (contract of this function), and not part of the `str`. The
        // `str` has space for them and for the units of the kernel.
        unsafe {
            let text = self.at.get().add(n_before);
            if !kernels.json_copy_ucs2(u, text) {
                return false;
            }
            self.widen(from, n_before);
            self.at.set(text.add(u.len()));
        }
        // `json_copy_ucs2` has written the whole text, which needs units of 16 bits.
        self.is_wide.set(true);
        true
    }

    /// Sets `is_wide` if a code unit of `u` is outside of Latin-1.
    fn see(&self, u: &[u16]) {
        if !self.is_wide.get() {
            self.is_wide.set(u.iter().any(|&unit| unit > 0xFF));
        }
    }

    /// Writes one code unit to the `str`.
    ///
    /// # Panics
    /// If the `str` has no space for the code unit (see `want`).
    pub(super) fn put(&self, unit: u16) {
        assert!(self.remaining() > 0);
        let at = self.at.get();
        // SAFETY: inside of the place, checked above.
        unsafe {
            at.write(unit);
            self.at.set(at.add(1));
        }
        self.see(&[unit]);
    }

    /// Writes at most [`JSON_PLAIN_UNITS`] code units. Returns `false` and writes nothing if one is
    /// a surrogate or needs an escape.
    ///
    /// # Panics
    /// If `u` has more than [`JSON_PLAIN_UNITS`] code units, or the `str` has no space for
    /// [`JSON_PLAIN_UNITS`] code units.
    pub(super) fn put_plain<K: Kernels>(&self, kernels: K, u: &[u16]) -> bool {
        assert!(u.len() <= JSON_PLAIN_UNITS && self.remaining() >= JSON_PLAIN_UNITS);
        // SAFETY: space for as many units as the kernel may write, as checked above.
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
