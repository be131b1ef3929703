//! Converts UTF-8 to UTF-16, or to the 16-bit units of a `str`.
//!
//! A unit is assembled at the first byte of its character. The second unit of a four-byte character
//! is assembled at the third byte.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::super::utf8_second_bytes::wrong_seconds;
use super::super::{BYTES, Out, first, load, load_first, select, splat8, store, three_byte_runs};
use super::{VectorCheck, bytes_of};

/// The difference between a four-byte lead and the high byte of the first surrogate half, modulo
/// 256. If the second byte has one of the bits 0x30, the difference is larger by 1.
const HIGH_HALF: u8 = 0xD7_u8.wrapping_sub(0xF0);

/// Returns the number of UTF-16 units that [`to_utf16`] writes for well-formed text. For malformed
/// text, the number is an upper bound.
#[target_feature(enable = "avx512bw,popcnt")]
pub(in crate::arch) fn units_of(src: &[u8]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    let (mut n, mut at) = (0, 0);
    while at < len {
        // SAFETY: both loads end inside `src`.
        let v = unsafe {
            if at + BYTES <= len {
                load(p.add(at))
            } else {
                load_first(p.add(at), len - at)
            }
        };
        let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0));
        let four = _mm512_cmpge_epu8_mask(v, splat8(0xF0));
        n += four.count_ones() as usize;
        n += BYTES.min(len - at) - tails.count_ones() as usize;
        at += BYTES;
    }
    n
}

/// Decodes UTF-8 to UTF-16 and returns the number of units; `None` if `out` is too short. If
/// `CHECK` is `true`, also returns `None` for malformed text. If `PAIRS` is `false`, no character
/// may be above U+FFFF.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_utf16<const CHECK: bool, const PAIRS: bool>(
    src: &[u8],
    out: &mut [MaybeUninit<u16>],
) -> Option<usize> {
    let (dst, n_units) = (out.as_mut_ptr().cast::<u16>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    let mut check = VectorCheck::default();
    // A mask of third bytes whose character started in the previous vector.
    let mut owed_lows = 0;
    let mut at = 0;
    // SAFETY: every load ends inside `src`, and `out` is not written past its end.
    let n_bytes = unsafe {
        let mut out = Out::new(dst.cast(), 2 * n_units);
        if len <= BYTES {
            // A text of at most one vector is faster without the loop.
            let v = load_first(p, len);
            if wide_leads(v) == 0 {
                let second = load_first(p.wrapping_add(1), len.saturating_sub(1));
                put_narrow::<CHECK>(&mut out, &mut check, v, second, _mm512_movepi8_mask(v), len);
                at = len;
            }
        }
        each_vector!(p, len, at, |v, load, n| {
            let high = _mm512_movepi8_mask(v);
            if high | check.owed | owed_lows == 0 {
                put_units::<true>(&mut out, v, _mm512_setzero_si512(), n);
            } else if wide_leads(v) | check.owed >> 1 | owed_lows == 0 {
                put_narrow::<CHECK>(&mut out, &mut check, v, load(1), high, n);
            } else {
                let b = if PAIRS {
                    bytes_of::<4>(v)
                } else {
                    bytes_of::<3>(v)
                };
                if let Some(begun) = three_byte_runs::looks_like_one(b.tails)
                    && (!CHECK || check.owed == first(begun))
                    && owed_lows == 0
                    && len - at - begun >= BYTES
                {
                    // The next iteration starts at the end of the run.
                    let run =
                        three_byte_runs::decode(p.add(at + begun), len - at - begun, &mut out);
                    if run.n_bytes > 0 {
                        check.bad |= u64::from(!run.is_good);
                        check.owed = 0;
                        at += begun + run.n_bytes;
                        continue;
                    }
                }
                let lows = b.four << 2 | owed_lows;
                let starts = (!b.tails | lows) & first(n);
                let (second, third) = (load(1), load(2));
                // The last two bytes have ten or eleven bits of the character. The lead of a
                // three-byte character has four more.
                let last = _mm512_mask_mov_epi8(second, b.three, third);
                let before = _mm512_mask_mov_epi8(v, b.three, second);
                let mut low = select(splat8(0xC0), _mm512_slli_epi16::<6>(before), last);
                low = _mm512_mask_mov_epi8(v, b.leads | lows, low);
                let upper = _mm512_srli_epi16::<2>(before);
                let mut high =
                    _mm512_maskz_mov_epi8(b.leads, _mm512_and_si512(upper, splat8(0x0F)));
                let top = select(splat8(0xF0), _mm512_slli_epi16::<4>(v), high);
                high = _mm512_mask_mov_epi8(high, b.three, top);
                if CHECK {
                    // Invalid three-byte characters: below U+0800, or surrogates.
                    let three = b.three & !b.four;
                    let five = _mm512_and_si512(high, splat8(0xF8));
                    check.bad |= _mm512_mask_testn_epi8_mask(three, five, five);
                    check.bad |= _mm512_mask_cmpeq_epi8_mask(three, five, splat8(0xD8));
                    check.check_positions(b, v);
                }
                if PAIRS && lows | b.four != 0 {
                    if CHECK {
                        check.bad |= wrong_seconds(b.four, v, second);
                    }
                    // First surrogate halves: the upper 11 bits of the character less 0x40
                    // (U+10000), and 0xD800.
                    let bits = select(
                        splat8(0xFC),
                        _mm512_slli_epi16::<2>(second),
                        _mm512_srli_epi16::<4>(third),
                    );
                    low = _mm512_mask_sub_epi8(low, b.four, bits, splat8(0x40));
                    high = _mm512_mask_add_epi8(high, b.four, v, splat8(HIGH_HALF));
                    let carries = _mm512_mask_test_epi8_mask(b.four, second, splat8(0x30));
                    high = _mm512_mask_sub_epi8(high, carries, high, splat8(0xFF));
                    // Second surrogate halves: ten bits, with the prefix 0xDC00.
                    let half = select(splat8(0x03), upper, splat8(0xDC));
                    high = _mm512_mask_mov_epi8(high, lows, half);
                    owed_lows = b.four >> 62;
                }
                put_units::<false>(
                    &mut out,
                    _mm512_maskz_compress_epi8(starts, low),
                    _mm512_maskz_compress_epi8(starts, high),
                    starts.count_ones() as usize,
                );
            }
        });
        out.written(dst.cast())
    };
    n_bytes.filter(|_| check.is_good()).map(|n| n / 2)
}

/// Returns a mask of the bytes that start a UTF-8 character of three or four bytes.
#[inline]
#[target_feature(enable = "avx512bw")]
fn wide_leads(v: __m512i) -> u64 {
    _mm512_cmpge_epu8_mask(v, splat8(0xE0))
}

/// Writes the UTF-16 units of the characters that start in the first `n` bytes of `v`. All
/// characters must have one or two bytes. `high` is a mask of the non-ASCII bytes. `second` has the
/// next byte of each position.
///
/// # Safety
/// The processor must support AVX-512.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi2,bmi2,popcnt")]
unsafe fn put_narrow<const CHECK: bool>(
    out: &mut Out,
    check: &mut VectorCheck,
    v: __m512i,
    second: __m512i,
    high: u64,
    n: usize,
) {
    let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0));
    let (leads, starts) = (high & !tails, !tails & first(n));
    // The low byte of a unit has six bits of the second UTF-8 byte and two of the first. The high
    // byte has three more bits of the first.
    let low = select(splat8(0xC0), _mm512_slli_epi16::<6>(v), second);
    let low = _mm512_mask_mov_epi8(v, leads, low);
    let high = _mm512_and_si512(_mm512_srli_epi16::<2>(v), splat8(0x07));
    let high = _mm512_maskz_mov_epi8(leads, high);
    // SAFETY: at most 64 units start in a vector.
    unsafe {
        put_units::<true>(
            out,
            _mm512_maskz_compress_epi8(starts, low),
            _mm512_maskz_compress_epi8(starts, high),
            starts.count_ones() as usize,
        );
    }
    if CHECK {
        check.bad |= (leads << 1 | check.owed) ^ tails;
        check.bad |= _mm512_mask_cmplt_epu8_mask(leads, v, splat8(0xC2));
        check.owed = leads >> 63;
    }
}

/// Combines each byte of `low` with the byte of `high` to a 16-bit unit.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(in crate::arch::avx512) fn units(low: __m256i, high: __m256i) -> __m512i {
    let high = _mm512_slli_epi16::<8>(_mm512_cvtepu8_epi16(high));
    _mm512_or_si512(_mm512_cvtepu8_epi16(low), high)
}

/// Writes the first `n` of 64 units. `low` has their low bytes, and `high` their high bytes. Units
/// that do not fit are dropped. If `ALWAYS` is `true`, the store has no branch on `n`.
///
/// # Safety
/// `n` must be at most 64.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn put_units<const ALWAYS: bool>(out: &mut Out, low: __m512i, high: __m512i, n: usize) {
    // The bytes are interleaved in each lane. The first eight bytes of a lane are for `first`.
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    let low = _mm512_permutexvar_epi64(order, low);
    let high = _mm512_permutexvar_epi64(order, high);
    let first = _mm512_unpacklo_epi8(low, high);
    // SAFETY: whole vectors are stored only if both fit; `Out::put` checks the space itself.
    unsafe {
        if (ALWAYS || n > BYTES / 2) && out.left() >= 2 * BYTES as isize {
            store(out.at, first);
            store(out.at.add(BYTES), _mm512_unpackhi_epi8(low, high));
            out.at = out.at.add(2 * n);
            return;
        }
        out.put(first, 2 * n.min(BYTES / 2));
        if n > BYTES / 2 {
            out.put(_mm512_unpackhi_epi8(low, high), 2 * n - BYTES);
        }
    }
}
