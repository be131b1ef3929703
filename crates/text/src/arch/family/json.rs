//! The trait `JsonKernels`: writes short texts as bodies of JSON strings; each kernel family
//! implements it.

use crate::sink::Pen;

/// Returns the number of bytes of free space that a [`Pen`] must have before a text of `n_units`
/// units is written as the body of a JSON string. Each unit may become an escape of six bytes. The
/// number includes space for the last vector, which kernels write as a whole.
#[inline(always)]
#[must_use]
pub fn json_capacity(n_units: usize) -> usize {
    6 * n_units + 64
}

/// The length in bytes of the longest text that [`JsonKernels::json_plain`] accepts.
pub const JSON_PLAIN_BYTES: usize = 64;

/// The length in units of the longest text that [`JsonKernels::json_copy_ucs2`] accepts.
pub const JSON_PLAIN_UNITS: usize = 32;

/// The conversions to JSON that each kernel family implements. They write the body of a string,
/// without its quotes.
///
/// # Panics
/// The `put_` methods panic if the pen has less space than [`json_capacity`] returns, which is a
/// bug in the caller.
pub trait JsonKernels: Copy {
    /// Copies a short text in ASCII or UTF-8 (at most [`JSON_PLAIN_BYTES`] bytes) to `out`, and
    /// returns the address after the text. Returns `None` if a byte must be escaped in JSON. The
    /// method does not check the space, so that the caller can check once for the text and for the
    /// bytes before and after it.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_BYTES`] bytes, and must not overlap `u`.
    unsafe fn json_plain(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// Writes a short text in Latin-1 to `out` as UTF-8, for a JSON string. Returns the address
    /// after the text. Returns `None` if a character must be escaped, if the text is too long, or
    /// if this kernel family does not implement the method.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_BYTES`] bytes, and must not overlap `u`.
    unsafe fn json_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// Writes the 16-bit units of a short text to `out` as UTF-8, for a JSON string. Returns the
    /// address after the text. Returns `None` if a unit must be escaped or is a surrogate, if the
    /// text is too long, or if this kernel family does not implement the method.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_BYTES`] bytes, and must not overlap `u`.
    unsafe fn json_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8>;

    /// Copies the 16-bit units of `u`, at most [`JSON_PLAIN_UNITS`], to `out`. Returns `false` if
    /// a unit must be escaped in JSON or is a surrogate. The contents of `out` are then undefined.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_UNITS`] units, and must not overlap `u`.
    unsafe fn json_copy_ucs2(self, u: &[u16], out: *mut u16) -> bool;

    /// Writes the same text for `value` as [`put_float`](crate::arch::float::put_float), and
    /// returns the address after the text. If `put_float` does not support `value`, writes nothing
    /// and returns `None`. A kernel family without faster code than `put_float` always returns
    /// `None`.
    ///
    /// # Safety
    /// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES).
    unsafe fn json_float(self, value: f64, out: *mut u8) -> Option<*mut u8>;

    /// Writes the same text for `value` as [`put_float32`](crate::arch::float::put_float32), and
    /// returns the address after the text. Writes nothing and returns `None` if `put_float32` does
    /// not support `value`, or if this kernel family has no faster code than `put_float32`.
    ///
    /// # Safety
    /// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES).
    unsafe fn json_float32(self, value: f32, out: *mut u8) -> Option<*mut u8>;

    /// Writes Latin-1 as the body of a JSON string. `is_ascii` is `true` if all bytes are known to
    /// be ASCII.
    fn put_json_latin1(self, u: &[u8], is_ascii: bool, pen: &mut Pen<'_>);

    /// Writes valid UTF-8 as the body of a JSON string.
    fn put_json_utf8(self, u: &[u8], pen: &mut Pen<'_>);

    /// Writes 16-bit units, each of which is a character, as the body of a JSON string. Returns
    /// `false`, and writes nothing, if one of them is a surrogate.
    #[must_use]
    fn put_json_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool;

    /// Writes 32-bit units as the body of a JSON string. Returns `false`, and writes nothing, if
    /// one of them is a surrogate or past U+10FFFF.
    #[must_use]
    fn put_json_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool;
}
