//! Decimals of 128 bits (IEEE 754-2008, integer significand): exactly the digits that are given, or a refusal.

use crate::decimal::{self, Decimal};
use crate::error::WriteError;

/// Digits at most.
const MOST_DIGITS: usize = 34;
/// The exponents that the last digit can have.
const LEAST_EXPONENT: i64 = -6176;
const MOST_EXPONENT: i64 = 6111;
/// Bit where the exponent begins: 10^34 is below 2^113, so that the other form of IEEE's is never needed.
const EXPONENT_AT: u32 = 113;

/// A decimal as MongoDB and pymongo's `Decimal128` have it.
///
/// The exponent is that of the digits given: `1.50` stays apart from `1.5`. Only where the digits or the exponent go past
/// what there is room for, zeros at the end are taken off or put on, which changes no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal128(u128);

impl Decimal128 {
    const SIGN: u128 = 1 << 127;
    /// Not a number, quiet.
    pub const NAN: Decimal128 = Decimal128(0x7C << 120);
    /// Infinity.
    pub const INFINITY: Decimal128 = Decimal128(0x78 << 120);
    /// Minus infinity.
    pub const NEG_INFINITY: Decimal128 = Decimal128(Self::INFINITY.0 | Self::SIGN);

    /// The decimal of `[+-]digits[.digits][e[+-]digits]`, or of `nan`, `inf` or `infinity` in any
    /// case, with a sign or without; NaN keeps no sign.
    ///
    /// # Errors
    /// [`WriteError::NotADecimal`]; [`WriteError::DecimalTooLong`] where it would have to be rounded.
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

    /// These bits.
    #[inline]
    pub(super) fn of_bits(bits: u128) -> Decimal128 {
        Decimal128(bits)
    }

    /// A whole number.
    #[must_use]
    pub fn of_u64(value: u64) -> Decimal128 {
        Decimal128(((-LEAST_EXPONENT) as u128) << EXPONENT_AT | u128::from(value))
    }

    /// The bytes, as BSON has them.
    #[inline]
    #[must_use]
    pub fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

/// The coefficient and the exponent of its last digit, both in their ranges. Of `whole` leading zeros are off already.
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
    // Digits that have to go: past the 34th, and those that stand for less than the least exponent.
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
    // Zeros that have to come: what stands for more than the greatest exponent.
    let n_on = (exponent - MOST_EXPONENT).max(0);
    if n_kept as i64 + n_on > MOST_DIGITS as i64 || n_kept == 0 {
        return Err(WriteError::DecimalTooLong);
    }
    let mut coefficient = 0_u128;
    let mut digits = digits().take(n_kept);
    let mut left = n_kept;
    // 17 digits at a time in 64 bits: two steps of 128.
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

/// `e[+-]digits` as a number, as far as it matters; 0 where there is none. Its form was looked at already.
fn exponent_of(text: &[u8]) -> i64 {
    let (negative, digits) = match text {
        [_, b'-', digits @ ..] => (true, digits),
        [_, b'+', digits @ ..] | [_, digits @ ..] => (false, digits),
        [] => return 0,
    };
    let value = digits.iter().fold(0_i64, |value, d| {
        value.saturating_mul(10).saturating_add(i64::from(d - b'0'))
    });
    // Far below what a sum could run over with, far above what any number of digits could make good.
    let value = value.min(i64::MAX / 4);
    if negative { -value } else { value }
}
