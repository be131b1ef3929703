//! Kernels that end in a [`Window`]: they check the room, convert, and count what they wrote.

use super::{copy_to_escape, encode, narrow_plain};
use crate::{ByteSink, Window};

impl<S: ByteSink> Window<'_, S> {
    /// Puts bytes up to the first that JSON escapes; returns how many, and whether one of them is not ASCII.
    ///
    /// # Panics
    /// Where the window has less room than `src` bytes: a bug of the caller (so for all below).
    #[inline]
    pub(crate) fn put_to_escape(&mut self, src: &[u8]) -> (usize, bool) {
        let rest = self.rest();
        assert!(rest.len() >= src.len());
        // SAFETY: the rest of the window takes src.len() bytes and is borrowed mutably, apart from src.
        let (n, high) = unsafe { copy_to_escape(src, rest.as_mut_ptr().cast()) };
        // SAFETY: the kernel has written n bytes.
        unsafe { self.advance(n) };
        (n, high)
    }

    /// Puts ASCII units, up to the first other one or (`JSON`) one that is escaped; returns how many.
    #[inline]
    pub(crate) fn put_plain_u16<const JSON: bool>(&mut self, src: &[u16]) -> usize {
        let rest = self.rest();
        assert!(rest.len() >= src.len());
        // SAFETY: the rest of the window takes src.len() bytes and is borrowed mutably, apart from src.
        let n = unsafe { narrow_plain::<JSON>(src, rest.as_mut_ptr().cast()) };
        // SAFETY: the kernel has written n bytes.
        unsafe { self.advance(n) };
        n
    }

    /// Puts UTF-16 as UTF-8, in a window of 3 bytes a unit, or of the exact length. `false` where
    /// it is malformed, and if it has changed since it was measured: then nothing is put.
    #[inline]
    pub(crate) fn put_utf16(&mut self, src: &[u16]) -> bool {
        let rest = self.rest();
        let written = if rest.len() / 3 >= src.len() {
            encode::utf16_to_utf8(src, rest)
        } else {
            encode::utf16_to_utf8_exact(src, rest)
        };
        // SAFETY: the kernel has written as many bytes as it says.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// As [`Window::put_utf16`] of UTF-32, in a window of 4 bytes a unit or of the exact length.
    #[inline]
    pub(crate) fn put_utf32(&mut self, src: &[u32]) -> bool {
        let written = encode::utf32_to_utf8(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it says.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Puts Latin-1 as UTF-8, in a window of 2 bytes a unit or of the exact length. `false` if it
    /// has changed since it was measured: then nothing is put.
    #[inline]
    pub(crate) fn put_latin1(&mut self, src: &[u8]) -> bool {
        let written = encode::latin1_to_utf8_within(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it says.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Puts UTF-32 as the body of a JSON string, in a window of 6 bytes a unit or of the exact length. `false` where it is
    /// malformed: then nothing is put.
    #[inline]
    pub(crate) fn put_json_utf32(&mut self, src: &[u32]) -> bool {
        let written = encode::utf32_to_json(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it says.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }
}
