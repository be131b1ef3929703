//! Converts UTF-8 to the units of a `str`, and to UTF-16.
//!
//! Each byte has a vector lane for the character that may start there. A shuffle then removes the
//! lanes without a character.
//!
//! (One iteration for each run of equal lengths was slower: it waits for the end of the previous
//! run.)

#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::out::{Out, StrUnit};
use super::utf8_check::Utf8Check;
use crate::arch::by_simdutf::is_utf8;
use crate::arch::sse2::load_padded;

mod ucs4;
pub(in crate::arch) use ucs4::to_ucs4;
pub(super) use ucs4::{chars_of_lanes, fetched};

/// Returns a mask of the first bytes of characters in the UTF-8 `v`.
///
/// # Safety
/// The processor must support SSE2.
#[inline(always)]
unsafe fn starts(v: __m128i) -> u32 {
    // SAFETY: SSE2 is part of x86-64. (As signed numbers, continuation bytes are the lowest.)
    unsafe { _mm_movemask_epi8(_mm_cmpgt_epi8(v, _mm_set1_epi8(0xBF_u8 as i8))) as u32 }
}

/// Decodes characters below U+0800. Lane `i` is the character at byte `i` of `v`. `second` has the
/// next byte of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow_chars(v: __m128i, second: __m128i) -> __m256i {
    let first = _mm256_cvtepu8_epi16(v);
    let second = _mm256_cvtepu8_epi16(second);
    let second = _mm256_and_si256(second, _mm256_set1_epi16(0x3F));
    let lead = _mm256_and_si256(first, _mm256_set1_epi16(0x1F));
    let two = _mm256_or_si256(_mm256_slli_epi16::<6>(lead), second);
    let is_two = _mm256_cmpgt_epi16(first, _mm256_set1_epi16(0xBF));
    _mm256_blendv_epi8(first, two, is_two)
}

/// The number to add to a lead byte `0xF0 + k`. The sum `0xD8 + k` yields the high surrogate.
const HIGH_HALF: u8 = 0xD8_u8.wrapping_sub(0xF0);

/// Decodes UTF-8 to UTF-16. Lane `i` is the unit of the character at byte `i` of `v`. `second` and
/// `third` have the next two bytes of each byte.
///
/// If `PAIRS` is `true`, a four-byte character yields two surrogates, at its first and third byte.
#[inline]
#[target_feature(enable = "avx2")]
fn wide_units<const PAIRS: bool>(v: __m256i, second: __m256i, third: __m256i) -> [__m128i; 4] {
    let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
    let bits = |v, mask| _mm256_and_si256(v, splat(mask));
    let at_least = |least: u8| _mm256_cmpeq_epi8(_mm256_max_epu8(v, splat(least)), v);
    // The last two bytes yield up to eleven bits, and a three-byte lead yields four more.
    // Continuation bytes are treated as leads.
    let is_three = at_least(0xE0);
    let last = _mm256_blendv_epi8(second, third, is_three);
    let before = _mm256_blendv_epi8(v, second, is_three);
    let low = _mm256_or_si256(bits(_mm256_slli_epi16::<6>(before), 0xC0), bits(last, 0x3F));
    let mut low = _mm256_blendv_epi8(v, low, v);
    let upper = bits(_mm256_srli_epi16::<2>(before), 0x0F);
    let top = bits(_mm256_slli_epi16::<4>(v), 0xF0);
    let top = _mm256_and_si256(top, is_three);
    let mut high = _mm256_or_si256(upper, top);
    if PAIRS {
        // Low surrogates: ten bits with the prefix 0xDC00. The AND with its ones removes the two
        // other bits of `high`.
        let is_tail = _mm256_cmpgt_epi8(splat(0xC0), v);
        high = _mm256_or_si256(high, bits(is_tail, 0xDC));
    }
    // ASCII has the high byte zero.
    high = _mm256_blendv_epi8(_mm256_setzero_si256(), high, v);
    if PAIRS {
        // High surrogates: the upper 11 bits of the character, less 0x40 (U+10000), with the prefix
        // 0xD800.
        let is_four = at_least(0xF0);
        let half = _mm256_or_si256(
            bits(_mm256_slli_epi16::<2>(second), 0xFC),
            bits(_mm256_srli_epi16::<4>(third), 0x03),
        );
        low = _mm256_blendv_epi8(low, _mm256_sub_epi8(half, splat(0x40)), is_four);
        let borrows = _mm256_cmpeq_epi8(bits(second, 0x30), _mm256_setzero_si256());
        let half = _mm256_add_epi8(_mm256_add_epi8(v, splat(HIGH_HALF)), borrows);
        high = _mm256_blendv_epi8(high, half, is_four);
    }
    // `even` has positions 0 to 7 and 16 to 23, `odd` 8 to 15 and 24 to 31.
    let even = _mm256_unpacklo_epi8(low, high);
    let odd = _mm256_unpackhi_epi8(low, high);
    [
        _mm256_castsi256_si128(even),
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(even),
        _mm256_extracti128_si256::<1>(odd),
    ]
}

/// Decodes UTF-8 as [`wide_units`] does. If `WIDE` is `false`, all characters must be below U+0800.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn units<const WIDE: bool, const PAIRS: bool>(
    v: __m128i,
    second: __m128i,
    third: __m128i,
) -> [__m128i; 2] {
    if !WIDE {
        let c = narrow_chars(v, second);
        return [_mm256_castsi256_si128(c), _mm256_extracti128_si256::<1>(c)];
    }
    let whole = |v| _mm256_castsi128_si256(v);
    let [lower, upper, ..] = wide_units::<PAIRS>(whole(v), whole(second), whole(third));
    [lower, upper]
}

/// Decodes the characters whose first bytes `mask` selects. If `PAIRS` is `true`, the third bytes
/// of four-byte characters must be selected too.
///
/// # Safety
/// The processor must support AVX2. `p` must be readable for 34 bytes, and `out` must have space
/// for 32 units.
#[inline(always)]
unsafe fn step<U: StrUnit, const PAIRS: bool>(p: *const u8, mask: u32, out: &mut Out<U>) {
    // SAFETY: the caller is compiled for AVX2, and guarantees the bytes and the space.
    unsafe {
        let lanes = if U::WIDE {
            let load = |at: usize| _mm256_loadu_si256(p.add(at).cast());
            wide_units::<PAIRS>(load(0), load(1), load(2))
        } else {
            let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
            let none = _mm_setzero_si128();
            let [a, b] = units::<false, false>(load(0), load(1), none);
            let [c, d] = units::<false, false>(load(16), load(17), none);
            [a, b, c, d]
        };
        for (k, lanes) in lanes.into_iter().enumerate() {
            out.put::<true>(lanes, (mask >> (8 * k)) as u8);
        }
    }
}

/// Decodes as [`step`] does, but reads only the bytes of `v`. Units that do not fit are dropped.
///
/// # Safety
/// The processor must support AVX2.
#[inline(always)]
unsafe fn step_within<U: StrUnit, const PAIRS: bool>(v: __m128i, mask: u32, out: &mut Out<U>) {
    // SAFETY: the caller is compiled for AVX2, and `out` checks its space.
    unsafe {
        let (second, third) = (_mm_srli_si128::<1>(v), _mm_srli_si128::<2>(v));
        let [lower, upper] = if U::WIDE {
            units::<true, PAIRS>(v, second, third)
        } else {
            units::<false, false>(v, second, third)
        };
        out.put::<false>(lower, mask as u8);
        out.put::<false>(upper, (mask >> 8) as u8);
    }
}

/// Returns a mask of the lead bytes of four-byte characters.
#[inline]
#[target_feature(enable = "avx2")]
fn fours(v: __m256i) -> u32 {
    let least = _mm256_set1_epi8(0xF0_u8 as i8);
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(v, least), v)) as u32
}

/// Decodes UTF-8 and returns the number of units. `None` if they do not fit. If `CHECKED` is
/// `true`, validates the text. `PAIRS` permits characters of two units.
///
/// # Safety
/// The processor must support AVX2, and `out` must be writable for `capacity` units.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn decode<U: StrUnit, const CHECKED: bool, const PAIRS: bool>(
    src: &[u8],
    out: *mut U,
    capacity: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: `out` is writable for `capacity` units, by this function's contract.
    let mut out = unsafe { Out::new(out, capacity) };
    let mut check = Utf8Check::new();
    // Third bytes, in the next iteration, of four-byte characters from this iteration.
    let mut owed = 0;
    // Returns a mask of the bytes that yield a unit.
    let units_at = |v: __m128i, owed: &mut u32, n: u32| {
        // SAFETY: AVX2 is available.
        let starts = unsafe { starts(v) };
        if !PAIRS {
            return starts;
        }
        let four = fours(_mm256_castsi128_si256(v)) & 0xFFFF;
        let lows = four << 2 | *owed;
        *owed = lows >> n;
        starts | lows
    };
    // SAFETY: every load ends inside `src`. The loop of 32 bytes ends if fewer than 32 units fit;
    // the others check the space. (A unit has at most three bytes, so the first 14 of 16 bytes
    // begin complete units. The last vector ends with the text.)
    unsafe {
        if len < 16 {
            if CHECKED && !is_utf8(src) {
                return None;
            }
            if len > 0 {
                let v = load_padded(p, len).0;
                let mask = units_at(v, &mut owed, 0) & ((1 << len) - 1);
                step_within::<U, PAIRS>(v, mask, &mut out);
            }
            return out.written(capacity);
        }
        let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
        let mut at = 0;
        while at + 34 <= len && out.remaining() >= 32 {
            let v = _mm256_loadu_si256(p.add(at).cast());
            let high = _mm256_movemask_epi8(v) as u32;
            if high == 0 {
                if CHECKED {
                    check.begin();
                }
                U::put_ascii(v, out.at);
                out.at = out.at.add(32);
                at += 32;
                continue;
            }
            let tail = _mm256_set1_epi8(0xC0_u8 as i8);
            let tails = _mm256_movemask_epi8(_mm256_cmpgt_epi8(tail, v)) as u32;
            if U::WIDE && owed == 0 {
                let begun = tails.trailing_ones() as usize;
                if begun < 3 && tails == TAILS[begun] && (!CHECKED || check.owes(begun)) {
                    let (from, rest) = (p.add(at + begun), len - at - begun);
                    let run = run_of_three::<U, CHECKED>(from, rest, &mut out, &mut check);
                    if run > 0 {
                        at += begun + run;
                        check.settle();
                        continue;
                    }
                }
            }
            let four = if PAIRS { fours(v) } else { 0 };
            if CHECKED {
                let second = _mm256_loadu_si256(p.add(at + 1).cast());
                check.look::<U>(v, second, high, tails, four);
            }
            let mut units = !tails;
            if PAIRS {
                units |= four << 2 | owed;
                owed = four >> 30;
            }
            step::<U, PAIRS>(p.add(at), units, &mut out);
            at += 32;
        }
        if CHECKED && !check.is_good_with(src, at) {
            return None;
        }
        while at + 16 < len {
            let v = load(at);
            let mask = units_at(v, &mut owed, 14) & 0x3FFF;
            step_within::<U, PAIRS>(v, mask, &mut out);
            at += 14;
        }
        let v = load(len - 16);
        // Excludes the decoded characters.
        let done = 16 - (len - at);
        owed <<= done;
        let mask = units_at(v, &mut owed, 0) & 0xFFFF << done;
        step_within::<U, PAIRS>(v, mask & 0xFFFF, &mut out);
    }
    out.written(capacity)
}

/// Masks of the continuation bytes in three-byte characters. `TAILS[n]` starts with `n` of them.
static TAILS: [u32; 3] = {
    let mut all = [0; 3];
    let mut i = 0;
    while i < 3 * 32 {
        let (begun, position) = (i / 32, i % 32);
        if (position + 3 - begun) % 3 != 0 {
            all[begun] |= 1 << position;
        }
        i += 1;
    }
    all
};

/// Decodes three-byte characters, 16 at a time. Returns the number of bytes. `U` must have 16 bits.
///
/// # Safety
/// The processor must support AVX2, and `p` must be readable for `len` bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn run_of_three<U: StrUnit, const CHECKED: bool>(
    p: *const u8,
    len: usize,
    out: &mut Out<U>,
    check: &mut Utf8Check,
) -> usize {
    let mut at = 0;
    // SAFETY: every load ends inside `len`. The 16 characters of 48 bytes fit.
    unsafe {
        // Loads four characters (12 bytes) at `at` and four at `at + 24`.
        let two = |at: usize| {
            let lower = _mm_loadu_si128(p.add(at).cast());
            let upper = _mm_loadu_si128(p.add(at + 24).cast());
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(lower), upper)
        };
        let each = |bytes: [u8; 3]| {
            let [a, b, c] = bytes.map(|b| b as i8);
            let v = _mm_setr_epi8(a, b, c, a, b, c, a, b, c, a, b, c, 0, 0, 0, 0);
            _mm256_broadcastsi128_si256(v)
        };
        let (marked, marks) = (each([0xF0, 0xC0, 0xC0]), each([0xE0, 0x80, 0x80]));
        // Moves the last byte of each character to the lowest byte of its lane.
        let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            2, 1, 0, -1, 5, 4, 3, -1, 8, 7, 6, -1, 11, 10, 9, -1,
        ));
        let bits = _mm256_set1_epi32(0x000F_3F3F);
        let decode = |v| {
            let v = _mm256_and_si256(_mm256_shuffle_epi8(v, order), bits);
            let halves = _mm256_maddubs_epi16(v, _mm256_set1_epi32(0x0001_4001));
            _mm256_madd_epi16(halves, _mm256_set1_epi32(0x1000_0001))
        };
        while at + 52 <= len && out.remaining() >= 16 {
            let (a, b) = (two(at), two(at + 12));
            let is_three = |v| _mm256_cmpeq_epi8(_mm256_and_si256(v, marked), marks);
            if _mm256_movemask_epi8(_mm256_and_si256(is_three(a), is_three(b))) != -1 {
                break;
            }
            let units = _mm256_packus_epi32(decode(a), decode(b));
            if CHECKED {
                check.look_at_units(units);
            }
            U::put_wide(units, out.at);
            out.at = out.at.add(16);
            at += 48;
        }
    }
    at
}

/// Converts valid UTF-8 below U+0100 to Latin-1. Returns the number of characters, or `None` if
/// they do not fit into `out`.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (out, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    // SAFETY: guaranteed by the caller.
    unsafe { decode::<u8, false, false>(src, out, capacity) }
}

/// Converts UTF-8 without bytes above 0xC3 to Latin-1. `None` if the text is malformed or does not
/// fit.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_latin1_checked(
    src: &[u8],
    out: &mut [MaybeUninit<u8>],
) -> Option<usize> {
    let (out, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    // SAFETY: guaranteed by the caller.
    unsafe { decode::<u8, true, false>(src, out, capacity) }
}

/// Returns the number of units that [`to_utf16`] writes. The number may be too large for malformed
/// text.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) fn units_of(src: &[u8]) -> usize {
    let mut vectors = src.chunks_exact(32);
    let mut n = 0;
    for bytes in &mut vectors {
        // SAFETY: the chunk has 32 bytes.
        let v = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        let starts = _mm256_cmpgt_epi8(v, _mm256_set1_epi8(0xBF_u8 as i8));
        let starts = _mm256_movemask_epi8(starts) as u32;
        n += (starts.count_ones() + fours(v).count_ones()) as usize;
    }
    for &b in vectors.remainder() {
        n += usize::from(b & 0xC0 != 0x80) + usize::from(b >= 0xF0);
    }
    n
}

/// Decodes UTF-8 to UTF-16 and returns the number of units. `None` if they do not fit. If `CHECKED`
/// is `true`, validates the text. `PAIRS` permits characters past U+FFFF.
///
/// # Safety
/// The processor must support AVX2.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_utf16<const CHECKED: bool, const PAIRS: bool>(
    src: &[u8],
    out: &mut [MaybeUninit<u16>],
) -> Option<usize> {
    let (out, capacity) = (out.as_mut_ptr().cast::<u16>(), out.len());
    // SAFETY: `widen_ascii` writes `done` units, at most `capacity`. `decode` writes at most the
    // others.
    unsafe {
        // Without `PAIRS`, the text is not all ASCII.
        let done = if PAIRS {
            widen_ascii(src, out, capacity)
        } else {
            0
        };
        if PAIRS && done == src.len() {
            return Some(done);
        }
        let rest = decode::<u16, CHECKED, PAIRS>(&src[done..], out.add(done), capacity - done)?;
        Some(done + rest)
    }
}

/// Converts whole vectors of leading ASCII to UTF-16. Returns the number of bytes. `src` must have
/// at least 32.
///
/// # Safety
/// The processor must support AVX2. `out` must have space for `capacity` units.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn widen_ascii(src: &[u8], out: *mut u16, capacity: usize) -> usize {
    let (p, len) = (src.as_ptr(), src.len().min(capacity));
    let mut at = 0;
    // SAFETY: every load ends inside the first `len` bytes of `src`. Each store writes one unit per
    // loaded byte at the same index. `len` is at most `capacity`.
    unsafe {
        let load = |at: usize| _mm256_loadu_si256(p.add(at).cast());
        while at + 64 <= len {
            if _mm256_movemask_epi8(_mm256_or_si256(load(at), load(at + 32))) != 0 {
                break;
            }
            for k in 0..4 {
                let half = _mm_loadu_si128(p.add(at + 16 * k).cast());
                _mm256_storeu_si256(out.add(at + 16 * k).cast(), _mm256_cvtepu8_epi16(half));
            }
            at += 64;
        }
        while at + 32 <= len {
            let v = load(at);
            if _mm256_movemask_epi8(v) != 0 {
                return at;
            }
            u16::put_ascii(v, out.add(at));
            at += 32;
        }
        if at > 0 && at < len {
            let v = load(len - 32);
            if _mm256_movemask_epi8(v) == 0 {
                u16::put_ascii(v, out.add(len - 32));
                return len;
            }
        }
    }
    at
}
