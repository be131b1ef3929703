//! Converts 16-bit and 32-bit units to the body of a JSON string.

use std::arch::x86_64::*;

use super::super::lanes::{ANY, any, five, three};
use super::super::short_loads::{bytes, load_half, load_most, load_start};
use super::{letters, mask, one_by_one, put_lanes};

const UNITS: usize = 16;

#[inline]
#[target_feature(enable = "avx2")]
fn splat16(u: u16) -> __m256i {
    _mm256_set1_epi16(u as i16)
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat32(u: u32) -> __m256i {
    _mm256_set1_epi32(u as i32)
}

/// Returns ones in the units that must be escaped in JSON. Units must be below U+0800.
#[inline]
#[target_feature(enable = "avx2")]
fn escapes16<const ESCAPES: bool>(v: __m256i) -> __m256i {
    if !ESCAPES {
        return _mm256_setzero_si256();
    }
    // After this XOR, control characters and the quote are the lowest units.
    let low = _mm256_cmpgt_epi16(splat16(0x21), _mm256_xor_si256(v, splat16(0x02)));
    _mm256_or_si256(low, _mm256_cmpeq_epi16(v, splat16(0x5C)))
}

/// Returns ones in the units that must be escaped in JSON. Units must be below U+110000.
#[inline]
#[target_feature(enable = "avx2")]
fn escapes32<const ESCAPES: bool>(v: __m256i) -> __m256i {
    if !ESCAPES {
        return _mm256_setzero_si256();
    }
    // After this XOR, control characters and the quote are the lowest units.
    let low = _mm256_cmpgt_epi32(splat32(0x21), _mm256_xor_si256(v, splat32(0x02)));
    _mm256_or_si256(low, _mm256_cmpeq_epi32(v, splat32(0x5C)))
}

/// Returns ones in the 16-bit lanes of surrogates, otherwise zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn surrogates(v: __m256i) -> __m256i {
    _mm256_cmpeq_epi16(_mm256_and_si256(v, splat16(0xF800)), splat16(0xD800))
}

/// Replaces the units from `n` on by zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn keep16(v: __m256i, n: usize) -> __m256i {
    let indices = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm256_and_si256(v, _mm256_cmpgt_epi16(splat16(n as u16), indices))
}

/// Returns `true` if a unit is a surrogate or must be escaped in JSON.
#[inline]
#[target_feature(enable = "avx2")]
fn is_special(v: __m256i) -> bool {
    // After this XOR, control characters and the quote are the lowest units.
    let exchanged = _mm256_xor_si256(v, splat16(0x02));
    let low = _mm256_cmpeq_epi16(_mm256_min_epu16(exchanged, splat16(0x20)), exchanged);
    let escaped = _mm256_or_si256(low, _mm256_cmpeq_epi16(v, splat16(0x5C)));
    let special = _mm256_or_si256(escaped, surrogates(v));
    _mm256_testz_si256(special, special) == 0
}

/// Copies at most 32 units. `false` if a unit is a surrogate or must be escaped.
///
/// # Safety
/// `out` must be writable for 32 units, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) unsafe fn copy_ucs2(u: &[u16], out: *mut u16) -> bool {
    let (p, n) = (u.as_ptr(), u.len());
    debug_assert!(n <= 2 * UNITS);
    // SAFETY: both parts are inside `u` and `out`.
    unsafe {
        if n >= UNITS {
            let last = n - UNITS;
            let (a, b) = (
                _mm256_loadu_si256(p.cast()),
                _mm256_loadu_si256(p.add(last).cast()),
            );
            _mm256_storeu_si256(out.cast(), a);
            _mm256_storeu_si256(out.add(last).cast(), b);
            return !is_special(a) && !is_special(b);
        }
        if n >= 8 {
            let last = n - 8;
            let (a, b) = (
                _mm_loadu_si128(p.cast()),
                _mm_loadu_si128(p.add(last).cast()),
            );
            _mm_storeu_si128(out.cast(), a);
            _mm_storeu_si128(out.add(last).cast(), b);
            return !is_special(_mm256_set_m128i(b, a));
        }
        if n >= 4 {
            let last = n - 4;
            let (a, b) = (
                _mm_loadl_epi64(p.cast()),
                _mm_loadl_epi64(p.add(last).cast()),
            );
            _mm_storel_epi64(out.cast(), a);
            _mm_storel_epi64(out.add(last).cast(), b);
            return !is_special(_mm256_broadcastsi128_si256(_mm_unpacklo_epi64(a, b)));
        }
        crate::arch::scalar::copy_ucs2(u, out)
    }
}

/// Encodes units below U+0800 as UTF-8 in their lanes. Also marks the two-byte characters.
#[inline]
#[target_feature(enable = "avx2")]
fn two(units: __m256i) -> (__m256i, __m256i) {
    let lead = _mm256_srli_epi16::<6>(units);
    let last = _mm256_slli_epi16::<8>(_mm256_and_si256(units, splat16(0x3F)));
    let both = _mm256_or_si256(_mm256_or_si256(lead, last), splat16(0x80C0));
    let high = _mm256_cmpgt_epi16(units, splat16(0x7F));
    (_mm256_blendv_epi8(units, both, high), high)
}

/// Writes the first `n` of 16 lanes as bytes and returns the end of the output. `high` marks the
/// lanes of two bytes.
///
/// # Safety
/// `out` must be writable for 32 bytes.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn put_two(lanes: __m256i, high: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    let high = mask(_mm256_packs_epi16(high, high));
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        let out = put_lanes(_mm256_castsi256_si128(lanes), high, n, out);
        let upper = _mm256_extracti128_si256::<1>(lanes);
        put_lanes(upper, high >> 16, n.saturating_sub(8), out)
    }
}

/// Writes 16 units as three UTF-8 bytes each. Returns the end of the first `n`.
///
/// # Safety
/// `out` must be writable for 56 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put_three(units: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    let (most, rest) = three(units);
    // SAFETY: the last store ends 56 bytes after the first.
    unsafe {
        _mm_storeu_si128(out.cast(), _mm256_castsi256_si128(most));
        _mm_storel_epi64(out.add(16).cast(), _mm256_castsi256_si128(rest));
        _mm_storeu_si128(out.add(24).cast(), _mm256_extracti128_si256::<1>(most));
        _mm_storel_epi64(out.add(40).cast(), _mm256_extracti128_si256::<1>(rest));
        out.add(3 * n)
    }
}

/// Writes a short text as UTF-8. Returns null unless it has at most 32 units below U+0800 and no
/// escapes, or at most 21 larger units and no surrogates.
///
/// # Safety
/// `out` must be writable for 64 bytes, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_wide<const ESCAPES: bool>(u: &[u16], out: *mut u8) -> *mut u8 {
    // The first unit shows the script, so this branch is predictable.
    // SAFETY: guaranteed by the caller.
    unsafe {
        match u.first() {
            Some(0x800..) => short_three(u, out),
            _ => short_two::<ESCAPES>(u, out),
        }
    }
}

/// Returns ones in each lane `i` for which `from + i` is less than `n`.
#[inline]
#[target_feature(enable = "avx2")]
fn used(n: usize, from: i16) -> __m256i {
    let indices = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm256_cmpgt_epi16(
        splat16(n as u16),
        _mm256_add_epi16(indices, _mm256_set1_epi16(from)),
    )
}

/// Implements [`short_wide`] for units below U+0800.
///
/// # Safety
/// The requirements of [`short_wide`] must be met.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn short_two<const ESCAPES: bool>(u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    if n > 2 * UNITS {
        return std::ptr::null_mut();
    }
    let (a, b) = load_start(bytes(u));
    // The padding is not escaped.
    let letter = splat16(u16::from(b'a'));
    let a = _mm256_blendv_epi8(letter, a, used(n, 0));
    let b = _mm256_blendv_epi8(letter, b, used(n, 16));
    let stop = mask(_mm256_or_si256(
        escapes16::<ESCAPES>(a),
        escapes16::<ESCAPES>(b),
    ));
    if _mm256_testz_si256(_mm256_or_si256(a, b), splat16(0xF800)) == 0 || stop != 0 {
        return std::ptr::null_mut();
    }
    let ((a, high_a), (b, high_b)) = (two(a), two(b));
    // `packs` packs each 128-bit half separately.
    let high = mask(_mm256_packs_epi16(high_a, high_b));
    // SAFETY: each of the four calls writes 16 bytes and advances by at most 16.
    unsafe {
        let end = out.add(n + high.count_ones() as usize);
        let out = put_lanes(_mm256_castsi256_si128(a), high, 8, out);
        let out = put_lanes(_mm256_extracti128_si256::<1>(a), high >> 16, 8, out);
        let out = put_lanes(_mm256_castsi256_si128(b), high >> 8, 8, out);
        put_lanes(_mm256_extracti128_si256::<1>(b), high >> 24, 8, out);
        end
    }
}

/// Implements [`short_wide`] for units from U+0800 on.
///
/// # Safety
/// The requirements of [`short_wide`] must be met.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn short_three(u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    if n > MOST_OF_THREE {
        return std::ptr::null_mut();
    }
    let (a, b) = load_most(bytes(u));
    // The padding is neither below U+0800 nor a surrogate.
    let (least, indices) = (splat16(0x800), used(n, 0));
    let a = _mm256_blendv_epi8(least, a, indices);
    let indices = _mm256_castsi256_si128(used(n, 16));
    let b = _mm_blendv_epi8(_mm256_castsi256_si128(least), b, indices);
    // After the subtraction, surrogates are the units below U+0800.
    let first = splat16(0xD800);
    let low_a = _mm256_min_epu16(a, _mm256_sub_epi16(a, first));
    let low_b = _mm_min_epu16(b, _mm_sub_epi16(b, _mm256_castsi256_si128(first)));
    let (lower, upper) = (
        _mm256_castsi256_si128(low_a),
        _mm256_extracti128_si256::<1>(low_a),
    );
    let low = _mm_minpos_epu16(_mm_min_epu16(_mm_min_epu16(lower, upper), low_b));
    if _mm_cvtsi128_si32(low) as u16 <= 0x7FF {
        return std::ptr::null_mut();
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        put_three(a, UNITS, out);
        _mm_storeu_si128(out.add(3 * UNITS).cast(), five(b));
        out.add(3 * n)
    }
}

/// The number of three-byte characters in 64 bytes (16 in one vector, and 5).
const MOST_OF_THREE: usize = 21;

/// Writes 16-bit units as the body of a JSON string. Returns the end of the output, or null for a
/// surrogate.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs2<const ESCAPES: bool>(u: &[u16], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside `u`, and `out` has space for the longest result.
    unsafe {
        while at + UNITS <= len {
            let v = _mm256_loadu_si256(p.add(at).cast());
            if at + 2 * UNITS <= len {
                // One branch for two vectors.
                let b = _mm256_loadu_si256(p.add(at + UNITS).cast());
                let least = _mm256_and_si256(_mm256_min_epu16(v, b), splat16(0xF800));
                let low = _mm256_cmpeq_epi16(least, _mm256_setzero_si256());
                let surrogate = _mm256_or_si256(surrogates(v), surrogates(b));
                if mask(_mm256_or_si256(low, surrogate)) == 0 {
                    out = put_three(v, UNITS, out);
                    out = put_three(b, UNITS, out);
                    at += 2 * UNITS;
                    continue;
                }
            }
            out = part16::<ESCAPES>(v, &u[at..at + UNITS], out);
            if out.is_null() {
                return out;
            }
            at += UNITS;
        }
        if at < len {
            let v = keep16(load_half(bytes(&u[at..])), len - at);
            out = part16::<ESCAPES>(v, &u[at..], out);
        }
    }
    out
}

/// Writes `u` as JSON text. `v` has the same units, followed by zeros. Returns null if a unit is a
/// surrogate.
///
/// # Safety
/// The requirements of [`ucs2`] must be met.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn part16<const ESCAPES: bool>(v: __m256i, u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        if _mm256_testz_si256(v, splat16(0xF800)) != 0 {
            let stop = escapes16::<ESCAPES>(v);
            let stop = if n < UNITS { keep16(stop, n) } else { stop };
            let (mut lanes, mut high) = two(v);
            if mask(stop) != 0 {
                let letter = _mm256_and_si256(letters(v), stop);
                let none = _mm256_cmpeq_epi16(letter, _mm256_setzero_si256());
                if _mm256_testz_si256(none, stop) == 0 {
                    return one_by_one(u.iter().map(|&c| u32::from(c)), out);
                }
                let escape = _mm256_or_si256(_mm256_slli_epi16::<8>(letter), splat16(0x5C));
                lanes = _mm256_blendv_epi8(lanes, escape, stop);
                high = _mm256_or_si256(high, stop);
            }
            return put_two(lanes, high, n, out);
        }
        if mask(surrogates(v)) != 0 {
            return std::ptr::null_mut();
        }
        let top = _mm256_and_si256(v, splat16(0xF800));
        let low = _mm256_cmpeq_epi16(top, _mm256_setzero_si256());
        if mask(low) == 0 {
            return put_three(v, n, out);
        }
        let lower = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v));
        let out = part32::<ESCAPES>(lower, n.min(8), out);
        if n <= 8 || out.is_null() {
            return out;
        }
        let upper = _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(v));
        part32::<ESCAPES>(upper, n - 8, out)
    }
}

/// Writes the first `n` of 8 valid code points as JSON text. The others must be zero.
///
/// # Safety
/// `out` must be writable for `6 * n + 64` bytes.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn part32<const ESCAPES: bool>(chars: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    let (mut lanes, two, three, four) = any(chars);
    // The low bit of the number of bytes after the first. `three` is the high bit.
    let mut low = _mm256_xor_si256(_mm256_xor_si256(two, three), four);
    let indices = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let used = _mm256_cmpgt_epi32(splat32(n as u32), indices);
    let stop = _mm256_and_si256(escapes32::<ESCAPES>(chars), used);
    // SAFETY: the table has an entry for each 8-bit index. `out` has space for the longest result.
    unsafe {
        if mask(stop) != 0 {
            let letter = _mm256_and_si256(letters(chars), stop);
            let none = _mm256_cmpeq_epi32(letter, _mm256_setzero_si256());
            if _mm256_testz_si256(none, stop) == 0 {
                let mut all = [0_u32; 8];
                _mm256_storeu_si256(all.as_mut_ptr().cast(), chars);
                return one_by_one(all[..n].iter().copied(), out);
            }
            // The letter is in the highest byte, the backslash below it.
            let escape = _mm256_or_si256(_mm256_slli_epi32::<24>(letter), splat32(0x5C_0000));
            lanes = _mm256_blendv_epi8(lanes, escape, stop);
            low = _mm256_or_si256(low, stop);
        }
        let index = _mm256_packs_epi32(low, three);
        let index = mask(_mm256_packs_epi16(index, index));
        let put = |v: __m128i, index: u32, out: *mut u8| {
            let index = index & 0xFF;
            let order = _mm_loadu_si128(ANY[index as usize].as_ptr().cast());
            _mm_storeu_si128(out.cast(), _mm_shuffle_epi8(v, order));
            (index & 0xF).count_ones() + 2 * (index >> 4).count_ones()
        };
        // Both halves are always written, to avoid an unpredictable branch.
        let more = put(_mm256_castsi256_si128(lanes), index, out);
        let out = out.add(n.min(4) + more as usize);
        let more = put(_mm256_extracti128_si256::<1>(lanes), index >> 16, out);
        out.add(n.saturating_sub(4) + more as usize)
    }
}

/// Writes 32-bit units as the body of a JSON string. Returns null if a unit is not a valid
/// character.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4<const ESCAPES: bool>(u: &[u32], mut out: *mut u8) -> *mut u8 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Up to 16 units are written without the loop, which spills its constants to the stack.
        let Some((start, mut rest)) = u.split_first_chunk() else {
            return few::<ESCAPES>(u, out);
        };
        out = eight::<ESCAPES>(load_eight(start), 8, out);
        if !out.is_null() && rest.len() <= 8 {
            return few::<ESCAPES>(rest, out);
        }
        while let Some((part, following)) = rest.split_first_chunk()
            && !out.is_null()
        {
            out = eight::<ESCAPES>(load_eight(part), 8, out);
            rest = following;
        }
        if out.is_null() {
            return out;
        }
        few::<ESCAPES>(rest, out)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_eight(u: &[u32; 8]) -> __m256i {
    // SAFETY: the array has 32 bytes.
    unsafe { _mm256_loadu_si256(u.as_ptr().cast()) }
}

/// Writes at most 8 units as JSON text. Returns null if a unit is not a valid character.
///
/// # Safety
/// The requirements of [`ucs4`] must be met.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn few<const ESCAPES: bool>(u: &[u32], out: *mut u8) -> *mut u8 {
    let indices = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let used = _mm256_cmpgt_epi32(splat32(u.len() as u32), indices);
    // No masked load: it is slow on the first Zen. The padding needs no escape.
    let letter = splat32(u32::from(b'a'));
    let chars = _mm256_blendv_epi8(letter, load_half(bytes(u)), used);
    // SAFETY: guaranteed by the caller.
    unsafe { eight::<ESCAPES>(chars, u.len(), out) }
}

/// Writes the first `n` of 8 units as JSON text. The others must be ASCII. Returns null for an
/// invalid unit.
///
/// # Safety
/// The requirements of [`ucs4`] must be met.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn eight<const ESCAPES: bool>(chars: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    // The XOR makes surrogates the lowest values. The addition makes them the highest (signed).
    let moved = _mm256_xor_si256(chars, splat32(0xD800));
    let moved = _mm256_add_epi32(moved, splat32(0x8000_0000 - 0x800));
    let bad = _mm256_cmpgt_epi32(moved, splat32(0x8000_0000 + (0x11_0000 - 0x800 - 1)));
    // SAFETY: the table has an entry for each 8-bit index, and 32 bytes fit.
    unsafe {
        // One branch for malformed units and escapes.
        if mask(_mm256_or_si256(bad, escapes32::<ESCAPES>(chars))) != 0 {
            if mask(bad) != 0 {
                return std::ptr::null_mut();
            }
            return part32::<ESCAPES>(chars, n, out);
        }
        let (lanes, two, three, four) = any(chars);
        let bits = |v| _mm256_movemask_ps(_mm256_castsi256_ps(v)) as u32;
        let three = bits(three);
        let low = bits(two) ^ three ^ bits(four);
        let put = |v: __m128i, index: u32, out: *mut u8| {
            let order = _mm_loadu_si128(ANY[index as usize].as_ptr().cast());
            _mm_storeu_si128(out.cast(), _mm_shuffle_epi8(v, order));
        };
        let more = |low: u32, three: u32| (low.count_ones() + 2 * three.count_ones()) as usize;
        let (low_4, three_4) = (low & 0xF, three & 0xF);
        put(_mm256_castsi256_si128(lanes), low_4 | three_4 << 4, out);
        let upper = _mm256_extracti128_si256::<1>(lanes);
        put(
            upper,
            low >> 4 | three & 0xF0,
            out.add(4 + more(low_4, three_4)),
        );
        out.add(n + more(low, three))
    }
}
