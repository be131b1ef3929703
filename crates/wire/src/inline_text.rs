//! [`InlineText`]: the text of a number, date or UUID, stored without a heap allocation.

use onecopy_text::Put;

/// The number of bytes that must be reserved in a sink before an [`InlineText`] is written.
pub const SHORT_BYTES: usize = 40;

/// A short ASCII text of at most [`SHORT_BYTES`] bytes, stored without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct InlineText {
    bytes: [u8; SHORT_BYTES],
    len: usize,
}

impl InlineText {
    /// Creates an empty text.
    #[inline]
    pub(crate) fn new() -> InlineText {
        InlineText {
            bytes: [0; SHORT_BYTES],
            len: 0,
        }
    }

    /// Returns the text as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Creates the decimal text of an integer whose absolute value is `value`. The text has a minus
    /// sign if `negative` is `true`.
    #[inline]
    pub(crate) fn of_u64(mut value: u64, negative: bool) -> InlineText {
        // The digits are written from the last to the first, and end at byte 21 of a larger array.
        // They are then moved to the start by a copy of fixed size, which costs half as much as a
        // copy of variable size.
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
        let mut short = InlineText::new();
        short
            .bytes
            .copy_from_slice(&bytes[start..start + SHORT_BYTES]);
        short.len = END - start;
        short
    }
}

impl Put for InlineText {
    fn remaining(&self) -> usize {
        SHORT_BYTES - self.len
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[inline]
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        self.bytes[self.len..][..N].copy_from_slice(bytes);
        self.len += len_bytes;
    }

    fn put_made<T>(&mut self, mut buffer: T, make: impl FnOnce(&mut T) -> &[u8]) {
        self.put(make(&mut buffer));
    }
}

/// Returns the two decimal digits of a number below 100 as ASCII characters, with the first digit
/// in the lowest byte. The caller combines several results in a register and writes them with one
/// store.
#[inline(always)]
pub(crate) fn two_digits(value: u32) -> u64 {
    // The table has 128 entries, so that an index masked with 127 needs no bounds check.
    static PAIRS: [u16; 128] = {
        let mut pairs = [0; 128];
        let mut i = 0;
        while i < 100 {
            pairs[i] = u16::from_le_bytes([b'0' + i as u8 / 10, b'0' + i as u8 % 10]);
            i += 1;
        }
        pairs
    };
    u64::from(PAIRS[value as usize & 127])
}

/// Writes `value` as decimal digits to `text`. Leading zeros are added so that all of `text` is
/// filled.
#[inline]
pub(crate) fn write_padded(text: &mut [u8], mut value: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The number of characters of a UUID in text form.
const UUID_CHARACTERS: usize = 36;

/// Writes a UUID in lower-case hexadecimal with hyphens (RFC 9562, section 4) into `text` at
/// position `at`. Returns the position after the UUID.
#[inline(always)]
pub(crate) fn write_uuid<const N: usize>(text: &mut [u8; N], at: usize, uuid: &[u8; 16]) -> usize {
    // The positions of the first hexadecimal digit of each byte, and the positions of the hyphens.
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

/// The two hexadecimal digits of each byte, as ASCII characters, indexed by the byte.
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
