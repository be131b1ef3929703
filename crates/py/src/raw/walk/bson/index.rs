//! The keys of an array: the numbers of its items, in digits.

use onecopy_text::{Pen, Put};
use onecopy_wire::json;

/// Digits that stand in one word.
const MOST: usize = 7;

/// The key of the next item.
#[derive(Clone, Copy)]
pub(super) struct Index {
    /// Up to [`MOST`] digits in ASCII, the first in the lowest byte, and zeros; 0 where there are more.
    digits: u64,
    n_digits: usize,
}

impl Index {
    /// That of the first item.
    pub(super) const FIRST: u64 = b'0' as u64;

    /// Of the digits that [`Index::digits`] gave.
    #[inline(always)]
    pub(super) fn of(digits: u64) -> Index {
        let n_bits = (u64::BITS - digits.leading_zeros()) as usize;
        Index {
            digits,
            n_digits: n_bits.div_ceil(8),
        }
    }

    /// Its digits, to go on from there.
    #[inline(always)]
    pub(super) fn digits(self) -> u64 {
        self.digits
    }

    /// Leaves a byte for the tag, puts the key of item `at` and its NUL, and goes on to the next.
    ///
    /// # Panics
    /// Where the pen has not some 32 bytes.
    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, pen: &mut Pen<'_>) {
        pen.put_byte(0);
        if self.digits == 0 {
            json::put_u64(at as u64, pen);
            pen.put_byte(0);
            return;
        }
        // The NUL is the first of the zeros.
        pen.put_short(&self.digits.to_le_bytes(), self.n_digits + 1);
        let last = 8 * (self.n_digits - 1);
        self.digits += 1 << last;
        if self.digits >> last > u64::from(b'9') {
            self.carry();
        }
    }

    /// The last digit is one past nine.
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
