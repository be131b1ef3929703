//! UTF-8 to the units of a `str`, and to UTF-16.
//!
//! Every byte of a vector is taken for the start of a character, the character is put together from the bytes behind it, and
//! then the lanes where none starts are squeezed out by a table. No step waits for the one before it but for the place of its
//! output, and no branch looks at single characters. Runs of ASCII, and of characters of three bytes, need no table.
//!
//! (Tried and slower: a step for each run of characters of the same length. A step then starts where the one before it
//! ended, which is known 18 cycles later.)

#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use super::check::Check;
use super::out::{Out, Unit};
use crate::arch::sse2::load_padded;
use crate::arch::validity::is_utf8;

mod ucs4;
pub(in crate::arch) use ucs4::to_ucs4;
pub(super) use ucs4::{chars_of_lanes, fetched};

/// The places of 16 bytes where a character starts.
///
/// # Safety
/// SSE2.
#[inline(always)]
unsafe fn starts(v: __m128i) -> u32 {
    // SAFETY: SSE2 is part of x86-64. Signed: continuation bytes are the lowest.
    unsafe { _mm_movemask_epi8(_mm_cmpgt_epi8(v, _mm_set1_epi8(0xBF_u8 as i8))) as u32 }
}

/// The characters below U+0800 that start at each of 16 places, given the bytes there and those behind.
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

/// What a byte of `0xF0 + k` becomes in the high byte of a high half with a carry: `0xD8 + k`.
const HIGH_HALF: u8 = 0xD8_u8.wrapping_sub(0xF0);

/// The units that start at each of 32 places, eight in a vector, given the bytes there and those one and two places behind. Low and
/// high bytes are put together apart. Where `PAIRS`, a character of four bytes has its high half at its first byte and its low half at its
/// third, of which each is made.
#[inline]
#[target_feature(enable = "avx2")]
fn wide_units<const PAIRS: bool>(v: __m256i, second: __m256i, third: __m256i) -> [__m128i; 4] {
    let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
    let bits = |v, mask| _mm256_and_si256(v, splat(mask));
    let at_least = |least: u8| _mm256_cmpeq_epi8(_mm256_max_epu8(v, splat(least)), v);
    // The last two bytes of each character give ten or eleven bits, the lead of three the rest. Continuation bytes are taken for leads
    // of two.
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
        // Low halves: ten bits, behind 0xDC00, which has two of those that are too much.
        let is_tail = _mm256_cmpgt_epi8(splat(0xC0), v);
        high = _mm256_or_si256(high, bits(is_tail, 0xDC));
    }
    // ASCII has none.
    high = _mm256_blendv_epi8(_mm256_setzero_si256(), high, v);
    if PAIRS {
        // High halves: the first 14 bits less 0x40, which is U+10000, behind 0xD800.
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
    // Places 0 to 7 and 16 to 23, 8 to 15 and 24 to 31.
    let even = _mm256_unpacklo_epi8(low, high);
    let odd = _mm256_unpackhi_epi8(low, high);
    [
        _mm256_castsi256_si128(even),
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(even),
        _mm256_extracti128_si256::<1>(odd),
    ]
}

/// The units that start at each of 16 places, eight in a vector of lanes of 16 bits, given the bytes there and those one and two
/// places behind; where not `WIDE`, of characters below U+0800. `PAIRS` as in [`wide_units`].
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

/// Decodes the characters that start at the places of `mask`, of 32 bytes at `p`. Where `PAIRS`, the places of third bytes of four are in
/// the mask too.
///
/// # Safety
/// AVX2; 34 bytes are readable. No character of `mask` is wider than a unit, or than two where `PAIRS`; `out` has room for 32 units.
#[inline(always)]
unsafe fn step<U: Unit, const PAIRS: bool>(p: *const u8, mask: u32, out: &mut Out<U>) {
    // SAFETY: the caller has AVX2, and grants the reads and the room.
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

/// As [`step`], of 16 bytes and a mask of them.
///
/// # Safety
/// AVX2; every character of `mask` lies in the vector as a whole, or its halves do; `out` has room for as many units as there are in the
/// mask.
#[inline(always)]
unsafe fn step_within<U: Unit, const PAIRS: bool>(v: __m128i, mask: u32, out: &mut Out<U>) {
    // SAFETY: the caller has AVX2, and grants the room.
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

/// The places of the vector where a character of four bytes starts.
#[inline]
#[target_feature(enable = "avx2")]
fn fours(v: __m256i) -> u32 {
    let least = _mm256_set1_epi8(0xF0_u8 as i8);
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(v, least), v)) as u32
}

/// Decodes UTF-8, and returns how many units it gave; where it is to be checked, `None` of what is malformed.
///
/// # Safety
/// AVX2. No character of `src` is wider than a unit, or than two where `PAIRS`, and `out` takes `room` of them, as many as there are bytes
/// that continue nothing, or more; where `PAIRS`, one more for each byte above 0xEF. `src` is valid, or it is checked.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn decode<U: Unit, const CHECKED: bool, const PAIRS: bool>(
    src: &[u8],
    out: *mut U,
    room: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: the place that the caller grants.
    let mut out = unsafe { Out::new(out, room) };
    let mut check = Check::new();
    // The places where the next step has a third byte of four, of a character that started before it.
    let mut owed = 0;
    // The places of 16 bytes that give a unit.
    let units_at = |v: __m128i, owed: &mut u32, n: u32| {
        // SAFETY: AVX2 is there.
        let starts = unsafe { starts(v) };
        if !PAIRS {
            return starts;
        }
        let four = fours(_mm256_castsi128_si256(v)) & 0xFFFF;
        let lows = four << 2 | *owed;
        *owed = lows >> n;
        starts | lows
    };
    // SAFETY: every load ends inside src. Those at one and two places behind have what the characters of a step need (a
    // unit is made of 3 bytes at most). All characters that start at the first 14 of 16 places end among the 16, or their halves do;
    // those of the last vector end with the text. A step puts as many units as bytes that continue nothing, and third bytes of four.
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
            return out.written(room);
        }
        let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
        let mut at = 0;
        while at + 34 <= len && out.room() >= 32 {
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
                let behind = _mm256_loadu_si256(p.add(at + 1).cast());
                check.look::<U>(v, behind, high, tails, four);
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
        // Without those that were decoded in the step before.
        let done = 16 - (len - at);
        owed <<= done;
        let mask = units_at(v, &mut owed, 0) & 0xFFFF << done;
        step_within::<U, PAIRS>(v, mask & 0xFFFF, &mut out);
    }
    out.written(room)
}

/// The continuation bytes of 32 inside a run of characters of three bytes, by how many of them its start holds of the
/// character before it.
static TAILS: [u32; 3] = {
    let mut all = [0; 3];
    let mut i = 0;
    while i < 3 * 32 {
        let (begun, place) = (i / 32, i % 32);
        if (place + 3 - begun) % 3 != 0 {
            all[begun] |= 1 << place;
        }
        i += 1;
    }
    all
};

/// Decodes characters of three bytes, 16 at a time, as long as there are as many, and returns how many bytes they had.
///
/// # Safety
/// AVX2. `p` is readable for `len` bytes; `out` has room for a unit for each that continues nothing, and is wide.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn run_of_three<U: Unit, const CHECKED: bool>(
    p: *const u8,
    len: usize,
    out: &mut Out<U>,
    check: &mut Check,
) -> usize {
    let mut at = 0;
    // SAFETY: every load ends inside len; 48 bytes hold 16 characters, for which there is room.
    unsafe {
        // 12 bytes and 12 more, 4 characters each; the last 4 of 16 bytes are not looked at.
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
        // The last byte of each character first.
        let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            2, 1, 0, -1, 5, 4, 3, -1, 8, 7, 6, -1, 11, 10, 9, -1,
        ));
        let bits = _mm256_set1_epi32(0x000F_3F3F);
        let decode = |v| {
            let v = _mm256_and_si256(_mm256_shuffle_epi8(v, order), bits);
            let halves = _mm256_maddubs_epi16(v, _mm256_set1_epi32(0x0001_4001));
            _mm256_madd_epi16(halves, _mm256_set1_epi32(0x1000_0001))
        };
        while at + 52 <= len && out.room() >= 16 {
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

/// # Safety
/// AVX2. `src` is valid UTF-8, all characters below U+0100; `out` takes `room` bytes, as many as there are or more. Returns
/// how many there are (so for all below).
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_latin1(src: &[u8], out: *mut u8, room: usize) -> Option<usize> {
    // SAFETY: the duties are the same.
    unsafe { decode::<u8, false, false>(src, out, room) }
}

/// As [`to_latin1`], of bytes that may be malformed: `None` then.
///
/// # Safety
/// AVX2. No byte is above 0xC3; `out` takes `room` bytes, as many as there are bytes that continue nothing, or more.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_latin1_checked(
    src: &[u8],
    out: *mut u8,
    room: usize,
) -> Option<usize> {
    // SAFETY: the duties are the same.
    unsafe { decode::<u8, true, false>(src, out, room) }
}

/// Units of UTF-16 that [`to_utf16`] makes of the text, if it is well-formed; never less than it writes.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::arch) fn units_of(src: &[u8]) -> usize {
    let mut vectors = src.chunks_exact(32);
    let mut n = 0;
    for bytes in &mut vectors {
        // SAFETY: 32 bytes.
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

/// Decodes text, and returns how many units it gave; `None` where it is malformed and `CHECKED`. Without `PAIRS` it has no character past
/// U+FFFF.
///
/// # Safety
/// AVX2. `out` takes `room` units: as many as [`units_of`] counts, or more; without `PAIRS` no byte is above 0xEF. `src` is valid, or it is
/// checked.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_utf16<const CHECKED: bool, const PAIRS: bool>(
    src: &[u8],
    out: *mut u16,
    room: usize,
) -> Option<usize> {
    // SAFETY: a unit for each byte of ASCII is put where as many are counted; the rest of the duties are the same for the rest.
    unsafe {
        // A `str` of kind 2 is not all ASCII.
        let done = if PAIRS {
            widen_ascii(src, out, room)
        } else {
            0
        };
        if PAIRS && done == src.len() {
            return Some(done);
        }
        let rest = decode::<u16, CHECKED, PAIRS>(&src[done..], out.add(done), room - done)?;
        Some(done + rest)
    }
}

/// Widens the ASCII that text of 32 bytes and more begins with, whole vectors of it, and returns how many bytes these are: all where there
/// is nothing else.
///
/// # Safety
/// AVX2. `out` takes `room` units.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn widen_ascii(src: &[u8], out: *mut u16, room: usize) -> usize {
    let (p, len) = (src.as_ptr(), src.len().min(room));
    let mut at = 0;
    // SAFETY: every load ends inside src, and what is stored is ASCII with all before it.
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
