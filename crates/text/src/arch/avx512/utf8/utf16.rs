//! UTF-8 to units of 16 bits: those of a `str` without a character past U+FFFF, and UTF-16.
//!
//! Low and high bytes of the units are put together apart, each at the place where its character starts. A character of four
//! bytes gives two units: the high half of the pair stands at its first byte, the low half at its third, of which it is made.

use std::arch::x86_64::*;

use super::super::second::wrong_seconds;
use super::super::{BYTES, Out, first, load, load_first, runs, select, splat8, store};
use super::{Check, bytes_of};

/// What a byte of `0xF0 + k` becomes in the high byte of a high half, up to a carry: `0xD7 + k`.
const HIGH_HALF: u8 = 0xD7_u8.wrapping_sub(0xF0);

/// Units of UTF-16 that [`to_utf16`] makes of the text, if it is well-formed; never less than it writes.
#[target_feature(enable = "avx512bw,popcnt")]
pub(in crate::arch) fn units_of(src: &[u8]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    let (mut n, mut at) = (0, 0);
    while at < len {
        // SAFETY: both loads end inside src.
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

/// Decodes text into `n_units` units at most and returns how many; `None` where it is malformed and `CHECK` asks. Without `PAIRS` it has no character past
/// U+FFFF.
///
/// # Safety
/// `dst` takes `n_units` units, apart from `src`. These are at least as many as there are bytes that continue nothing, and with `PAIRS`
/// one more for each byte above 0xEF; without, there are none of these.
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn to_utf16<const CHECK: bool, const PAIRS: bool>(
    src: &[u8],
    dst: *mut u16,
    n_units: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    let mut check = Check::default();
    // The third bytes of characters that began in the vector before.
    let mut owed_lows = 0;
    let mut at = 0;
    // SAFETY: every load ends inside src; a unit is put for each byte that continues nothing, and one for each third byte of
    // a sequence of four, of which there are no more than leads.
    let n_bytes = unsafe {
        let mut out = Out::new(dst.cast(), 2 * n_units);
        if len <= BYTES {
            // Brief text takes less time without what the loop keeps at hand.
            let v = load_first(p, len);
            if wide_leads(v) == 0 {
                let second = load_first(p.wrapping_add(1), len.saturating_sub(1));
                put_narrow::<CHECK>(&mut out, &mut check, v, second, _mm512_movepi8_mask(v), len);
                at = len;
            }
        }
        each_vector!(p, len, at, |v, behind, n| {
            let high = _mm512_movepi8_mask(v);
            if high | check.owed | owed_lows == 0 {
                put_units::<true>(&mut out, v, _mm512_setzero_si512(), n);
            } else if wide_leads(v) | check.owed >> 1 | owed_lows == 0 {
                put_narrow::<CHECK>(&mut out, &mut check, v, behind(1), high, n);
            } else {
                let b = if PAIRS {
                    bytes_of::<4>(v)
                } else {
                    bytes_of::<3>(v)
                };
                if let Some(begun) = runs::looks_like_one(b.tails)
                    && (!CHECK || check.owed == first(begun))
                    && owed_lows == 0
                    && len - at - begun >= BYTES
                {
                    // Not a whole vector further then, but behind the run.
                    let run = runs::decode(p.add(at + begun), len - at - begun, &mut out);
                    if run.n_bytes > 0 {
                        check.bad |= u64::from(!run.is_good);
                        check.owed = 0;
                        at += begun + run.n_bytes;
                        continue;
                    }
                }
                let lows = b.four << 2 | owed_lows;
                let starts = (!b.tails | lows) & first(n);
                let (second, third) = (behind(1), behind(2));
                // The last two bytes of each character give ten or eleven bits, the lead of three the rest.
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
                    // Of three bytes: below U+0800, and surrogates.
                    let three = b.three & !b.four;
                    let five = _mm512_and_si512(high, splat8(0xF8));
                    check.bad |= _mm512_mask_testn_epi8_mask(three, five, five);
                    check.bad |= _mm512_mask_cmpeq_epi8_mask(three, five, splat8(0xD8));
                    check.places(b, v);
                }
                if PAIRS && lows | b.four != 0 {
                    if CHECK {
                        check.bad |= wrong_seconds(b.four, v, second);
                    }
                    // High halves: the first 14 bits less 0x40, which is U+10000, behind 0xD800.
                    let bits = select(
                        splat8(0xFC),
                        _mm512_slli_epi16::<2>(second),
                        _mm512_srli_epi16::<4>(third),
                    );
                    low = _mm512_mask_sub_epi8(low, b.four, bits, splat8(0x40));
                    high = _mm512_mask_add_epi8(high, b.four, v, splat8(HIGH_HALF));
                    let carries = _mm512_mask_test_epi8_mask(b.four, second, splat8(0x30));
                    high = _mm512_mask_sub_epi8(high, carries, high, splat8(0xFF));
                    // Low halves: ten bits, behind 0xDC00.
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

/// Leads of three bytes and more.
#[inline]
#[target_feature(enable = "avx512bw")]
fn wide_leads(v: __m512i) -> u64 {
    _mm512_cmpge_epu8_mask(v, splat8(0xE0))
}

/// Puts the characters of the first `n` bytes of a vector `v` that begins no character of three bytes or more, and lies inside none.
/// `high` are the bytes that are not ASCII, `second` those behind each.
///
/// # Safety
/// There is room for a unit for each byte that continues nothing.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi2,bmi2,popcnt")]
unsafe fn put_narrow<const CHECK: bool>(
    out: &mut Out,
    check: &mut Check,
    v: __m512i,
    second: __m512i,
    high: u64,
    n: usize,
) {
    let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0));
    let (leads, starts) = (high & !tails, !tails & first(n));
    // The low byte: six bits of the second, two of the first, which gives three more to the high one.
    let low = select(splat8(0xC0), _mm512_slli_epi16::<6>(v), second);
    let low = _mm512_mask_mov_epi8(v, leads, low);
    let high = _mm512_and_si512(_mm512_srli_epi16::<2>(v), splat8(0x07));
    let high = _mm512_maskz_mov_epi8(leads, high);
    // SAFETY: as many units as there are starts, by the caller's word.
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

/// Units of 16 bits, given as low and high bytes.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(in crate::arch::avx512) fn units(low: __m256i, high: __m256i) -> __m512i {
    let high = _mm512_slli_epi16::<8>(_mm512_cvtepu8_epi16(high));
    _mm512_or_si512(_mm512_cvtepu8_epi16(low), high)
}

/// Puts 64 units of 16 bits, given as low and high bytes, of which `n` count. Both halves are stored where there is room, if `ALWAYS`
/// even where the first holds all that count: better than a branch that cannot be foreseen.
///
/// # Safety
/// There is room for `n` units.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn put_units<const ALWAYS: bool>(out: &mut Out, low: __m512i, high: __m512i, n: usize) {
    // Interleaved in each of four lanes: the eight bytes that come first in a lane are those of its place in the first half.
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    let low = _mm512_permutexvar_epi64(order, low);
    let high = _mm512_permutexvar_epi64(order, high);
    let first = _mm512_unpacklo_epi8(low, high);
    // SAFETY: n units in all, by the caller's word; whole vectors only where there is room for both.
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
