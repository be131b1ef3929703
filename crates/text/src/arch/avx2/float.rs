//! Writes a float as text, with one vector store.
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;

use crate::decimal::{
    Byte, Decimal, EIGHT_DIGITS, N_FORMS, POINTS, decimal, decimal_of_float32, form, form_of,
};

/// A layout of a float's text.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct FloatForm {
    /// The argument of a byte shuffle: for each byte of the text, the index of its digit. For other
    /// bytes, the index is at least 0x80, and the shuffle writes 0.
    from: [u8; 32],
    /// The byte to add to each shuffled byte: the code of `.` or of `0`.
    more: [u8; 32],
}

/// All layouts of a float's text, indexed by the result of `form_of`.
static FORMS: [FloatForm; N_FORMS] = {
    let none = FloatForm {
        from: [0x80; 32],
        more: [b'0'; 32],
    };
    let mut all = [none; N_FORMS];
    let mut i = 0;
    while i < N_FORMS {
        let bytes = form(i);
        let mut at = 0;
        while at < 32 {
            match bytes[at] {
                Byte::Digit(digit @ 0..16) => all[i].from[at] = digit ^ 7,
                Byte::Point => all[i].more[at] = b'.',
                // The last digit, the 17th, is written separately.
                Byte::Digit(_) | Byte::Zero => {}
            }
            at += 1;
        }
        i += 1;
    }
    all
};

/// For each layout, the position of the 17th digit, which is written separately.
static LASTS: [u8; N_FORMS] = {
    let mut all = [0; N_FORMS];
    let mut i = 0;
    while i < N_FORMS {
        let bytes = form(i);
        let mut at = 0;
        while at < 32 {
            if matches!(bytes[at], Byte::Digit(16)) {
                all[i] = at as u8;
            }
            at += 1;
        }
        i += 1;
    }
    all
};

/// Returns the 16 decimal digits of `value`, one per byte. Each half of the vector has eight
/// digits, with the first digit in the highest byte.
#[inline]
#[target_feature(enable = "avx2")]
fn sixteen(value: u64) -> __m128i {
    let (high, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    let eights = _mm_set_epi64x(low as i64, high as i64);
    // Each step splits numbers into a quotient and a remainder, in lanes half as wide. The quotient
    // is a multiplication and a shift, which is exact in this range. `x + q * (2^32 - 10_000)` has
    // the quotient and the remainder in its halves.
    let q = _mm_srli_epi64::<45>(_mm_mul_epu32(eights, _mm_set1_epi64x(0xD1B7_1759)));
    let fours = _mm_add_epi64(
        eights,
        _mm_mul_epu32(q, _mm_set1_epi64x((1 << 32) - 10_000)),
    );
    let q = _mm_srli_epi16::<3>(_mm_mulhi_epu16(fours, _mm_set1_epi16(5243)));
    let above = _mm_add_epi32(fours, _mm_slli_epi32::<16>(q));
    let twos = _mm_sub_epi32(above, _mm_mullo_epi16(q, _mm_set1_epi16(100)));
    let q = _mm_mulhi_epu16(twos, _mm_set1_epi16(6554));
    _mm_add_epi16(twos, _mm_mullo_epi16(q, _mm_set1_epi16(256 - 10)))
}

/// Writes an `f64` as the shortest text that reads back as the same number. Returns the address
/// after the text. Returns null for zero and for floats that `decimal` does not convert.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES) bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
pub(in crate::arch) unsafe fn put(value: f64, out: *mut u8) -> *mut u8 {
    let bits = value.to_bits();
    match decimal(bits) {
        // SAFETY: guaranteed by the caller of this function.
        Some(decimal) => unsafe { put_decimal(decimal, (bits >> 63) as usize, out) },
        None => std::ptr::null_mut(),
    }
}

/// Writes an `f32` as the shortest text that reads back as the same number. Returns the address
/// after the text. Returns null for zero and for floats that `decimal_of_float32` does not convert.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES) bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
pub(in crate::arch) unsafe fn put_float32(value: f32, out: *mut u8) -> *mut u8 {
    let bits = value.to_bits();
    match decimal_of_float32(bits) {
        // SAFETY: guaranteed by the caller of this function.
        Some(decimal) => unsafe { put_decimal(decimal, (bits >> 31) as usize, out) },
        None => std::ptr::null_mut(),
    }
}

/// Writes a decimal as text, after a minus sign if `n_signs` is 1. Returns the address after the
/// text.
///
/// # Safety
/// `out` must be writable for [`FLOAT_BYTES`](crate::arch::float::FLOAT_BYTES) bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn put_decimal(decimal: Decimal, n_signs: usize, out: *mut u8) -> *mut u8 {
    let Decimal {
        first,
        last,
        n_places,
    } = decimal;
    let i = form_of(first, n_places);
    let (form, at_last) = (&FORMS[i], usize::from(LASTS[i]));
    // SAFETY: both arrays of a layout have 32 bytes. `out` has space for a sign and a vector.
    unsafe {
        let digits = _mm256_broadcastsi128_si256(sixteen(first));
        let from = _mm256_load_si256(form.from.as_ptr().cast());
        let more = _mm256_load_si256(form.more.as_ptr().cast());
        let text = _mm256_add_epi8(_mm256_shuffle_epi8(digits, from), more);
        let zeros = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(b'0' as i8));
        let other = !_mm256_movemask_epi8(zeros) as u32 | u32::from(last != 0) << (at_last & 31);
        out.write(b'-');
        let out = out.add(n_signs);
        _mm256_storeu_si256(out.cast(), text);
        out.add(at_last).write(b'0' + last as u8);
        // Trailing zeros are dropped, but the point and one zero after it remain.
        let n = 32 - other.leading_zeros() as usize;
        out.add(n.max(usize::from(POINTS[i]) + 2))
    }
}
