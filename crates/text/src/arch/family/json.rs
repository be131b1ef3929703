//! The trait `JsonKernels`: writes short texts as bodies of JSON strings.

use crate::sink::Pen;

/// Returns the space in bytes that a [`Pen`] needs to write `n_units` units of JSON.
#[inline(always)]
#[must_use]
pub fn json_capacity(n_units: usize) -> usize {
    6 * n_units + 64
}

/// The maximum number of bytes for [`JsonKernels::json_plain`].
pub const JSON_PLAIN_BYTES: usize = 64;

/// The maximum number of units for [`JsonKernels::json_copy_ucs2`].
pub const JSON_PLAIN_UNITS: usize = 32;

/// Conversions to JSON for each kernel family. They write the body of a string without its quotes.
///
/// # Panics
/// The `put_` methods panic if the pen has less space than [`json_capacity`] returns.
pub trait JsonKernels: Copy {
    /// Copies at most [`JSON_PLAIN_BYTES`] bytes of ASCII or UTF-8. Returns the end of the output,
    /// or `None` if a byte must be escaped in JSON.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_BYTES`] bytes, and must not overlap `u`.
    unsafe fn json_plain(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// Writes short Latin-1 as UTF-8. Returns the end of the output, or `None` for an escape, or if
    /// the family does not convert the text.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_BYTES`] bytes, and must not overlap `u`.
    unsafe fn json_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// Writes short text in 16-bit units as UTF-8. Returns the end of the output, or `None` for an
    /// escape or a surrogate, or if the family does not convert the text.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_BYTES`] bytes, and must not overlap `u`.
    unsafe fn json_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8>;

    /// Copies at most [`JSON_PLAIN_UNITS`] units. Returns `false` for an escape or a surrogate;
    /// `out` is then undefined.
    ///
    /// # Safety
    /// `out` must be writable for [`JSON_PLAIN_UNITS`] units, and must not overlap `u`.
    unsafe fn json_copy_ucs2(self, u: &[u16], out: *mut u16) -> bool;

    /// Writes the same text as [`put_float`](crate::arch::float::put_float). Returns the end of the
    /// output, or `None` if there is no faster code for `value`.
    ///
    /// # Safety
    /// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES).
    unsafe fn json_float(self, value: f64, out: *mut u8) -> Option<*mut u8>;

    /// Writes the same text as [`put_float32`](crate::arch::float::put_float32). Returns the end of
    /// the output, or `None` if there is no faster code for `value`.
    ///
    /// # Safety
    /// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES).
    unsafe fn json_float32(self, value: f32, out: *mut u8) -> Option<*mut u8>;

    /// Writes Latin-1 as the body of a JSON string. If `is_ascii` is `true`, all bytes must be
    /// ASCII.
    fn put_json_latin1(self, u: &[u8], is_ascii: bool, pen: &mut Pen<'_>);

    /// Writes valid UTF-8 as the body of a JSON string.
    fn put_json_utf8(self, u: &[u8], pen: &mut Pen<'_>);

    /// Writes 16-bit units as the body of a JSON string. Writes nothing and returns `false` if one
    /// is a surrogate.
    #[must_use]
    fn put_json_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool;

    /// Writes 32-bit units as the body of a JSON string. Writes nothing and returns `false` for an
    /// invalid unit.
    #[must_use]
    fn put_json_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool;
}
