//! A text of JSON, looked at 64 bytes at a time.
//!
//! Where each string and number waits for the end of the one before, a look at each of them is the longest part of the reader's
//! time: about 27 clocks from the place of one to that of the next. So what a look has seen is kept, and the strings and numbers
//! that stand in the same 64 bytes are found by a shift and a count of bits.

use super::{Ascii, Look, Plain, ShortNumber, scalar};
use crate::arch::family::Kernels;

/// Bytes of a look.
const BYTES: usize = 64;

/// Digits that fit 64 bits whatever they are.
const MOST_DIGITS: u32 = 19;

/// A text, and what was last seen of it.
#[derive(Debug)]
pub struct Scan<'a, K> {
    kernels: K,
    text: &'a [u8],
    /// Where the look is from.
    base: usize,
    look: Look,
}

impl<'a, K: Kernels> Scan<'a, K> {
    /// Nothing seen yet.
    #[inline(always)]
    pub fn new(kernels: K, text: &'a [u8]) -> Scan<'a, K> {
        Scan {
            kernels,
            text,
            // Far from any place of a text.
            base: usize::MAX / 2,
            look: Look::default(),
        }
    }

    /// How far behind the start of the look `at` is; 64 and more where it is not in it.
    #[inline(always)]
    fn behind(&self, at: usize) -> usize {
        at.wrapping_sub(self.base)
    }

    #[inline(always)]
    fn look_from(&mut self, at: usize) {
        self.look = self.kernels.look(&self.text[at..]);
        self.base = at;
    }

    /// The bytes from `at` on before the first that ends a string or its plain part: `"`, `\`, or below U+0020. All, where none
    /// does.
    ///
    /// # Panics
    /// Where `at` is behind the end (so for all below).
    #[inline(always)]
    pub fn plain(&mut self, at: usize) -> Plain<'a> {
        if !K::LOOKS {
            return self.kernels.plain_u8(&self.text[at..]);
        }
        let mut behind = self.behind(at);
        if behind >= BYTES || self.look.special >> behind == 0 {
            self.look_from(at);
            behind = 0;
            if self.look.special == 0 {
                return self.long(at);
            }
        }
        let special = self.look.special >> behind;
        let n = special.trailing_zeros() as usize;
        // What is behind the end was seen as special: n does not reach past it.
        let text = &self.text[at..at + n];
        let before = special ^ (special - 1);
        if self.look.high >> behind & before == 0 {
            Plain::Ascii(Ascii(text))
        } else {
            Plain::Other(text)
        }
    }

    #[inline(always)]
    fn long(&mut self, at: usize) -> Plain<'a> {
        self.kernels.plain_u8(&self.text[at..])
    }

    /// How many bytes of white space (space, tab, line feed, carriage return) stand at `at`.
    #[inline(always)]
    pub fn blank(&mut self, at: usize) -> usize {
        if !K::LOOKS {
            return self.kernels.blank_u8(&self.text[at..]);
        }
        let mut behind = self.behind(at);
        if behind >= BYTES || !self.look.blank >> behind == 0 {
            self.look_from(at);
            behind = 0;
            if self.look.blank == u64::MAX {
                return self.kernels.blank_u8(&self.text[at..]);
            }
        }
        (!self.look.blank >> behind).trailing_zeros() as usize
    }

    /// A number at `at`, without its sign, that has no exponent and at most 19 digits, where nothing is wrong with it and
    /// something stands behind it; `None` for any other.
    #[inline(always)]
    pub fn short_number(&mut self, at: usize) -> Option<ShortNumber> {
        if !K::LOOKS {
            return scalar::short_number(&self.text[at..]);
        }
        let mut behind = self.behind(at);
        // The longest ends in the look, with a byte behind it.
        if behind > BYTES - 2 - MOST_DIGITS as usize - 1 {
            self.look_from(at);
            behind = 0;
        }
        let is_digit = self.look.digit >> behind;
        let rest = &self.text[at..];
        let n_before = (!is_digit).trailing_zeros();
        if n_before == 0 || n_before > MOST_DIGITS || (n_before > 1 && rest[0] == b'0') {
            return None;
        }
        let mut next = *rest.get(n_before as usize)?;
        let mut n_behind = 0;
        if next == b'.' {
            n_behind = (!(is_digit >> n_before >> 1)).trailing_zeros();
            if n_behind == 0 || n_before + n_behind > MOST_DIGITS {
                return None;
            }
            next = *rest.get((n_before + n_behind) as usize + 1)?;
        }
        if next | 0x20 == b'e' {
            return None;
        }
        Some(ShortNumber {
            len: (n_before + n_behind + u32::from(n_behind > 0)) as usize,
            digits: self.kernels.digits(self.text, at, n_before, n_behind),
            n_behind: n_behind as usize,
        })
    }
}
