//! The steps for UTF-8.

use crate::sink::Pen;

/// Bytes that a pen needs for a text of `n` units of any width: kernels write whole vectors.
#[inline(always)]
#[must_use]
pub fn utf8_room(n_units: usize) -> usize {
    4 * n_units + 64
}

/// The longest text that [`Utf8Kernels::utf8_bytes`] takes.
pub const UTF8_SHORT_BYTES: usize = 64;

/// What a family of kernels does for text that becomes UTF-8.
pub trait Utf8Kernels: Copy {
    /// Puts at most [`UTF8_SHORT_BYTES`] bytes as they are, and returns the address after them.
    ///
    /// # Safety
    /// `out` is writable for [`UTF8_SHORT_BYTES`], apart from `u`; `u` is no longer than that.
    unsafe fn utf8_bytes(self, u: &[u8], out: *mut u8) -> *mut u8;

    /// Puts short Latin-1; `None` where it is not for this step.
    ///
    /// # Safety
    /// `out` is writable for [`UTF8_SHORT_BYTES`], apart from `u`.
    unsafe fn utf8_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// Puts short text of 16-bit units of which none is half of a pair; `None` where it is not for this step.
    ///
    /// # Safety
    /// As [`Utf8Kernels::utf8_short_latin1`].
    unsafe fn utf8_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8>;

    /// Puts Latin-1.
    ///
    /// # Panics
    /// Where the pen has not [`utf8_room`]: a bug of the caller (so for all below).
    fn put_utf8_latin1(self, u: &[u8], pen: &mut Pen<'_>);

    /// Puts 16-bit units of which none is half of a pair; `false`, and nothing put, where one is a surrogate.
    #[must_use]
    fn put_utf8_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool;

    /// Puts 32-bit units; `false`, and nothing put, where one is a surrogate or past U+10FFFF.
    #[must_use]
    fn put_utf8_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool;
}
