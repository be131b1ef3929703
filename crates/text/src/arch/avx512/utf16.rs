//! Converts UTF-16 with surrogate pairs to 32-bit units.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::swap_u16;
use super::{BYTES, Out, first, load, load_first, splat16, splat32};

const UNITS: usize = BYTES / 2;

/// Returns a mask of the second halves of surrogate pairs.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn second_halves(v: __m512i) -> u32 {
    _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, splat16(0xFC00)), splat16(0xDC00))
}

/// Returns the number of characters in well-formed UTF-16.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn count(src: &[u16]) -> usize {
    count_ordered::<false>(as_bytes(src))
}

fn as_bytes(src: &[u16]) -> &[[u8; 2]] {
    // SAFETY: each unit has two bytes, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(src.as_ptr().cast(), src.len()) }
}

/// Swaps the bytes of each unit if `SWAPPED` is `true`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn in_order<const SWAPPED: bool>(v: __m512i) -> __m512i {
    if SWAPPED { swap_u16(v) } else { v }
}

/// Returns the number of characters in well-formed UTF-16. The byte order is reversed if `SWAPPED`
/// is `true`.
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
            // A 32-bit counter suffices for 4 GiB. A longer text is counted in parts.
            if at % (1 << 30) == 0 {
                let rest = std::slice::from_raw_parts(p.add(at), len - at);
                return at - halves as usize + count_ordered::<SWAPPED>(rest);
            }
        }
        let v = in_order::<SWAPPED>(load_first(p.add(at).cast(), 2 * (len - at)));
        len - (halves + second_halves(v).count_ones()) as usize
    }
}

/// Combines each unit with its following unit to a character. Also returns masks of the first
/// halves in `units` and the second halves in `following`.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn pairs(units: __m256i, following: __m256i) -> (__m512i, u16, u16) {
    let (x, y) = (
        _mm512_cvtepu16_epi32(units),
        _mm512_cvtepu16_epi32(following),
    );
    let top = splat32(0xFC00);
    let high = _mm512_cmpeq_epi32_mask(_mm512_and_si512(x, top), splat32(0xD800));
    let low_behind = _mm512_cmpeq_epi32_mask(_mm512_and_si512(y, top), splat32(0xDC00));
    // The result is a code point for any `y`: only its low ten bits are used.
    let both = _mm512_ternarylogic_epi32::<0xF8>(_mm512_slli_epi32::<10>(x), y, splat32(0x3FF));
    // One constant for the prefix of the first half and U+10000.
    let prefix = splat32((0xD800 << 10) - 0x1_0000);
    let x = _mm512_mask_sub_epi32(x, high, both, prefix);
    (x, high, low_behind)
}

/// Returns a mask of the first halves of surrogate pairs.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn first_halves(v: __m512i) -> u32 {
    _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, splat16(0xFC00)), splat16(0xD800))
}

/// Decodes UTF-16 to 32-bit units. Returns their number, or `None` if the text is malformed or does
/// not fit into `out`.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    // SAFETY: guaranteed by the caller.
    unsafe { to_ucs4_ordered::<false>(as_bytes(src), out) }
}

/// Implements [`to_ucs4`] for units at any address. Their byte order is reversed if `SWAPPED` is
/// `true`.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4_ordered<const SWAPPED: bool>(
    src: &[[u8; 2]],
    out: &mut [MaybeUninit<u32>],
) -> Option<usize> {
    let (dst, n_chars) = (out.as_mut_ptr().cast::<u32>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    // `open` is 1 if the previous vector ended with a first half. `bad` has the errors.
    let (mut open, mut bad) = (0, 0);
    // SAFETY: every load ends inside src.
    let n_bytes = unsafe {
        let mut out = Out::new(dst.cast(), 4 * n_chars);
        let mut at = 0;
        while at < len {
            let rest = len - at;
            let (v, following) = if rest > UNITS {
                (load(p.add(at).cast()), load(p.add(at + 1).cast()))
            } else {
                (
                    load_first(p.add(at).cast(), 2 * rest),
                    load_first(p.wrapping_add(at + 1).cast(), 2 * rest - 2),
                )
            };
            let (v, following) = (in_order::<SWAPPED>(v), in_order::<SWAPPED>(following));
            let (highs, lows) = (first_halves(v), second_halves(v));
            bad |= (highs << 1 | open) ^ lows;
            open = highs >> 31;
            let starts = !lows & first(rest.min(UNITS)) as u32;
            let n = starts.count_ones() as usize;
            let (units, following) = if starts == u32::MAX {
                (v, following)
            } else {
                (
                    _mm512_maskz_compress_epi16(starts, v),
                    _mm512_maskz_compress_epi16(starts, following),
                )
            };
            let lower = |v| _mm512_castsi512_si256(v);
            out.put(pairs(lower(units), lower(following)).0, 4 * n.min(16));
            if n > 16 {
                let upper = |v| _mm512_extracti64x4_epi64::<1>(v);
                out.put(pairs(upper(units), upper(following)).0, 4 * (n - 16));
            }
            at += UNITS;
        }
        out.written(dst.cast())
    };
    // A first half at the end of the text is an error: zeros follow it, or `open` is 1.
    n_bytes.filter(|_| bad | open == 0).map(|n| n / 4)
}
