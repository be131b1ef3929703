//! Converts units of any width to UTF-8.
//!
//! Each character is encoded in its own vector lane. A byte shuffle then removes the unused bytes.

#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::lanes::{SOME, TWO, three};
use super::out::{Bounded, STEP};
use crate::arch::sse2::load_padded;

#[inline]
#[target_feature(enable = "avx2")]
fn is_ascii(units: __m256i) -> bool {
    _mm256_testz_si256(units, _mm256_set1_epi16(0xFF80_u16 as i16)) != 0
}

/// Writes 16 ASCII units as bytes. Returns `n`, the length of the text.
///
/// # Safety
/// `to` must have space for 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put_ascii(to: *mut u8, units: __m256i, n: usize) -> usize {
    let (lower, upper) = (
        _mm256_castsi256_si128(units),
        _mm256_extracti128_si256::<1>(units),
    );
    // SAFETY: guaranteed by the caller of this function.
    unsafe { _mm_storeu_si128(to.cast(), _mm_packus_epi16(lower, upper)) };
    n
}

/// Writes the first `n` of 16 units as UTF-8. All units must be below U+0800, and zero from `n` on.
///
/// # Safety
/// `to` must have space for 32 bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn put_two(to: *mut u8, units: __m256i, n: usize) -> usize {
    // The lead byte is in the low byte of each lane. The last byte is in the high byte.
    let lead = _mm256_srli_epi16::<6>(units);
    let last = _mm256_slli_epi16::<8>(_mm256_and_si256(units, _mm256_set1_epi16(0x3F)));
    let both = _mm256_or_si256(lead, last);
    let both = _mm256_or_si256(both, _mm256_set1_epi16(0x80C0_u16 as i16));
    let high = _mm256_cmpgt_epi16(units, _mm256_set1_epi16(0x7F));
    let bytes = _mm256_blendv_epi8(units, both, high);
    let high = _mm256_movemask_epi8(_mm256_packs_epi16(high, high)) as u32;
    let (lower, upper) = (high as u8, (high >> 16) as u8);
    let n_lower = 8 + lower.count_ones() as usize;
    // SAFETY: the table has 16 bytes for each mask. Each half is stored as 16 bytes, and the second
    // store starts at most 16 bytes after `to`.
    unsafe {
        let squeezed = |v, high: u8| {
            let order = _mm_loadu_si128(TWO[usize::from(high)].as_ptr().cast());
            _mm_shuffle_epi8(v, order)
        };
        let v = squeezed(_mm256_castsi256_si128(bytes), lower);
        _mm_storeu_si128(to.cast(), v);
        let v = squeezed(_mm256_extracti128_si256::<1>(bytes), upper);
        _mm_storeu_si128(to.add(n_lower).cast(), v);
    }
    n + (lower.count_ones() + upper.count_ones()) as usize
}

/// Writes 16 units as UTF-8. All must be from U+0800 on and no surrogates.
///
/// # Safety
/// `to` must have space for [`STEP`] bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put_three(to: *mut u8, units: __m256i) -> usize {
    let (most, rest) = three(units);
    // SAFETY: the last store ends 56 bytes after `to`.
    unsafe {
        _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(most));
        _mm_storeu_si128(to.add(16).cast(), _mm256_castsi256_si128(rest));
        _mm_storeu_si128(to.add(24).cast(), _mm256_extracti128_si256::<1>(most));
        _mm_storeu_si128(to.add(40).cast(), _mm256_extracti128_si256::<1>(rest));
    }
    48
}

/// Loads `n` bytes (at most 16) and adds zeros. If `n` is below 16, the bytes must be the end of
/// the text.
///
/// # Safety
/// `p` must be readable for `len` bytes, and `at + n` must be at most `len`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_within(p: *const u8, len: usize, at: usize, n: usize) -> __m128i {
    // SAFETY: the load reads the last 16 bytes of the text, or all of a shorter text. The table has
    // 16 bytes from index `16 - n` on.
    unsafe {
        if n == 0 {
            _mm_setzero_si128()
        } else if n == 16 {
            _mm_loadu_si128(p.add(at).cast())
        } else if len >= 16 {
            let v = _mm_loadu_si128(p.add(len - 16).cast());
            let down = _mm_loadu_si128(DOWN.as_ptr().add(16 - n).cast());
            _mm_shuffle_epi8(v, down)
        } else {
            load_padded(p.add(at), n).0
        }
    }
}

/// Indexes for byte shuffles. The 16 indexes from `DOWN[n]` on shift a vector down by `n` bytes.
static DOWN: [u8; 32] = {
    let mut all = [0x80; 32];
    let mut i = 0;
    while i < 16 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// Encodes Latin-1 as UTF-8 and returns the number of bytes. `None` if they do not fit into `out`.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) unsafe fn latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::new(dst, capacity);
        let mut at = 0;
        while at + 16 <= len && out.takes(32) {
            let v = _mm_loadu_si128(p.add(at).cast());
            out.put(|to| {
                if _mm_movemask_epi8(v) == 0 {
                    _mm_storeu_si128(to.cast(), v);
                    return 16;
                }
                put_two(to, _mm256_cvtepu8_epi16(v), 16)
            });
            at += 16;
        }
        while at < len {
            let n = (len - at).min(16);
            let v = load_within(p, len, at, n);
            out.put_if_it_fits(|to| put_two(to, _mm256_cvtepu8_epi16(v), n));
            at += n;
        }
        out.written(dst)
    }
}

/// Encodes UTF-16 as UTF-8. Returns the number of bytes, or `None` if the text is malformed or does
/// not fit into `out`.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) unsafe fn wide(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::new(dst, capacity);
        let mut before = Before::new();
        let mut at = 0;
        while at + 16 <= len && out.takes(STEP) {
            let v = _mm256_loadu_si256(p.add(at).cast());
            out.put(|to| put_units(to, v, &mut before));
            at += 16;
        }
        while at < len {
            let n = (len - at).min(16);
            let load = |at, n| load_within(p.cast(), 2 * len, 2 * at, 2 * n);
            let v = _mm256_set_m128i(load(at + 8, n.saturating_sub(8)), load(at, n.min(8)));
            out.put_if_it_fits(|to| {
                if is_ascii(v) && before.open == 0 {
                    return put_ascii(to, v, n);
                }
                put_mixed::<true>(to, v, n, &mut before)
            });
            at += n;
        }
        if before.bad | before.open != 0 {
            return None;
        }
        out.written(dst)
    }
}

/// The previous 16 units, which may end with half of a surrogate pair, and the errors found.
struct Before {
    units: __m256i,
    /// 1 if the last unit is the first half of a surrogate pair, otherwise 0.
    open: u32,
    /// Nonzero after a lone surrogate.
    bad: u32,
}

impl Before {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Before {
        Before {
            units: _mm256_setzero_si256(),
            open: 0,
            bad: 0,
        }
    }
}

/// Writes 16 units, with or without surrogate pairs, as UTF-8. Returns the number of bytes.
///
/// # Safety
/// `to` must have space for [`STEP`] bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn put_units(to: *mut u8, v: __m256i, before: &mut Before) -> usize {
    let most = _mm256_set1_epi16(0xF800_u16 as i16);
    let top = _mm256_and_si256(v, most);
    let half = _mm256_cmpeq_epi16(top, _mm256_set1_epi16(0xD800_u16 as i16));
    // SAFETY: `to` has space for `STEP` bytes, which suffice for each of these functions.
    unsafe {
        if before.open != 0 || _mm256_testz_si256(half, half) == 0 {
            return put_mixed::<true>(to, v, 16, before);
        }
        before.units = v;
        if is_ascii(v) {
            return put_ascii(to, v, 16);
        }
        if _mm256_testz_si256(v, most) != 0 {
            return put_two(to, v, 16);
        }
        let low = _mm256_cmpeq_epi16(top, _mm256_setzero_si256());
        if _mm256_testz_si256(low, low) != 0 {
            return put_three(to, v);
        }
        put_mixed::<false>(to, v, 16, before)
    }
}

/// Returns the last two UTF-8 bytes of each unit, the last one in the high half of the lane. `two`
/// marks units of two or three bytes, and `three` marks units of three.
#[inline]
#[target_feature(enable = "avx2")]
fn last_two(v: __m256i, two: __m256i, three: __m256i) -> __m256i {
    let splat = |bits: u16| _mm256_set1_epi16(bits as i16);
    let ascii = _mm256_slli_epi16::<8>(v);
    let six = _mm256_or_si256(
        _mm256_and_si256(_mm256_srli_epi16::<6>(v), splat(0x003F)),
        _mm256_and_si256(ascii, splat(0x3F00)),
    );
    let marks = _mm256_blendv_epi8(splat(0x80C0), splat(0x8080), three);
    _mm256_blendv_epi8(ascii, _mm256_or_si256(six, marks), two)
}

/// Writes the first `n` of 16 units as UTF-8. The other units must be zero. If `PAIRS` is `true`,
/// units may be surrogates.
///
/// Each half of a surrogate pair yields two of the four UTF-8 bytes.
///
/// # Safety
/// `to` must have space for [`STEP`] bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn put_mixed<const PAIRS: bool>(
    to: *mut u8,
    v: __m256i,
    n: usize,
    before: &mut Before,
) -> usize {
    let splat = |bits: u16| _mm256_set1_epi16(bits as i16);
    let bits = |v, mask| _mm256_and_si256(v, splat(mask));
    let at_least = |least| _mm256_cmpeq_epi16(_mm256_max_epu16(v, splat(least)), v);
    let (two, mut three) = (at_least(0x80), at_least(0x800));
    let mut last = last_two(v, two, three);
    let lead = bits(_mm256_srli_epi16::<4>(v), 0x0F00);
    let lead = _mm256_or_si256(lead, splat(0xE000));
    if PAIRS {
        let tops = bits(v, 0xFC00);
        let high = _mm256_cmpeq_epi16(tops, splat(0xD800));
        let low = _mm256_cmpeq_epi16(tops, splat(0xDC00));
        // The ten bits plus U+10000 are eleven bits. The upper three belong to the lead byte, the
        // next six to the second byte.
        let eleven = _mm256_add_epi16(bits(v, 0x03FF), splat(0x0040));
        let first = _mm256_or_si256(
            _mm256_srli_epi16::<8>(eleven),
            bits(_mm256_slli_epi16::<6>(eleven), 0x3F00),
        );
        last = _mm256_blendv_epi8(last, _mm256_or_si256(first, splat(0x80F0)), high);
        // An AND inserts the other two bits: the prefix of the second half has ones at their
        // positions.
        let previous = _mm256_permute2x128_si256::<0x21>(before.units, v);
        let previous = _mm256_alignr_epi8::<14>(v, previous);
        let kept = _mm256_or_si256(_mm256_slli_epi16::<4>(previous), splat(0xFFCF));
        last = _mm256_andnot_si256(_mm256_andnot_si256(kept, low), last);
        three = _mm256_andnot_si256(_mm256_or_si256(high, low), three);
        // `movemask` yields two bits for each 16-bit unit.
        let lanes = |v| u64::from(_mm256_movemask_epi8(v) as u32);
        let due = lanes(high) << 2 | u64::from(before.open * 3);
        before.bad |= due as u32 ^ lanes(low) as u32;
        before.open = (due >> 33) as u32;
        before.units = v;
    }
    let more = _mm256_blendv_epi8(two, three, splat(0xFF00));
    // SAFETY: guaranteed by the caller.
    unsafe { put_squeezed(to, lead, last, [more, _mm256_setzero_si256()], n) }
}

/// Writes the first `n` of 16 code points as UTF-8. The others must be zero. `bad` marks the
/// malformed ones.
///
/// # Safety
/// `to` must have space for [`STEP`] bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn put_planes(to: *mut u8, a: __m256i, b: __m256i, n: usize, bad: &mut __m256i) -> usize {
    let splat = |bits: u16| _mm256_set1_epi16(bits as i16);
    let bits = |v, mask| _mm256_and_si256(v, splat(mask));
    let low = _mm256_set1_epi32(0xFFFF);
    let v = packed(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    let plane = packed(_mm256_srli_epi32::<16>(a), _mm256_srli_epi32::<16>(b));
    let not_four = _mm256_cmpeq_epi16(plane, _mm256_setzero_si256());
    // Surrogates, and code points past U+10FFFF (compared as unsigned numbers).
    let past = _mm256_cmpeq_epi16(_mm256_max_epu16(plane, splat(0x11)), plane);
    let half = _mm256_cmpeq_epi16(bits(v, 0xF800), splat(0xD800));
    let half = _mm256_and_si256(half, not_four);
    *bad = _mm256_or_si256(*bad, _mm256_or_si256(past, half));
    let at_least = |least| {
        let is = _mm256_cmpeq_epi16(_mm256_max_epu16(v, splat(least)), v);
        // All bits are set past U+FFFF.
        _mm256_or_si256(is, _mm256_xor_si256(not_four, splat(0xFFFF)))
    };
    let (two, three) = (at_least(0x80), at_least(0x800));
    let last = last_two(v, two, three);
    let lead = bits(_mm256_srli_epi16::<4>(v), 0x0F00);
    let of_three = _mm256_or_si256(lead, splat(0xE000));
    // The two lowest bits of the plane precede `lead`. Three bits of the plane follow the prefix
    // 0xF0.
    let of_four = _mm256_or_si256(lead, bits(_mm256_slli_epi16::<12>(plane), 0x3000));
    let first = _mm256_or_si256(_mm256_srli_epi16::<2>(plane), splat(0x80F0));
    let of_four = _mm256_or_si256(of_four, first);
    let lead = _mm256_blendv_epi8(of_four, of_three, not_four);
    let two = _mm256_and_si256(two, not_four);
    let more = [
        _mm256_blendv_epi8(two, three, splat(0xFF00)),
        _mm256_xor_si256(not_four, splat(0xFFFF)),
    ];
    // SAFETY: guaranteed by the caller.
    unsafe { put_squeezed(to, lead, last, more, n) }
}

/// Packs two vectors of 32-bit lanes into one of 16-bit lanes, in order. All values must fit into
/// 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn packed(a: __m256i, b: __m256i) -> __m256i {
    // `packus` packs each 128-bit half separately, so the quarters are reordered.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(a, b))
}

/// Writes the first `n` of 16 characters as UTF-8. `lead` has the first two bytes of each, and
/// `last` the last two. `more` has four sign bits for each character. In a character of k bytes, k
/// - 1 are set. The sign bits of the first vector are an index of [`SOME`].
///
/// # Safety
/// `to` must have space for [`STEP`] bytes, and `more` must be zero for the characters from `n` on.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn put_squeezed(
    to: *mut u8,
    lead: __m256i,
    last: __m256i,
    more: [__m256i; 2],
    n: usize,
) -> usize {
    let more = more.map(|v| _mm256_movemask_epi8(v) as u32);
    let even = _mm256_unpacklo_epi16(lead, last);
    let odd = _mm256_unpackhi_epi16(lead, last);
    let lanes = [
        _mm256_castsi256_si128(even),
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(even),
        _mm256_extracti128_si256::<1>(odd),
    ];
    let n_more = |mask: u32| {
        let [a, b] = more.map(|bits| (bits & mask).count_ones());
        (a + b) as usize
    };
    for (k, lanes) in lanes.into_iter().enumerate() {
        let index = (more[0] >> (8 * k)) as u8;
        let before = 4 * k + n_more((1 << (8 * k)) - 1);
        // SAFETY: the table has 16 bytes for each 8-bit index. Four characters have at most 16
        // bytes, so all stores are inside the [`STEP`] bytes at `to`.
        unsafe {
            let order = _mm_loadu_si128(SOME[usize::from(index)].as_ptr().cast());
            _mm_storeu_si128(to.add(before).cast(), _mm_shuffle_epi8(lanes, order));
        }
    }
    n + n_more(u32::MAX)
}

/// Encodes 32-bit units as UTF-8. Returns the number of bytes, or `None` if a unit is not a valid
/// character or `out` is too short.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) unsafe fn ucs4(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    let mut bad = _mm256_setzero_si256();
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::new(dst, capacity);
        let load = |at: usize| _mm256_loadu_si256(p.add(at).cast());
        let mut at = 0;
        while at + 32 <= len && out.takes(STEP) {
            let [a, b, c, d] = [0, 8, 16, 24].map(|more| load(at + more));
            let all = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
            if _mm256_testz_si256(all, _mm256_set1_epi32(!0x7F)) != 0 {
                // `packus` packs each 128-bit half separately, so the quarters are reordered.
                let (lower, upper) = (_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
                let bytes = _mm256_packus_epi16(lower, upper);
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                let bytes = _mm256_permutevar8x32_epi32(bytes, order);
                out.put(|to| {
                    _mm256_storeu_si256(to.cast(), bytes);
                    32
                });
                at += 32;
                continue;
            }
            out.put(|to| put_planes(to, a, b, 16, &mut bad));
            at += 16;
        }
        while at < len {
            let n = (len - at).min(16);
            // The first `n` lanes are negative.
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let load = |at: usize, n: usize| {
                let there = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
                _mm256_maskload_epi32(p.wrapping_add(at).cast(), there)
            };
            let (a, b) = (load(at, n), load(at + 8, n.saturating_sub(8)));
            out.put_if_it_fits(|to| put_planes(to, a, b, n, &mut bad));
            at += n;
        }
        if _mm256_testz_si256(bad, bad) == 0 {
            return None;
        }
        out.written(dst)
    }
}
