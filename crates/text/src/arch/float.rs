//! Floats as the shortest decimal that reads back as the same float, those of usual size.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::{Kernel, avx2, avx512, kernel};
use crate::decimal::{Decimal, EIGHT_DIGITS, decimal, decimal_of_float32};
use crate::sink::Put;

/// Bytes that may be written for a float, the last of them of no meaning: a sign, 16 digits and the point, and 16 bytes behind.
pub const FLOAT_BYTES: usize = 34;

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
