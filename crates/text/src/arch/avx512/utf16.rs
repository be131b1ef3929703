//! UTF-16 with pairs to 32-bit units.

use std::arch::x86_64::*;

use super::swap_u16;
use super::{BYTES, Out, first, load, load_first, splat16, splat32};

/// Units of a vector.
const UNITS: usize = BYTES / 2;

/// The lanes that are second halves of pairs.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn second_halves(v: __m512i) -> u32 {
    _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, splat16(0xFC00)), splat16(0xDC00))
}

/// Units that are no second halves of pairs: the characters, where the text is well-formed.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn count(src: &[u16]) -> usize {
    count_ordered::<false>(as_bytes(src))
}

/// The units as bytes.
fn as_bytes(src: &[u16]) -> &[[u8; 2]] {
    // SAFETY: two bytes each, at any address.
    unsafe { std::slice::from_raw_parts(src.as_ptr().cast(), src.len()) }
}

/// A vector in the machine's order.
#[inline]
#[target_feature(enable = "avx512bw")]
fn in_order<const SWAPPED: bool>(v: __m512i) -> __m512i {
    if SWAPPED { swap_u16(v) } else { v }
}

/// As [`count`], the bytes of each unit in the machine's order or (`SWAPPED`) the other one.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn count_ordered<const SWAPPED: bool>(src: &[[u8; 2]]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut halves = 0;
        let mut at = 0;
        while at + UNITS <= len {
            let v = in_order::<SWAPPED>(load(p.add(at).cast()));
            halves += second_halves(v).count_ones();
            at += UNITS;
            // The count of 32 bits holds 4 GiB of units; a longer text is counted in parts.
            if at % (1 << 30) == 0 {
                let rest = std::slice::from_raw_parts(p.add(at), len - at);
                return at - halves as usize + count_ordered::<SWAPPED>(rest);
            }
        }
        let v = in_order::<SWAPPED>(load_first(p.add(at).cast(), 2 * (len - at)));
        len - (halves + second_halves(v).count_ones()) as usize
    }
}

/// The first half of each lane's pair put together with the second half behind it, and the lanes that are such.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn pairs(units: __m256i, behind: __m256i) -> (__m512i, u16, u16) {
    let (x, y) = (_mm512_cvtepu16_epi32(units), _mm512_cvtepu16_epi32(behind));
    let top = splat32(0xFC00);
    let high = _mm512_cmpeq_epi32_mask(_mm512_and_si512(x, top), splat32(0xD800));
    let low_behind = _mm512_cmpeq_epi32_mask(_mm512_and_si512(y, top), splat32(0xDC00));
    // The low ten bits of `y` only: the units are code points whatever it is.
    let both = _mm512_ternarylogic_epi32::<0xF8>(_mm512_slli_epi32::<10>(x), y, splat32(0x3FF));
    // The prefix and the plane's offset in one constant.
    let prefix = splat32((0xD800 << 10) - 0x1_0000);
    let x = _mm512_mask_sub_epi32(x, high, both, prefix);
    (x, high, low_behind)
}

/// The lanes that are first halves of pairs.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn first_halves(v: __m512i) -> u32 {
    _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, splat16(0xFC00)), splat16(0xD800))
}

/// Decodes text and returns how many units it gave; `None` if it is malformed or gives more than `n_chars`.
///
/// # Safety
/// `dst` takes `n_chars` units, apart from `src`.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4(src: &[u16], dst: *mut u32, n_chars: usize) -> Option<usize> {
    // SAFETY: the duty of the caller.
    unsafe { to_ucs4_ordered::<false>(as_bytes(src), dst, n_chars) }
}

/// As [`to_ucs4`], the bytes of each unit in the machine's order or (`SWAPPED`) the other one.
///
/// # Safety
/// As [`to_ucs4`].
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4_ordered<const SWAPPED: bool>(
    src: &[[u8; 2]],
    dst: *mut u32,
    n_chars: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // Whether the vector before ended with the first half of a pair, and what was found wrong.
    let (mut open, mut bad) = (0, 0);
    // SAFETY: every load ends inside src.
    let n_bytes = unsafe {
        let mut out = Out::new(dst.cast(), 4 * n_chars);
        let mut at = 0;
        while at < len {
            let rest = len - at;
            let (v, behind) = if rest > UNITS {
                (load(p.add(at).cast()), load(p.add(at + 1).cast()))
            } else {
                (
                    load_first(p.add(at).cast(), 2 * rest),
                    load_first(p.wrapping_add(at + 1).cast(), 2 * rest - 2),
                )
            };
            let (v, behind) = (in_order::<SWAPPED>(v), in_order::<SWAPPED>(behind));
            let (highs, lows) = (first_halves(v), second_halves(v));
            bad |= (highs << 1 | open) ^ lows;
            open = highs >> 31;
            let starts = !lows & first(rest.min(UNITS)) as u32;
            let n = starts.count_ones() as usize;
            let (units, behind) = if starts == u32::MAX {
                (v, behind)
            } else {
                (
                    _mm512_maskz_compress_epi16(starts, v),
                    _mm512_maskz_compress_epi16(starts, behind),
                )
            };
            let lower = |v| _mm512_castsi512_si256(v);
            out.put(pairs(lower(units), lower(behind)).0, 4 * n.min(16));
            if n > 16 {
                let upper = |v| _mm512_extracti64x4_epi64::<1>(v);
                out.put(pairs(upper(units), upper(behind)).0, 4 * (n - 16));
            }
            at += UNITS;
        }
        out.written(dst.cast())
    };
    // A first half at the very end has zeros behind it in its vector, or opens a vector that never comes.
    n_bytes.filter(|_| bad | open == 0).map(|n| n / 4)
}
