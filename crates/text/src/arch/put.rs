//! Conversions into a [`Window`]. Each function checks the space and calls a kernel.

use std::mem::MaybeUninit;

use super::dispatch::{
    copy_to_escape, latin1_to_utf8, narrow_plain, ucs4_to_utf8, utf16_to_utf8, with_kernels,
};
use super::encode;
use super::family::{Kernels, Work};
use crate::{ByteSink, Pen, Put, Window};

/// UTF-8 text and the destination for its JSON string. The result is the number of bytes.
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
    /// Copies the bytes before the first JSON escape. Returns their number, and `true` if one is
    /// not ASCII.
    ///
    /// # Panics
    /// Panics if the window has less space than `src` has bytes.
    #[inline]
    pub(crate) fn put_to_escape(&mut self, src: &[u8]) -> (usize, bool) {
        let (n, high) = copy_to_escape(src, self.rest());
        // SAFETY: the kernel has written `n` bytes.
        unsafe { self.advance(n) };
        (n, high)
    }

    /// Writes UTF-8 as the body of a JSON string, without validation.
    ///
    /// # Panics
    /// Panics if the window has less space than [`json_capacity`](crate::convert::json_capacity)
    /// returns.
    pub(crate) fn put_json_utf8(&mut self, src: &[u8]) {
        let n_bytes = with_kernels(JsonBody(src, self.rest()));
        // SAFETY: the kernel has written these bytes.
        unsafe { self.advance(n_bytes) };
    }

    /// Copies the leading ASCII units as bytes and returns their number. May stop early. If `JSON`
    /// is `true`, also stops at JSON escapes.
    #[inline]
    pub(crate) fn put_plain_u16<const JSON: bool>(&mut self, src: &[u16]) -> usize {
        let n = narrow_plain::<JSON>(src, self.rest());
        // SAFETY: the kernel has written `n` bytes.
        unsafe { self.advance(n) };
        n
    }

    /// Writes UTF-16 as UTF-8. Writes nothing and returns `false` if the text is malformed or has
    /// changed. The window needs 3 bytes per unit, or the exact length.
    #[inline]
    pub(crate) fn put_utf16(&mut self, src: &[u16]) -> bool {
        let written = utf16_to_utf8(src, self.rest());
        // SAFETY: the kernel has written these bytes.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Writes UTF-32 as UTF-8. Writes nothing and returns `false` if the text is malformed or has
    /// changed. The window needs 4 bytes per unit, or the exact length.
    #[inline]
    pub(crate) fn put_utf32(&mut self, src: &[u32]) -> bool {
        let written = ucs4_to_utf8(src, self.rest());
        // SAFETY: the kernel has written these bytes.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Writes Latin-1 as UTF-8. Writes nothing and returns `false` if the text has changed. The
    /// window needs 2 bytes per unit, or the exact length.
    #[inline]
    pub(crate) fn put_latin1(&mut self, src: &[u8]) -> bool {
        let written = latin1_to_utf8(src, self.rest());
        // SAFETY: the kernel has written these bytes.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }

    /// Writes UTF-32 as the body of a JSON string. Writes nothing and returns `false` if the text
    /// is malformed. The window needs 6 bytes per unit, or the exact length.
    #[inline]
    pub(crate) fn put_json_utf32(&mut self, src: &[u32]) -> bool {
        let written = encode::utf32_to_json(src, self.rest());
        // SAFETY: the kernel has written these bytes.
        unsafe { self.advance(written.unwrap_or(0)) };
        written.is_some()
    }
}
