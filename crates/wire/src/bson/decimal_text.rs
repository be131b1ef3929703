//! [`DecimalText`]: the text of a decimal of 128 bits, as the algorithm `to-scientific-string` of
//! the General Decimal Arithmetic specification defines it.

use onecopy_text::Put;

use super::decimal128::Decimal128;

/// The number of free bytes that a sink must provide before a [`DecimalText`] is written to it.
pub const DECIMAL_TEXT_BYTES: usize = 48;

/// The text of a decimal, at most 42 bytes of ASCII, stored without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct DecimalText {
    bytes: [u8; DECIMAL_TEXT_BYTES],
    len: usize,
}

/// The decoded parts of a decimal: its sign, coefficient and exponent, or its special value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalParts {
    /// NaN of any kind and sign.
    NaN,
    /// An infinity: the positive one (`false`) or the negative one (`true`).
    Infinity(bool),
    /// A finite number: `coefficient * 10^exponent`.
    Finite {
        /// `true` if the number has a minus sign. The number zero can have one too.
        negative: bool,
        /// The coefficient, below 10^34.
        coefficient: u128,
        /// The exponent of the coefficient's last digit, -6176 to 6111.
        exponent: i32,
    },
}

impl Decimal128 {
    /// Creates a decimal from the 16 bytes that BSON stores. Every bit pattern is valid.
    #[inline]
    #[must_use]
    pub fn from_le_bytes(bytes: [u8; 16]) -> Decimal128 {
        Decimal128::of_bits(u128::from_le_bytes(bytes))
    }

    /// Decodes the sign, the coefficient and the exponent. A coefficient of more than 34 digits
    /// counts as 0, as IEEE 754 specifies.
    #[must_use]
    pub fn parts(self) -> DecimalParts {
        let bits = u128::from_le_bytes(self.to_le_bytes());
        let negative = bits >> 127 == 1;
        let exponent = |at: u32| (bits >> at & 0x3FFF) as i32 - 6176;
        match bits >> 122 & 0x1F {
            0x1F => DecimalParts::NaN,
            0x1E => DecimalParts::Infinity(negative),
            // In the second encoding of IEEE 754, the coefficient is always above 10^34, so the
            // value is 0.
            0x18.. => DecimalParts::Finite {
                negative,
                coefficient: 0,
                exponent: exponent(111),
            },
            _ => {
                let coefficient = bits & ((1 << 113) - 1);
                DecimalParts::Finite {
                    negative,
                    coefficient: if coefficient < MOST { coefficient } else { 0 },
                    exponent: exponent(113),
                }
            }
        }
    }

    /// Returns the text of the decimal. [`Decimal128::of_digits`] converts the text back to the
    /// same decimal, except that every NaN becomes [`Decimal128::NAN`].
    #[must_use]
    pub fn to_text(self) -> DecimalText {
        let mut text = DecimalText {
            bytes: [0; DECIMAL_TEXT_BYTES],
            len: 0,
        };
        match self.parts() {
            DecimalParts::NaN => text.push(b"NaN"),
            DecimalParts::Infinity(false) => text.push(b"Infinity"),
            DecimalParts::Infinity(true) => text.push(b"-Infinity"),
            DecimalParts::Finite {
                negative,
                coefficient,
                exponent,
            } => {
                if negative {
                    text.push(b"-");
                }
                let (digits, n_digits) = digits_of(coefficient);
                text.push_number(&digits[MOST_DIGITS - n_digits..], exponent);
            }
        }
        text
    }
}

/// The largest number of digits that a decimal can have.
const MOST_DIGITS: usize = 34;

/// 10^34, which is one more than the largest coefficient.
const MOST: u128 = 10_u128.pow(MOST_DIGITS as u32);

/// Returns an array that ends with the decimal digits of `coefficient`, and the number of these
/// digits. The coefficient 0 has one digit.
fn digits_of(coefficient: u128) -> ([u8; MOST_DIGITS], usize) {
    const HALF: u128 = 10_u128.pow(17);
    let mut digits = [b'0'; MOST_DIGITS];
    let halves = match u64::try_from(coefficient) {
        Ok(all) => [all / HALF as u64, all % HALF as u64],
        Err(_) => [(coefficient / HALF) as u64, (coefficient % HALF) as u64],
    };
    for (place, mut half) in digits.chunks_exact_mut(17).zip(halves) {
        for digit in place.iter_mut().rev() {
            *digit = b'0' + (half % 10) as u8;
            half /= 10;
        }
    }
    let n_zeros = digits.iter().take_while(|d| **d == b'0').count();
    (digits, (MOST_DIGITS - n_zeros).max(1))
}

impl DecimalText {
    /// Returns the text as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Writes the text to a window of a sink. The window must have [`DECIMAL_TEXT_BYTES`] bytes of
    /// space.
    ///
    /// # Panics
    /// Panics if the window has less space.
    #[inline]
    pub fn put_into<P: Put>(&self, window: &mut P) {
        window.put_short(&self.bytes, self.len);
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    fn push_number(&mut self, digits: &[u8], exponent: i32) {
        let adjusted = exponent + digits.len() as i32 - 1;
        if exponent > 0 || adjusted < -6 {
            self.push(&digits[..1]);
            if digits.len() > 1 {
                self.push(b".");
                self.push(&digits[1..]);
            }
            self.push(if adjusted < 0 { b"E-" } else { b"E+" });
            let (digits, n_digits) = digits_of(adjusted.unsigned_abs().into());
            self.push(&digits[MOST_DIGITS - n_digits..]);
            return;
        }
        let n_after = exponent.unsigned_abs() as usize;
        let Some(n_before) = digits.len().checked_sub(n_after).filter(|n| *n > 0) else {
            self.push(b"0.");
            self.push(&b"000000"[..n_after - digits.len()]);
            self.push(digits);
            return;
        };
        self.push(&digits[..n_before]);
        if n_after > 0 {
            self.push(b".");
            self.push(&digits[n_before..]);
        }
    }
}
