//! `Ucs2Text`: the part of the resulting `str` to which the JSON encoder writes 16-bit text
//! directly. All other output is written to a chunk of Latin-1 bytes, which is later copied to the
//! `str`.
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

/// Two positions: the unused memory of the resulting `str`, to which 16-bit text is written
/// directly, and the first byte of the chunk (the encoder's byte buffer) that was not copied to the
/// `str` yet.
pub(crate) struct Ucs2Text {
    /// The address of the first byte of the chunk that has not been copied to the `str`.
    from: Cell<*const u8>,
    /// The address in the `str` to which the next code unit is written; null if there is no `str`
    /// yet. The field `end` is the address of the end of the `str`.
    at: Cell<*mut u16>,
    end: Cell<*mut u16>,
    /// The number of code units that `want` has requested. The next call to `spare` reserves space
    /// for them in the `str`, in addition to the space for the contents of the chunk.
    wanted: Cell<usize>,
    /// `true` if a code unit outside of Latin-1 was written. It can be `false` although a UCS-2
    /// string was written, because surrogates may be written as escapes, which are ASCII.
    is_wide: Cell<bool>,
}

impl Ucs2Text {
    /// Creates a `Ucs2Text` that has no memory in a `str`. [`Ucs2Text::place`] provides this
    /// memory.
    pub(crate) const fn new() -> Ucs2Text {
        Ucs2Text {
            from: Cell::new(null()),
            at: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            wanted: Cell::new(0),
            is_wide: Cell::new(false),
        }
    }

    /// Returns the address of the first byte of the chunk that has not been copied to the `str`;
    /// null if there is no `str` yet.
    #[inline(always)]
    pub(crate) fn from(&self) -> *const u8 {
        self.from.get()
    }

    /// Returns the address in the `str` to which the next code unit is written; null if there is no
    /// `str` yet.
    pub(crate) fn at(&self) -> *mut u16 {
        self.at.get()
    }

    /// Returns `true` if a code unit outside of Latin-1 was written.
    pub(crate) fn is_wide(&self) -> bool {
        self.is_wide.get()
    }

    /// Returns the number of code units that [`Ucs2Text::want`] has requested, and resets it to 0.
    pub(crate) fn take_wanted(&self) -> usize {
        self.wanted.take()
    }

    /// Requests space in the `str` for `n_units` more code units. The next call to `spare` moves
    /// all bytes of the chunk into the `str`, and then reserves this space.
    pub(super) fn want(&self, n_units: usize) {
        self.wanted.set(n_units);
    }

    /// Sets the addresses for direct writes: `from` is the address of the first byte of the chunk
    /// that has not been copied to the `str`, and the unused memory of the `str` extends from `at`
    /// to `end`.
    ///
    /// # Safety
    /// The bytes of the chunk that are not in the `str` must begin at `from`. `at` to `end` must be
    /// memory of the `str` that stays writable until the next call, and that no other code writes
    /// to; or both must be null.
    pub(crate) unsafe fn place(&self, from: *const u8, at: *mut u16, end: *mut u16) {
        self.from.set(from);
        self.at.set(at);
        self.end.set(end);
    }

    fn remaining(&self) -> usize {
        (self.end.get().addr() - self.at.get().addr()) / 2
    }

    /// Copies the remaining bytes of the chunk, up to the write position of `pen`, to the `str`. If
    /// the `str` has no space for these bytes and `n_units` more code units, copies nothing and
    /// returns `false`.
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

    /// Copies the `n` Latin-1 bytes of the chunk at `from` to the `str`, as 16-bit code units.
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

    /// Copies the remaining bytes of the chunk to the `str`, including the byte after the write
    /// position (the opening quote), and then writes the short string `u` to the `str`. If `u` is
    /// not short, needs escapes, or does not fit into the `str`, copies nothing and returns
    /// `false`.
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
        // SAFETY: the bytes are written, by the contract of this function, and are not part of the
        // `str`; it has space for them and for as many units as the kernel may write.
        unsafe {
            let text = self.at.get().add(n_before);
            if !kernels.json_copy_ucs2(u, text) {
                return false;
            }
            self.widen(from, n_before);
            self.at.set(text.add(u.len()));
        }
        // `json_copy_ucs2` has written the whole text. It is called only for a `str` whose text
        // needs units of 16 bits.
        self.is_wide.set(true);
        true
    }

    /// Sets `is_wide` to `true` if a code unit of `u` is outside of Latin-1.
    fn see(&self, u: &[u16]) {
        if !self.is_wide.get() {
            self.is_wide.set(u.iter().any(|&unit| unit > 0xFF));
        }
    }

    /// Writes one code unit to the `str`.
    ///
    /// # Panics
    /// If the `str` has no space for the code unit. The caller must have requested this space by
    /// `want`.
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

    /// Writes at most [`JSON_PLAIN_UNITS`] code units to the `str`. If one of them needs an escape
    /// or is a surrogate, writes nothing and returns `false`.
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
