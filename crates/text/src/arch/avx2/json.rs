//! Converts units of any width to the body of a JSON string. If `ESCAPES` is `false`, nothing is
//! escaped.
//!
//! Each character is encoded in its own vector lane. A byte shuffle then removes the unused bytes.
//! A six-byte escape needs a slower path.
//!
//! Every store writes a whole vector. The destination needs 64 bytes more than the longest result.
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;

use super::lanes::TWO;
use super::short_loads::{is_readable_behind, load, load_half};
use crate::arch::scalar::{
    JSON_FORMS, json_bytes_one_by_one as bytes_one_by_one, json_one_by_one as one_by_one,
};

mod wide;

pub(in crate::arch) use wide::{copy_ucs2, short_wide, ucs2, ucs4};

const BYTES: usize = 32;

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn splat8(b: u8) -> __m256i {
    _mm256_set1_epi8(b as i8)
}

/// Returns a vector with ones in the bytes that must be escaped in JSON, otherwise zeros.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn escapes8(v: __m256i) -> __m256i {
    // After this XOR, control characters and the quote are the lowest bytes (signed).
    let moved = _mm256_xor_si256(v, splat8(0x82));
    let low = _mm256_cmpgt_epi8(splat8(0x21 ^ 0x80), moved);
    _mm256_or_si256(low, _mm256_cmpeq_epi8(v, splat8(b'\\')))
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask(v: __m256i) -> u32 {
    _mm256_movemask_epi8(v) as u32
}

/// Returns the letter of each byte's two-byte JSON escape. 0 for all other bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn letters(v: __m256i) -> __m256i {
    let of = _mm_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, b'b' as i8, b't' as i8, b'n' as i8, 0, b'f' as i8, b'r' as i8, 0, 0,
    );
    // From 0x10 on, the index has its highest bit set, and the shuffle yields zero.
    let index = _mm256_adds_epu8(v, splat8(0x70));
    let controls = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(of), index);
    let own = _mm256_cmpgt_epi8(v, splat8(0x1F));
    _mm256_or_si256(controls, _mm256_and_si256(own, v))
}

/// Copies at most 64 bytes of UTF-8. Returns the end of the output, or null if a byte must be
/// escaped.
///
/// # Safety
/// `out` must be writable for 64 bytes, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) unsafe fn plain<const ESCAPES: bool>(u: &[u8], out: *mut u8) -> *mut u8 {
    let (p, n) = (u.as_ptr(), u.len());
    // SAFETY: both loads of a text longer than a vector are inside `u`. `out` is writable for 64
    // bytes.
    unsafe {
        if n <= BYTES {
            let v = load_half(u);
            _mm256_storeu_si256(out.cast(), v);
            if ESCAPES && _bzhi_u32(mask(escapes8(v)), n as u32) != 0 {
                return std::ptr::null_mut();
            }
        } else {
            let v = _mm256_loadu_si256(p.cast());
            let last = _mm256_loadu_si256(p.add(n - BYTES).cast());
            _mm256_storeu_si256(out.cast(), v);
            _mm256_storeu_si256(out.add(n - BYTES).cast(), last);
            if ESCAPES && mask(_mm256_or_si256(escapes8(v), escapes8(last))) != 0 {
                return std::ptr::null_mut();
            }
        }
        out.add(n)
    }
}

/// Writes the low bytes of the first `n` of 8 lanes, and the high bytes that `high` selects. `high`
/// must not select other lanes.
///
/// # Safety
/// `out` must be writable for 16 bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn put_lanes(v: __m128i, high: u32, n: usize, out: *mut u8) -> *mut u8 {
    // SAFETY: the table has an entry for each mask of 8 bits, and `out` is writable for 16 bytes.
    unsafe {
        let high = high & 0xFF;
        let order = _mm_loadu_si128(TWO[high as usize].as_ptr().cast());
        _mm_storeu_si128(out.cast(), _mm_shuffle_epi8(v, order));
        out.add(n.min(8) + high.count_ones() as usize)
    }
}

/// Writes the first `n` characters of a vector. `high` selects the characters with a byte in
/// `second`.
///
/// # Safety
/// `out` must be writable for 64 bytes.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn put_pairs(
    first: __m256i,
    second: __m256i,
    high: u32,
    n: usize,
    mut out: *mut u8,
) -> *mut u8 {
    let low = _mm256_unpacklo_epi8(first, second);
    let up = _mm256_unpackhi_epi8(first, second);
    let high = _bzhi_u32(high, n as u32);
    let n_from = |at: usize| n.saturating_sub(at);
    // SAFETY: each call writes 16 bytes and advances the address by at most 16.
    unsafe {
        out = put_lanes(_mm256_castsi256_si128(low), high, n, out);
        out = put_lanes(_mm256_castsi256_si128(up), high >> 8, n_from(8), out);
        let (low, up) = (
            _mm256_extracti128_si256::<1>(low),
            _mm256_extracti128_si256::<1>(up),
        );
        out = put_lanes(low, high >> 16, n_from(16), out);
        put_lanes(up, high >> 24, n_from(24), out)
    }
}

/// Returns the first and second UTF-8 bytes of Latin-1 characters. ASCII is in the first vector.
#[inline]
#[target_feature(enable = "avx2")]
fn latin1_pairs(v: __m256i) -> (__m256i, __m256i) {
    let upper = _mm256_cmpgt_epi8(splat8(0xC0), v);
    // -1 for lead byte 0xC2, otherwise 0 (0xC3).
    let lead = _mm256_add_epi8(splat8(0xC3), upper);
    let first = _mm256_blendv_epi8(v, lead, v);
    (first, _mm256_and_si256(v, splat8(0xBF)))
}

/// Writes at most 32 bytes of Latin-1 as UTF-8. Returns the end of the output, or null for a longer
/// text or an escape.
///
/// # Safety
/// `out` must be writable for 64 bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_latin1<const ESCAPES: bool>(u: &[u8], out: *mut u8) -> *mut u8 {
    let n = u.len();
    let v = load_half(u);
    if n > BYTES || (ESCAPES && _bzhi_u32(mask(escapes8(v)), n as u32) != 0) {
        return std::ptr::null_mut();
    }
    let (first, second) = latin1_pairs(v);
    // SAFETY: guaranteed by the caller.
    unsafe { put_pairs(first, second, mask(v), n, out) }
}

/// Writes `u` as the body of a JSON string. `u` is Latin-1 unless `as_is` is `true`. Returns the
/// end of the output.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1<const ESCAPES: bool>(
    u: &[u8],
    as_is: bool,
    mut out: *mut u8,
) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load through `p` ends inside `u`, and `out` has space for the longest result.
    unsafe {
        if ESCAPES && as_is && len <= MOST_ESCAPED && is_readable_behind(u) {
            return escaped(u, out);
        }
        // One branch for two vectors.
        while at + 2 * BYTES <= len {
            let a = _mm256_loadu_si256(p.add(at).cast());
            let b = _mm256_loadu_si256(p.add(at + BYTES).cast());
            let stop = if ESCAPES {
                _mm256_or_si256(escapes8(a), escapes8(b))
            } else {
                _mm256_setzero_si256()
            };
            let high = if as_is {
                _mm256_setzero_si256()
            } else {
                _mm256_or_si256(a, b)
            };
            if mask(_mm256_or_si256(stop, high)) != 0 {
                break;
            }
            _mm256_storeu_si256(out.cast(), a);
            _mm256_storeu_si256(out.add(BYTES).cast(), b);
            out = out.add(2 * BYTES);
            at += 2 * BYTES;
        }
        if ESCAPES && as_is && is_readable_behind(&u[at..]) {
            return escaped(&u[at..], out);
        }
        while at < len {
            let rest = &u[at..len.min(at + BYTES)];
            let v = load_half(rest);
            let stop = if ESCAPES {
                escapes8(v)
            } else {
                _mm256_setzero_si256()
            };
            out = part(v, stop, rest, as_is, out);
            at += BYTES;
        }
    }
    out
}

/// In a text of more bytes, another loop copies the bytes before the first escape.
const MOST_ESCAPED: usize = 320;

/// Writes ASCII or UTF-8 as the body of a JSON string. No branch depends on a single escape.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`. The 64 bytes
/// after `u` must be readable.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn escaped(u: &[u8], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: no load starts more than 32 bytes after the end of `u`. `out` has space for 6 bytes
    // for each remaining byte, and for 64 bytes more. An iteration with at most one escape stores
    // 32 bytes, the escape, and 32 bytes.
    unsafe {
        while at < len {
            let n = (len - at).min(BYTES);
            let v = load(p.wrapping_add(at));
            let stop = escapes8(v);
            let bits = _bzhi_u32(mask(stop), n as u32);
            let n_plain = (bits.trailing_zeros() as usize).min(n);
            let escape = JSON_FORMS[usize::from(u[(at + n_plain).min(len - 1)])];
            if _blsr_u32(bits) == 0 {
                _mm256_storeu_si256(out.cast(), v);
                let after_escape = escape.write(out.add(n_plain));
                let v = load(p.wrapping_add(at + n_plain + 1));
                _mm256_storeu_si256(after_escape.cast(), v);
                let n_more = if bits == 0 { 0 } else { escape.len() - 1 };
                out = out.add(n + n_more);
            } else {
                out = part(v, stop, &u[at..at + n], true, out);
            }
            at += n;
        }
    }
    out
}

/// Writes `u`, the first bytes of `v`. `stop` marks the bytes to escape. If `as_is` is `true`,
/// non-ASCII bytes are copied.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn part(v: __m256i, stop: __m256i, u: &[u8], as_is: bool, out: *mut u8) -> *mut u8 {
    let n = u.len();
    let here = |m: u32| _bzhi_u32(m, n as u32);
    let stops = here(mask(stop));
    let high = if as_is { 0 } else { here(mask(v)) };
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        if stops | high == 0 {
            _mm256_storeu_si256(out.cast(), v);
            return out.add(n);
        }
        let letter = letters(v);
        let none = mask(_mm256_cmpeq_epi8(letter, _mm256_setzero_si256()));
        if stops & none != 0 {
            return bytes_one_by_one(u, as_is, out);
        }
        let (first, second) = if high == 0 {
            (v, letter)
        } else {
            let (first, second) = latin1_pairs(v);
            (first, _mm256_blendv_epi8(second, letter, stop))
        };
        let first = _mm256_blendv_epi8(first, splat8(b'\\'), stop);
        put_pairs(first, second, stops | high, n, out)
    }
}
