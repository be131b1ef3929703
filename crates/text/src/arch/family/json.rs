//! The steps for bodies of JSON strings.

use crate::sink::Pen;

/// Bytes that a pen needs for a text of `n` units of any width: each may become an escape of six,
/// and kernels write whole vectors.
#[inline(always)]
#[must_use]
pub fn json_room(n_units: usize) -> usize {
    6 * n_units + 64
}

/// The longest text that [`JsonKernels::json_plain`] takes.
pub const JSON_PLAIN_BYTES: usize = 64;

/// The longest text that [`JsonKernels::json_copy_ucs2`] takes.
pub const JSON_PLAIN_UNITS: usize = 32;

/// What a family of kernels does for JSON. The body is written, without its quotes.
///
/// # Panics
/// Each, where the pen has not [`json_room`]: a bug of the caller.
pub trait JsonKernels: Copy {
    /// Puts at most [`JSON_PLAIN_BYTES`] bytes of ASCII or UTF-8, where none of them is escaped,
    /// and returns the address after them. This is the step that most texts take: what a pen would
    /// check was checked before, once for a text and all around it.
    ///
    /// # Safety
    /// `out` is writable for [`JSON_PLAIN_BYTES`], apart from `u`.
    unsafe fn json_plain(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// The same step of Latin-1; `None` also where the text is not for it.
    ///
    /// # Safety
    /// As [`JsonKernels::json_plain`].
    unsafe fn json_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8>;

    /// The same step of 16-bit units of which none is half of a pair; `None` also where the text is not for it.
    ///
    /// # Safety
    /// As [`JsonKernels::json_plain`].
    unsafe fn json_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8>;

    /// Copies 16-bit units, at most [`JSON_PLAIN_UNITS`], where none of them is escaped and none is
    /// half of a pair; `false` where one is: what is at `out` is of no meaning then.
    ///
    /// # Safety
    /// `out` is writable for [`JSON_PLAIN_UNITS`], apart from `u`.
    unsafe fn json_copy_ucs2(self, u: &[u16], out: *mut u16) -> bool;

    /// Writes a float as [`put_float`](crate::arch::float::put_float) does, and returns the address
    /// after it; `None`, with nothing written, where that puts none, and where these kernels are no
    /// better than it.
    ///
    /// # Safety
    /// `out` is writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES).
    unsafe fn json_float(self, value: f64, out: *mut u8) -> Option<*mut u8>;

    /// As [`JsonKernels::json_float`], of a float of 32 bits.
    ///
    /// # Safety
    /// As there.
    unsafe fn json_float32(self, value: f32, out: *mut u8) -> Option<*mut u8>;

    /// Puts text of one byte a character, of which `is_ascii` says if that is known.
    fn put_json_latin1(self, u: &[u8], is_ascii: bool, pen: &mut Pen<'_>);

    /// Puts valid UTF-8.
    fn put_json_utf8(self, u: &[u8], pen: &mut Pen<'_>);

    /// Puts 16-bit units of which none is half of a pair; `false`, and nothing put, where one is a surrogate.
    #[must_use]
    fn put_json_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool;

    /// Puts 32-bit units; `false`, and nothing put, where one is a surrogate or past U+10FFFF.
    #[must_use]
    fn put_json_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool;
}
