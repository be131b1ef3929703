//! Conversions into a [`Window`]. Each function checks the remaining space, calls a kernel, and
//! advances the window.

use std::mem::MaybeUninit;

use super::dispatch::{
    copy_to_escape, latin1_to_utf8, narrow_plain, ucs4_to_utf8, utf16_to_utf8, with_kernels,
};
use super::encode;
use super::family::{Kernels, Work};
use crate::{ByteSink, Pen, Put, Window};

/// The arguments for writing UTF-8 text as the body of a JSON string: the text and the destination.
/// The result is the number of bytes written.
struct JsonBody<'a>(&'a [u8], &'a mut [MaybeUninit<u8>]);

impl Work for JsonBody<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> usize {
        let n_bytes = self.1.len();
        let mut pen = Pen::new(self.1);
        kernels.put_json_utf8(self.0, &mut pen);
        n_bytes - pen.remaining()
    }
}

impl<S: ByteSink> Window<'_, S> {
    /// Copies the bytes before the first byte that must be escaped in JSON. Returns the number of
    /// bytes copied, and `true` if one of these bytes is not ASCII.
    ///
    /// # Panics
    /// Panics if the window has less space than `src` has bytes, which is a bug in the caller.
    #[inline]
    pub(crate) fn put_to_escape(&mut self, src: &[u8]) -> (usize, bool) {
        let (n, high) = copy_to_escape(src, self.rest());
        // SAFETY: the kernel has written n bytes.
        unsafe { self.advance(n) };
        (n, high)
    }

    /// Writes UTF-8, which is not validated, as the body of a JSON string.
    ///
    /// # Panics
    /// Panics if the window has less space than [`json_capacity`](crate::convert::json_capacity)
    /// returns, which is a bug in the caller.
    pub(crate) fn put_json_utf8(&mut self, src: &[u8]) {
        let n_bytes = with_kernels(JsonBody(src, self.rest()));
        // SAFETY: the kernel has written as many bytes as it returned.
        unsafe { self.advance(n_bytes) };
    }

    /// Copies 16-bit units as bytes. Stops at the first unit that is not ASCII, or earlier. If
    /// `JSON` is `true`, a unit that must be escaped in JSON also ends the copy. Returns the number
    /// of units copied.
    #[inline]
    pub(crate) fn put_plain_u16<const JSON: bool>(&mut self, src: &[u16]) -> usize {
        let n = narrow_plain::<JSON>(src, self.rest());
        // SAFETY: the kernel has written n bytes.
        unsafe { self.advance(n) };
        n
    }

    /// Writes UTF-16 as UTF-8. The space of the window must be at least 3 bytes per unit, or
    /// exactly the length of the result, which the caller has measured. If the text is malformed,
    /// or if other code has changed it since the measurement, nothing is written and the function
    /// returns `false`.
    #[inline]
    pub(crate) fn put_utf16(&mut self, src: &[u16]) -> bool {
        let written = utf16_to_utf8(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it returned.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Writes UTF-32 as UTF-8. The space of the window must be at least 4 bytes per unit, or
    /// exactly the length of the result, which the caller has measured. If the text is malformed,
    /// or if other code has changed it since the measurement, nothing is written and the function
    /// returns `false`.
    #[inline]
    pub(crate) fn put_utf32(&mut self, src: &[u32]) -> bool {
        let written = ucs4_to_utf8(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it returned.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Writes Latin-1 as UTF-8. The space of the window must be at least 2 bytes per unit, or
    /// exactly the length of the result, which the caller has measured. If other code has changed
    /// the text since the measurement, nothing is written and the function returns `false`.
    #[inline]
    pub(crate) fn put_latin1(&mut self, src: &[u8]) -> bool {
        let written = latin1_to_utf8(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it returned.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Writes UTF-32 as the body of a JSON string. The space of the window must be at least 6 bytes
    /// per unit, or exactly the length of the result. Returns `false`, and writes nothing, for
    /// malformed text.
    #[inline]
    pub(crate) fn put_json_utf32(&mut self, src: &[u32]) -> bool {
        let written = encode::utf32_to_json(src, self.rest());
        // SAFETY: the kernel has written as many bytes as it returned.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }
}
