//! `Scan`: a JSON text that is scanned 64 bytes at a time.
//!
//! The result of a scan is kept, and a shift and a bit count find each token in it. A new scan for
//! each token would wait for the end of the previous token.

use super::{Ascii, Look, Plain, ShortNumber, scalar};
use crate::arch::family::Kernels;

/// The number of bytes in one scan.
const BYTES: usize = 64;

/// The largest number of decimal digits that always fits into 64 bits.
const MOST_DIGITS: u32 = 19;

/// A JSON text and its last scan.
#[derive(Debug)]
pub struct Scan<'a, K> {
    kernels: K,
    text: &'a [u8],
    /// The position in `text` of the first byte in `look`.
    base: usize,
    look: Look,
}

impl<'a, K: Kernels> Scan<'a, K> {
    /// Creates a scanner without a scan.
    #[inline(always)]
    pub fn new(kernels: K, text: &'a [u8]) -> Scan<'a, K> {
        Scan {
            kernels,
            text,
            // This position is outside of any text, so the first access scans.
            base: usize::MAX / 2,
            look: Look::default(),
        }
    }

    /// Returns the offset of `at` in the last scan. An offset of 64 or more is outside of the scan.
    #[inline(always)]
    fn offset(&self, at: usize) -> usize {
        at.wrapping_sub(self.base)
    }

    #[inline(always)]
    fn look_from(&mut self, at: usize) {
        self.look = self.kernels.look(&self.text[at..]);
        self.base = at;
    }

    /// Returns the bytes from `at` up to the first `"`, `\` or byte below U+0020, or to the end.
    ///
    /// # Panics
    /// Panics if `at` is past the end.
    #[inline(always)]
    pub fn plain(&mut self, at: usize) -> Plain<'a> {
        if !K::LOOKS {
            return self.kernels.plain_u8(&self.text[at..]);
        }
        let mut offset = self.offset(at);
        if offset >= BYTES || self.look.special >> offset == 0 {
            self.look_from(at);
            offset = 0;
            if self.look.special == 0 {
                return self.long(at);
            }
        }
        let special = self.look.special >> offset;
        let n = special.trailing_zeros() as usize;
        // Bytes after the end of the text are special, so `at + n` is not past the end.
        let text = &self.text[at..at + n];
        let before = special ^ (special - 1);
        if self.look.high >> offset & before == 0 {
            Plain::Ascii(Ascii(text))
        } else {
            Plain::Other(text)
        }
    }

    #[inline(always)]
    fn long(&mut self, at: usize) -> Plain<'a> {
        self.kernels.plain_u8(&self.text[at..])
    }

    /// Returns the number of bytes of JSON white space from `at` on.
    #[inline(always)]
    pub fn blank(&mut self, at: usize) -> usize {
        if !K::LOOKS {
            return self.kernels.blank_u8(&self.text[at..]);
        }
        let mut offset = self.offset(at);
        if offset >= BYTES || !self.look.blank >> offset == 0 {
            self.look_from(at);
            offset = 0;
            if self.look.blank == u64::MAX {
                return self.kernels.blank_u8(&self.text[at..]);
            }
        }
        (!self.look.blank >> offset).trailing_zeros() as usize
    }

    /// Returns the number at `at`, without its sign. Returns `None` for an exponent, for more than
    /// 19 digits, for an invalid number, or at the end of the text.
    #[inline(always)]
    pub fn short_number(&mut self, at: usize) -> Option<ShortNumber> {
        if !K::LOOKS {
            return scalar::short_number(&self.text[at..]);
        }
        let mut offset = self.offset(at);
        // From this offset on, a long number might end outside of the scanned bytes.
        if offset > BYTES - 2 - MOST_DIGITS as usize - 1 {
            self.look_from(at);
            offset = 0;
        }
        let is_digit = self.look.digit >> offset;
        let rest = &self.text[at..];
        let n_before = (!is_digit).trailing_zeros();
        if n_before == 0 || n_before > MOST_DIGITS || (n_before > 1 && rest[0] == b'0') {
            return None;
        }
        let mut next = *rest.get(n_before as usize)?;
        let mut n_after = 0;
        if next == b'.' {
            n_after = (!(is_digit >> n_before >> 1)).trailing_zeros();
            if n_after == 0 || n_before + n_after > MOST_DIGITS {
                return None;
            }
            next = *rest.get((n_before + n_after) as usize + 1)?;
        }
        if next | 0x20 == b'e' {
            return None;
        }
        Some(ShortNumber {
            len: (n_before + n_after + u32::from(n_after > 0)) as usize,
            digits: self.kernels.digits(self.text, at, n_before, n_after),
            n_after: n_after as usize,
        })
    }
}
