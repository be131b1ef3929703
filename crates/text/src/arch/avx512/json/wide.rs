//! Converts 16-bit and 32-bit units to the body of a JSON string.

use std::arch::x86_64::*;

use super::super::encode::{any, two};
use super::super::scan::narrow;
use super::super::three_byte_units::THREE;
use super::super::{BYTES, first, load, load_first, splat16, splat32, store};
use super::{UNITS, escapes8, letters, one_by_one, squeeze};

/// Returns a mask of the 16-bit units in `v` that need a JSON escape. The mask is 0 if `ESCAPES` is
/// `false`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn escapes16<const ESCAPES: bool>(v: __m512i) -> u32 {
    if !ESCAPES {
        return 0;
    }
    let low = _mm512_cmplt_epu16_mask(v, splat16(0x20));
    low | _mm512_cmpeq_epi16_mask(v, splat16(0x22)) | _mm512_cmpeq_epi16_mask(v, splat16(0x5C))
}

/// Returns a mask of the 32-bit units in `v` that need a JSON escape. The mask is 0 if `ESCAPES` is
/// `false`.
#[inline]
#[target_feature(enable = "avx512f")]
fn escapes32<const ESCAPES: bool>(v: __m512i) -> u16 {
    if !ESCAPES {
        return 0;
    }
    let low = _mm512_cmplt_epu32_mask(v, splat32(0x20));
    low | _mm512_cmpeq_epi32_mask(v, splat32(0x22)) | _mm512_cmpeq_epi32_mask(v, splat32(0x5C))
}

/// Writes a short text as UTF-8, or returns null. The text has at most 32 units below U+0800
/// without JSON escapes, or at most 21 units from U+0800 on without surrogates.
///
/// # Safety
/// `out` must be writable for a vector, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_wide<const ESCAPES: bool>(u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    if n > UNITS {
        return std::ptr::null_mut();
    }
    // SAFETY: the load ends inside `u`. This function's contract guarantees the space.
    unsafe {
        let v = load_first(u.as_ptr().cast(), 2 * n);
        let which = first(n) as u32;
        let low = _mm512_testn_epi16_mask(v, splat16(0xF800)) & which;
        if low == which {
            if escapes16::<ESCAPES>(v) & which != 0 {
                return std::ptr::null_mut();
            }
            let (bytes, needed) = two(v);
            return squeeze(out, bytes, needed & first(2 * n));
        }
        if low != 0 || n > 21 || super::super::scan::surrogates(v) != 0 {
            return std::ptr::null_mut();
        }
        store(out, THREE[0].encode(v));
        out.add(3 * n)
    }
}

/// Copies at most 32 16-bit units. Returns `false` if a unit needs a JSON escape or is a surrogate.
///
/// # Safety
/// `out` must be writable for 32 units, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn copy_ucs2(u: &[u16], out: *mut u16) -> bool {
    debug_assert!(u.len() <= UNITS);
    // SAFETY: the load ends inside `u`. This function's contract guarantees the space.
    unsafe {
        let v = load_first(u.as_ptr().cast(), 2 * u.len());
        store(out.cast(), v);
        let wrong = escapes16::<true>(v) | super::super::scan::surrogates(v);
        wrong & first(u.len()) as u32 == 0
    }
}

/// Writes 16-bit units as the body of a JSON string. Returns null if a unit is a surrogate.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs2<const ESCAPES: bool>(u: &[u16], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside `u`. This function's contract guarantees the space.
    unsafe {
        while at + 2 * UNITS <= len {
            let (a, b) = (load(p.add(at).cast()), load(p.add(at + UNITS).cast()));
            match alike::<ESCAPES>(p.add(at), a, b, out) {
                Some(next) => out = next,
                None => {
                    out = ucs2_part::<ESCAPES>(a, &u[at..at + UNITS], out);
                    if out.is_null() {
                        return out;
                    }
                    out = ucs2_part::<ESCAPES>(b, &u[at + UNITS..at + 2 * UNITS], out);
                    if out.is_null() {
                        return out;
                    }
                }
            }
            at += 2 * UNITS;
        }
        while at < len {
            let n = (len - at).min(UNITS);
            let v = load_first(p.add(at).cast(), 2 * n);
            out = ucs2_part::<ESCAPES>(v, &u[at..at + n], out);
            if out.is_null() {
                return out;
            }
            at += n;
        }
    }
    out
}

/// Writes 64 units of one class, or returns `None`. The units are ASCII without JSON escapes, or
/// from U+0800 on without surrogates. The vectors `a` and `b` also contain the units.
///
/// # Safety
/// `p` must be readable for 64 units. `out` must be writable for 448 bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn alike<const ESCAPES: bool>(
    p: *const u16,
    a: __m512i,
    b: __m512i,
    out: *mut u8,
) -> Option<*mut u8> {
    let most = splat16(0xF800);
    // SAFETY: `p` is readable for 64 units. `out` has space for the three stored vectors.
    unsafe {
        if _mm512_test_epi16_mask(_mm512_or_si512(a, b), splat16(0xFF80)) == 0 {
            let v = narrow(a, b);
            store(out, v);
            return (escapes8::<ESCAPES>(v) == 0).then(|| out.add(BYTES));
        }
        let low = _mm512_testn_epi16_mask(_mm512_min_epu16(a, b), most);
        let surrogate = |v| _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, most), splat16(0xD800));
        if low | surrogate(a) | surrogate(b) != 0 {
            return None;
        }
        store(out, THREE[0].encode(a));
        let middle = load(p.add(UNITS / 2).cast());
        store(out.add(BYTES), THREE[1].encode(middle));
        store(out.add(2 * BYTES), THREE[2].encode(b));
        Some(out.add(3 * BYTES))
    }
}

/// Writes `u` as the body of a JSON string. The vector `v` starts with the units of `u`. Returns
/// null if a unit is a surrogate.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn ucs2_part<const ESCAPES: bool>(v: __m512i, u: &[u16], mut out: *mut u8) -> *mut u8 {
    let n = u.len();
    let stop = escapes16::<ESCAPES>(v) & first(n) as u32;
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        if _mm512_test_epi16_mask(v, splat16(0xF800)) == 0 {
            let (mut bytes, mut needed) = two(v);
            if stop != 0 {
                let Some(letter) = letters16(v, stop) else {
                    return one_by_one(u.iter().map(|&c| u32::from(c)), out);
                };
                let escape = _mm512_or_si512(_mm512_slli_epi16::<8>(letter), splat16(0x5C));
                bytes = _mm512_mask_mov_epi16(bytes, stop, escape);
                needed |= _pdep_u64(u64::from(stop), 0xAAAA_AAAA_AAAA_AAAA);
            }
            return squeeze(out, bytes, needed & first(2 * n));
        }
        if super::super::scan::surrogates(v) != 0 {
            return std::ptr::null_mut();
        }
        let mut letter = _mm512_setzero_si512();
        if stop != 0 {
            match letters16(v, stop) {
                Some(found) => letter = found,
                None => return one_by_one(u.iter().map(|&c| u32::from(c)), out),
            }
        }
        let lower = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v));
        let letters = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(letter));
        out = any_part(lower, letters, stop as u16, first(n.min(16)) as u16, out);
        if n > 16 {
            let upper = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(v));
            let letters = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(letter));
            let which = first(n - 16) as u16;
            out = any_part(upper, letters, (stop >> 16) as u16, which, out);
        }
    }
    out
}

/// Returns the escape letter of each unit in the mask `stop`, and zero for other units. Returns
/// `None` if a unit in `stop` has no escape letter.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn letters16(v: __m512i, stop: u32) -> Option<__m512i> {
    let letter = _mm512_and_si512(letters(v), splat16(0xFF));
    let letter = _mm512_maskz_mov_epi16(stop, letter);
    (_mm512_mask_testn_epi16_mask(stop, letter, letter) == 0).then_some(letter)
}

/// Writes the code points in `which` as UTF-8. Writes those in `stop` as a backslash and their byte
/// of `letter`. No code point may be a surrogate.
///
/// # Safety
/// `out` must be writable for a vector of 64 bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn any_part(
    chars: __m512i,
    letter: __m512i,
    stop: u16,
    which: u16,
    out: *mut u8,
) -> *mut u8 {
    let (mut bytes, mut needed) = any(chars, which);
    if stop != 0 {
        // The character is in the highest byte of its lane, the backslash in the byte below.
        let escape = _mm512_or_si512(_mm512_slli_epi32::<24>(letter), splat32(0x5C_0000));
        bytes = _mm512_mask_mov_epi32(bytes, stop, escape);
        needed |= _pdep_u64(u64::from(stop), 0x4444_4444_4444_4444);
    }
    // SAFETY: guaranteed by the caller of this function.
    unsafe { squeeze(out, bytes, needed) }
}

/// Writes 32-bit units as the body of a JSON string. Returns null if a unit is a surrogate or past
/// U+10FFFF.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4<const ESCAPES: bool>(u: &[u32], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside `u`. This function's contract guarantees the space.
    unsafe {
        while at < len {
            let n = (len - at).min(16);
            let v = load_first(p.add(at).cast(), 4 * n);
            let which = first(n) as u16;
            let bad = _mm512_cmpgt_epu32_mask(v, splat32(0x10_FFFF))
                | _mm512_cmplt_epu32_mask(_mm512_sub_epi32(v, splat32(0xD800)), splat32(0x800));
            if bad != 0 {
                return std::ptr::null_mut();
            }
            let stop = escapes32::<ESCAPES>(v) & which;
            let mut letter = _mm512_setzero_si512();
            if stop != 0 {
                let low = _mm512_and_si512(letters(v), splat32(0xFF));
                letter = _mm512_maskz_mov_epi32(stop, low);
                if _mm512_mask_testn_epi32_mask(stop, letter, letter) != 0 {
                    out = one_by_one(u[at..at + n].iter().copied(), out);
                    at += n;
                    continue;
                }
            }
            out = any_part(v, letter, stop, which, out);
            at += n;
        }
    }
    out
}
