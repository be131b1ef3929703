//! Units of any width to UTF-8.
//!
//! The bytes of each character are put together in lanes as wide as the longest that occurs, and those that it does not need
//! are squeezed out by a table. Nothing is written past the room that is given, whatever the text: where it runs out, there
//! is no result.

#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use super::out::{Bounded, SQUEEZE};
use crate::arch::sse2::load_padded;

/// For each mask of 8 lanes of 16 bits, the order of bytes that keeps the low byte of each lane, and the high byte of those
/// whose bits are set.
pub(super) static TWO: [[u8; 16]; 256] = {
    let mut all = [[0x80; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 8 {
            all[mask][to] = 2 * lane as u8;
            to += 1;
            if mask >> lane & 1 == 1 {
                all[mask][to] = 2 * lane as u8 + 1;
                to += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// The last one to four bytes of each of four lanes of 32 bits, by how many are kept but for the last: the low bits of the
/// four numbers, and the high bits of them.
pub(super) static ANY: [[u8; 16]; 256] = {
    let mut all = [[0x80; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 4 {
            let more = (index >> lane & 1) + 2 * (index >> (4 + lane) & 1);
            let mut byte = 3 - more;
            while byte < 4 {
                all[index][to] = (4 * lane + byte) as u8;
                to += 1;
                byte += 1;
            }
            lane += 1;
        }
        index += 1;
    }
    all
};

/// Puts 16 units below U+0800, those of `which` at the front: the first `n`.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn put_two(out: &mut Bounded, units: __m256i, n: usize) {
    // The lead in the low byte, the last byte in the high one.
    let lead = _mm256_srli_epi16::<6>(units);
    let last = _mm256_slli_epi16::<8>(_mm256_and_si256(units, _mm256_set1_epi16(0x3F)));
    let both = _mm256_or_si256(lead, last);
    let both = _mm256_or_si256(both, _mm256_set1_epi16(0x80C0_u16 as i16));
    let high = _mm256_cmpgt_epi16(units, _mm256_set1_epi16(0x7F));
    let bytes = _mm256_blendv_epi8(units, both, high);
    let high = _mm256_movemask_epi8(_mm256_packs_epi16(high, high)) as u32;
    put_lanes(out, _mm256_castsi256_si128(bytes), high as u8, n.min(8));
    if n > 8 {
        put_lanes(
            out,
            _mm256_extracti128_si256::<1>(bytes),
            (high >> 16) as u8,
            n - 8,
        );
    }
}

/// Puts the low byte of the first `n` lanes of 16 bits, and the high byte of those of `high`, none of which is behind them.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn put_lanes(out: &mut Bounded, v: __m128i, high: u8, n: usize) {
    // SAFETY: the table has 16 bytes for each mask; SSE2 is part of x86-64.
    unsafe {
        let order = _mm_loadu_si128(TWO[usize::from(high)].as_ptr().cast());
        out.put(_mm_shuffle_epi8(v, order), n + high.count_ones() as usize);
    }
}

/// The bytes of 8 code points, none of which is malformed, the last one highest in each lane; and the lanes that have two or
/// more, three or more, and four.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn any(chars: __m256i) -> (__m256i, __m256i, __m256i, __m256i) {
    let two = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7F));
    let three = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7FF));
    let four = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0xFFFF));
    // Twelve bits in each half of a lane, then six in each byte, the last ones highest: they have seven, which ASCII needs.
    let halves = _mm256_blend_epi16::<0xAA>(
        _mm256_srli_epi32::<12>(chars),
        _mm256_slli_epi32::<16>(chars),
    );
    let six = _mm256_or_si256(
        _mm256_and_si256(_mm256_srli_epi16::<6>(halves), _mm256_set1_epi16(0x3F)),
        _mm256_and_si256(
            _mm256_slli_epi16::<8>(halves),
            _mm256_set1_epi32(0x7F00_3F00),
        ),
    );
    let seventh = _mm256_and_si256(two, _mm256_set1_epi32(0x4000_0000));
    let six = _mm256_andnot_si256(seventh, six);
    // What marks each byte, by its place and how many bytes more than one the character has.
    let marks = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0, 0, -0x10, 0, 0, -0x20, -0x80, 0, -0x40, -0x80, -0x80, 0, -0x80, -0x80, -0x80,
    ));
    let n_more = _mm256_add_epi8(_mm256_add_epi8(two, three), four);
    let index = _mm256_sub_epi8(_mm256_set1_epi32(0x0C08_0400), n_more);
    let bytes = _mm256_or_si256(six, _mm256_shuffle_epi8(marks, index));
    (bytes, two, three, four)
}

/// Puts the first `n` of 8 code points, of which those behind are zeros; none is malformed.
///
/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn put_any(out: &mut Bounded, chars: __m256i, n: usize) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (bytes, two, three, four) = any(chars);
        // How many bytes each lane has more than one: the low bits, and the high ones.
        let low = _mm256_xor_si256(_mm256_xor_si256(two, three), four);
        let index = _mm256_packs_epi32(low, three);
        let index = _mm256_movemask_epi8(_mm256_packs_epi16(index, index)) as u32;
        let (lower, upper) = (index as u8, (index >> 16) as u8);
        // Both always: whether there are more than four is not to be guessed.
        let n_upper = n.saturating_sub(4);
        put_four(out, _mm256_castsi256_si128(bytes), lower, n - n_upper);
        put_four(out, _mm256_extracti128_si256::<1>(bytes), upper, n_upper);
    }
}

/// Puts the last bytes of the first `n` lanes of 32 bits, by an index of [`ANY`]; those behind have one each.
///
/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn put_four(out: &mut Bounded, v: __m128i, index: u8, n: usize) {
    // SAFETY: the caller has AVX2; the tables have an entry for each index of 8 bits.
    unsafe {
        let order = _mm_loadu_si128(ANY[usize::from(index)].as_ptr().cast());
        let more = (index & 0xF).count_ones() + 2 * (index >> 4).count_ones();
        out.put(_mm_shuffle_epi8(v, order), n + more as usize);
    }
}

/// The bytes of 16 units from U+0800 on, no surrogates: in each half 16 bytes of each 8 units' 24, and the 8 behind them.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn three(units: __m256i) -> (__m256i, __m256i) {
    let six = |v, bits| _mm256_and_si256(v, _mm256_set1_epi16(bits));
    // The first two bytes in each lane, and the third.
    let two = _mm256_or_si256(
        _mm256_srli_epi16::<12>(units),
        six(_mm256_slli_epi16::<2>(units), 0x3F00),
    );
    let two = _mm256_or_si256(two, _mm256_set1_epi16(0x80E0_u16 as i16));
    let third = _mm256_or_si256(six(units, 0x3F), _mm256_set1_epi16(0x80));
    let order = |v| _mm256_broadcastsi128_si256(v);
    let place = |from: __m128i, rest: __m128i| {
        _mm256_or_si256(
            _mm256_shuffle_epi8(two, order(from)),
            _mm256_shuffle_epi8(third, order(rest)),
        )
    };
    let most = place(
        _mm_setr_epi8(0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 9, -1, 10),
        _mm_setr_epi8(-1, -1, 0, -1, -1, 2, -1, -1, 4, -1, -1, 6, -1, -1, 8, -1),
    );
    let rest = place(
        _mm_setr_epi8(
            11, -1, 12, 13, -1, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1,
        ),
        _mm_setr_epi8(
            -1, 10, -1, -1, 12, -1, -1, 14, -1, -1, -1, -1, -1, -1, -1, -1,
        ),
    );
    (most, rest)
}

/// The bytes of the first five of 8 units from U+0800 on, no surrogates.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn five(units: __m128i) -> __m128i {
    let six = |v, bits| _mm_and_si128(v, _mm_set1_epi16(bits));
    let two = _mm_or_si128(
        _mm_srli_epi16::<12>(units),
        six(_mm_slli_epi16::<2>(units), 0x3F00),
    );
    let two = _mm_or_si128(two, _mm_set1_epi16(0x80E0_u16 as i16));
    let third = _mm_or_si128(six(units, 0x3F), _mm_set1_epi16(0x80));
    _mm_or_si128(
        _mm_shuffle_epi8(
            two,
            _mm_setr_epi8(0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 9, -1, -1),
        ),
        _mm_shuffle_epi8(
            third,
            _mm_setr_epi8(-1, -1, 0, -1, -1, 2, -1, -1, 4, -1, -1, 6, -1, -1, 8, -1),
        ),
    )
}

/// Puts 16 units from U+0800 on, no surrogates.
#[inline]
#[target_feature(enable = "avx2")]
fn put_three(out: &mut Bounded, units: __m256i) {
    let (most, rest) = three(units);
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        out.put(_mm256_castsi256_si128(most), 16);
        out.put(_mm256_castsi256_si128(rest), 8);
        out.put(_mm256_extracti128_si256::<1>(most), 16);
        out.put(_mm256_extracti128_si256::<1>(rest), 8);
    }
}

/// The last `n` bytes of `len`, at most 15, in front, and zeros.
///
/// # Safety
/// `p` is readable for `len` bytes, at least `n`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_last(p: *const u8, len: usize, n: usize) -> __m128i {
    // SAFETY: the vector that ends with the text where there is one, else the text; the table has 16 bytes from n on.
    unsafe {
        if n == 0 {
            _mm_setzero_si128()
        } else if len >= 16 {
            let v = _mm_loadu_si128(p.add(len - 16).cast());
            let down = _mm_loadu_si128(DOWN.as_ptr().add(16 - n).cast());
            _mm_shuffle_epi8(v, down)
        } else {
            load_padded(p.add(len - n), n).0
        }
    }
}

/// Orders of bytes that move a vector down by as many bytes as a load starts behind the start, zeros from above.
static DOWN: [u8; 32] = {
    let mut all = [0x80; 32];
    let mut i = 0;
    while i < 16 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// Encodes Latin-1 and returns the bytes written; `None` where there is no room for them.
///
/// # Safety
/// The processor has AVX2; `dst` takes `room` bytes, apart from `src` (so for all below).
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) unsafe fn latin1(src: &[u8], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::new(dst, room);
        let mut at = 0;
        while at + 16 <= len {
            let v = _mm_loadu_si128(p.add(at).cast());
            if _mm_movemask_epi8(v) == 0 {
                out.put(v, 16);
            } else {
                put_two(&mut out, _mm256_cvtepu8_epi16(v), 16);
            }
            at += 16;
        }
        if at < len {
            let v = load_last(p, len, len - at);
            put_two(&mut out, _mm256_cvtepu8_epi16(v), len - at);
        }
        out.written(dst)
    }
}

/// Encodes UTF-16 and returns the bytes written; `None` where the text is malformed, and where there is no room for it.
///
/// # Safety
/// As [`latin1`].
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) unsafe fn wide(src: &[u16], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    let most = _mm256_set1_epi16(0xF800_u16 as i16);
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::new(dst, room);
        let mut at = 0;
        // Whether the vector before ended with the first half of a pair.
        let mut open = false;
        while at + 16 <= len {
            let v = _mm256_loadu_si256(p.add(at).cast());
            let top = _mm256_and_si256(v, most);
            let half = _mm256_cmpeq_epi16(top, _mm256_set1_epi16(0xD800_u16 as i16));
            if open || _mm256_testz_si256(half, half) == 0 {
                let behind = _mm_loadu_si128(p.add(at + 1).cast());
                open = put_pairs(&mut out, _mm256_castsi256_si128(v), behind, 8, open)?;
                at += 8;
                continue;
            }
            let (lower, upper) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            let low = _mm256_cmpeq_epi16(top, _mm256_setzero_si256());
            if _mm256_testz_si256(v, _mm256_set1_epi16(0xFF80_u16 as i16)) != 0 {
                out.put(_mm_packus_epi16(lower, upper), 16);
            } else if _mm256_testz_si256(v, most) != 0 {
                put_two(&mut out, v, 16);
            } else if _mm256_testz_si256(low, low) != 0 {
                put_three(&mut out, v);
            } else {
                put_any(&mut out, _mm256_cvtepu16_epi32(lower), 8);
                put_any(&mut out, _mm256_cvtepu16_epi32(upper), 8);
            }
            at += 16;
        }
        while at < len {
            let n = (len - at).min(8);
            let (v, behind) = if len - at > 8 {
                (
                    _mm_loadu_si128(p.add(at).cast()),
                    _mm_loadu_si128(p.add(at + 1).cast()),
                )
            } else if n == 8 {
                let v = _mm_loadu_si128(p.add(at).cast());
                (v, _mm_srli_si128::<2>(v))
            } else {
                let v = load_last(p.cast(), 2 * len, 2 * n);
                (v, _mm_srli_si128::<2>(v))
            };
            let top = _mm_and_si128(v, _mm256_castsi256_si128(most));
            let half = _mm_cmpeq_epi16(top, _mm_set1_epi16(0xD800_u16 as i16));
            if open || _mm_testz_si128(half, half) == 0 {
                open = put_pairs(&mut out, v, behind, n, open)?;
            } else {
                put_any(&mut out, _mm256_cvtepu16_epi32(v), n);
            }
            at += n;
        }
        out.written(dst)
    }
}

/// Puts the first `n` of 8 units, the others zeros, given those behind each, where `open` tells that the first one is the
/// second half of a pair. Returns whether they end inside a pair; `None`, and nothing put, where a surrogate stands alone.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn put_pairs(out: &mut Bounded, v: __m128i, behind: __m128i, n: usize, open: bool) -> Option<bool> {
    let (first, second) = (_mm256_cvtepu16_epi32(v), _mm256_cvtepu16_epi32(behind));
    let is = |v, top| {
        let upper = _mm256_and_si256(v, _mm256_set1_epi32(0xFC00));
        _mm256_cmpeq_epi32(upper, _mm256_set1_epi32(top))
    };
    let lanes = |v| _mm256_movemask_ps(_mm256_castsi256_ps(v)) as u32;
    let is_high = is(first, 0xD800);
    let (highs, lows, lows_behind) = (
        lanes(is_high),
        lanes(is(first, 0xDC00)),
        lanes(is(second, 0xDC00)),
    );
    if highs != lows_behind || (lows & 1 != 0) != open || (highs << 1 | lows & 1) & 0xFF != lows {
        return None;
    }
    // Both prefixes and the plane's offset in one constant.
    let prefixes = _mm256_set1_epi32((0xD800 << 10) + 0xDC00 - 0x1_0000);
    let both = _mm256_add_epi32(_mm256_slli_epi32::<10>(first), second);
    let chars = _mm256_blendv_epi8(first, _mm256_sub_epi32(both, prefixes), is_high);
    let starts = !lows & ((1 << n) - 1);
    let n_chars = starts.count_ones();
    // SAFETY: the table has 8 bytes for each mask of 8 lanes; AVX2 is there.
    unsafe {
        let order = _mm_loadl_epi64(SQUEEZE[starts as usize].as_ptr().cast());
        let chars = _mm256_permutevar8x32_epi32(chars, _mm256_cvtepu8_epi32(order));
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let there = _mm256_cmpgt_epi32(_mm256_set1_epi32(n_chars as i32), places);
        put_any(out, _mm256_and_si256(chars, there), n_chars as usize);
    }
    Some(highs >> 7 != 0)
}

/// Encodes 32-bit units and returns the bytes written; `None` where one is a surrogate or past U+10FFFF, and where there is
/// no room for them.
///
/// # Safety
/// As [`latin1`].
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) unsafe fn ucs4(src: &[u32], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    let mut bad = _mm256_setzero_si256();
    let mut look = |chars| {
        let top = _mm256_and_si256(chars, _mm256_set1_epi32(0xFFFF_F800_u32 as i32));
        let half = _mm256_cmpeq_epi32(top, _mm256_set1_epi32(0xD800));
        // Unsigned: the larger of both is the one where it is larger.
        let least_past = _mm256_set1_epi32(0x11_0000);
        let past = _mm256_cmpeq_epi32(_mm256_max_epu32(chars, least_past), chars);
        bad = _mm256_or_si256(bad, _mm256_or_si256(half, past));
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::new(dst, room);
        let load = |at: usize| _mm256_loadu_si256(p.add(at).cast());
        let mut at = 0;
        while at + 32 <= len {
            let (a, b, c, d) = (load(at), load(at + 8), load(at + 16), load(at + 24));
            let any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
            if _mm256_testz_si256(any, _mm256_set1_epi32(!0x7F)) != 0 {
                // Both packs work in each half: put the parts of four in order.
                let bytes =
                    _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                let bytes = _mm256_permutevar8x32_epi32(bytes, order);
                out.put(_mm256_castsi256_si128(bytes), 16);
                out.put(_mm256_extracti128_si256::<1>(bytes), 16);
            } else {
                look(a);
                look(b);
                look(c);
                look(d);
                put_any(&mut out, a, 8);
                put_any(&mut out, b, 8);
                put_any(&mut out, c, 8);
                put_any(&mut out, d, 8);
            }
            at += 32;
        }
        while at < len {
            let n = (len - at).min(8);
            // The lanes below n, by their sign bits.
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let there = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
            let chars = _mm256_maskload_epi32(p.add(at).cast(), there);
            look(chars);
            put_any(&mut out, chars, n);
            at += n;
        }
        if _mm256_testz_si256(bad, bad) == 0 {
            return None;
        }
        out.written(dst)
    }
}
