//! The shortest decimal that reads back as the same float, of floats of usual size.
//!
//! A float is `c * 2^q`, and all that reads back as it is at most half of `2^q` away. Between 2^-16
//! and 2^52 the scale `10^m` that makes its first 16 digits a whole number is a factor below 2^64,
//! so that one multiplication gives these digits and the digits after them without any error. Such
//! a number is the result where it is near enough, from below or from above; else one more digit
//! is: there is never a third case, for `m` is the least that `10^m * 2^q >= 1`.

/// Ten to the eighth: what eight digits do not reach.
pub const EIGHT_DIGITS: u64 = 100_000_000;

/// The exponents of two that are written here, from this one on.
const FIRST: u64 = 1023 - 16;
/// How many: up to the floats below 2^52.
const N_EXPONENTS: usize = 68;
/// Places after the point at most.
pub(crate) const MOST_PLACES: usize = 21;

/// Constants of an exponent.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Scale {
    /// A unit in the last place of the float as a part of the 16th digit, in 2^-53.
    unit: u64,
    /// Places after the point, if 17 digits are written.
    n_places: usize,
}

static SCALES: [Scale; N_EXPONENTS] = {
    let mut all = [Scale {
        unit: 0,
        n_places: 0,
    }; N_EXPONENTS];
    let mut i = 0;
    while i < N_EXPONENTS {
        // `c` has 53 bits: 52 of them are places of the binary fraction.
        let q = FIRST as i32 - 1023 - 52 + i as i32;
        // The logarithm of 2, exact enough for these.
        let places = -((q * 315_653) >> 20);
        // 10^(places - 1) * 2^q
        let unit = 5_u64.pow(places as u32 - 1) << (53 + q + places - 1);
        all[i] = Scale {
            unit,
            n_places: places as usize,
        };
        i += 1;
    }
    all
};

/// Forms of a result, by twice the places after the point; the second of two leaves out a leading zero.
pub(crate) const N_FORMS: usize = 2 * MOST_PLACES + 2;

/// The form of a decimal.
#[inline(always)]
pub(crate) fn form_of(first: u64, n_places: usize) -> usize {
    2 * n_places + usize::from(first < 1_000_000_000_000_000)
}

/// The content of a byte of a form.
#[derive(Clone, Copy)]
pub(crate) enum Byte {
    /// A digit: 0 to 15 are the first 16, and 16 the last.
    Digit(u8),
    /// The point.
    Point,
    /// A zero, before the digits or after them.
    Zero,
}

/// The bytes of a form, without the sign.
pub(crate) const fn form(i: usize) -> [Byte; 32] {
    let mut all = [Byte::Zero; 32];
    if i < 2 {
        return all;
    }
    let n_places = i / 2;
    let point = POINTS[i] as usize;
    all[point] = Byte::Point;
    // Digits that are not before the point follow it, at once or after zeros.
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

/// Where the point is in each form.
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

/// The digits of a float.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    /// The first 16, of which one may be zero; below 2^53.
    pub(crate) first: u64,
    /// One more.
    pub(crate) last: u64,
    /// The number of the 17 after the point: 1 to [`MOST_PLACES`].
    pub(crate) n_places: usize,
}

/// The digits of a float, but for its sign; `None` of zero, and of one past these magnitudes.
#[inline(always)]
pub(crate) fn decimal(bits: u64) -> Option<Decimal> {
    let exponent = (bits >> 52 & 0x7FF).wrapping_sub(FIRST);
    let scale = SCALES.get(exponent as usize)?;
    // 2^11 * c; a mask of the lower bits would be made of a part of a register, and wait for what
    // the last float left there.
    let c = bits << 11 | 1 << 63;
    let product = u128::from(c) * u128::from(scale.unit);
    let (whole, rest) = ((product >> 64) as u64, product as u64);
    // Half of a unit; a tie is read as the even float, so it is only for an even one. All these are multiples of 2^14.
    let near = (scale.unit << 10) - (bits & 1);
    let is_below = rest <= near;
    let (_, is_above) = rest.overflowing_add(near);
    // To the nearest, and ties to even: of these there are 2.5 and 7.5.
    let digit = ((u128::from(rest) * 10 + (1 << 63)) >> 64) as u64 - u64::from(rest == 1 << 62);
    Some(Decimal {
        first: whole + u64::from(is_above),
        last: if is_below | is_above { 0 } else { digit },
        n_places: scale.n_places,
    })
}

/// The exponents of two of the 32-bit floats that are written here, from this one on.
const FIRST_32: u32 = 127 - 16;
/// How many: up to the floats below 2^23.
const N_EXPONENTS_32: usize = 39;
/// Binary places of [`SCALES_32`].
const UNIT_PLACES_32: u32 = 40;

/// As [`SCALES`], of 32-bit floats: the unit is a part of the 8th digit, in 2^-40, and 9 digits are
/// written.
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

/// The digits of a 32-bit float, but for its sign, as those of a longer one; `None` of zero, and of
/// one past these magnitudes.
#[inline(always)]
pub(crate) fn decimal_of_float32(bits: u32) -> Option<Decimal> {
    let exponent = (bits >> 23 & 0xFF).wrapping_sub(FIRST_32);
    let scale = SCALES_32.get(exponent as usize)?;
    // As in `decimal`; 24 bits of the one, 40 of the other.
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
    // Its first digit is that of 17 digits, or follows a zero.
    let is_short = nine < 100_000_000;
    Some(Decimal {
        first: nine * if is_short { 100_000_000 } else { 10_000_000 },
        last: 0,
        n_places: scale.n_places + 8 + usize::from(is_short),
    })
}
