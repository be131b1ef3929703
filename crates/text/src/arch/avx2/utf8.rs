//! UTF-8 to the units of a `str`.
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
use crate::arch::bulk::as_str;
use crate::arch::sse2::load_padded;

/// The places of 16 bytes where a character starts.
///
/// # Safety
/// SSE2.
#[inline(always)]
unsafe fn starts(v: __m128i) -> u32 {
    // SAFETY: SSE2 is part of x86-64. Signed: continuation bytes are the lowest.
    unsafe { _mm_movemask_epi8(_mm_cmpgt_epi8(v, _mm_set1_epi8(0xBF_u8 as i8))) as u32 }
}

/// The characters that start at each of 16 places, given the bytes there and those one and two places behind; those of three
/// bytes where `WIDE`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn chars<const WIDE: bool>(v: __m128i, second: __m128i, third: __m128i) -> __m256i {
    let first = _mm256_cvtepu8_epi16(v);
    let second = _mm256_cvtepu8_epi16(second);
    let low6 = _mm256_set1_epi16(0x3F);
    let second = _mm256_and_si256(second, low6);
    let lead = _mm256_and_si256(first, _mm256_set1_epi16(0x1F));
    let two = _mm256_or_si256(_mm256_slli_epi16::<6>(lead), second);
    let is_two = _mm256_cmpgt_epi16(first, _mm256_set1_epi16(0xBF));
    let c = _mm256_blendv_epi8(first, two, is_two);
    if !WIDE {
        return c;
    }
    let third = _mm256_cvtepu8_epi16(third);
    let third = _mm256_and_si256(third, low6);
    let second = _mm256_slli_epi16::<6>(second);
    // The upper half of the lead falls out of its lane.
    let three = _mm256_or_si256(_mm256_slli_epi16::<12>(first), second);
    let three = _mm256_or_si256(three, third);
    let is_three = _mm256_cmpgt_epi16(first, _mm256_set1_epi16(0xDF));
    _mm256_blendv_epi8(c, three, is_three)
}

/// Decodes the characters that start at the places of `mask`, given the bytes there and those one and two places behind.
///
/// # Safety
/// AVX2; every character of `mask` lies in the vectors as a whole, none is wider than a unit; `out` has room for them, and
/// where `ROOMY` for 16 units.
#[inline(always)]
unsafe fn step<U: Unit, const ROOMY: bool>(
    v: __m128i,
    second: __m128i,
    third: __m128i,
    mask: u32,
    out: &mut Out<U>,
) {
    // SAFETY: the caller has AVX2, and grants the room.
    unsafe {
        let c = if U::WIDE {
            chars::<true>(v, second, third)
        } else {
            chars::<false>(v, second, third)
        };
        out.put::<ROOMY>(_mm256_castsi256_si128(c), mask as u8);
        out.put::<ROOMY>(_mm256_extracti128_si256::<1>(c), (mask >> 8) as u8);
    }
}

/// As [`step`], of a vector alone.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn step_within<U: Unit>(v: __m128i, mask: u32, out: &mut Out<U>) {
    // SAFETY: the duties are the same.
    unsafe {
        step::<U, false>(v, _mm_srli_si128::<1>(v), _mm_srli_si128::<2>(v), mask, out);
    }
}

/// Decodes UTF-8, and returns how many units it gave; where it is to be checked, `None` of what is malformed.
///
/// # Safety
/// AVX2. No character of `src` is wider than a unit, and `out` takes `room` of them, as many as there are bytes that continue
/// nothing, or more. `src` is valid, or it is checked.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn decode<U: Unit, const CHECKED: bool>(
    src: &[u8],
    out: *mut U,
    room: usize,
) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: the place that the caller grants.
    let mut out = unsafe { Out::new(out, room) };
    let mut check = Check::new();
    // SAFETY: every load ends inside src. Those at one and two places behind have what the characters of a step need (kinds
    // 1 and 2 have no longer ones than 3 bytes). All characters that start at the first 14 of 16 places end among the 16;
    // those of the last vector end with the text. A step puts as many units as bytes that continue nothing.
    unsafe {
        if len < 16 {
            if CHECKED && as_str(src).is_none() {
                return None;
            }
            if len > 0 {
                let v = load_padded(p, len).0;
                step_within(v, starts(v) & ((1 << len) - 1), &mut out);
            }
            return Some(room - out.room());
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
            if U::WIDE {
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
            if CHECKED {
                let behind = _mm256_loadu_si256(p.add(at + 1).cast());
                check.look::<U>(v, behind, high, tails);
            }
            let lower = [load(at), load(at + 1), load(at + 2)];
            step::<U, true>(lower[0], lower[1], lower[2], !tails & 0xFFFF, &mut out);
            let upper = [load(at + 16), load(at + 17), load(at + 18)];
            step::<U, true>(upper[0], upper[1], upper[2], !tails >> 16, &mut out);
            at += 32;
        }
        if CHECKED && !check.is_good_with(src, at) {
            return None;
        }
        while at + 16 < len {
            let v = load(at);
            step_within(v, starts(v) & 0x3FFF, &mut out);
            at += 14;
        }
        let v = load(len - 16);
        // Without those that were decoded in the step before.
        let fresh = 0xFFFF << (16 - (len - at));
        step_within(v, starts(v) & fresh & 0xFFFF, &mut out);
    }
    Some(room - out.room())
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
        while at + 52 <= len {
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
pub(in crate::arch) unsafe fn to_latin1(src: &[u8], out: *mut u8, room: usize) -> usize {
    // SAFETY: the duties are the same.
    unsafe { decode::<u8, false>(src, out, room) }.expect("not checked")
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
    unsafe { decode::<u8, true>(src, out, room) }
}

/// # Safety
/// As [`to_latin1`], with characters below U+10000 and units of 16 bits.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_ucs2(src: &[u8], out: *mut u16, room: usize) -> usize {
    // SAFETY: the duties are the same.
    unsafe { decode::<u16, false>(src, out, room) }.expect("not checked")
}

/// As [`to_latin1_checked`], with no byte above 0xEF and units of 16 bits.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_ucs2_checked(
    src: &[u8],
    out: *mut u16,
    room: usize,
) -> Option<usize> {
    // SAFETY: the duties are the same.
    unsafe { decode::<u16, true>(src, out, room) }
}

/// The characters whose bytes stand in the lanes, the first one highest.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn chars_of_lanes(bytes: __m256i) -> __m256i {
    // By the high half of the first byte: how many bits behind the character there are.
    let shifts = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        24, 24, 24, 24, 24, 24, 24, 24, 16, 16, 16, 16, 16, 16, 8, 0,
    ));
    let class = _mm256_or_si256(
        _mm256_srli_epi32::<28>(bytes),
        _mm256_set1_epi32(0x8080_8080_u32 as i32 & !0xFF),
    );
    let shift = _mm256_shuffle_epi8(shifts, class);
    let bits = _mm256_srlv_epi32(_mm256_set1_epi32(0x1F3F_3F3F), shift);
    let six = _mm256_and_si256(_mm256_srlv_epi32(bytes, shift), bits);
    let halves = _mm256_maddubs_epi16(six, _mm256_set1_epi32(0x4001_4001));
    let chars = _mm256_madd_epi16(halves, _mm256_set1_epi32(0x1000_0001));
    // The lead of four bytes has a mark among those bits.
    let chars = _mm256_and_si256(chars, _mm256_set1_epi32(0x1F_FFFF));
    // ASCII has its highest bit not set, and more bits than those.
    let ascii = _mm256_srli_epi32::<24>(bytes);
    _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(ascii),
        _mm256_castsi256_ps(chars),
        _mm256_castsi256_ps(bytes),
    ))
}

/// Decodes the characters that start at the places of `mask`, of the first 8.
///
/// # Safety
/// AVX2; every character of `mask` lies in `v` as a whole; `out` has room for them.
#[inline(always)]
unsafe fn step_four(v: __m128i, mask: u8, out: &mut Out<u32>) {
    // SAFETY: the caller has AVX2, and grants the room.
    unsafe {
        // In each lane the byte of its place highest, and the three behind it.
        let order = _mm256_setr_epi8(
            3, 2, 1, 0, 4, 3, 2, 1, 5, 4, 3, 2, 6, 5, 4, 3, //
            7, 6, 5, 4, 8, 7, 6, 5, 9, 8, 7, 6, 10, 9, 8, 7,
        );
        let bytes = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), order);
        out.put_wide(chars_of_lanes(bytes), mask);
    }
}

/// Where 32 bytes start as many characters at most, those are fetched one by one.
const FEW: u32 = 16;

/// Decodes the first eight characters of 32 bytes, given where they start, and returns how many bytes to go on behind.
///
/// # Safety
/// AVX2; 36 bytes from `p` on are readable, of which at least eight start a character; `out` has room for eight.
#[inline(always)]
unsafe fn step_sparse(p: *const u8, starts: u32, out: &mut Out<u32>) -> usize {
    debug_assert!(starts.count_ones() >= 8 && out.room() >= 8);
    let mut left = starts;
    // SAFETY: the duties of the caller; each of the eight is a place of 32.
    unsafe {
        let mut next = || {
            let place = left.trailing_zeros() as usize & 31;
            left = _blsr_u32(left);
            p.add(place).cast::<u32>().read_unaligned() as i32
        };
        let bytes = fetched(&mut next);
        _mm256_storeu_si256(out.at.cast(), chars_of_lanes(bytes));
        out.at = out.at.add(8);
    }
    // 32 where there is no ninth.
    left.trailing_zeros() as usize
}

/// Eight lanes of what is fetched in turn, the first byte of each highest.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(super) unsafe fn fetched(next: &mut impl FnMut() -> i32) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let mut four = || {
            let v = _mm_cvtsi32_si128(next());
            let v = _mm_insert_epi32::<1>(v, next());
            let v = _mm_insert_epi32::<2>(v, next());
            _mm_insert_epi32::<3>(v, next())
        };
        let (lower, upper) = (four(), four());
        let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
        ));
        _mm256_shuffle_epi8(_mm256_set_m128i(upper, lower), order)
    }
}

/// # Safety
/// As [`to_latin1`], with any characters and units of 32 bits.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::arch) unsafe fn to_ucs4(src: &[u8], out: *mut u32, room: usize) -> usize {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: the place that the caller grants.
    let mut out = unsafe { Out::new(out, room) };
    // SAFETY: every load ends inside src. All characters that start at the first 8 of 16 places end among the 16; those of
    // the last vector end with the text.
    unsafe {
        if len < 16 {
            if len > 0 {
                let v = load_padded(p, len).0;
                let mask = starts(v) & ((1 << len) - 1);
                step_four(v, mask as u8, &mut out);
                step_four(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
            }
            return room - out.room();
        }
        let load = |at: usize| _mm_loadu_si128(p.add(at).cast());
        let mut at = 0;
        while at + 40 <= len {
            let v = _mm256_loadu_si256(p.add(at).cast());
            if _mm256_movemask_epi8(v) == 0 && out.room() >= 32 {
                for k in 0..4 {
                    let eight = _mm_loadl_epi64(p.add(at + 8 * k).cast());
                    _mm256_storeu_si256(out.at.add(8 * k).cast(), _mm256_cvtepu8_epi32(eight));
                }
                out.at = out.at.add(32);
            } else {
                let tail = _mm256_set1_epi8(0xBF_u8 as i8);
                let starts = _mm256_movemask_epi8(_mm256_cmpgt_epi8(v, tail)) as u32;
                if starts.count_ones() <= FEW {
                    // As valid text has at least eight of 32 bytes, there is room.
                    at += step_sparse(p.add(at), starts, &mut out);
                    continue;
                }
                step_four(load(at), starts as u8, &mut out);
                step_four(load(at + 8), (starts >> 8) as u8, &mut out);
                step_four(load(at + 16), (starts >> 16) as u8, &mut out);
                step_four(load(at + 24), (starts >> 24) as u8, &mut out);
            }
            at += 32;
        }
        while at + 16 < len {
            let v = load(at);
            step_four(v, starts(v) as u8, &mut out);
            at += 8;
        }
        let v = load(len - 16);
        // Without those that were decoded in the step before.
        let mask = starts(v) & (0xFFFF << (16 - (len - at)));
        step_four(v, mask as u8, &mut out);
        step_four(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
    }
    room - out.room()
}
