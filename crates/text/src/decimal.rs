//! The shortest decimal that reads back as the same float, for floats from 2^-16 up to 2^52.
//!
//! A float is `c * 2^q` with an integer `c`. A decimal reads back as the float if it is at most
//! half of `2^q` away. Let `m` be the least number with `10^m * 2^q >= 1`. Then a decimal with `m`
//! digits after the point, at most 17 digits in total, is close enough.
//!
//! The factor `2^q * 10^(m - 1)` fits exactly into 64 bits. Its product with `c` gives the first 16
//! digits as an integer part, and the other digits as a fraction. If the 16 digits, rounded down or
//! up, are close enough, they are the result. Otherwise the 17th digit is added.

/// 10^8: lower numbers have at most eight digits.
pub const EIGHT_DIGITS: u64 = 100_000_000;

/// The lowest biased binary exponent of a supported float (2^-16).
const FIRST: u64 = 1023 - 16;
/// The number of binary exponents of the supported floats.
const N_EXPONENTS: usize = 68;
/// The largest number of digits after the decimal point.
pub(crate) const MOST_PLACES: usize = 21;

/// The constants for one binary exponent.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Scale {
    /// The weight of the lowest bit of the significand. The unit is 2^-53 times the weight of the
    /// 16th decimal digit.
    unit: u64,
    /// The number of digits after the decimal point, for a result of 17 digits.
    n_places: usize,
}

static SCALES: [Scale; N_EXPONENTS] = {
    let mut all = [Scale {
        unit: 0,
        n_places: 0,
    }; N_EXPONENTS];
    let mut i = 0;
    while i < N_EXPONENTS {
        let q = FIRST as i32 - 1023 - 52 + i as i32;
        // 315653 / 2^20 approximates the decimal logarithm of 2.
        let places = -((q * 315_653) >> 20);
        // The unit is 10^(places - 1) * 2^q, as a multiple of 2^-53.
        let unit = 5_u64.pow(places as u32 - 1) << (53 + q + places - 1);
        all[i] = Scale {
            unit,
            n_places: places as usize,
        };
        i += 1;
    }
    all
};

/// The number of layouts of a result. Each number of decimal places has two layouts. The second
/// layout omits the first digit, which is zero.
pub(crate) const N_FORMS: usize = 2 * MOST_PLACES + 2;

/// Returns the index of the layout. `first` is the first 16 digits, and `n_places` the number of
/// digits after the decimal point.
#[inline(always)]
pub(crate) fn form_of(first: u64, n_places: usize) -> usize {
    2 * n_places + usize::from(first < 1_000_000_000_000_000)
}

/// One byte of a float's text.
#[derive(Clone, Copy)]
pub(crate) enum Byte {
    /// A digit, by its index among the 17 digits.
    Digit(u8),
    /// The decimal point.
    Point,
    /// A leading or trailing zero that is not one of the 17 digits.
    Zero,
}

/// Returns the layout with index `i`, without the sign.
pub(crate) const fn form(i: usize) -> [Byte; 32] {
    let mut all = [Byte::Zero; 32];
    if i < 2 {
        return all;
    }
    let n_places = i / 2;
    let point = POINTS[i] as usize;
    all[point] = Byte::Point;
    // The other digits follow the point, directly or after zeros.
    let (mut at, mut digit) = if n_places >= 17 {
        (n_places - 15, 0)
    } else {
        (0, (17 - n_places) - point)
    };
    while digit < 17 {
        if at == point {
            at += 1;
        }
        all[at] = Byte::Digit(digit as u8);
        at += 1;
        digit += 1;
    }
    all
}

/// For each layout, the position of the decimal point without the sign.
pub(crate) static POINTS: [u8; N_FORMS] = {
    let mut all = [1; N_FORMS];
    let mut i = 2;
    while i < 2 * 16 {
        let before = 17 - i / 2;
        all[i] = (before - i % 2) as u8;
        i += 1;
    }
    all
};

/// The 17 decimal digits of a float, and the position of the decimal point.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    /// The first 16 digits as one integer. The first digit may be zero.
    pub(crate) first: u64,
    /// The 17th digit; 0 if there are at most 16 digits.
    pub(crate) last: u64,
    /// The number of digits after the decimal point: 1 to [`MOST_PLACES`].
    pub(crate) n_places: usize,
}

/// Returns the digits of the float with these `bits`, without its sign. Returns `None` for zero and
/// for floats outside of 2^-16 up to 2^52.
#[inline(always)]
pub(crate) fn decimal(bits: u64) -> Option<Decimal> {
    let exponent = (bits >> 52 & 0x7FF).wrapping_sub(FIRST);
    let scale = SCALES.get(exponent as usize)?;
    // 2^11 * c. A mask of the lower bits would wait for the previous float.
    let c = bits << 11 | 1 << 63;
    let product = u128::from(c) * u128::from(scale.unit);
    let (whole, rest) = ((product >> 64) as u64, product as u64);
    // Half of a unit in the last place. A decimal exactly between two floats reads back as the
    // float with the even significand. For an odd significand, subtracting 1 excludes the half.
    let near = (scale.unit << 10) - (bits & 1);
    let is_below = rest <= near;
    let (_, is_above) = rest.overflowing_add(near);
    // Rounds to the nearest digit, ties to even. The only possible ties are 2.5 and 7.5.
    let digit = ((u128::from(rest) * 10 + (1 << 63)) >> 64) as u64 - u64::from(rest == 1 << 62);
    Some(Decimal {
        first: whole + u64::from(is_above),
        last: if is_below | is_above { 0 } else { digit },
        n_places: scale.n_places,
    })
}

/// The lowest biased binary exponent of a supported 32-bit float (2^-16).
const FIRST_32: u32 = 127 - 16;
/// The number of binary exponents of the supported 32-bit floats, from 2^-16 up to 2^23.
const N_EXPONENTS_32: usize = 39;
/// The number of fractional bits of the `unit` in [`SCALES_32`].
const UNIT_PLACES_32: u32 = 40;

/// The constants for 32-bit floats. The field `unit` is in 2^-40 times the weight of the 8th digit.
static SCALES_32: [Scale; N_EXPONENTS_32] = {
    let mut all = [Scale {
        unit: 0,
        n_places: 0,
    }; N_EXPONENTS_32];
    let mut i = 0;
    while i < N_EXPONENTS_32 {
        let q = FIRST_32 as i32 - 127 - 23 + i as i32;
        let places = -((q * 315_653) >> 20);
        let unit = 5_u64.pow(places as u32 - 1) << (UNIT_PLACES_32 as i32 + q + places - 1);
        all[i] = Scale {
            unit,
            n_places: places as usize,
        };
        i += 1;
    }
    all
};

/// Returns the digits of the 32-bit float with these `bits`, without its sign. Returns `None` for
/// zero and for floats outside of 2^-16 up to 2^23.
#[inline(always)]
pub(crate) fn decimal_of_float32(bits: u32) -> Option<Decimal> {
    let exponent = (bits >> 23 & 0xFF).wrapping_sub(FIRST_32);
    let scale = SCALES_32.get(exponent as usize)?;
    // The multiplication of [`decimal`], with factors of 24 and at most 40 bits.
    let product = u64::from(bits & 0x7F_FFFF | 0x80_0000) * scale.unit;
    let (whole, rest) = (
        product >> UNIT_PLACES_32,
        product << (u64::BITS - UNIT_PLACES_32),
    );
    let near = (scale.unit << (u64::BITS - UNIT_PLACES_32 - 1)) - u64::from(bits & 1);
    let is_below = rest <= near;
    let (_, is_above) = rest.overflowing_add(near);
    let digit = ((u128::from(rest) * 10 + (1 << 63)) >> 64) as u64 - u64::from(rest == 1 << 62);
    let last = if is_below | is_above { 0 } else { digit };
    let nine = (whole + u64::from(is_above)) * 10 + last;
    // A leading zero of the nine digits is dropped.
    let is_short = nine < 100_000_000;
    Some(Decimal {
        first: nine * if is_short { 100_000_000 } else { 10_000_000 },
        last: 0,
        n_places: scale.n_places + 8 + usize::from(is_short),
    })
}
