//! Writes floats as the shortest decimal that is parsed as the same float.

use std::mem::MaybeUninit;

use super::dispatch::with_kernels;
use super::family::{Kernels, Work};
use super::memory::written;
use crate::decimal::{Decimal, EIGHT_DIGITS, decimal, decimal_of_float32};
use crate::sink::Put;

/// The space in bytes for a float: a sign, 16 digits, a decimal point, and a vector of 16 bytes.
pub const FLOAT_BYTES: usize = 34;

/// Writes the shortest decimal that is parsed as the same float. Writes nothing and returns `false`
/// for zero, below 2^-16, and from 2^52 on.
///
/// # Panics
/// Panics if `out` has less space than [`FLOAT_BYTES`].
#[inline]
pub fn put_float<P: Put>(value: f64, out: &mut P) -> bool {
    put_at(out, |buffer| with_kernels(PutFloat(value, buffer)))
}

/// Writes the shortest decimal that is parsed as the same 32-bit float. Writes nothing and returns
/// `false` for zero, below 2^-16, and from 2^23 on.
///
/// # Panics
/// Panics if `out` has less space than [`FLOAT_BYTES`].
#[inline]
pub fn put_float32<P: Put>(value: f32, out: &mut P) -> bool {
    put_at(out, |buffer| with_kernels(PutFloat(value, buffer)))
}

/// Writes a float to a buffer. The result is the number of bytes, or `None` as in [`put_float`].
struct PutFloat<'a, F>(F, &'a mut [MaybeUninit<u8>; FLOAT_BYTES]);

impl Work for PutFloat<'_, f64> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<usize> {
        let PutFloat(value, buffer) = self;
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: FLOAT_BYTES are writable.
        let end = unsafe {
            kernels
                .json_float(value, start)
                .or_else(|| put(value, start))
        };
        end.map(|end| end.addr() - start.addr())
    }
}

impl Work for PutFloat<'_, f32> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<usize> {
        let PutFloat(value, buffer) = self;
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: FLOAT_BYTES are writable.
        let end = unsafe {
            kernels
                .json_float32(value, start)
                .or_else(|| put_of_float32(value, start))
        };
        end.map(|end| end.addr() - start.addr())
    }
}

/// Appends the bytes that `write` writes to a buffer. Returns `false` if `write` returns `None`.
#[inline(always)]
fn put_at<P: Put>(
    out: &mut P,
    write: impl FnOnce(&mut [MaybeUninit<u8>; FLOAT_BYTES]) -> Option<usize>,
) -> bool {
    let mut done = false;
    let buffer = [MaybeUninit::<u8>::uninit(); FLOAT_BYTES];
    out.put_made(buffer, |buffer| {
        let made = write(buffer);
        done = made.is_some();
        written(&buffer[..made.unwrap_or(0)])
    });
    done
}

/// Writes the float and returns the end of the output. `None` for floats that [`put_float`] does
/// not write.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`] bytes.
#[inline(always)]
pub(super) unsafe fn put(value: f64, out: *mut u8) -> Option<*mut u8> {
    let bits = value.to_bits();
    let decimal = decimal(bits)?;
    // SAFETY: guaranteed by the caller.
    Some(unsafe { put_decimal(decimal, (bits >> 63) as usize, out) })
}

/// Writes a 32-bit float and returns the end of the output. `None` for floats that [`put_float32`]
/// does not write.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`] bytes.
#[inline(always)]
pub(super) unsafe fn put_of_float32(value: f32, out: *mut u8) -> Option<*mut u8> {
    let bits = value.to_bits();
    let decimal = decimal_of_float32(bits)?;
    // SAFETY: guaranteed by the caller.
    Some(unsafe { put_decimal(decimal, (bits >> 31) as usize, out) })
}

/// Writes `decimal` as text, with a minus sign if `n_signs` is 1. Returns the end of the output.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`] bytes.
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
    // SAFETY: the last store of 16 bytes starts at most 18 bytes after `out` (a sign, 16 digits, a
    // point). So all stores end inside `FLOAT_BYTES`.
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
        let after_point = digits >> (8 * before as u32 - 8) >> 8;
        out.add(before + 1)
            .cast::<u128>()
            .write_unaligned(after_point.to_le());
        out.add(before).write(b'.');
        out.add(17 - is_led).write(b'0' + last as u8);
        out.add(n.max(before + 1) + 1)
    }
}

/// Returns the 16 decimal digits of `value` as ASCII, the first in the lowest byte.
#[inline(always)]
fn sixteen(value: u64) -> u128 {
    let zeros = u128::from_le_bytes([b'0'; 16]);
    let (high, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    u128::from(eight_digits(high)) | u128::from(eight_digits(low)) << 64 | zeros
}

/// Returns the eight decimal digits of a number below [`EIGHT_DIGITS`], one per byte (0 to 9). The
/// first digit is in the lowest byte.
#[inline(always)]
#[must_use]
pub fn eight_digits(value: u64) -> u64 {
    debug_assert!(value < EIGHT_DIGITS);
    // Splits the number into two numbers of four digits, then four of two, then eight digits.
    let (high, low) = (value / 10_000, value % 10_000);
    let fours = high | low << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (twos - 10 * tens) << 8
}

#[cfg(test)]
mod tests;
