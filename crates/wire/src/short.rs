//! Numbers, dates and UUIDs as text on the stack: what JSON puts between quotes or bare, and CSV bare.

use onecopy_text::Put;

/// Bytes that a window needs for one [`Short`].
pub const SHORT_BYTES: usize = 40;

/// A short ASCII text, copied into its place by one copy of fixed size.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    bytes: [u8; SHORT_BYTES],
    len: usize,
}

impl Short {
    /// No text yet.
    #[inline]
    pub(crate) fn new() -> Short {
        Short {
            bytes: [0; SHORT_BYTES],
            len: 0,
        }
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Puts it into a window that has [`SHORT_BYTES`] left.
    ///
    /// # Panics
    /// Where it has not.
    #[inline]
    pub fn put_into<P: Put>(&self, window: &mut P) {
        window.put_short(&self.bytes, self.len);
    }

    /// The text that `write` writes from the first byte on; it returns the end.
    ///
    /// # Errors
    /// Those of `write`.
    #[inline]
    pub(crate) fn written<E>(
        write: impl FnOnce(&mut [u8; SHORT_BYTES]) -> Result<usize, E>,
    ) -> Result<Short, E> {
        let mut short = Short::new();
        short.len = write(&mut short.bytes)?;
        Ok(short)
    }

    /// A 64-bit number in decimal, with all its digits.
    #[inline]
    pub(crate) fn of_u64(mut value: u64, negative: bool) -> Short {
        // Digits are made from the back and end at byte 21 of a wider array, so that the copy to the front has a fixed
        // size: half the cost of a copy of unknown length.
        const END: usize = 21;
        let mut bytes = [0_u8; END + SHORT_BYTES];
        let mut start = END;
        while value >= 100 {
            let at = (value % 100) as usize * 2;
            value /= 100;
            start -= 2;
            bytes[start..start + 2].copy_from_slice(&TWO_DIGITS[at..at + 2]);
        }
        if value >= 10 {
            let at = value as usize * 2;
            start -= 2;
            bytes[start..start + 2].copy_from_slice(&TWO_DIGITS[at..at + 2]);
        } else {
            start -= 1;
            bytes[start] = b'0' + value as u8;
        }
        if negative {
            start -= 1;
            bytes[start] = b'-';
        }
        let mut short = Short::new();
        short
            .bytes
            .copy_from_slice(&bytes[start..start + SHORT_BYTES]);
        short.len = END - start;
        short
    }
}

/// Writes `value`, 0 to 99, as two digits.
#[inline(always)]
pub(crate) fn write_two<const N: usize>(text: &mut [u8; N], at: usize, value: u8) {
    let from = usize::from(value) * 2;
    text[at..at + 2].copy_from_slice(&TWO_DIGITS[from..from + 2]);
}

/// `value`, 0 to 99, as two digits, the first in the lowest byte.
#[inline(always)]
pub(crate) fn two_digits(value: u8) -> u64 {
    let from = usize::from(value) * 2;
    u64::from(TWO_DIGITS[from]) | u64::from(TWO_DIGITS[from + 1]) << 8
}

/// Writes eight bytes, the lowest first: text that is put together in a register needs one store.
#[inline(always)]
pub(crate) fn write_word<const N: usize>(text: &mut [u8; N], at: usize, word: u64) {
    text[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Writes `value` as `n_digits` digits, with leading zeros.
#[inline]
pub(crate) fn write_padded(text: &mut [u8], mut value: u32, n_digits: usize) {
    for digit in text[..n_digits].iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Characters of a UUID.
const UUID_CHARACTERS: usize = 36;

/// Writes a UUID in lower-case hexadecimal with hyphens (RFC 9562, section 4) from `at` on; returns its end.
#[inline(always)]
pub(crate) fn write_uuid<const N: usize>(text: &mut [u8; N], at: usize, uuid: &[u8; 16]) -> usize {
    // Where the two digits of each byte begin, and the hyphens.
    const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let text = &mut text[at..at + UUID_CHARACTERS];
    for hyphen in HYPHENS {
        text[hyphen] = b'-';
    }
    for (from, byte) in DIGITS.into_iter().zip(uuid) {
        text[from..from + 2].copy_from_slice(&HEX_DIGITS[usize::from(*byte)]);
    }
    at + UUID_CHARACTERS
}

/// The two hexadecimal digits of each byte.
const HEX_DIGITS: [[u8; 2]; 256] = {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = [HEX[i >> 4], HEX[i & 15]];
        i += 1;
    }
    table
};

const TWO_DIGITS: [u8; 200] = {
    let mut table = [0; 200];
    let mut i = 0;
    while i < 100 {
        table[i * 2] = b'0' + (i / 10) as u8;
        table[i * 2 + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    table
};
