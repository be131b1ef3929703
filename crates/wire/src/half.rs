//! Floats of 16 bits (IEEE 754 binary16), as arrays of numbers have them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A float of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half(pub u16);

/// Binary places of the fraction.
const PLACES: u32 = 10;
const SIGN: u16 = 1 << 15;
/// The exponent field of infinities and NaN.
const SPECIAL: u32 = 31;
/// Significant digits in which any two of these floats differ.
const MOST_DIGITS: i32 = 5;

impl Half {
    /// Exponent field and significand without its sign: the value is `significand * 2^(exponent -
    /// 25)`, if it is finite.
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

    /// The same value.
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
        // Both are exact: 2^(exponent - 25) as a quotient of powers of two.
        let scale = f64::from(1_u32 << exponent) / f64::from(1_u32 << 25);
        self.signed(f64::from(significand) * scale)
    }

    /// The float of 64 bits of the shortest decimal that reads back as this float, the nearest of
    /// those: 0.1 stays 0.1, where the value is 0.0999755859375.
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

    #[inline(never)]
    fn widen_anew(self) -> f64 {
        let (exponent, significand) = self.parts();
        if exponent == SPECIAL || significand == 0 {
            return self.to_f64();
        }
        // In parts of 2^-25. Half of the distance to the neighbours reads back as this float, if it
        // is even also all of it; below a power of two the distance is half.
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
            // In parts of which 10^place has `unit`. (A division by a constant is a shift.)
            let power = POWERS[place.unsigned_abs() as usize];
            let (unit, scale, nearest) = match place >= 0 {
                true => (power << 25, 1, nearest_multiple(value, power << 25)),
                false => (1 << 25, power, nearest_multiple(value * power, 1 << 25)),
            };
            // Below a power of two the nearest may be too far, and its neighbour above is not.
            let mut candidates = [nearest, nearest + 1].into_iter();
            let found = candidates.find(|n| is_near(n * unit, value * scale, scale));
            if let Some(digits) = found {
                // One rounding: both are exact.
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

/// The bits of what each magnitude was widened to; 0 before (and for zero itself). To find a decimal
/// takes 30 ns. The pages of it that nobody uses are never touched.
static WIDENED: [AtomicU64; 1 << 15] = [const { AtomicU64::new(0) }; 1 << 15];

/// Powers of ten, up to the last digit of the least float.
const POWERS: [u64; 13] = {
    let mut all = [1; 13];
    let mut i = 1;
    while i < all.len() {
        all[i] = 10 * all[i - 1];
        i += 1;
    }
    all
};

/// How many times `unit` is nearest to a value, ties to even.
#[inline(always)]
fn nearest_multiple(value: u64, unit: u64) -> u64 {
    let (n, rest) = (value / unit, value % unit);
    n + u64::from(rest > unit / 2 || (rest == unit / 2 && n % 2 == 1))
}

/// The power of ten of the first digit of a value in parts of 2^-25.
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

    /// The nearest float of 16 bits, ties to even; for magnitudes.
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
                // Both neighbours of the value with fewer digits.
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
