//! [`Decimal128`]: decimal floating-point numbers of 128 bits (IEEE 754-2008, binary integer
//! significand). The conversion from text never rounds.

use crate::decimal::{self, Decimal};
use crate::error::WriteError;

/// The largest number of digits of a decimal's coefficient.
const MOST_DIGITS: usize = 34;
/// The smallest exponent that the last digit of the coefficient can have. `MOST_EXPONENT` is the
/// largest one.
const LEAST_EXPONENT: i64 = -6176;
const MOST_EXPONENT: i64 = 6111;
/// The index of the lowest bit of the exponent in the 128 bits. The bits below it contain the
/// coefficient. Every coefficient is below 10^34, which is below 2^113, so it fits into these bits.
/// The second encoding of IEEE 754, which is for larger coefficients, is never needed.
const EXPONENT_AT: u32 = 113;

/// A decimal of 128 bits, as in MongoDB and in pymongo's `Decimal128`.
///
/// The decimal has the exponent of the digits from which it was made, so `1.50` is distinct from
/// `1.5`. Trailing zeros are removed or added only if the digits or the exponent would otherwise
/// exceed the range of the format. This does not change the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal128(u128);

impl Decimal128 {
    const SIGN: u128 = 1 << 127;
    /// A quiet NaN (not a number).
    pub const NAN: Decimal128 = Decimal128(0x7C << 120);
    /// Positive infinity.
    pub const INFINITY: Decimal128 = Decimal128(0x78 << 120);
    /// Negative infinity.
    pub const NEG_INFINITY: Decimal128 = Decimal128(Self::INFINITY.0 | Self::SIGN);

    /// Converts the text `[+-]digits[.digits][e[+-]digits]`, or one of the names `nan`, `inf` and
    /// `infinity` in upper or lower case, with an optional sign. The sign of a NaN is discarded.
    ///
    /// # Errors
    /// Returns [`WriteError::NotADecimal`] if the text has another syntax. Returns
    /// [`WriteError::DecimalTooLong`] if the decimal would have to be rounded.
    pub fn of_digits(text: &[u8]) -> Result<Decimal128, WriteError> {
        match decimal::read(text)? {
            Decimal::NonFinite("NaN") => Ok(Decimal128::NAN),
            Decimal::NonFinite("Infinity") => Ok(Decimal128::INFINITY),
            Decimal::NonFinite(_) => Ok(Decimal128::NEG_INFINITY),
            Decimal::Number {
                negative,
                whole,
                fraction,
                exponent,
            } => {
                let exponent = exponent_of(exponent).saturating_sub(fraction.len() as i64);
                let (coefficient, exponent) = fitted(whole, fraction, exponent)?;
                let biased = (exponent - LEAST_EXPONENT) as u128;
                let sign = if negative { Self::SIGN } else { 0 };
                Ok(Decimal128(sign | biased << EXPONENT_AT | coefficient))
            }
        }
    }

    /// Creates the decimal whose 128 bits are `bits`.
    #[inline]
    pub(super) fn of_bits(bits: u128) -> Decimal128 {
        Decimal128(bits)
    }

    /// Creates the decimal that is equal to the integer `value`.
    #[must_use]
    pub fn of_u64(value: u64) -> Decimal128 {
        Decimal128(((-LEAST_EXPONENT) as u128) << EXPONENT_AT | u128::from(value))
    }

    /// Returns the 16 bytes of the decimal as BSON stores them (little-endian).
    #[inline]
    #[must_use]
    pub fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

/// Returns the coefficient of a decimal, and the exponent of the coefficient's last digit. `whole`
/// and `fraction` are the digits before and after the decimal point; `whole` must have no leading
/// zeros. If the coefficient or the exponent would exceed its range, zeros at the end of the digits
/// are removed, or zeros are appended.
fn fitted(whole: &[u8], fraction: &[u8], exponent: i64) -> Result<(u128, i64), WriteError> {
    let fraction = match whole {
        [] => {
            let zeros = fraction.iter().take_while(|d| **d == b'0').count();
            &fraction[zeros..]
        }
        _ => fraction,
    };
    let n_digits = whole.len() + fraction.len();
    if n_digits == 0 {
        return Ok((0, exponent.clamp(LEAST_EXPONENT, MOST_EXPONENT)));
    }
    // The number of digits to remove: those after the 34th digit, and those that would have an
    // exponent below the smallest one.
    let n_off = (n_digits.saturating_sub(MOST_DIGITS) as i64)
        .max(LEAST_EXPONENT.saturating_sub(exponent))
        .max(0);
    let Some(n_kept) = usize::try_from(n_off)
        .ok()
        .and_then(|n_off| n_digits.checked_sub(n_off))
    else {
        return Err(WriteError::DecimalTooLong);
    };
    let digits = || whole.iter().chain(fraction).map(|d| d - b'0');
    if digits().skip(n_kept).any(|d| d != 0) {
        return Err(WriteError::DecimalTooLong);
    }
    let exponent = exponent + n_off;
    // The number of zeros to append, so that an exponent above the largest one decreases to it.
    let n_on = (exponent - MOST_EXPONENT).max(0);
    if n_kept as i64 + n_on > MOST_DIGITS as i64 || n_kept == 0 {
        return Err(WriteError::DecimalTooLong);
    }
    let mut coefficient = 0_u128;
    let mut digits = digits().take(n_kept);
    let mut left = n_kept;
    // The digits are converted in two groups of at most 17 digits. A group fits into 64 bits, and
    // only combining the groups needs 128-bit arithmetic.
    while left > 0 {
        let n = left.min(MOST_DIGITS / 2);
        let part = digits
            .by_ref()
            .take(n)
            .fold(0, |part, d| part * 10 + u64::from(d));
        coefficient = coefficient * u128::from(10_u64.pow(n as u32)) + u128::from(part);
        left -= n;
    }
    coefficient *= 10_u128.pow(n_on as u32);
    Ok((coefficient, exponent - n_on))
}

/// Returns the value of the text `e[+-]digits`, or 0 if the text is empty. An absolute value above
/// `i64::MAX / 4` is replaced by this limit; the decimal or the error is the same for all exponents
/// above the limit. The caller must have validated the syntax.
fn exponent_of(text: &[u8]) -> i64 {
    let (negative, digits) = match text {
        [_, b'-', digits @ ..] => (true, digits),
        [_, b'+', digits @ ..] | [_, digits @ ..] => (false, digits),
        [] => return 0,
    };
    let value = digits.iter().fold(0_i64, |value, d| {
        value.saturating_mul(10).saturating_add(i64::from(d - b'0'))
    });
    // This limit is so small that sums of exponents cannot overflow. It is so large that no number
    // of digits can compensate such an exponent.
    let value = value.min(i64::MAX / 4);
    if negative { -value } else { value }
}
