//! Units of any width to UTF-8.
//!
//! The bytes of each unit's character are put together in lanes as wide as the longest that occurs, and those that the
//! character does not need are squeezed out: a byte of a lane is needed exactly where its marks are not zero.
//!
//! Nothing is written past the room that is given, whatever the text: where it runs out, there is no result.

use std::arch::x86_64::*;

use super::three::THREE;
use super::utf16::{first_halves, pairs, second_halves};
use super::{BYTES, Bounded, first, load, load_first, select, splat16, splat32};

/// Units of 16 bits in a vector.
const UNITS: usize = BYTES / 2;

/// Encodes Latin-1 and returns the bytes written; `None` where there is no room for them.
///
/// # Safety
/// `dst` takes `room` bytes, apart from `src` (so for all below).
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1(src: &[u8], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        if len <= UNITS {
            let mut out = Bounded::<true>::new(dst, room);
            put_latin1(&mut out, load_first(p, len), &LOWER, first(2 * len));
            return out.written(dst);
        }
        let mut out = Bounded::<false>::new(dst, room);
        let mut at = 0;
        while at + BYTES <= len {
            let v = load(p.add(at));
            if _mm512_movepi8_mask(v) == 0 {
                out.put(v, BYTES);
            } else {
                put_latin1(&mut out, v, &LOWER, u64::MAX);
                put_latin1(&mut out, v, &UPPER, u64::MAX);
            }
            at += BYTES;
        }
        if len - at > UNITS {
            put_latin1(&mut out, load_first(p.add(at), UNITS), &LOWER, u64::MAX);
            at += UNITS;
        }
        let mut out = out.brief();
        let n = len - at;
        put_latin1(&mut out, load_first(p.add(at), n), &LOWER, first(2 * n));
        out.written(dst)
    }
}

/// Puts 32 bytes of a vector, in each lane of 16 bits the one that `twice` gives; of the bytes that they become those of
/// `which`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_latin1<const BRIEF: bool>(
    out: &mut Bounded<BRIEF>,
    v: __m512i,
    twice: &'static [u8; 64],
    which: u64,
) {
    let (bytes, needed) = latin1_pairs(v, twice);
    let needed = needed & which;
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// 32 bytes of a vector, in each lane of 16 bits the one that `twice` gives, as a lead in the low byte and the last in the
/// high one, and which of these bytes are needed.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
pub(super) fn latin1_pairs(v: __m512i, twice: &'static [u8; 64]) -> (__m512i, u64) {
    // SAFETY: the table has 64 bytes.
    let units = _mm512_permutexvar_epi8(unsafe { load(twice.as_ptr()) }, v);
    // In each lane the bits from 6 on, and those from 0 on: the lead, 0xC2 or 0xC3, and the byte itself.
    let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x3036_2026_1016_0006), units);
    let both = select(splat16(0xFF01), six, splat16(0x00C2));
    // The latter without its second highest bit where the highest is set.
    let bytes =
        _mm512_ternarylogic_epi32::<0x70>(both, _mm512_srli_epi16::<1>(both), splat16(0x4000));
    // ASCII has no lead.
    let needed = _mm512_ternarylogic_epi32::<0xF8>(splat16(0xFF00), units, splat16(0x0080));
    (bytes, _mm512_test_epi8_mask(needed, needed))
}

/// Each of the lower 32 places twice, and of the upper ones.
pub(super) static LOWER: [u8; 64] = each_twice(0);
pub(super) static UPPER: [u8; 64] = each_twice(32);

const fn each_twice(from: u8) -> [u8; 64] {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = from + i as u8 / 2;
        i += 1;
    }
    all
}

/// Units below U+0800 as a lead in the low byte and the last in the high one, and which of these bytes are needed.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
pub(super) fn two(units: __m512i) -> (__m512i, u64) {
    // In each lane the bits from 6 on, and those from 0 on.
    let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x3036_2026_1016_0006), units);
    // 0xC0 | six & 0x1F, 0x80 | six & 0x3F
    let both = select(splat16(0x3F1F), six, splat16(0x80C0));
    let high = _mm512_test_epi16_mask(units, splat16(0xFF80));
    let bytes = _mm512_mask_mov_epi16(units, high, both);
    // The low byte is, even where it is U+0000.
    let needed = _mm512_or_si512(bytes, splat16(0x00FF));
    (bytes, _mm512_test_epi8_mask(needed, needed))
}

/// Puts 32 units below U+0800.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_two(out: &mut Bounded<false>, units: __m512i) {
    let (bytes, needed) = two(units);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// As [`put_two`], the first `n`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_first_two<const BRIEF: bool>(out: &mut Bounded<BRIEF>, units: __m512i, n: usize) {
    let (bytes, needed) = two(units);
    let needed = needed & first(2 * n);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// Encodes UTF-16 and returns the bytes written; `None` where the text is malformed, and where there is no room for it.
///
/// # Safety
/// As [`latin1`].
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn wide(src: &[u16], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    if len <= UNITS {
        // SAFETY: the duty of the caller.
        return unsafe { brief(src, dst, room) };
    }
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::<false>::new(dst, room);
        let mut at = 0;
        // Whether the unit before is the first half of a pair, of whose bytes the first two are put.
        let mut open = 0;
        // Whether the vector before had pairs: the next one is as likely to.
        let mut is_mixed = false;
        while at < len {
            let n = (len - at).min(UNITS);
            if n < UNITS && open == 0 && !out.full {
                let n_bytes = brief(&src[at..], out.at, out.left())?;
                return Some(out.at as usize - dst as usize + n_bytes);
            }
            let v = if n == UNITS {
                // Two at a time, where they are of a kind and no pair is open.
                if len - at >= 2 * UNITS && !is_mixed {
                    let (a, b) = (load(p.add(at).cast()), load(p.add(at + UNITS).cast()));
                    if put_alike(&mut out, p.add(at), a, b) {
                        at += 2 * UNITS;
                        continue;
                    }
                    a
                } else {
                    load(p.add(at).cast())
                }
            } else {
                load_first(p.add(at).cast(), 2 * n)
            };
            let beyond = _mm512_test_epi16_mask(v, splat16(0xF800));
            let found = super::scan::surrogates(v);
            is_mixed = found != 0;
            let highs = first_halves(v);
            if highs << 1 | open != found & !highs {
                return None;
            }
            at += if beyond == 0 {
                put_first_two(&mut out, v, n);
                n
            } else if found == 0 {
                put_without_pairs(&mut out, v, beyond, n);
                n
            } else if found == beyond {
                let before = if at == 0 {
                    _mm512_permutexvar_epi16(load(BEFORE.as_ptr().cast()), v)
                } else {
                    load_first(p.add(at - 1).cast(), 2 * n)
                };
                put_halves(&mut out, v, before, highs, found, n);
                open = highs >> (n - 1) & 1;
                n
            } else {
                if open != 0 {
                    put_second_half(&mut out, *p.add(at - 1), *p.add(at));
                    open = 0;
                }
                let behind = load_first(p.wrapping_add(at + 1).cast(), 2 * (len - at) - 2);
                // A pair that the vector parts is put whole by the next one.
                let n = n - (highs >> (n - 1) & 1) as usize;
                put_pairs(&mut out, v, behind, n);
                n
            };
        }
        if open == 0 { out.written(dst) } else { None }
    }
}

/// As [`wide`], of at most a vector: without its loop, and what that keeps in registers.
///
/// # Safety
/// As [`latin1`].
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn brief(src: &[u16], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, n) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::<true>::new(dst, room);
        let v = load_first(p.cast(), 2 * n);
        let beyond = _mm512_test_epi16_mask(v, splat16(0xF800));
        if beyond == 0 {
            put_first_two(&mut out, v, n);
            return out.written(dst);
        }
        let found = super::scan::surrogates(v);
        if found == 0 {
            put_without_pairs(&mut out, v, beyond, n);
            return out.written(dst);
        }
        let highs = first_halves(v);
        if u64::from(highs) << 1 != u64::from(found & !highs) {
            return None;
        }
        if found == beyond {
            let before = _mm512_permutexvar_epi16(load(BEFORE.as_ptr().cast()), v);
            put_halves(&mut out, v, before, highs, found, n);
        } else {
            put_pairs(&mut out, v, load_first(p.add(1).cast(), 2 * n - 2), n);
        }
        out.written(dst)
    }
}

/// Puts the first `n` units of a vector, no surrogates; `beyond` are those from U+0800 on.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_without_pairs<const BRIEF: bool>(
    out: &mut Bounded<BRIEF>,
    v: __m512i,
    beyond: u32,
    n: usize,
) {
    let upper = _mm512_extracti64x4_epi64::<1>(v);
    if u64::from(beyond) == first(n) {
        // Three bytes each; the units of the second vector are counted from the middle of those of the first.
        out.put(THREE[0].encode(v), (3 * n).min(BYTES));
        if 3 * n > BYTES {
            out.put(
                THREE[1].encode(_mm512_castsi256_si512(upper)),
                3 * n - BYTES,
            );
        }
        return;
    }
    let which = first(n);
    let lower = _mm512_castsi512_si256(v);
    put_any(out, _mm512_cvtepu16_epi32(lower), which as u16);
    if n > 16 {
        put_any(out, _mm512_cvtepu16_epi32(upper), (which >> 16) as u16);
    }
}

/// Puts the first `n` units of a vector that are below U+0800 or halves of pairs (`found`, of these `highs` first ones): each half makes
/// two of the pair's four bytes. `before` has the unit before each.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_halves<const BRIEF: bool>(
    out: &mut Bounded<BRIEF>,
    v: __m512i,
    before: __m512i,
    highs: u32,
    found: u32,
    n: usize,
) {
    // The first half, from U+10000 on: its bits from 8 on to the lead, those from 2 on to the second byte.
    let w = _mm512_add_epi16(v, splat16(0x0040_u16.wrapping_sub(0xD800)));
    let w = _mm512_or_si512(_mm512_srli_epi16::<8>(w), _mm512_slli_epi16::<6>(w));
    let leads = select(splat16(0x3F07), w, splat16(0x80F0));
    // The second half: its bits from 6 on, above them two of the first half, and its lower six bits.
    let (high, low) = (_mm512_srli_epi16::<6>(v), _mm512_slli_epi16::<8>(v));
    let own = select(splat16(0x000F), high, low);
    let two_bits = select(
        splat16(0x0030),
        _mm512_slli_epi16::<4>(before),
        splat16(0x8080),
    );
    let trails = select(splat16(0x3F0F), own, two_bits);
    let (bytes, _) = two(v);
    let bytes = _mm512_mask_mov_epi16(bytes, found, trails);
    let bytes = _mm512_mask_mov_epi16(bytes, highs, leads);
    let needed = _mm512_or_si512(bytes, splat16(0x00FF));
    let needed = _mm512_test_epi8_mask(needed, needed) & first(2 * n);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// For each lane the one before it; the first has none.
static BEFORE: [u16; UNITS] = {
    let mut all = [0; UNITS];
    let mut i = 1;
    while i < UNITS {
        all[i] = i as u16 - 1;
        i += 1;
    }
    all
};

/// Puts the two bytes that the second half of a pair makes.
#[cold]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
fn put_second_half(out: &mut Bounded<false>, high: u16, low: u16) {
    let bytes = [0x80 | (high & 3) << 4 | low >> 6 & 0x0F, 0x80 | low & 0x3F];
    let both = i32::from(bytes[0]) | i32::from(bytes[1]) << 8;
    out.put(_mm512_castsi128_si512(_mm_cvtsi32_si128(both)), 2);
}

/// Puts 64 units, at `p` and in two vectors, where all are ASCII, all below U+0800, or all from there on and no surrogates.
///
/// # Safety
/// `p` is readable for them.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn put_alike(out: &mut Bounded<false>, p: *const u16, a: __m512i, b: __m512i) -> bool {
    let any = _mm512_or_si512(a, b);
    let most = splat16(0xF800);
    if _mm512_test_epi16_mask(any, splat16(0xFF80)) == 0 {
        out.put(super::scan::narrow(a, b), BYTES);
        return true;
    }
    if _mm512_test_epi16_mask(any, most) == 0 {
        put_two(out, a);
        put_two(out, b);
        return true;
    }
    let least = _mm512_min_epu16(a, b);
    let low = _mm512_testn_epi16_mask(least, most);
    let top = |v| _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, most), splat16(0xD800));
    if low | top(a) | top(b) != 0 || out.left() < 3 * BYTES {
        return false;
    }
    // SAFETY: the middle of the 64 units is inside them.
    let middle = unsafe { load(p.add(UNITS / 2).cast()) };
    out.put(THREE[0].encode(a), BYTES);
    out.put(THREE[1].encode(middle), BYTES);
    out.put(THREE[2].encode(b), BYTES);
    true
}

/// Puts the first `n` units of a vector, whole characters with pairs among them; `behind` has the unit behind each.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_pairs<const BRIEF: bool>(out: &mut Bounded<BRIEF>, v: __m512i, behind: __m512i, n: usize) {
    let (lower, _, _) = pairs(_mm512_castsi512_si256(v), _mm512_castsi512_si256(behind));
    let (upper, _, _) = pairs(
        _mm512_extracti64x4_epi64::<1>(v),
        _mm512_extracti64x4_epi64::<1>(behind),
    );
    let starts = !second_halves(v) & first(n) as u32;
    put_any(out, lower, starts as u16);
    put_any(out, upper, (starts >> 16) as u16);
}

/// Code points in lanes, none malformed, to the bytes of their characters, the last one highest, and which of these bytes
/// the lanes of `which` need.
#[inline]
#[target_feature(enable = "avx512bw,avx512cd,avx512vbmi")]
pub(super) fn any(chars: __m512i, which: u16) -> (__m512i, u64) {
    // The bits of the character in each byte, by the leading zeros of its code point.
    const ONE: i32 = 0xFF00_0000_u32 as i32;
    const TWO: i32 = 0x3F1F_0000;
    const THREE: i32 = 0x3F3F_0F00;
    const FOUR: i32 = 0x3F3F_3F07;
    let low = _mm512_setr_epi32(
        ONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, FOUR, FOUR, FOUR, FOUR, FOUR,
    );
    let high = _mm512_setr_epi32(
        THREE, THREE, THREE, THREE, THREE, TWO, TWO, TWO, TWO, ONE, ONE, ONE, ONE, ONE, ONE, ONE,
    );
    let zeros = _mm512_lzcnt_epi32(chars);
    let bits = _mm512_maskz_permutex2var_epi32(which, low, zeros, high);
    // Bits from 18, 12, 6 and 0 on.
    let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2026_2C32_0006_0C12), chars);
    // Above its bits a byte has the marks: ones down to a zero right above them. Those are the bits moved up by one, turned
    // round.
    let bytes = _mm512_ternarylogic_epi32::<0xC5>(bits, six, _mm512_add_epi8(bits, bits));
    (bytes, _mm512_test_epi8_mask(bits, bits))
}

/// Puts the code points of the lanes `which`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_any<const BRIEF: bool>(out: &mut Bounded<BRIEF>, chars: __m512i, which: u16) {
    let (bytes, needed) = any(chars, which);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// Encodes 32-bit units and returns the bytes written; `None` where one is a surrogate or past U+10FFFF, and where there is
/// no room for them.
///
/// # Safety
/// As [`latin1`].
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4(src: &[u32], dst: *mut u8, room: usize) -> Option<usize> {
    let (p, len) = (src.as_ptr(), src.len());
    let (mut most, mut least) = (_mm512_setzero_si512(), splat32(u32::MAX));
    let mut look = |chars| {
        most = _mm512_max_epu32(most, chars);
        least = _mm512_min_epu32(least, _mm512_sub_epi32(chars, splat32(0xD800)));
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::<false>::new(dst, room);
        let mut at = 0;
        while at + 64 <= len {
            let part = |k: usize| load(p.add(at + 16 * k).cast());
            let (a, b, c, d) = (part(0), part(1), part(2), part(3));
            let any = _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
            if _mm512_cmplt_epu32_mask(any, splat32(0x80)) == u16::MAX {
                let mut put = |chars| {
                    out.put(_mm512_castsi128_si512(_mm512_cvtepi32_epi8(chars)), 16);
                };
                put(a);
                put(b);
                put(c);
                put(d);
            } else {
                let mut put = |chars| {
                    look(chars);
                    put_any(&mut out, chars, u16::MAX);
                };
                put(a);
                put(b);
                put(c);
                put(d);
            }
            at += 64;
        }
        while at < len {
            let n = (len - at).min(16);
            let chars = load_first(p.add(at).cast(), 4 * n);
            look(chars);
            put_any(&mut out, chars, first(n) as u16);
            at += n;
        }
        let bad = _mm512_cmpgt_epu32_mask(most, splat32(0x10_FFFF))
            | _mm512_cmplt_epu32_mask(least, splat32(0x800));
        if bad == 0 { out.written(dst) } else { None }
    }
}
