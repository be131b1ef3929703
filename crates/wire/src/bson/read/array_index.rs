//! [`Index`]: the expected key of the next array item (`0`, `1`, `2`…). The reader compares the key
//! in the input with the bytes of the expected key. A comparison is faster than parsing the key.

/// The key that the next item of an array must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    n: u32,
    /// The digits of the key in ASCII and the zero byte that ends the key, as a little-endian
    /// number. Not used if the key has more than [`MOST_DIGITS`] digits.
    word: u64,
    /// A mask of the bytes of `word` that are compared: the key and its zero byte. The mask is 0 if
    /// the key has more than [`MOST_DIGITS`] digits.
    mask: u64,
    n_digits: u32,
}

/// The largest number of digits for which a key and its zero byte are compared as one 64-bit word.
const MOST_DIGITS: u32 = 6;

impl Index {
    /// The key of the first item of an array: the index 0.
    pub(super) const FIRST: Index = Index {
        n: 0,
        word: b'0' as u64,
        mask: 0xFFFF,
        n_digits: 1,
    };

    /// An expected key that differs from every key of a document. The method `step` returns it
    /// unchanged.
    pub(super) const UNKNOWN: Index = Index {
        n: 0,
        word: u64::MAX,
        mask: u64::MAX,
        n_digits: 1,
    };

    /// Returns the expected key of the array item with the index `n`.
    #[cold]
    #[inline(never)]
    pub(super) fn of(n: u32) -> Index {
        let n_digits = n.checked_ilog10().unwrap_or(0) + 1;
        let (mut word, mut rest) = (0, n);
        for _ in 0..n_digits.min(8) {
            word = word << 8 | u64::from(b'0' + (rest % 10) as u8);
            rest /= 10;
        }
        let mask = match n_digits {
            0..=MOST_DIGITS => u64::MAX >> (64 - 8 * (n_digits + 1)),
            _ => 0,
        };
        Index {
            n,
            word,
            mask,
            n_digits,
        }
    }

    /// Returns the key that the next item of an array must have. `bytes` contains the key of the
    /// previous item, and `end` is the position of the zero byte that ends this key.
    #[inline(never)]
    pub(super) fn following(bytes: &[u8], end: usize) -> Index {
        let digits = bytes.get(..end).unwrap_or_default();
        let (mut n, mut unit) = (0_u32, 1_u32);
        for digit in digits.iter().rev().take(10) {
            if !digit.is_ascii_digit() {
                break;
            }
            n = n.wrapping_add(unit.wrapping_mul(u32::from(digit - b'0')));
            unit = unit.wrapping_mul(10);
        }
        Index::of(n.wrapping_add(1))
    }

    /// Checks whether `rest` begins with the expected key and its zero byte. If so, returns their
    /// number of bytes, otherwise `None`.
    #[inline(always)]
    pub(super) fn matches(&self, rest: &[u8]) -> Option<usize> {
        let Some(first) = rest.first_chunk() else {
            return self.matches_slowly(rest);
        };
        let differs = (u64::from_le_bytes(*first) ^ self.word) & self.mask;
        if self.mask != 0 && differs == 0 {
            return Some(self.n_digits as usize + 1);
        }
        if self.mask != 0 {
            return None;
        }
        self.matches_slowly(rest)
    }

    #[cold]
    #[inline(never)]
    fn matches_slowly(&self, rest: &[u8]) -> Option<usize> {
        let mut place = [0; 11];
        let (mut at, mut n) = (place.len() - 1, self.n);
        loop {
            at -= 1;
            place[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        let key = &place[at..];
        rest.starts_with(key).then_some(key.len())
    }

    /// Advances to the key of the next item.
    #[inline(always)]
    pub(super) fn step(&mut self) {
        if self.mask == u64::MAX {
            return;
        }
        let last = 8 * (self.n_digits - 1);
        if self.mask == 0 || self.word >> last == u64::from(b'9') {
            *self = Index::of(self.n.wrapping_add(1));
        } else {
            self.n += 1;
            self.word += 1 << last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_an_array_are_the_numbers_from_0_on() {
        let mut index = Index::FIRST;
        for n in 0..120_000_u32 {
            let key = format!("{n}\0");
            for more in ["", "1234567890"] {
                let rest = format!("{key}{more}");
                assert_eq!(index.matches(rest.as_bytes()), Some(key.len()));
            }
            let other = format!("{}\0........", n + 1);
            assert_eq!(index.matches(other.as_bytes()), None);
            assert_eq!(index.matches(format!("0{key}........").as_bytes()), None);
            assert_eq!(index.matches(&key.as_bytes()[..key.len() - 1]), None);
            index.step();
        }
    }

    #[test]
    fn the_key_behind_another_is_one_more() {
        for n in [
            0_u32,
            8,
            9,
            99,
            9_999_998,
            9_999_999,
            10_000_000,
            2_147_483_647,
        ] {
            let before = format!("\x04{n}\0");
            let index = Index::following(before.as_bytes(), before.len() - 1);
            let key = format!("{}\0........", n + 1);
            assert_eq!(index.matches(key.as_bytes()), Some(key.len() - 8));
            let mut stepped = Index::of(n);
            stepped.step();
            assert_eq!(stepped.matches(key.as_bytes()), Some(key.len() - 8));
        }
    }
}
