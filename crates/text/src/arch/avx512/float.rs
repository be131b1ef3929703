//! Writes a float as text. The digits, the point and zeros are stored with one instruction.

use std::arch::x86_64::*;

use super::load;
use crate::decimal::{Byte, Decimal, N_FORMS, POINTS, decimal, decimal_of_float32, form, form_of};

/// 2^52 divided by 10^8 down to 10^1. Products with a number below 10^8 are fixed-point numbers.
/// The first digits of their fractions are the digits of the number.
static TENTHS: [u64; 8] = {
    let mut all = [0; 8];
    let mut i = 0;
    while i < 8 {
        all[i] = (1 << 52) / 10_u64.pow(8 - i as u32);
        i += 1;
    }
    all
};

/// Converts the lowest byte of a 64-bit lane to an ASCII digit, and adds `.` and `0` above it.
const HIGH: i64 = i32::from_le_bytes([b'0', b'.', b'0', 0]) as i64;
/// Byte indexes of the decimal point, of a zero and (in the second vector) of the last digit.
const POINT: u8 = 1;
const ZERO: u8 = 2;
const LAST: u8 = 65;

/// The positions of the digits, the decimal point and the zeros in a float's text.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct FloatForm {
    /// For each byte of the text, its index in two vectors with digits, a point and a zero.
    from: [u8; 32],
}

/// All forms, indexed by the result of `form_of`.
static FORMS: [FloatForm; N_FORMS] = {
    let mut all = [FloatForm { from: [ZERO; 32] }; N_FORMS];
    let mut i = 0;
    while i < N_FORMS {
        let bytes = form(i);
        let mut at = 0;
        while at < 32 {
            all[i].from[at] = match bytes[at] {
                Byte::Digit(16..) => LAST,
                Byte::Digit(digit @ 8..) => 64 + 8 * (digit - 8),
                Byte::Digit(digit) => 8 * digit,
                Byte::Point => POINT,
                Byte::Zero => ZERO,
            };
            at += 1;
        }
        i += 1;
    }
    all
};

/// Writes the shortest text that is parsed as the same `f64`. Returns the end of the output, or
/// null for zero and for floats that `decimal` does not convert.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES) bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512ifma,avx512vbmi,lzcnt")]
pub(in crate::arch) unsafe fn put(value: f64, out: *mut u8) -> *mut u8 {
    let bits = value.to_bits();
    match decimal(bits) {
        // SAFETY: guaranteed by the caller.
        Some(decimal) => unsafe { put_decimal(decimal, (bits >> 63) as usize, out) },
        None => std::ptr::null_mut(),
    }
}

/// Writes the shortest text that is parsed as the same `f32`. Returns the end of the output, or
/// null for zero and for floats that `decimal_of_float32` does not convert.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES) bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512ifma,avx512vbmi,lzcnt")]
pub(in crate::arch) unsafe fn put_float32(value: f32, out: *mut u8) -> *mut u8 {
    let bits = value.to_bits();
    match decimal_of_float32(bits) {
        // SAFETY: guaranteed by the caller.
        Some(decimal) => unsafe { put_decimal(decimal, (bits >> 31) as usize, out) },
        None => std::ptr::null_mut(),
    }
}

/// Writes `decimal` as text, with a minus sign if `n_signs` is 1. Returns the end of the text.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES) bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512ifma,avx512vbmi,lzcnt")]
unsafe fn put_decimal(decimal: Decimal, n_signs: usize, out: *mut u8) -> *mut u8 {
    const EIGHT: u64 = 100_000_000;
    let Decimal {
        first,
        last,
        n_places,
    } = decimal;
    let form = form_of(first, n_places);
    // SAFETY: `TENTHS` has eight numbers, and a form has 32 bytes. `out` has space for a sign and
    // 32 bytes.
    unsafe {
        let tenths = load(TENTHS.as_ptr().cast());
        let ten = _mm512_set1_epi64(10);
        let digits = |eight: u64, above: __m512i| {
            // The addend `tenths` is larger than the rounding error of the factors.
            let parts = _mm512_madd52lo_epu64(tenths, _mm512_set1_epi64(eight as i64), tenths);
            _mm512_madd52hi_epu64(above, parts, ten)
        };
        let high = digits(first / EIGHT, _mm512_set1_epi64(HIGH));
        let last = i64::from(b'0') * 0x101 + ((last as i64) << 8);
        let low = digits(first % EIGHT, _mm512_set1_epi64(last));
        let from = _mm256_load_si256(FORMS[form].from.as_ptr().cast());
        let text = _mm512_permutex2var_epi8(high, _mm512_castsi256_si512(from), low);
        let text = _mm512_castsi512_si256(text);
        let other = _mm256_cmpneq_epi8_mask(text, _mm256_set1_epi8(b'0' as i8));
        out.write(b'-');
        let out = out.add(n_signs);
        _mm256_storeu_si256(out.cast(), text);
        // The point and one zero after it remain.
        let n = 32 - other.leading_zeros() as usize;
        out.add(n.max(usize::from(POINTS[form]) + 2))
    }
}
