//! 16-bit and 32-bit units to the body of a JSON string.

use std::arch::x86_64::*;

use super::super::lanes::{ANY, any, five, three};
use super::super::start::{bytes, load_half, load_most, load_start};
use super::{letters, mask, one_by_one, put_lanes};

/// Units of 16 bits in a vector.
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

/// The 16-bit units that JSON escapes, all ones; none where it is not JSON that is written (so for the wider ones). All are below
/// U+0800.
#[inline]
#[target_feature(enable = "avx2")]
fn escapes16<const ESCAPES: bool>(v: __m256i) -> __m256i {
    if !ESCAPES {
        return _mm256_setzero_si256();
    }
    // With this bit exchanged a quote is the least behind the controls.
    let low = _mm256_cmpgt_epi16(splat16(0x21), _mm256_xor_si256(v, splat16(0x02)));
    _mm256_or_si256(low, _mm256_cmpeq_epi16(v, splat16(0x5C)))
}

/// The 32-bit units that JSON escapes, all ones; all are below U+110000.
#[inline]
#[target_feature(enable = "avx2")]
fn escapes32<const ESCAPES: bool>(v: __m256i) -> __m256i {
    if !ESCAPES {
        return _mm256_setzero_si256();
    }
    // With this bit exchanged a quote is the least behind the controls.
    let low = _mm256_cmpgt_epi32(splat32(0x21), _mm256_xor_si256(v, splat32(0x02)));
    _mm256_or_si256(low, _mm256_cmpeq_epi32(v, splat32(0x5C)))
}

/// 16-bit units of which none is half of a pair, as surrogates are, all ones.
#[inline]
#[target_feature(enable = "avx2")]
fn surrogates(v: __m256i) -> __m256i {
    _mm256_cmpeq_epi16(_mm256_and_si256(v, splat16(0xF800)), splat16(0xD800))
}

/// The first `n` units of a vector, and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn keep16(v: __m256i, n: usize) -> __m256i {
    let places = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm256_and_si256(v, _mm256_cmpgt_epi16(splat16(n as u16), places))
}

/// Whether a unit is escaped, or half of a pair.
#[inline]
#[target_feature(enable = "avx2")]
fn is_special(v: __m256i) -> bool {
    // With this bit exchanged a quote is the least behind the controls.
    let exchanged = _mm256_xor_si256(v, splat16(0x02));
    let low = _mm256_cmpeq_epi16(_mm256_min_epu16(exchanged, splat16(0x20)), exchanged);
    let escaped = _mm256_or_si256(low, _mm256_cmpeq_epi16(v, splat16(0x5C)));
    let special = _mm256_or_si256(escaped, surrogates(v));
    _mm256_testz_si256(special, special) == 0
}

/// Copies at most 32 units, where none is escaped and none a surrogate: the first part and the last, which may share some.
///
/// # Safety
/// `out` is writable for 32 units, apart from `u`.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) unsafe fn copy_ucs2(u: &[u16], out: *mut u16) -> bool {
    let (p, n) = (u.as_ptr(), u.len());
    debug_assert!(n <= 2 * UNITS);
    // SAFETY: both parts are inside u, and at the same places of `out`.
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

/// The bytes of units below U+0800, in the two halves of each lane, and which of them have two.
#[inline]
#[target_feature(enable = "avx2")]
fn two(units: __m256i) -> (__m256i, __m256i) {
    let lead = _mm256_srli_epi16::<6>(units);
    let last = _mm256_slli_epi16::<8>(_mm256_and_si256(units, splat16(0x3F)));
    let both = _mm256_or_si256(_mm256_or_si256(lead, last), splat16(0x80C0));
    let high = _mm256_cmpgt_epi16(units, splat16(0x7F));
    (_mm256_blendv_epi8(units, both, high), high)
}

/// Puts the first `n` of 16 lanes, of which those of `high` have two bytes, and none behind them.
///
/// # Safety
/// `out` is writable for 32 bytes.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn put_two(lanes: __m256i, high: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    let high = mask(_mm256_packs_epi16(high, high));
    // SAFETY: the duty of the caller.
    unsafe {
        let out = put_lanes(_mm256_castsi256_si128(lanes), high, n, out);
        let upper = _mm256_extracti128_si256::<1>(lanes);
        put_lanes(upper, high >> 16, n.saturating_sub(8), out)
    }
}

/// Puts 16 units from U+0800 on, no surrogates, of which the first `n` count.
///
/// # Safety
/// `out` is writable for 56 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put_three(units: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    let (most, rest) = three(units);
    // SAFETY: the last store ends 56 bytes behind the first.
    unsafe {
        _mm_storeu_si128(out.cast(), _mm256_castsi256_si128(most));
        _mm_storel_epi64(out.add(16).cast(), _mm256_castsi256_si128(rest));
        _mm_storeu_si128(out.add(24).cast(), _mm256_extracti128_si256::<1>(most));
        _mm_storel_epi64(out.add(40).cast(), _mm256_extracti128_si256::<1>(rest));
        out.add(3 * n)
    }
}

/// Puts at most 32 units, all below U+0800 and none escaped, or at most 21 that are all from there on and no surrogates; null where
/// they are others.
///
/// # Safety
/// `out` is writable for 64 bytes, apart from `u`.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_wide<const ESCAPES: bool>(u: &[u16], out: *mut u8) -> *mut u8 {
    // The first unit tells which script it is, and a script is guessed right.
    // SAFETY: room is the caller's duty.
    unsafe {
        match u.first() {
            Some(0x800..) => short_three(u, out),
            _ => short_two::<ESCAPES>(u, out),
        }
    }
}

/// The lanes of the first `n` units, of 16 from `from` on, all ones.
#[inline]
#[target_feature(enable = "avx2")]
fn there(n: usize, from: i16) -> __m256i {
    let places = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm256_cmpgt_epi16(
        splat16(n as u16),
        _mm256_add_epi16(places, _mm256_set1_epi16(from)),
    )
}

/// As [`short_wide`], of units below U+0800. Nothing branches on how many there are.
///
/// # Safety
/// As [`short_wide`].
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn short_two<const ESCAPES: bool>(u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    if n > 2 * UNITS {
        return std::ptr::null_mut();
    }
    let (a, b) = load_start(bytes(u));
    // Behind the end a letter of one byte, which is no escape.
    let letter = splat16(u16::from(b'a'));
    let a = _mm256_blendv_epi8(letter, a, there(n, 0));
    let b = _mm256_blendv_epi8(letter, b, there(n, 16));
    let stop = mask(_mm256_or_si256(
        escapes16::<ESCAPES>(a),
        escapes16::<ESCAPES>(b),
    ));
    if _mm256_testz_si256(_mm256_or_si256(a, b), splat16(0xF800)) == 0 || stop != 0 {
        return std::ptr::null_mut();
    }
    let ((a, high_a), (b, high_b)) = (two(a), two(b));
    // A pack works in each half.
    let high = mask(_mm256_packs_epi16(high_a, high_b));
    // SAFETY: four times 16 bytes at most, each 8 lanes as if there were as many; room is the caller's duty.
    unsafe {
        let end = out.add(n + high.count_ones() as usize);
        let out = put_lanes(_mm256_castsi256_si128(a), high, 8, out);
        let out = put_lanes(_mm256_extracti128_si256::<1>(a), high >> 16, 8, out);
        let out = put_lanes(_mm256_castsi256_si128(b), high >> 8, 8, out);
        put_lanes(_mm256_extracti128_si256::<1>(b), high >> 24, 8, out);
        end
    }
}

/// As [`short_wide`], of units from U+0800 on.
///
/// # Safety
/// As [`short_wide`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn short_three(u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    if n > MOST_OF_THREE {
        return std::ptr::null_mut();
    }
    let (a, b) = load_most(bytes(u));
    // Behind the end what is none of those that are looked for.
    let (least, places) = (splat16(0x800), there(n, 0));
    let a = _mm256_blendv_epi8(least, a, places);
    let places = _mm256_castsi256_si128(there(n, 16));
    let b = _mm_blendv_epi8(_mm256_castsi256_si128(least), b, places);
    // Surrogates are what is below U+0800 too, with the first one for zero.
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
    // SAFETY: room is the caller's duty.
    unsafe {
        put_three(a, UNITS, out);
        _mm_storeu_si128(out.add(3 * UNITS).cast(), five(b));
        out.add(3 * n)
    }
}

/// Units of three bytes that 64 bytes have room for, as they are put: 16 and five.
const MOST_OF_THREE: usize = 21;

/// Puts 16-bit units; null where one is a surrogate: what is at `out` is of no meaning then.
///
/// # Safety
/// `out` takes 6 bytes for each unit and 64 more, apart from the text.
#[inline(never)]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs2<const ESCAPES: bool>(u: &[u16], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load but the last ends inside u; room is the caller's duty.
    unsafe {
        while at + UNITS <= len {
            let v = _mm256_loadu_si256(p.add(at).cast());
            if at + 2 * UNITS <= len {
                // Two vectors of three bytes a unit: one branch.
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

/// Puts the first units of a vector, which are `u`, the others zeros; null where one is a surrogate.
///
/// # Safety
/// As [`ucs2`].
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn part16<const ESCAPES: bool>(v: __m256i, u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    // SAFETY: the duties are the caller's.
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

/// Puts the first `n` of 8 code points, of which those behind are zeros; none is malformed.
///
/// # Safety
/// `out` takes 6 bytes for each and 64 more.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn part32<const ESCAPES: bool>(chars: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    let (mut lanes, two, three, four) = any(chars);
    // How many bytes each lane has more than one: the low bits, and the high ones.
    let mut low = _mm256_xor_si256(_mm256_xor_si256(two, three), four);
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let there = _mm256_cmpgt_epi32(splat32(n as u32), places);
    let stop = _mm256_and_si256(escapes32::<ESCAPES>(chars), there);
    // SAFETY: the table has an entry for each index of 8 bits; room is the caller's duty.
    unsafe {
        if mask(stop) != 0 {
            let letter = _mm256_and_si256(letters(chars), stop);
            let none = _mm256_cmpeq_epi32(letter, _mm256_setzero_si256());
            if _mm256_testz_si256(none, stop) == 0 {
                let mut all = [0_u32; 8];
                _mm256_storeu_si256(all.as_mut_ptr().cast(), chars);
                return one_by_one(all[..n].iter().copied(), out);
            }
            // The backslash stands in the byte before that of the character, which is the highest.
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
        // Both always: whether there are more than four is not to be guessed.
        let more = put(_mm256_castsi256_si128(lanes), index, out);
        let out = out.add(n.min(4) + more as usize);
        let more = put(_mm256_extracti128_si256::<1>(lanes), index >> 16, out);
        out.add(n.saturating_sub(4) + more as usize)
    }
}

/// Puts 32-bit units; null where one is a surrogate or past U+10FFFF.
///
/// # Safety
/// `out` takes 6 bytes for each unit and 64 more, apart from the text.
#[inline(never)]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4<const ESCAPES: bool>(u: &[u32], mut out: *mut u8) -> *mut u8 {
    // SAFETY: room is the caller's duty.
    unsafe {
        // Not in the loop, which brings all constants to registers first, and from there to the stack: most texts have one step or
        // two.
        let Some((start, mut rest)) = u.split_first_chunk() else {
            return few::<ESCAPES>(u, out);
        };
        out = eight::<ESCAPES>(load_eight(start), 8, out);
        if !out.is_null() && rest.len() <= 8 {
            return few::<ESCAPES>(rest, out);
        }
        while let Some((part, behind)) = rest.split_first_chunk()
            && !out.is_null()
        {
            out = eight::<ESCAPES>(load_eight(part), 8, out);
            rest = behind;
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
    // SAFETY: 32 bytes.
    unsafe { _mm256_loadu_si256(u.as_ptr().cast()) }
}

/// As [`ucs4`], of at most 8.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn few<const ESCAPES: bool>(u: &[u32], out: *mut u8) -> *mut u8 {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let there = _mm256_cmpgt_epi32(splat32(u.len() as u32), places);
    // No load under a mask: it takes 34 clocks on the first Zen. Behind the end letters of one byte, which are no escapes.
    let letter = splat32(u32::from(b'a'));
    let chars = _mm256_blendv_epi8(letter, load_half(bytes(u)), there);
    // SAFETY: room is the caller's duty.
    unsafe { eight::<ESCAPES>(chars, u.len(), out) }
}

/// Puts the first `n` of 8 units, of which those behind have one byte; null where one is a surrogate or past U+10FFFF.
///
/// # Safety
/// As [`ucs4`].
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn eight<const ESCAPES: bool>(chars: __m256i, n: usize, out: *mut u8) -> *mut u8 {
    // Surrogates become the least, and what is past stays past, signed.
    let moved = _mm256_xor_si256(chars, splat32(0xD800));
    let moved = _mm256_add_epi32(moved, splat32(0x8000_0000 - 0x800));
    let bad = _mm256_cmpgt_epi32(moved, splat32(0x8000_0000 + (0x11_0000 - 0x800 - 1)));
    // SAFETY: the table has an entry for each index of 8 bits; 32 bytes at most; room is the caller's duty.
    unsafe {
        // One branch.
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
