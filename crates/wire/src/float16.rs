//! [`Half`]: half-precision floats of 16 bits (IEEE 754 binary16), which occur in NumPy arrays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A half-precision float (IEEE 754 binary16), as its 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half(pub u16);

/// The number of bits of the fraction field of a half-precision float.
const PLACES: u32 = 10;
const SIGN: u16 = 1 << 15;
/// The value of the exponent field in the infinities and in NaN.
const SPECIAL: u32 = 31;
/// The number of significant decimal digits that suffices to distinguish any two half-precision
/// floats.
const MOST_DIGITS: i32 = 5;

impl Half {
    /// Returns the exponent field (1 for subnormal floats) and the significand, without the sign.
    /// The absolute value of a finite float is `significand * 2^(exponent - 25)`.
    #[inline]
    fn parts(self) -> (u32, u32) {
        let bits = u32::from(self.0 & !SIGN);
        let (field, fraction) = (bits >> PLACES, bits & ((1 << PLACES) - 1));
        match field {
            0 => (1, fraction),
            _ => (field, fraction | 1 << PLACES),
        }
    }

    fn signed(self, magnitude: f64) -> f64 {
        match self.0 & SIGN {
            0 => magnitude,
            _ => -magnitude,
        }
    }

    /// Converts the float exactly to an `f64`.
    #[inline]
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let (exponent, significand) = self.parts();
        if exponent == SPECIAL {
            return match significand & ((1 << PLACES) - 1) {
                0 => self.signed(f64::INFINITY),
                _ => f64::NAN,
            };
        }
        // Both factors are exact, because the scale 2^(exponent - 25) is a power of two.
        let scale = f64::from(1_u32 << exponent) / f64::from(1_u32 << 25);
        self.signed(f64::from(significand) * scale)
    }

    /// Returns the `f64` nearest to the shortest decimal that is parsed as this half-precision
    /// float. For example, it returns 0.1 for the float whose exact value is 0.0999755859375.
    #[inline]
    #[must_use]
    pub fn widen(self) -> f64 {
        let known = &WIDENED[usize::from(self.0 & !SIGN)];
        match known.load(Relaxed) {
            0 => {
                let magnitude = Half(self.0 & !SIGN).widen_anew();
                known.store(magnitude.to_bits(), Relaxed);
                self.signed(magnitude)
            }
            bits => self.signed(f64::from_bits(bits)),
        }
    }

    /// Returns the `f64` with which a parameter of this type is bound. An integer is returned
    /// unchanged, and any other number is converted by [`Half::widen`]. For an integer, the result
    /// of `widen` can be another integer: it is 65,500 for 65,504, because 65,500 is the shortest
    /// decimal number that is rounded to this half.
    #[must_use]
    pub fn widen_parameter(self) -> f64 {
        let exact = self.to_f64();
        match exact.fract() == 0.0 {
            true => exact,
            false => self.widen(),
        }
    }

    #[inline(never)]
    fn widen_anew(self) -> f64 {
        let (exponent, significand) = self.parts();
        if exponent == SPECIAL || significand == 0 {
            return self.to_f64();
        }
        // All numbers here are in units of 2^-25. A decimal is parsed as this float in two cases.
        // In the first case, its distance to the float is less than half the distance from the
        // float to the neighbouring float. In the second case, the two are equal, and the float is
        // even. The neighbour below a power of two is half as far away as the neighbour above it.
        let value = u64::from(significand) << exponent;
        let above = 1_u64 << (exponent - 1);
        let is_power = significand == 1 << PLACES && exponent > 1;
        let below = if is_power { above / 2 } else { above };
        let is_even = significand % 2 == 0;
        let is_near = |candidate: u64, value: u64, scale: u64| {
            let limit = scale * if candidate < value { below } else { above };
            let distance = candidate.abs_diff(value);
            distance < limit || (is_even && distance == limit)
        };
        let first = first_place(value);
        for place in (first + 1 - MOST_DIGITS..=first).rev() {
            // `value` and `unit` are scaled to integers; `unit` is the scaled value of 10^place.
            // Division by a constant costs only a multiplication and a shift.
            let power = POWERS[place.unsigned_abs() as usize];
            let (unit, scale, nearest) = match place >= 0 {
                true => (power << 25, 1, nearest_multiple(value, power << 25)),
                false => (1 << 25, power, nearest_multiple(value * power, 1 << 25)),
            };
            // For a power of two, the nearest multiple may be too far below the value. The next
            // multiple above it may then be near enough.
            let mut candidates = [nearest, nearest + 1].into_iter();
            let found = candidates.find(|n| is_near(n * unit, value * scale, scale));
            if let Some(digits) = found {
                // The result is rounded only once, because both operands are exact.
                let (power, digits) = (power as f64, digits as f64);
                return self.signed(match place >= 0 {
                    true => digits * power,
                    false => digits / power,
                });
            }
        }
        self.to_f64()
    }
}

/// A cache of the results of [`Half::widen`], indexed by the 15 bits without the sign. An entry is
/// the bits of an `f64`, or 0 if the result is 0 or is not computed yet. Computing a result takes
/// 30 ns. The system allocates only those memory pages of the cache that are used.
static WIDENED: [AtomicU64; 1 << 15] = [const { AtomicU64::new(0) }; 1 << 15];

/// The powers of ten from 10^0 to 10^12. They suffice for the decimal digits of the smallest
/// half-precision float.
const POWERS: [u64; 13] = {
    let mut all = [1; 13];
    let mut i = 1;
    while i < all.len() {
        all[i] = 10 * all[i - 1];
        i += 1;
    }
    all
};

/// Returns `value / unit`, rounded to the nearest integer, ties to even.
#[inline(always)]
fn nearest_multiple(value: u64, unit: u64) -> u64 {
    let (n, rest) = (value / unit, value % unit);
    n + u64::from(rest > unit / 2 || (rest == unit / 2 && n % 2 == 1))
}

/// Returns the exponent of ten of the first digit of the number `value * 2^-25`. For example, it is
/// -2 for 0.05.
fn first_place(value: u64) -> i32 {
    let mut place: i32 = 4;
    while place >= 0 && value < POWERS[place.unsigned_abs() as usize] << 25 {
        place -= 1;
    }
    while place < 0 && value * POWERS[place.unsigned_abs() as usize] < 1 << 25 {
        place -= 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bits of the half-precision float nearest to a value that is not negative. A
    /// value half way between two floats becomes the even one.
    fn nearest(value: f64) -> u16 {
        let (mut low, mut high) = (0_u16, 0x7C00);
        while high - low > 1 {
            let middle = low.midpoint(high);
            match Half(middle).to_f64() <= value {
                true => low = middle,
                false => high = middle,
            }
        }
        let next = match high {
            0x7C00 => 65_536.0,
            _ => Half(high).to_f64(),
        };
        let (under, over) = (value - Half(low).to_f64(), next - value);
        match under < over || (under == over && low % 2 == 0) {
            true => low,
            false => high,
        }
    }

    #[test]
    fn known_floats_have_their_values() {
        for (bits, value) in [
            (0, 0.0),
            (1, 1.0 / 16_777_216.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x7BFF, 65_504.0),
            (0x2E66, 0.099_975_585_937_5),
            (0x7C00, f64::INFINITY),
            (0xFC00, f64::NEG_INFINITY),
        ] {
            assert_eq!(Half(bits).to_f64(), value, "{bits:x}");
        }
        assert!(Half(0x7E00).to_f64().is_nan() && Half(0xFC01).widen().is_nan());
        assert!(Half(0x8000).widen().is_sign_negative());
        assert_eq!(Half(0x2E66).widen(), 0.1);
        assert_eq!(Half(1).widen(), 6e-8);
        assert_eq!(Half(0x7BFF).widen(), 65_500.0);
    }

    #[test]
    fn each_decimal_reads_back_and_none_is_shorter() {
        for bits in 1..0x7C00 {
            let wide = Half(bits).widen();
            assert_eq!(nearest(wide), bits, "{bits:x}: {wide:e}");
            let shortest = format!("{wide:e}");
            let (digits, _) = shortest.split_once('e').expect("an exponent");
            let n_digits = digits.len() - usize::from(digits.contains('.'));
            let exact = Half(bits).to_f64();
            for n in 0..n_digits.saturating_sub(1) {
                // The decimals closest to the value that have fewer digits.
                let shorter = format!("{exact:.n$e}");
                let (digits, exponent) = shorter.split_once('e').expect("an exponent");
                let exponent: i32 = exponent.parse().expect("digits");
                let digits: i64 = digits.replace('.', "").parse().expect("digits");
                for digits in digits - 1..=digits + 1 {
                    let shorter = format!("{digits}e{}", exponent - n as i32);
                    let rounded: f64 = shorter.parse().expect("digits");
                    assert_ne!(nearest(rounded), bits, "{bits:x}: {shorter}");
                }
            }
            assert_eq!(Half(bits | SIGN).widen(), -wide);
            assert_eq!(Half(bits).widen(), wide, "remembered");
        }
    }
}
