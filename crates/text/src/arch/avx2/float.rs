//! The digits of a float, its point and its zeros in one vector.
#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use crate::decimal::{
    Byte, Decimal, EIGHT_DIGITS, N_FORMS, POINTS, decimal, decimal_of_float32, form, form_of,
};

/// A form of the result.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Form {
    /// For each byte, which of the first 16 digits is there; none where the highest bit is set.
    from: [u8; 32],
    /// What is added: the character of zero, or the point.
    more: [u8; 32],
}

/// The forms.
static FORMS: [Form; N_FORMS] = {
    let none = Form {
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
                // The last digit is written for itself.
                Byte::Digit(_) | Byte::Zero => {}
            }
            at += 1;
        }
        i += 1;
    }
    all
};

/// Where the last digit is in each form.
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

/// The 16 digits of a number, 0 to 9: in each half the first one in the highest byte.
#[inline]
#[target_feature(enable = "avx2")]
fn sixteen(value: u64) -> __m128i {
    let (high, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    let eights = _mm_set_epi64x(low as i64, high as i64);
    // Quotients by multiplication and shift, exact in these ranges, above their rests, in lanes half as wide. A value waits for all
    // these steps: `x + q * (2^32 - 10_000)` is one less than to put both together.
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

/// As `put` of the twin.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn put_decimal(decimal: Decimal, n_signs: usize, out: *mut u8) -> *mut u8 {
    let Decimal {
        first,
        last,
        n_places,
    } = decimal;
    let i = form_of(first, n_places);
    let (form, at_last) = (&FORMS[i], usize::from(LASTS[i]));
    // SAFETY: a form has 32 bytes of each; the place takes a sign and a vector, by the caller's word.
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
        // The point is none of the zeros; one stays behind it.
        let n = 32 - other.leading_zeros() as usize;
        out.add(n.max(usize::from(POINTS[i]) + 2))
    }
}
