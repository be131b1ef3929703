//! Finds the end of a string, a number or white space in JSON text. The functions classify 64 bytes
//! at a time, in two vectors.
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;

pub(in crate::arch) use super::copy::copy as copy_half;
use super::json::{escapes8, splat8};
use super::out::SQUEEZE;
use super::short_loads::{bytes, load_half, load_start};
use crate::arch::family::{Look, UnescapedLength, escaped};
use crate::arch::scalar;

/// The number of bytes in one classification.
const BYTES: usize = 64;

/// Returns the highest bit of each byte as a mask. `a` has the low 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(a: __m256i, b: __m256i) -> u64 {
    let of = |v| u64::from(_mm256_movemask_epi8(v) as u32);
    of(a) | of(b) << 32
}

/// Returns a mask with the lowest `n` bits set, at most 64.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn first(n: usize) -> u64 {
    _bzhi_u64(u64::MAX, n.min(64) as u32)
}

/// Loads 64 bytes as two vectors.
///
/// # Safety
/// `p` must be readable for 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(p: *const u8) -> (__m256i, __m256i) {
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        (
            _mm256_loadu_si256(p.cast()),
            _mm256_loadu_si256(p.add(32).cast()),
        )
    }
}

/// Returns the number of bytes before the first JSON escape. Also returns `true` if all these bytes
/// are ASCII.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(in crate::arch) fn plain_u8(rest: &[u8]) -> (usize, bool) {
    let mut at = 0;
    let mut any = _mm256_setzero_si256();
    loop {
        let (a, b) = load_start(&rest[at..]);
        let special = bits(escapes8(a), escapes8(b)) | !first(rest.len() - at);
        if special != 0 {
            let high = bits(a, b) & _blsmsk_u64(special) >> 1;
            let high = high | bits(any, any);
            return (at + special.trailing_zeros() as usize, high == 0);
        }
        any = _mm256_or_si256(any, _mm256_or_si256(a, b));
        at += BYTES;
    }
}

/// Returns the number of 16-bit units before the first JSON escape. Also returns `true` if all
/// these units are ASCII.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(in crate::arch) fn plain_u16(rest: &[u16]) -> (usize, bool) {
    const UNITS: usize = 16;
    let splat = |u: u16| _mm256_set1_epi16(u as i16);
    let mut at = 0;
    let mut any = 0;
    loop {
        let v = load_half(bytes(&rest[at..]));
        let zero = _mm256_setzero_si256();
        let low = _mm256_cmpeq_epi16(_mm256_subs_epu16(v, splat(0x1F)), zero);
        let quote = _mm256_cmpeq_epi16(v, splat(0x22));
        let special = _mm256_or_si256(low, quote);
        let special = _mm256_or_si256(special, _mm256_cmpeq_epi16(v, splat(0x5C)));
        let special = _mm256_movemask_epi8(special) as u32 | !first(2 * (rest.len() - at)) as u32;
        let wide = _mm256_and_si256(v, splat(0xFF80));
        let wide = !_mm256_movemask_epi8(_mm256_cmpeq_epi16(wide, zero)) as u32;
        if special != 0 {
            let any = any | wide & _blsmsk_u32(special) >> 1;
            return (at + special.trailing_zeros() as usize / 2, any == 0);
        }
        any |= wide;
        at += UNITS;
    }
}

/// Returns the number of 32-bit units before the first JSON escape. Also returns `true` if all
/// these units are ASCII.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(in crate::arch) fn plain_u32(rest: &[u32]) -> (usize, bool) {
    const UNITS: usize = 8;
    let splat = |u: u32| _mm256_set1_epi32(u as i32);
    let mut at = 0;
    let mut any = 0;
    loop {
        let v = load_half(bytes(&rest[at..]));
        // Unsigned comparison: a unit is at most 0x1F if it equals its minimum with 0x1F.
        let low = _mm256_cmpeq_epi32(_mm256_min_epu32(v, splat(0x1F)), v);
        let quote = _mm256_cmpeq_epi32(v, splat(0x22));
        let special = _mm256_or_si256(low, quote);
        let special = _mm256_or_si256(special, _mm256_cmpeq_epi32(v, splat(0x5C)));
        let special = _mm256_movemask_epi8(special) as u32 | !first(4 * (rest.len() - at)) as u32;
        let wide = _mm256_and_si256(v, splat(!0x7F));
        let wide = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
        let wide = !_mm256_movemask_epi8(wide) as u32;
        if special != 0 {
            let any = any | wide & _blsmsk_u32(special) >> 1;
            return (at + special.trailing_zeros() as usize / 4, any == 0);
        }
        any |= wide;
        at += UNITS;
    }
}

/// Returns 0xFF for each byte of JSON white space, and 0 for other bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn blanks(v: __m256i) -> __m256i {
    // For each low half of a byte, the table has the white space with this low half. A byte from
    // 0x80 on yields zero.
    let of = _mm_setr_epi8(
        b' ' as i8,
        -1,
        -1,
        -1,
        -1,
        -1,
        -1,
        -1,
        -1,
        b'\t' as i8,
        b'\n' as i8,
        -1,
        -1,
        b'\r' as i8,
        -1,
        -1,
    );
    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(of), v), v)
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) fn blank_u8(rest: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let (a, b) = load_start(&rest[at..]);
        let other = !(bits(blanks(a), blanks(b)) & first(rest.len() - at));
        if other != 0 {
            return at + other.trailing_zeros() as usize;
        }
        at += BYTES;
    }
}

/// Classifies the first 64 bytes of `rest`. Positions after the end of `rest` count as special.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) fn look(rest: &[u8]) -> Look {
    match rest.first_chunk::<BYTES>() {
        Some(all) => {
            // SAFETY: the array has 64 bytes.
            let (a, b) = unsafe { load(all.as_ptr()) };
            look_at(a, b)
        }
        None => {
            let (a, b) = load_start(rest);
            let (look, here) = (look_at(a, b), first(rest.len()));
            Look {
                special: look.special | !here,
                high: look.high & here,
                digit: look.digit & here,
                blank: look.blank & here,
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn look_at(a: __m256i, b: __m256i) -> Look {
    // After the shift, the digits are the ten lowest signed values.
    let digits = |v| {
        let moved = _mm256_add_epi8(v, splat8(0x80 - b'0'));
        _mm256_cmpgt_epi8(splat8(0x80 + 10), moved)
    };
    Look {
        special: bits(escapes8(a), escapes8(b)),
        high: bits(a, b),
        digit: bits(digits(a), digits(b)),
        blank: bits(blanks(a), blanks(b)),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn lane_indices() -> __m256i {
    _mm256_setr_epi8(
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31,
    )
}

/// Returns the integer of at most 19 digits from position `at` on. `n_before` digits precede the
/// decimal point, and `n_after` digits follow it. Without a point, `n_after` is 0.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn digits(text: &[u8], at: usize, n_before: u32, n_after: u32) -> u64 {
    let n = n_before + n_after;
    let n_points = usize::from(n_after > 0);
    let end = at + n as usize + n_points;
    let Some(from) = end.checked_sub(33) else {
        return scalar::digits(&text[at..], n_before, n_after);
    };
    let all = &text[from..end];
    // SAFETY: `all` has 33 bytes.
    let (after, before) = unsafe {
        let p = all.as_ptr();
        (
            _mm256_loadu_si256(p.add(1).cast()),
            _mm256_loadu_si256(p.add(1 - n_points).cast()),
        )
    };
    let last = |n: u32| _mm256_cmpgt_epi8(lane_indices(), _mm256_set1_epi8(31 - n as i8));
    let digits = _mm256_blendv_epi8(before, after, last(n_after));
    let digits = _mm256_sub_epi8(digits, splat8(b'0'));
    number(_mm256_and_si256(digits, last(n)))
}

/// Returns the number of 32 decimal digits. Only the last 24 may be nonzero.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn number(digits: __m256i) -> u64 {
    let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010A));
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
    let fours = _mm256_packus_epi32(fours, fours);
    let eights = _mm256_madd_epi16(fours, _mm256_set1_epi32(0x0001_2710));
    let high = _mm256_extract_epi64::<0>(eights) as u64;
    let low = _mm256_extract_epi64::<2>(eights) as u64;
    let low = (low & 0xFFFF_FFFF) * 100_000_000 + (low >> 32);
    (high >> 32)
        .wrapping_mul(10_000_000_000_000_000)
        .wrapping_add(low)
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) fn closing_quote_u8(rest: &[u8]) -> Option<usize> {
    let (mut at, mut carry) = (0, 0);
    while at < rest.len() {
        let (a, b) = load_start(&rest[at..]);
        let here = first(rest.len() - at);
        let is = |byte| {
            bits(
                _mm256_cmpeq_epi8(a, splat8(byte)),
                _mm256_cmpeq_epi8(b, splat8(byte)),
            )
        };
        let backslashes = is(b'\\') & here;
        let escaped = escaped(backslashes, &mut carry);
        let special = bits(escapes8(a), escapes8(b));
        let quotes = is(b'"');
        // The other special bytes are control characters.
        let end = special & !(quotes & escaped) & !backslashes & here;
        if end != 0 {
            let n = end.trailing_zeros();
            return (quotes >> n & 1 != 0).then_some(at + n as usize);
        }
        at += BYTES;
    }
    None
}

/// Converts escape letters to their characters, such as `n` to a line feed. Other bytes become 0.
#[inline]
#[target_feature(enable = "avx2")]
fn letters(v: __m256i) -> __m256i {
    let is = |byte| _mm256_cmpeq_epi8(v, splat8(byte));
    let own = _mm256_or_si256(is(b'"'), is(b'\\'));
    let own = _mm256_and_si256(_mm256_or_si256(own, is(b'/')), v);
    // Looks up the letters `top` to `top + 15` by their low half. For other bytes, the index has
    // the highest bit set, which yields zero.
    let of = |top: u8, all: __m128i| {
        let index = _mm256_adds_epu8(_mm256_xor_si256(v, splat8(top)), splat8(0x70));
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), index)
    };
    let b_to_n = _mm_setr_epi8(0, 0, 8, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 10, 0);
    let r_to_t = _mm_setr_epi8(0, 0, 13, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    let controls = _mm256_or_si256(of(0x60, b_to_n), of(0x70, r_to_t));
    _mm256_or_si256(own, controls)
}

/// Expands each of 32 bits to a byte of all ones or zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(bits: u32) -> __m256i {
    let all = _mm256_set1_epi32(bits as i32);
    let order = _mm256_setr_epi64x(
        0,
        0x0101_0101_0101_0101,
        0x0202_0202_0202_0202,
        0x0303_0303_0303_0303,
    );
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let each = _mm256_shuffle_epi8(all, order);
    _mm256_cmpeq_epi8(_mm256_and_si256(each, bit), bit)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(in crate::arch) fn unescape_u8(body: &[u8], out: &mut [u8]) -> UnescapedLength {
    let (len, capacity) = (body.len(), out.len());
    let (mut at, mut n_written) = (0, 0);
    while at < len {
        if capacity - n_written < BYTES {
            // Near the end of the destination, bytes are converted one at a time.
            let rest = scalar::unescape_u8(&body[at..], &mut out[n_written..]);
            at += rest.n_read;
            n_written += rest.n_written;
            break;
        }
        let n = (len - at).min(BYTES);
        let here = first(n);
        let (a, b) = load_start(&body[at..]);
        let is = |byte| {
            bits(
                _mm256_cmpeq_epi8(a, splat8(byte)),
                _mm256_cmpeq_epi8(b, splat8(byte)),
            )
        };
        let backslashes = is(b'\\') & here;
        // SAFETY: `out` has space for 64 bytes from `n_written` on.
        let to = unsafe { out.as_mut_ptr().add(n_written) };
        if backslashes == 0 {
            // SAFETY: both vectors are inside these 64 bytes.
            unsafe {
                _mm256_storeu_si256(to.cast(), a);
                _mm256_storeu_si256(to.add(32).cast(), b);
            }
            at += n;
            n_written += n;
            continue;
        }
        let mut carry = 0;
        let escaped = escaped(backslashes, &mut carry) & here;
        let (letters_a, letters_b) = (letters(a), letters(b));
        let zero = _mm256_setzero_si256();
        let none = bits(
            _mm256_cmpeq_epi8(letters_a, zero),
            _mm256_cmpeq_epi8(letters_b, zero),
        );
        let wrong = none & escaped;
        // The backslashes that start an escape.
        let starts = backslashes & !escaped;
        // The next iteration processes an escape that crosses the end of the vectors.
        let mut done = here & !(starts & 1 << (n - 1));
        if wrong != 0 {
            // Bytes from the first invalid escape on are not processed.
            done &= first(wrong.trailing_zeros() as usize - 1);
        }
        let both_a = _mm256_blendv_epi8(a, letters_a, spread(escaped as u32));
        let both_b = _mm256_blendv_epi8(b, letters_b, spread((escaped >> 32) as u32));
        let keep = done & !starts;
        // SAFETY: each call writes at most 32 bytes, inside the 64 bytes at `to`.
        unsafe {
            let to = squeeze(both_a, keep as u32, to);
            squeeze(both_b, (keep >> 32) as u32, to);
        }
        let n_done = done.count_ones() as usize;
        at += n_done;
        n_written += keep.count_ones() as usize;
        if wrong != 0 || n_done == 0 {
            break;
        }
    }
    UnescapedLength {
        n_read: at,
        n_written,
    }
}

/// Writes the bytes selected by `keep` without gaps. Returns the address after the last byte.
///
/// # Safety
/// `out` must be writable for 32 bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn squeeze(v: __m256i, keep: u32, out: *mut u8) -> *mut u8 {
    let mut to = out;
    let mut put = |v: __m128i, keep: u32| {
        let order = SQUEEZE[(keep & 0xFF) as usize].as_ptr();
        // SAFETY: the table has 8 bytes for each mask. The four stores of 8 bytes are inside the 32
        // bytes.
        unsafe {
            let v = _mm_shuffle_epi8(v, _mm_loadl_epi64(order.cast()));
            _mm_storel_epi64(to.cast(), v);
            to = to.add((keep & 0xFF).count_ones() as usize);
        }
    };
    let (lower, upper) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    put(lower, keep);
    put(_mm_unpackhi_epi64(lower, lower), keep >> 8);
    put(upper, keep >> 16);
    put(_mm_unpackhi_epi64(upper, upper), keep >> 24);
    to
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) fn starts_with(rest: &[u8], text: &[u8]) -> bool {
    if rest.len() < text.len() {
        return false;
    }
    if text.len() > 32 {
        return rest.starts_with(text);
    }
    let same = _mm256_cmpeq_epi8(load_half(rest), load_half(text));
    _bzhi_u32(!_mm256_movemask_epi8(same) as u32, text.len() as u32) == 0
}
