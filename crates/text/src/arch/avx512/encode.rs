//! Units of any width to UTF-8.
//!
//! The bytes of each unit's character are put together in lanes as wide as the longest that occurs, and those that the
//! character does not need are squeezed out. Units that are malformed are found before anything of their vector is
//! written, so that the room asked for is that of the text before them.

use std::arch::x86_64::*;

use super::utf16::pairs;
use super::{BYTES, Out, first, load, load_first, narrow_up_to, splat16, splat32};

/// Encodes Latin-1 and returns the bytes written.
///
/// # Safety
/// `dst` takes `room` bytes, at least as many as the text needs, apart from `src` (so for all below).
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1(src: &[u8], dst: *mut u8, room: usize) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src; each vector's bytes are part of the text's.
    unsafe {
        let mut out = Out::new(dst, room);
        let mut at = 0;
        while at < len {
            let n = (len - at).min(BYTES);
            let v = if n == BYTES {
                load(p.add(at))
            } else {
                load_first(p.add(at), n)
            };
            let high = _mm512_movepi8_mask(v);
            if high == 0 {
                out.put(v, n);
            } else {
                let lower = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(v));
                put_two(&mut out, lower, high as u32, n.min(BYTES / 2));
                if n > BYTES / 2 {
                    let upper = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(v));
                    put_two(&mut out, upper, (high >> 32) as u32, n - BYTES / 2);
                }
            }
            at += n;
        }
        out.at as usize - dst as usize
    }
}

/// Puts the first `n` units below U+0800; `high` are those that are not ASCII.
///
/// # Safety
/// There is room for them.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi2,bmi2")]
unsafe fn put_two(out: &mut Out, units: __m512i, high: u32, n: usize) {
    // The lead in the low byte, the last byte in the high one.
    let lead = _mm512_srli_epi16::<6>(units);
    let last = _mm512_slli_epi16::<8>(_mm512_and_si512(units, splat16(0x3F)));
    let both = _mm512_ternarylogic_epi32::<0xFE>(lead, last, splat16(0x80C0));
    // SAFETY: as many bytes as the first n units need, by the caller's word.
    unsafe {
        if high == u32::MAX {
            out.put(both, BYTES);
        } else {
            let both = _mm512_mask_mov_epi16(both, !high, units);
            let kept = 0x5555_5555_5555_5555 | _pdep_u64(u64::from(high), 0xAAAA_AAAA_AAAA_AAAA);
            let kept = kept & first(2 * n);
            out.put(
                _mm512_maskz_compress_epi8(kept, both),
                kept.count_ones() as usize,
            );
        }
    }
}

/// Encodes 16-bit units and returns the bytes written: UTF-16 where `PAIRS`, else without any surrogate. `None` where the
/// text is malformed.
///
/// # Safety
/// As [`latin1`], for well-formed text; before the first malformed unit for other text.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn wide<const PAIRS: bool>(
    src: &[u16],
    dst: *mut u8,
    room: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src; each vector's bytes are part of the text's.
    unsafe {
        let mut out = Out::new(dst, room);
        let mut at = 0;
        // Whether the vector before ended with the first half of a pair.
        let mut open = false;
        while at < len {
            let n = (len - at).min(BYTES / 2);
            let v = if n == BYTES / 2 {
                load(p.add(at).cast())
            } else {
                load_first(p.add(at).cast(), 2 * n)
            };
            let high = _mm512_test_epi16_mask(v, splat16(0xFF80));
            let three = _mm512_test_epi16_mask(v, splat16(0xF800));
            if high == 0 {
                out.put(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(v)), n);
                // A run of it is copied the fast way, up to the first vectors that are not.
                let rest = std::slice::from_raw_parts(p.add(at + n), len - at - n);
                let run = narrow_up_to::<0x7F>(&rest[..rest.len() & !(BYTES - 1)], out.at);
                out.at = out.at.add(run);
                at += run;
            } else if three == 0 {
                put_two(&mut out, v, high, n);
            } else {
                let found = super::scan::surrogates(v);
                if found != 0 {
                    if !PAIRS {
                        return None;
                    }
                    let behind = load_first(p.wrapping_add(at + 1).cast(), 2 * (len - at) - 2);
                    open = put_pairs(&mut out, v, behind, found, n, open)?;
                } else if three == u32::MAX {
                    put_all_three(&mut out, v);
                } else {
                    let lower = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v));
                    put_any::<false>(&mut out, lower, first(n.min(16)) as u16);
                    if n > 16 {
                        let upper = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(v));
                        put_any::<false>(&mut out, upper, first(n - 16) as u16);
                    }
                }
            }
            at += n;
        }
        Some(out.at as usize - dst as usize)
    }
}

/// Puts the first `n` units of a vector with the surrogates `found`, where `open` tells that the first one is the second
/// half of a pair. Returns whether the vector ends inside a pair; `None`, and nothing put, where a surrogate stands alone.
///
/// # Safety
/// There is room for them.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn put_pairs(
    out: &mut Out,
    v: __m512i,
    behind: __m512i,
    found: u32,
    n: usize,
    open: bool,
) -> Option<bool> {
    let (lower, high, low_behind) =
        pairs(_mm512_castsi512_si256(v), _mm512_castsi512_si256(behind));
    let (upper, high_upper, low_behind_upper) = pairs(
        _mm512_extracti64x4_epi64::<1>(v),
        _mm512_extracti64x4_epi64::<1>(behind),
    );
    let highs = u32::from(high) | u32::from(high_upper) << 16;
    let lows_behind = u32::from(low_behind) | u32::from(low_behind_upper) << 16;
    let lows = found & !highs;
    if highs != lows_behind || (lows & 1 != 0) != open {
        return None;
    }
    let starts = !lows & first(n) as u32;
    // SAFETY: as many bytes as the first n units need, by the caller's word.
    unsafe {
        put_any::<true>(out, lower, starts as u16);
        put_any::<true>(out, upper, (starts >> 16) as u16);
    }
    Some(highs >> 31 != 0)
}

/// Puts 32 units from U+0800 to U+FFFF.
///
/// # Safety
/// There is room for their 96 bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,bmi2")]
unsafe fn put_all_three(out: &mut Out, v: __m512i) {
    // SAFETY: the table has 64 bytes.
    let order = unsafe { load(DROP_FIRST.as_ptr()) };
    let three = |half: __m256i| {
        let bytes = spread(_mm512_cvtepu16_epi32(half));
        let marked = _mm512_or_si512(bytes, splat32(0x0000_E000));
        _mm512_permutexvar_epi8(order, marked)
    };
    // SAFETY: 48 bytes each, by the caller's word.
    unsafe {
        out.put(three(_mm512_castsi512_si256(v)), 48);
        out.put(three(_mm512_extracti64x4_epi64::<1>(v)), 48);
    }
}

/// The places of the last three bytes of each lane.
static DROP_FIRST: [u8; 64] = {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 48 {
        all[i] = (i / 3 * 4 + 1 + i % 3) as u8;
        i += 1;
    }
    all
};

/// Code points in lanes to four bytes of six bits each, the highest bits first, all marked as continuation bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn spread(chars: __m512i) -> __m512i {
    let from = _mm512_set1_epi64(0x2026_2C32_0006_0C12);
    let six = _mm512_multishift_epi64_epi8(from, chars);
    // 0x80 | six & 0x3F
    _mm512_ternarylogic_epi32::<0xF8>(splat32(0x8080_8080), six, splat32(0x3F3F_3F3F))
}

/// Puts the code points of the lanes `which`, none malformed; where not `FOUR`, all below U+10000.
///
/// # Safety
/// There is room for them.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn put_any<const FOUR: bool>(out: &mut Out, chars: __m512i, which: u16) {
    let two = _mm512_cmpge_epu32_mask(chars, splat32(0x80));
    if two == 0 && which & which.wrapping_add(1) == 0 {
        let bytes = _mm512_castsi128_si512(_mm512_cvtepi32_epi8(chars));
        // SAFETY: a byte for each of the first lanes, by the caller's word.
        return unsafe { out.put(bytes, which.count_ones() as usize) };
    }
    let three = _mm512_cmpge_epu32_mask(chars, splat32(0x800));
    let mut lead = _mm512_maskz_mov_epi32(two, splat32(0x00C0_0000));
    lead = _mm512_mask_mov_epi32(lead, three, splat32(0x0000_E000));
    // Which bytes are needed, lane by lane: the last, and those before it.
    let lanes = |mask: u16, bits: u64| _pdep_u64(u64::from(mask), bits);
    let mut kept = lanes(which, 0x8888_8888_8888_8888)
        | lanes(which & two, 0x4444_4444_4444_4444)
        | lanes(which & three, 0x2222_2222_2222_2222);
    if FOUR {
        let four = _mm512_cmpge_epu32_mask(chars, splat32(0x1_0000));
        lead = _mm512_mask_mov_epi32(lead, four, splat32(0x0000_00F0));
        kept |= lanes(which & four, 0x1111_1111_1111_1111);
    }
    let bytes = _mm512_or_si512(spread(chars), lead);
    let bytes = _mm512_mask_mov_epi32(bytes, !two, _mm512_slli_epi32::<24>(chars));
    // SAFETY: as many bytes as these code points need, by the caller's word.
    unsafe {
        out.put(
            _mm512_maskz_compress_epi8(kept, bytes),
            kept.count_ones() as usize,
        );
    }
}

/// Encodes 32-bit units and returns the bytes written; `None` where one is a surrogate or past U+10FFFF.
///
/// # Safety
/// As [`wide`].
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4(src: &[u32], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src; each vector's bytes are part of the text's.
    unsafe {
        let mut out = Out::new(dst, room);
        let mut at = 0;
        while at < len {
            let n = (len - at).min(16);
            let chars = if n == 16 {
                load(p.add(at).cast())
            } else {
                load_first(p.add(at).cast(), 4 * n)
            };
            if is_malformed(chars) {
                return None;
            }
            put_any::<true>(&mut out, chars, first(n) as u16);
            at += n;
        }
        Some(out.at as usize - dst as usize)
    }
}

/// Whether a lane is no scalar value.
#[inline]
#[target_feature(enable = "avx512bw")]
fn is_malformed(chars: __m512i) -> bool {
    let top = _mm512_and_si512(chars, splat32(0xFFFF_F800));
    let surrogate = _mm512_cmpeq_epi32_mask(top, splat32(0xD800));
    surrogate | _mm512_cmpgt_epu32_mask(chars, splat32(0x10_FFFF)) != 0
}

/// Bytes of Latin-1 as UTF-8.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn len_of_latin1(src: &[u8]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    let more = |v| _mm512_movepi8_mask(v).count_ones() as usize;
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut n, mut at) = (len, 0);
        while at + BYTES <= len {
            n += more(load(p.add(at)));
            at += BYTES;
        }
        n + more(load_first(p.add(at), len - at))
    }
}

/// Bytes of UTF-16 as UTF-8, where it is well-formed; else some number, not below that of the text before the first
/// malformed unit.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn len_of_wide(src: &[u16]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    // A half of a pair is two bytes, as a unit below U+0800 is.
    let more = |v| {
        let high = _mm512_test_epi16_mask(v, splat16(0xFF80)).count_ones();
        let three = _mm512_test_epi16_mask(v, splat16(0xF800)) & !super::scan::surrogates(v);
        (high + three.count_ones()) as usize
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut n, mut at) = (len, 0);
        while at + BYTES / 2 <= len {
            n += more(load(p.add(at).cast()));
            at += BYTES / 2;
        }
        n + more(load_first(p.add(at).cast(), 2 * (len - at)))
    }
}

/// Bytes of 32-bit units as UTF-8, where they are well-formed; else some number.
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
pub(in crate::arch) fn len_of_ucs4(src: &[u32]) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    let more = |v| {
        let from = |c| _mm512_cmpge_epu32_mask(v, splat32(c)).count_ones() as usize;
        from(0x80) + from(0x800) + from(0x1_0000)
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let (mut n, mut at) = (len, 0);
        while at + 16 <= len {
            n += more(load(p.add(at).cast()));
            at += 16;
        }
        n + more(load_first(p.add(at).cast(), 4 * (len - at)))
    }
}
