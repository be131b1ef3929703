//! The digits of a float, its point and its zeros in one vector.

use std::arch::x86_64::*;

use super::load;
use crate::decimal::{Byte, Decimal, N_FORMS, POINTS, decimal, decimal_of_float32, form, form_of};

/// Quotients of 2^52 and the powers of ten from the eighth down: what a number below 10^8 is multiplied by, so that a digit is
/// the first one behind the point.
static TENTHS: [u64; 8] = {
    let mut all = [0; 8];
    let mut i = 0;
    while i < 8 {
        all[i] = (1 << 52) / 10_u64.pow(8 - i as u32);
        i += 1;
    }
    all
};

/// What the first digits are added to: in the three low bytes of each lane the character of zero, the point, and a zero.
const HIGH: i64 = i32::from_le_bytes([b'0', b'.', b'0', 0]) as i64;
/// Where these two are taken from; where the last digit is, behind the second eight.
const POINT: u8 = 1;
const ZERO: u8 = 2;
const LAST: u8 = 65;

/// A form of the result.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Form {
    /// For each byte, where among those of the digits it is.
    from: [u8; 32],
}

/// The forms.
static FORMS: [Form; N_FORMS] = {
    let mut all = [Form { from: [ZERO; 32] }; N_FORMS];
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

/// As `put` of the twin.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512ifma,avx512vbmi,lzcnt")]
pub(in crate::arch) unsafe fn put(value: f64, out: *mut u8) -> *mut u8 {
    let bits = value.to_bits();
    match decimal(bits) {
        // SAFETY: the duty of the caller.
        Some(decimal) => unsafe { put_decimal(decimal, (bits >> 63) as usize, out) },
        None => std::ptr::null_mut(),
    }
}

/// As the reference implementation, `put_of_float32`.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512ifma,avx512vbmi,lzcnt")]
pub(in crate::arch) unsafe fn put_float32(value: f32, out: *mut u8) -> *mut u8 {
    let bits = value.to_bits();
    match decimal_of_float32(bits) {
        // SAFETY: the duty of the caller.
        Some(decimal) => unsafe { put_decimal(decimal, (bits >> 31) as usize, out) },
        None => std::ptr::null_mut(),
    }
}

/// Writes the digits of a float, after a minus if `n_signs` is 1.
///
/// # Safety
/// As `put`.
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
    // SAFETY: the table has eight numbers and a form 32 bytes; the place takes a sign and a vector, by the caller's word.
    unsafe {
        let tenths = load(TENTHS.as_ptr().cast());
        let ten = _mm512_set1_epi64(10);
        let digits = |eight: u64, above: __m512i| {
            // What is rounded off of a quotient is less than it is added once more.
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
        // The point is none of the zeros; one stays behind it.
        let n = 32 - other.leading_zeros() as usize;
        out.add(n.max(usize::from(POINTS[form]) + 2))
    }
}
