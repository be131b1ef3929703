//! The trait `Utf8Kernels`: writes short texts as UTF-8.

use crate::sink::Pen;

/// Returns the space in bytes that a [`Pen`] needs for `n_units` units in UTF-8. The space is
/// larger than the result, because kernels write whole vectors.
#[inline(always)]
#[must_use]
pub fn utf8_capacity(n_units: usize) -> usize {
    4 * n_units + 64
}

/// The longest text for [`Utf8Kernels::utf8_bytes`], in bytes.
pub const UTF8_SHORT_BYTES: usize = 64;

/// The conversions to UTF-8 of a kernel family.
pub trait Utf8Kernels: Copy {
    /// Copies at most [`UTF8_SHORT_BYTES`] bytes. Returns the address after them.
    ///
    /// # Safety
    /// `out` must be writable for [`UTF8_SHORT_BYTES`] bytes, and must not overlap `u`. `u` must
    /// not be longer than [`UTF8_SHORT_BYTES`].
    unsafe fn utf8_bytes(self, u: &[u8], out: *mut u8) -> *mut u8;

    /// Writes Latin-1 as UTF-8 and returns the address after it. Returns `None` if the text is too
    /// long, or if the family has no such kernel.
    ///
    /// # Safety
    /// `out` must be writable for [`UTF8_SHORT_BYTES`] bytes, and must not overlap `u`.
    unsafe fn utf8_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// Writes 16-bit units as UTF-8 and returns the address after them. Returns `None` for a
    /// surrogate, for a long text, or if the family has no such kernel.
    ///
    /// # Safety
    /// `out` must be writable for [`UTF8_SHORT_BYTES`] bytes, and must not overlap `u`.
    unsafe fn utf8_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8>;

    /// Writes Latin-1 of any length as UTF-8.
    ///
    /// # Panics
    /// The `put_` methods panic if `pen` has less space than [`utf8_capacity`] returns, which is a
    /// bug in the caller.
    fn put_utf8_latin1(self, u: &[u8], pen: &mut Pen<'_>);

    /// Writes 16-bit units as UTF-8. Returns `false`, and writes nothing, if a unit is a surrogate.
    #[must_use]
    fn put_utf8_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool;

    /// Writes 32-bit units as UTF-8. Returns `false`, and writes nothing, if a unit is a surrogate
    /// or past U+10FFFF.
    #[must_use]
    fn put_utf8_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool;
}
