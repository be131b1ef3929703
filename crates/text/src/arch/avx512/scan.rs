//! Scans text, and copies text up to the first unit that does not fit.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::{BYTES, first, load, load_first, splat8, splat16, store, store_first};
use crate::Kind;
use crate::arch::kernel::{Scan8, Scan16};

#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
pub(in crate::arch) fn is_ascii(src: &[u8]) -> bool {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut at = 0;
        // Four vectors per iteration. The loop ends at the first non-ASCII byte.
        while at + 4 * BYTES <= len {
            let p = p.add(at);
            let a = _mm512_or_si512(load(p), load(p.add(BYTES)));
            let b = _mm512_or_si512(load(p.add(2 * BYTES)), load(p.add(3 * BYTES)));
            if _mm512_movepi8_mask(_mm512_or_si512(a, b)) != 0 {
                return false;
            }
            at += 4 * BYTES;
        }
        let mut any = _mm512_setzero_si512();
        while at + BYTES <= len {
            any = _mm512_or_si512(any, load(p.add(at)));
            at += BYTES;
        }
        any = _mm512_or_si512(any, load_first(p.add(at), len - at));
        _mm512_movepi8_mask(any) == 0
    }
}

/// Returns the largest byte of `src`, and the number of bytes that start a character. `src` may be
/// malformed.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn scan_utf8(src: &[u8]) -> Scan8 {
    let (p, len) = (src.as_ptr(), src.len());
    let starts = |v| u64::from(_mm512_cmpgt_epi8_mask(v, splat8(0xBF)).count_ones());
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut max, mut n_chars) = (_mm512_setzero_si512(), 0);
        let mut at = 0;
        while at + BYTES <= len {
            let v = load(p.add(at));
            max = _mm512_max_epu8(max, v);
            n_chars += starts(v);
            at += BYTES;
        }
        if at < len {
            let v = load_first(p.add(at), len - at);
            max = _mm512_max_epu8(max, v);
            // Subtracts the zeros after the text, which were counted as characters.
            n_chars += starts(v) - (BYTES - (len - at)) as u64;
        }
        Scan8 {
            max: max_u8(max),
            n_chars: n_chars as usize,
        }
    }
}

#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn max_u8(v: __m512i) -> u8 {
    let v = _mm256_max_epu8(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64::<1>(v));
    let v = _mm_max_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let v = _mm_max_epu8(v, _mm_unpackhi_epi64(v, v));
    let v = _mm_max_epu8(v, _mm_srli_epi64::<32>(v));
    let v = _mm_max_epu8(v, _mm_srli_epi64::<16>(v));
    let v = _mm_max_epu8(v, _mm_srli_epi64::<8>(v));
    _mm_cvtsi128_si32(v) as u8
}

/// Returns a mask of the surrogates.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn surrogates(v: __m512i) -> u32 {
    _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, splat16(0xF800)), splat16(0xD800))
}

#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn scan_u16(src: &[u16]) -> Scan16 {
    let (p, len) = (src.as_ptr().cast::<u8>(), 2 * src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut or, mut found) = (_mm512_setzero_si512(), 0);
        let mut at = 0;
        while at + BYTES <= len {
            let v = load(p.add(at));
            or = _mm512_or_si512(or, v);
            found |= surrogates(v);
            at += BYTES;
        }
        let v = load_first(p.add(at), len - at);
        or = _mm512_or_si512(or, v);
        found |= surrogates(v);
        let any = |bits: u16| _mm512_test_epi16_mask(or, splat16(bits)) != 0;
        let kind = if any(0xFF00) {
            Kind::Ucs2
        } else if any(0x80) {
            Kind::Latin1
        } else {
            Kind::Ascii
        };
        Scan16 {
            kind,
            surrogate: found != 0,
        }
    }
}

#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn find_surrogate(src: &[u16]) -> usize {
    find(src, |v| u64::from(surrogates(v)))
}

#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn find_high(src: &[u8]) -> usize {
    find(src, |v| _mm512_movepi8_mask(v))
}

#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn find_escape_u8(src: &[u8]) -> usize {
    find(src, |v| escapes(v))
}

#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn find_escape_u16(src: &[u16]) -> usize {
    find(src, |v| {
        let control = _mm512_cmplt_epu16_mask(v, splat16(0x20));
        let quote = _mm512_cmpeq_epi16_mask(v, splat16(u16::from(b'"')));
        let backslash = _mm512_cmpeq_epi16_mask(v, splat16(u16::from(b'\\')));
        u64::from(control | quote | backslash)
    })
}

/// Returns the index of the first unit that `wanted` selects, otherwise `src.len()`. `wanted` may
/// receive zeros after the text.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn find<U>(src: &[U], wanted: impl Fn(__m512i) -> u64) -> usize {
    let (p, len) = (src.as_ptr().cast::<u8>(), size_of_val(src));
    // SAFETY: every load ends inside src.
    unsafe {
        let mut at = 0;
        while at + BYTES <= len {
            let found = wanted(load(p.add(at)));
            if found != 0 {
                return at / size_of::<U>() + found.trailing_zeros() as usize;
            }
            at += BYTES;
        }
        let found = wanted(load_first(p.add(at), len - at));
        (at / size_of::<U>() + found.trailing_zeros() as usize).min(src.len())
    }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn escapes(v: __m512i) -> u64 {
    let control = _mm512_cmplt_epu8_mask(v, splat8(0x20));
    let quote = _mm512_cmpeq_epi8_mask(v, splat8(b'"'));
    control | quote | _mm512_cmpeq_epi8_mask(v, splat8(b'\\'))
}

/// Packs two vectors of 16-bit units, all below 0x100, into one of bytes, in order.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn narrow(lo: __m512i, hi: __m512i) -> __m512i {
    // `packus` packs each 128-bit quarter separately, so its halves are reordered.
    let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_permutexvar_epi64(order, _mm512_packus_epi16(lo, hi))
}

/// Copies the low byte of each 16-bit unit.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have at least as many units as `src`.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn narrow_u16(src: &[u16], out: &mut [MaybeUninit<u8>]) {
    let dst = out.as_mut_ptr().cast::<u8>();
    let (p, len) = (src.as_ptr(), src.len());
    let low = splat16(0xFF);
    let narrow = |lo, hi| narrow(_mm512_and_si512(lo, low), _mm512_and_si512(hi, low));
    // SAFETY: every load ends inside src, and one byte is written per unit.
    unsafe {
        let mut at = 0;
        while at + BYTES <= len {
            let lo = load(p.add(at).cast());
            let hi = load(p.add(at + BYTES / 2).cast());
            store(dst.add(at), narrow(lo, hi));
            at += BYTES;
        }
        if at < len {
            let (lo, hi) = load_two(p.add(at), len - at);
            store_first(dst.add(at), narrow(lo, hi), len - at);
        }
    }
}

/// Returns the first `n` units at `p` (at most 64) in two vectors, followed by zeros.
///
/// # Safety
/// `p` must be readable for `n` units.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn load_two(p: *const u16, n: usize) -> (__m512i, __m512i) {
    // SAFETY: `n` units are readable, and no load ends after them.
    unsafe {
        let lo = load_first(p.cast(), 2 * n);
        let hi = load_first(
            p.wrapping_add(BYTES / 2).cast(),
            (2 * n).saturating_sub(BYTES),
        );
        (lo, hi)
    }
}

/// Copies the bytes before the first JSON escape. Returns their number, and `true` if one is not
/// ASCII.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have at least as many bytes as `src`.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn copy_to_escape(
    src: &[u8],
    out: &mut [MaybeUninit<u8>],
) -> (usize, bool) {
    let dst = out.as_mut_ptr().cast::<u8>();
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src, and one byte is written per byte.
    unsafe {
        let mut high = 0;
        let mut at = 0;
        while at + BYTES <= len {
            let v = load(p.add(at));
            store(dst.add(at), v);
            let (stop, over) = (escapes(v), _mm512_movepi8_mask(v));
            if stop != 0 {
                let n = stop.trailing_zeros() as usize;
                return (at + n, high | over & first(n) != 0);
            }
            high |= over;
            at += BYTES;
        }
        let rest = len - at;
        let v = load_first(p.add(at), rest);
        store_first(dst.add(at), v, rest);
        let n = (escapes(v).trailing_zeros() as usize).min(rest);
        (at + n, high | _mm512_movepi8_mask(v) & first(n) != 0)
    }
}

/// Copies the leading ASCII units as bytes and returns their number. If `JSON` is `true`, also
/// stops at the first JSON escape.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have at least as many units as `src`.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn narrow_plain<const JSON: bool>(
    src: &[u16],
    out: &mut [MaybeUninit<u8>],
) -> usize {
    let dst = out.as_mut_ptr().cast::<u8>();
    let (p, len) = (src.as_ptr(), src.len());
    let step = |lo, hi| {
        let other = |v| u64::from(_mm512_test_epi16_mask(v, splat16(0xFF80)));
        let v = narrow(lo, hi);
        let stop = other(lo) | other(hi) << 32;
        (v, if JSON { stop | escapes(v) } else { stop })
    };
    // SAFETY: every load ends inside src, and one byte is written per unit.
    unsafe {
        let mut at = 0;
        while at + BYTES <= len {
            let lo = load(p.add(at).cast());
            let hi = load(p.add(at + BYTES / 2).cast());
            let (v, stop) = step(lo, hi);
            store(dst.add(at), v);
            if stop != 0 {
                return at + stop.trailing_zeros() as usize;
            }
            at += BYTES;
        }
        let rest = len - at;
        let (lo, hi) = load_two(p.add(at), rest);
        let (v, stop) = step(lo, hi);
        store_first(dst.add(at), v, rest);
        at + (stop.trailing_zeros() as usize).min(rest)
    }
}

/// Returns the number of bytes (1 to 64) to the next cache line.
fn to_aligned<U>(dst: *mut U) -> usize {
    BYTES - dst as usize % BYTES
}

/// Copies the leading ASCII bytes and returns their number. Stops before the first vector with a
/// non-ASCII byte.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have at least as many bytes as `src`.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn copy_ascii(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    let dst = out.as_mut_ptr().cast::<u8>();
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src, and one byte is written per byte.
    unsafe {
        let mut at = 0;
        if len >= 4 * BYTES {
            let v = load(p);
            if _mm512_movepi8_mask(v) != 0 {
                return 0;
            }
            store(dst, v);
            at = to_aligned(dst);
        }
        while at + 2 * BYTES <= len {
            let (a, b) = (load(p.add(at)), load(p.add(at + BYTES)));
            if _mm512_movepi8_mask(_mm512_or_si512(a, b)) != 0 {
                return at;
            }
            store(dst.add(at), a);
            store(dst.add(at + BYTES), b);
            at += 2 * BYTES;
        }
        while at < len {
            let n = (len - at).min(BYTES);
            let v = load_first(p.add(at), n);
            if _mm512_movepi8_mask(v) != 0 {
                return at;
            }
            store_first(dst.add(at), v, n);
            at += n;
        }
        at
    }
}

/// Copies the leading units up to `MAX` (0x7F or 0xFF) as bytes, 64 at a time. Returns the number
/// of units.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have at least as many units as `src`.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn narrow_up_to<const MAX: u16>(
    src: &[u16],
    out: &mut [MaybeUninit<u8>],
) -> usize {
    let dst = out.as_mut_ptr().cast::<u8>();
    let (p, len) = (src.as_ptr(), src.len());
    let over = |lo, hi| _mm512_test_epi16_mask(_mm512_or_si512(lo, hi), splat16(!MAX)) != 0;
    // SAFETY: every load ends inside src, and one byte is written per unit.
    unsafe {
        let mut at = 0;
        if len >= 4 * BYTES {
            let (lo, hi) = (load(p.cast()), load(p.add(BYTES / 2).cast()));
            if over(lo, hi) {
                return 0;
            }
            store(dst, narrow(lo, hi));
            at = to_aligned(dst);
        }
        while at + BYTES <= len {
            let lo = load(p.add(at).cast());
            let hi = load(p.add(at + BYTES / 2).cast());
            if over(lo, hi) {
                return at;
            }
            store(dst.add(at), narrow(lo, hi));
            at += BYTES;
        }
        let (lo, hi) = load_two(p.add(at), len - at);
        if over(lo, hi) {
            return at;
        }
        store_first(dst.add(at), narrow(lo, hi), len - at);
        len
    }
}

/// Copies whole vectors of units up to the first surrogate. Returns the number of units.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have at least as many units as `src`.
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn copy_bmp(src: &[u16], out: &mut [MaybeUninit<u16>]) -> usize {
    let dst = out.as_mut_ptr().cast::<u16>();
    let (p, len) = (src.as_ptr(), src.len());
    let units = BYTES / 2;
    // SAFETY: every load ends inside src, and one unit is written per unit.
    unsafe {
        let mut at = 0;
        if len >= 4 * units {
            let v = load(p.cast());
            if surrogates(v) != 0 {
                return 0;
            }
            store(dst.cast(), v);
            at = to_aligned(dst) / 2;
        }
        while at + 2 * units <= len {
            let (a, b) = (load(p.add(at).cast()), load(p.add(at + units).cast()));
            if surrogates(a) | surrogates(b) != 0 {
                return at;
            }
            store(dst.add(at).cast(), a);
            store(dst.add(at + units).cast(), b);
            at += 2 * units;
        }
        while at < len {
            let n = (len - at).min(units);
            let v = load_first(p.add(at).cast(), 2 * n);
            if surrogates(v) != 0 {
                return at;
            }
            store_first(dst.add(at).cast(), v, 2 * n);
            at += n;
        }
        at
    }
}
