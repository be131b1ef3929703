//! Floats as the shortest decimal that reads back as the same float, those of usual size.
//!
//! A float is `c * 2^q`, and all that reads back as it is at most half of `2^q` away. Between 2^-16 and 2^52 the scale `10^m`
//! that makes its first 16 digits a whole number is a factor below 2^64, so that one multiplication gives these digits and
//! what is behind them without any error. Such a number is the result where it is near enough, from below or from above; else
//! one more digit is: there is never a third case, for `m` is the least that `10^m * 2^q >= 1`.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::{Kernel, avx2, avx512, kernel};
use crate::sink::Put;

/// Bytes that may be written for a float, the last of them of no meaning: a sign, 16 digits and the point, and 16 bytes behind.
pub const FLOAT_BYTES: usize = 34;

/// The exponents of two that are written here, from this one on.
const FIRST: u64 = 1023 - 16;
/// How many: up to the floats below 2^52.
const N_EXPONENTS: usize = 68;
/// Places behind the point that they have at most.
pub(super) const MOST_PLACES: usize = 21;

/// What is asked of an exponent.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Scale {
    /// A unit in the last place of the float as a part of the 16th digit, in 2^-53.
    unit: u64,
    /// Places behind the point, where 17 digits are written.
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

/// Forms of a result, by twice the places behind the point; the second of two leaves out a zero in front of all.
pub(super) const N_FORMS: usize = 2 * MOST_PLACES + 2;

/// The form of a decimal.
#[inline(always)]
pub(super) fn form_of(first: u64, n_places: usize) -> usize {
    2 * n_places + usize::from(first < 1_000_000_000_000_000)
}

/// What stands at a byte of a form.
#[derive(Clone, Copy)]
pub(super) enum Byte {
    /// A digit: 0 to 15 are the first 16, and 16 the last.
    Digit(u8),
    /// The point.
    Point,
    /// A zero, before the digits or behind them.
    Zero,
}

/// The bytes of a form, without the sign.
pub(super) const fn form(i: usize) -> [Byte; 32] {
    let mut all = [Byte::Zero; 32];
    if i < 2 {
        return all;
    }
    let n_places = i / 2;
    let point = POINTS[i] as usize;
    all[point] = Byte::Point;
    // Digits that are not before the point follow it, at once or behind zeros.
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
pub(super) static POINTS: [u8; N_FORMS] = {
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
pub(super) struct Decimal {
    /// The first 16, of which one may be zero; below 2^53.
    pub(super) first: u64,
    /// One more.
    pub(super) last: u64,
    /// How many of the 17 are behind the point: 1 to [`MOST_PLACES`].
    pub(super) n_places: usize,
}

/// The digits of a float, but for its sign; `None` of zero, and of one past these magnitudes.
#[inline(always)]
pub(super) fn decimal(bits: u64) -> Option<Decimal> {
    let exponent = (bits >> 52 & 0x7FF).wrapping_sub(FIRST);
    let scale = SCALES.get(exponent as usize)?;
    // 2^11 * c; a mask of the lower bits would be made of a part of a register, and wait for what the last float left there.
    let c = bits << 11 | 1 << 63;
    let product = u128::from(c) * u128::from(scale.unit);
    let (whole, rest) = ((product >> 64) as u64, product as u64);
    // Half of a unit; a tie is read as the even float, so it is for an even one alone. All these are multiples of 2^14.
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
pub(super) fn decimal_of_float32(bits: u32) -> Option<Decimal> {
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

/// Puts the shortest decimal that reads back as the same float, without an exponent; `false`, and nothing is put, of zero, and of
/// a float below 2^-16 or from 2^52 on.
///
/// # Panics
/// Where there is no room for [`FLOAT_BYTES`]: a bug of the caller.
#[inline]
pub fn put_float<P: Put>(value: f64, out: &mut P) -> bool {
    // SAFETY: each writes to that place, which is large enough.
    put_at(out, |at| unsafe {
        #[cfg(target_arch = "x86_64")]
        match kernel() {
            Kernel::Avx512 => return avx512::float::put(value, at),
            Kernel::Avx2 => return avx2::float::put(value, at),
            _ => {}
        }
        put(value, at).unwrap_or(std::ptr::null_mut())
    })
}

/// As [`put_float`], of a float of 32 bits; `false` also of one from 2^23 on.
///
/// # Panics
/// As there.
#[inline]
pub fn put_float32<P: Put>(value: f32, out: &mut P) -> bool {
    // SAFETY: each writes to that place, which is large enough.
    put_at(out, |at| unsafe {
        #[cfg(target_arch = "x86_64")]
        match kernel() {
            Kernel::Avx512 => return avx512::float::put_float32(value, at),
            Kernel::Avx2 => return avx2::float::put_float32(value, at),
            _ => {}
        }
        put_of_float32(value, at).unwrap_or(std::ptr::null_mut())
    })
}

/// Puts what `write` writes from an address on that has [`FLOAT_BYTES`], up to the one that it
/// returns; `false`, and nothing is put, if that is null.
#[inline(always)]
fn put_at<P: Put>(out: &mut P, write: impl FnOnce(*mut u8) -> *mut u8) -> bool {
    let mut done = false;
    let place = [MaybeUninit::<u8>::uninit(); FLOAT_BYTES];
    out.put_made(place, |place| {
        let start = place.as_mut_ptr().cast::<u8>();
        let end = write(start);
        done = !end.is_null();
        let n = if done { end.addr() - start.addr() } else { 0 };
        // SAFETY: what was written starts with the place.
        unsafe { std::slice::from_raw_parts(start, n) }
    });
    done
}

/// Writes the float and returns its end; `None` of one that is not for this, and nothing
/// is written then.
///
/// # Safety
/// `out` is writable for [`FLOAT_BYTES`].
#[inline(always)]
pub(super) unsafe fn put(value: f64, out: *mut u8) -> Option<*mut u8> {
    let bits = value.to_bits();
    let decimal = decimal(bits)?;
    // SAFETY: the duty of the caller.
    Some(unsafe { put_decimal(decimal, (bits >> 63) as usize, out) })
}

/// As [`put`], of a float of 32 bits.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn put_of_float32(value: f32, out: *mut u8) -> Option<*mut u8> {
    let bits = value.to_bits();
    let decimal = decimal_of_float32(bits)?;
    // SAFETY: the duty of the caller.
    Some(unsafe { put_decimal(decimal, (bits >> 31) as usize, out) })
}

/// Writes the digits of a float, after a minus if `n_signs` is 1.
///
/// # Safety
/// As [`put`].
#[inline(always)]
unsafe fn put_decimal(decimal: Decimal, n_signs: usize, out: *mut u8) -> *mut u8 {
    let Decimal {
        first,
        last,
        n_places,
    } = decimal;
    let mut digits = sixteen(first);
    let n_zeros = (digits ^ u128::from_le_bytes([b'0'; 16])).leading_zeros() as usize / 8;
    let mut n = 17 - usize::from(last == 0) * (1 + n_zeros);
    // SAFETY: the sign, at most a zero, a point and three zeros more, and then 17 digits; whole copies of 16 end at 29 at most.
    unsafe {
        out.write(b'-');
        let out = out.add(n_signs);
        let Some(mut before) = 17_usize.checked_sub(n_places).filter(|&n| n > 0) else {
            let n_zeros = n_places - 17;
            out.cast::<[u8; 8]>().write_unaligned(*b"0.000000");
            let out = out.add(2 + n_zeros);
            out.cast::<u128>().write_unaligned(digits.to_le());
            out.add(16).write(b'0' + last as u8);
            return out.add(n);
        };
        let is_led = usize::from(first < 1_000_000_000_000_000 && before > 1);
        digits >>= 8 * is_led;
        before -= is_led;
        n -= is_led;
        out.cast::<u128>().write_unaligned(digits.to_le());
        let behind = digits >> (8 * before as u32 - 8) >> 8;
        out.add(before + 1)
            .cast::<u128>()
            .write_unaligned(behind.to_le());
        out.add(before).write(b'.');
        out.add(17 - is_led).write(b'0' + last as u8);
        out.add(n.max(before + 1) + 1)
    }
}

/// 16 digits as text, the first in the lowest byte.
#[inline(always)]
fn sixteen(value: u64) -> u128 {
    let zeros = u128::from_le_bytes([b'0'; 16]);
    let (high, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    u128::from(eight_digits(high)) | u128::from(eight_digits(low)) << 64 | zeros
}

/// Ten to the eighth: what eight digits do not reach.
pub const EIGHT_DIGITS: u64 = 100_000_000;

/// The eight digits of a number below [`EIGHT_DIGITS`], each in a byte (0 to 9), the first one in the lowest: they never leave
/// a register, from where one store takes them to their place. (Digits that are stored two by two and then copied wait for their
/// stores.)
#[inline(always)]
#[must_use]
pub fn eight_digits(value: u64) -> u64 {
    debug_assert!(value < EIGHT_DIGITS);
    // Two numbers of four digits, then four of two, then eight of one; divisions by multiplication and shift, exact in
    // these ranges.
    let (high, low) = (value / 10_000, value % 10_000);
    let fours = high | low << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (twos - 10 * tens) << 8
}

#[cfg(test)]
mod tests;
