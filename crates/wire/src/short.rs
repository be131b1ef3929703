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

    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Appends `value`, 0 to 99, as two digits.
    #[inline]
    pub(crate) fn push_two(&mut self, value: u8) {
        let at = usize::from(value) * 2;
        self.bytes[self.len..self.len + 2].copy_from_slice(&TWO_DIGITS[at..at + 2]);
        self.len += 2;
    }

    /// Appends `value` as `n_digits` digits, with leading zeros.
    #[inline]
    pub(crate) fn push_padded(&mut self, mut value: u32, n_digits: usize) {
        for place in self.bytes[self.len..self.len + n_digits].iter_mut().rev() {
            *place = b'0' + (value % 10) as u8;
            value /= 10;
        }
        self.len += n_digits;
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

    /// A UUID in lower-case hexadecimal with hyphens (RFC 9562, section 4).
    pub(crate) fn of_uuid(uuid: &[u8; 16]) -> Short {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut short = Short::new();
        for (i, byte) in uuid.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                short.push(b'-');
            }
            short.push(HEX[usize::from(byte >> 4)]);
            short.push(HEX[usize::from(byte & 15)]);
        }
        short
    }
}

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
