//! [`of_decimal`]: the conversion of decimal digits to the nearest float (ties to even).
//!
//! If floats represent both the digits and the power of ten exactly, their product or quotient is
//! rounded only once, and is therefore correct (W. Clinger, 1990). Otherwise the digits are
//! multiplied by 128 bits of the power of five (D. Lemire, "Number parsing at a gigabyte per
//! second", 2021). In rare cases neither method determines the result. The caller then uses the
//! standard library.

/// The exponent of the largest power of ten that an `f64` represents exactly.
const EXACT: usize = 22;

static TENS: [f64; EXACT + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Returns the float nearest to `digits * 10^exponent`. Returns `None` in the rare cases in which
/// neither fast method determines the result.
#[inline(always)]
#[must_use]
pub fn of_decimal(digits: u64, exponent: i32) -> Option<f64> {
    // Both operands are exact, so the result is rounded only once. Integers from 10^15 to 2^53
    // would be exact too. However, a comparison with 2^53 would often be mispredicted, and a
    // mispredicted branch costs more than the multiplication with 128 bits.
    if digits < 1_000_000_000_000_000 {
        let value = digits as f64;
        let tens = TENS.get(exponent.unsigned_abs() as usize);
        if let Some(&tens) = tens {
            return Some(if exponent < 0 {
                value / tens
            } else {
                value * tens
            });
        }
    }
    by_product(digits, exponent)
}

/// Converts the text of a JSON number with the standard library. The result is infinite if the
/// number is too large for a float.
#[must_use]
pub fn of_text(text: &[u8]) -> f64 {
    let text = std::str::from_utf8(text).ok();
    let value = text.and_then(|text| text.parse().ok());
    value.expect("the grammar of JSON's numbers is a part of that of Rust's floats")
}

/// The largest absolute value of the exponents in [`FIVES`].
const MOST_POWER: i32 = 55;

/// The first 128 bits of each power of five from 5^-55 to 5^55, shifted so that the highest bit is
/// set. The powers 5^-27 to 5^-1 are rounded up, and smaller powers are rounded down.
static FIVES: [(u64, u64); 2 * MOST_POWER as usize + 1] = {
    let mut all = [(0, 0); 2 * MOST_POWER as usize + 1];
    let mut power: u128 = 1;
    let mut q = 0;
    while q <= MOST_POWER {
        let high = power << power.leading_zeros();
        all[(MOST_POWER + q) as usize] = ((high >> 64) as u64, high as u64);
        if q > 0 {
            let inverse = inverse(power, q <= 27);
            all[(MOST_POWER - q) as usize] = ((inverse >> 64) as u64, inverse as u64);
        }
        q += 1;
        if q <= MOST_POWER {
            power *= 5;
        }
    }
    all
};

/// Returns the first 128 bits of `1 / power`, which are computed bit by bit. They are rounded up if
/// `up` is `true`, and otherwise down.
const fn inverse(power: u128, up: bool) -> u128 {
    let mut rest: u128 = 1;
    let mut quotient: u128 = 0;
    // The loop ends when the highest bit of the quotient is set. The remainder is below `power`, so
    // its double needs at most one bit more than 128. `over` is this bit.
    while quotient >> 127 == 0 {
        let over = rest >> 127 != 0;
        let double = rest << 1;
        let one = over || double >= power;
        rest = if one {
            double.wrapping_sub(power)
        } else {
            double
        };
        quotient = quotient << 1 | one as u128;
    }
    if up { quotient + 1 } else { quotient }
}

#[inline(always)]
fn by_product(digits: u64, exponent: i32) -> Option<f64> {
    if digits == 0 {
        return Some(0.0);
    }
    let at = usize::try_from(exponent + MOST_POWER).ok()?;
    let &(five_high, five_low) = FIVES.get(at)?;
    let n_zeros = digits.leading_zeros();
    let digits = digits << n_zeros;
    // The upper 128 bits of the product of `digits` and the power of five. The lower 64 bits of the
    // power are multiplied only if they can change the 55 bits that the result needs.
    let product = u128::from(digits) * u128::from(five_high);
    let (mut low, mut high) = (product as u64, (product >> 64) as u64);
    if high & 0x1FF == 0x1FF {
        let below = (u128::from(digits) * u128::from(five_low)) >> 64;
        let (sum, over) = low.overflowing_add(below as u64);
        (low, high) = (sum, high + u64::from(over));
    }
    if low == u64::MAX && !(-27..=55).contains(&exponent) {
        return None;
    }
    let upper = high >> 63;
    // The shift keeps the 52 bits of the fraction, the hidden bit, and one bit for rounding.
    let shift = upper + 64 - 52 - 3;
    let mut fraction = high >> shift;
    let power_of_two = ((exponent * (152_170 + 65_536)) >> 16) + 63;
    let mut biased = power_of_two + upper as i32 - n_zeros as i32 + 1023;
    if low <= 1 && (-4..=23).contains(&exponent) && fraction & 3 == 1 && fraction << shift == high {
        // The value is exactly half way between two floats, so it is rounded to the even one of
        // them.
        fraction &= !1;
    }
    fraction += fraction & 1;
    fraction >>= 1;
    if fraction >= 2 << 52 {
        fraction = 1 << 52;
        biased += 1;
    }
    debug_assert!(
        (1..2047).contains(&biased),
        "64 bits times these powers are normal floats"
    );
    let bits = fraction & !(1 << 52) | (biased as u64) << 52;
    Some(f64::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn floats_half_way_between_two_go_to_the_even_one() {
        for (digits, exponent) in [
            (9_007_199_254_740_993, 0),
            (9_007_199_254_740_995, 0),
            (9_007_199_254_740_993, -3),
            (18_014_398_509_481_986, -1),
            (1_125_899_906_842_624_125, -3),
            (u64::MAX, 55),
            (u64::MAX, -55),
            (1, 55),
            (1, -55),
            (5, -324),
        ] {
            let expected: f64 = format!("{digits}e{exponent}").parse().unwrap();
            if let Some(value) = of_decimal(digits, exponent) {
                assert_eq!(value.to_bits(), expected.to_bits(), "{digits}e{exponent}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200_000))]
        #[test]
        fn of_decimal_matches_the_standard_library(
            digits: u64, shift in 0_u32..64, exponent in -60_i32..60
        ) {
            let digits = digits >> shift;
            if let Some(value) = of_decimal(digits, exponent) {
                let expected: f64 = format!("{digits}e{exponent}").parse().unwrap();
                prop_assert_eq!(value.to_bits(), expected.to_bits(), "{}e{}", digits, exponent);
            } else {
                prop_assert!(exponent.abs() > 27);
            }
        }

        #[test]
        fn what_a_float_prints_gives_it_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = format!("{value:e}");
            let (digits, exponent) = text.split_once('e').unwrap();
            let digits = digits.trim_start_matches('-');
            let n_after = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let digits: u64 = digits.replace('.', "").parse().unwrap();
            let exponent = exponent.parse::<i32>().unwrap() - n_after as i32;
            if let Some(made) = of_decimal(digits, exponent) {
                prop_assert_eq!(made.to_bits(), value.abs().to_bits());
            }
        }
    }
}
