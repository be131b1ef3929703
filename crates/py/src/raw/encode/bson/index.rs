//! `Index`: the key of a BSON array item, in decimal digits.

use onecopy_text::{Pen, Put};
use onecopy_wire::json;

/// The maximum number of digits in one 64-bit word.
const MOST: usize = 7;

/// The key of the next array item, in decimal digits.
#[derive(Clone, Copy)]
pub(super) struct Index {
    /// The ASCII digits, the first one in the lowest byte. 0 for more than [`MOST`] digits.
    digits: u64,
    n_digits: usize,
}

impl Index {
    /// Returns the key of the item at an index.
    #[inline(always)]
    pub(super) fn at(index: usize) -> Index {
        match index {
            0..=9 => Index {
                digits: u64::from(b'0') + index as u64,
                n_digits: 1,
            },
            _ => Index::of_digits(index),
        }
    }

    #[inline(never)]
    fn of_digits(index: usize) -> Index {
        let (mut digits, mut n_digits, mut rest) = (0, 0, index as u64);
        while rest > 0 && n_digits < MOST {
            digits = digits << 8 | (u64::from(b'0') + rest % 10);
            (n_digits, rest) = (n_digits + 1, rest / 10);
        }
        Index {
            digits: if rest > 0 { 0 } else { digits },
            n_digits,
        }
    }

    /// Writes a byte for the tag, the key of the current index `at`, and a NUL. Advances to the
    /// next index.
    ///
    /// # Panics
    /// If the pen has less than about 32 bytes of space.
    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, pen: &mut Pen<'_>) {
        pen.put_byte(0);
        if self.digits == 0 {
            json::put_u64(at as u64, pen);
            pen.put_byte(0);
            return;
        }
        // The byte after the digits is the NUL.
        pen.put_short(&self.digits.to_le_bytes(), self.n_digits + 1);
        let last = 8 * (self.n_digits - 1);
        self.digits += 1 << last;
        if self.digits >> last > u64::from(b'9') {
            self.carry();
        }
    }

    /// Propagates the carry from the last digit.
    #[cold]
    fn carry(&mut self) {
        let mut place = self.n_digits;
        let mut digits = self.digits.to_le_bytes();
        while let Some(before) = place.checked_sub(1)
            && digits[before] > b'9'
        {
            digits[before] = b'0';
            place = before;
            if let Some(next) = before.checked_sub(1) {
                digits[next] += 1;
            }
        }
        self.digits = u64::from_le_bytes(digits);
        if place == 0 {
            self.n_digits += 1;
            self.digits = self.digits << 8 | u64::from(b'1');
            if self.n_digits > MOST {
                self.digits = 0;
            }
        }
    }
}
