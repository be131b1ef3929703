//! Converts units of any width to UTF-8.
//!
//! Each character is encoded in its own vector lane. A byte compression then removes the unused
//! bytes.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::three_byte_units::THREE;
use super::utf16::{first_halves, pairs, second_halves};
use super::{BYTES, Bounded, first, load, load_first, select, splat16, splat32};

const UNITS: usize = BYTES / 2;

/// Encodes Latin-1 as UTF-8 and returns the number of bytes. `None` if they do not fit into `out`.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        if len <= UNITS {
            let mut out = Bounded::<true>::new(dst, capacity);
            put_latin1(&mut out, load_first(p, len), &LOWER, first(2 * len));
            return out.written(dst);
        }
        let mut out = Bounded::<false>::new(dst, capacity);
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

/// Writes half of the 64 Latin-1 characters in `v` as UTF-8. `which` is a mask for the result of
/// [`latin1_pairs`].
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

/// Encodes half of the Latin-1 characters in `v` as UTF-8: the first 32 for [`LOWER`], the last 32
/// for [`UPPER`]. The returned mask selects the bytes of the output.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
pub(super) fn latin1_pairs(v: __m512i, twice: &'static [u8; 64]) -> (__m512i, u64) {
    // SAFETY: the table has 64 bytes.
    let units = _mm512_permutexvar_epi8(unsafe { load(twice.as_ptr()) }, v);
    // The bits from 6 on yield the lead, 0xC2 or 0xC3. Those from 0 on are the last byte.
    let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x3036_2026_1016_0006), units);
    let both = select(splat16(0xFF01), six, splat16(0x00C2));
    // Clears bit 6 of a last byte from 0x80 on.
    let bytes =
        _mm512_ternarylogic_epi32::<0x70>(both, _mm512_srli_epi16::<1>(both), splat16(0x4000));
    // ASCII has no lead byte.
    let needed = _mm512_ternarylogic_epi32::<0xF8>(splat16(0xFF00), units, splat16(0x0080));
    (bytes, _mm512_test_epi8_mask(needed, needed))
}

/// Byte indexes of a permutation that doubles each byte of one half of a vector.
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

/// Encodes units below U+0800 as UTF-8 in their lanes. The returned mask selects the bytes of the
/// output.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
pub(super) fn two(units: __m512i) -> (__m512i, u64) {
    // The low byte gets the bits from 6 on, the high byte those from 0 on.
    let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x3036_2026_1016_0006), units);
    // Low byte: 0xC0 | six & 0x1F. High byte: 0x80 | six & 0x3F.
    let both = select(splat16(0x3F1F), six, splat16(0x80C0));
    let high = _mm512_test_epi16_mask(units, splat16(0xFF80));
    let bytes = _mm512_mask_mov_epi16(units, high, both);
    // The low byte is used even for U+0000.
    let needed = _mm512_or_si512(bytes, splat16(0x00FF));
    (bytes, _mm512_test_epi8_mask(needed, needed))
}

/// Writes 32 units below U+0800 as UTF-8.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_two(out: &mut Bounded<false>, units: __m512i) {
    let (bytes, needed) = two(units);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// Writes the first `n` units as UTF-8. All must be below U+0800.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_first_two<const BRIEF: bool>(out: &mut Bounded<BRIEF>, units: __m512i, n: usize) {
    let (bytes, needed) = two(units);
    let needed = needed & first(2 * n);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// Encodes UTF-16 as UTF-8. Returns the number of bytes, or `None` if the text is malformed or does
/// not fit into `out`.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn wide(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    if len <= UNITS {
        // SAFETY: guaranteed by the caller.
        return unsafe { brief(src, dst, capacity) };
    }
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::<false>::new(dst, capacity);
        let mut at = 0;
        // 1 if the previous unit is the first half of a pair. Two bytes of the pair are already
        // written.
        let mut open = 0;
        // `true` if the previous vector had surrogate pairs.
        let mut is_mixed = false;
        while at < len {
            let n = (len - at).min(UNITS);
            if n < UNITS && open == 0 && !out.full {
                let n_bytes = brief(&src[at..], out.at, out.left())?;
                return Some(out.at as usize - dst as usize + n_bytes);
            }
            let v = if n == UNITS {
                // Writes two vectors if all units are of one class and no pair is open.
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
                let following = load_first(p.wrapping_add(at + 1).cast(), 2 * (len - at) - 2);
                // The next vector writes a pair that is split here.
                let n = n - (highs >> (n - 1) & 1) as usize;
                put_pairs(&mut out, v, following, n);
                n
            };
        }
        if open == 0 { out.written(dst) } else { None }
    }
}

/// Implements [`wide`] for at most 32 units (one vector), without a loop.
///
/// # Safety
/// The processor must support AVX-512, and `dst` must be writable for `capacity` bytes.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn brief(src: &[u16], dst: *mut u8, capacity: usize) -> Option<usize> {
    let (p, n) = (src.as_ptr(), src.len());
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::<true>::new(dst, capacity);
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

/// Encodes the first `n` units as UTF-8. None may be a surrogate. `beyond` selects those from
/// U+0800 on.
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
        // Three bytes each. The second vector starts in the middle of the first.
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

/// Writes the first `n` units of `v` as UTF-8, each below U+0800 or half of a pair. `found` selects
/// the surrogates, and `highs` the first halves. `before` has the previous unit of each unit.
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
    // The first half plus U+10000. Its bits from 8 on belong to the lead, the rest to the second
    // byte.
    let w = _mm512_add_epi16(v, splat16(0x0040_u16.wrapping_sub(0xD800)));
    let w = _mm512_or_si512(_mm512_srli_epi16::<8>(w), _mm512_slli_epi16::<6>(w));
    let leads = select(splat16(0x3F07), w, splat16(0x80F0));
    // The third byte has the bits from 6 on, and two bits of the first half. The last byte has six
    // bits.
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

/// Indexes of a permutation that moves each 16-bit lane up by one. Lane 0 is not used.
static BEFORE: [u16; UNITS] = {
    let mut all = [0; UNITS];
    let mut i = 1;
    while i < UNITS {
        all[i] = i as u16 - 1;
        i += 1;
    }
    all
};

/// Writes the last two of the four UTF-8 bytes of a surrogate pair.
#[cold]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
fn put_second_half(out: &mut Bounded<false>, high: u16, low: u16) {
    let bytes = [0x80 | (high & 3) << 4 | low >> 6 & 0x0F, 0x80 | low & 0x3F];
    let both = i32::from(bytes[0]) | i32::from(bytes[1]) << 8;
    out.put(_mm512_castsi128_si512(_mm_cvtsi32_si128(both)), 2);
}

/// Writes 64 units as UTF-8 if all have the same length, otherwise returns `false`. `a` and `b`
/// contain the units at `p`.
///
/// # Safety
/// `p` must be readable for 64 units.
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
    // SAFETY: these units are inside the 64.
    let middle = unsafe { load(p.add(UNITS / 2).cast()) };
    out.put(THREE[0].encode(a), BYTES);
    out.put(THREE[1].encode(middle), BYTES);
    out.put(THREE[2].encode(b), BYTES);
    true
}

/// Encodes the first `n` units of `v` as UTF-8. Surrogates must be in pairs. `following` has the
/// next unit of each unit.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_pairs<const BRIEF: bool>(
    out: &mut Bounded<BRIEF>,
    v: __m512i,
    following: __m512i,
    n: usize,
) {
    let (lower, _, _) = pairs(_mm512_castsi512_si256(v), _mm512_castsi512_si256(following));
    let (upper, _, _) = pairs(
        _mm512_extracti64x4_epi64::<1>(v),
        _mm512_extracti64x4_epi64::<1>(following),
    );
    let starts = !second_halves(v) & first(n) as u32;
    put_any(out, lower, starts as u16);
    put_any(out, upper, (starts >> 16) as u16);
}

/// Encodes 16 valid code points as UTF-8 in their lanes, the last byte highest. The returned mask
/// selects the UTF-8 bytes of the lanes in `which`.
#[inline]
#[target_feature(enable = "avx512bw,avx512cd,avx512vbmi")]
pub(super) fn any(chars: __m512i, which: u16) -> (__m512i, u64) {
    // For each number of leading zeros: the bits that each UTF-8 byte takes from the code point.
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
    // The bytes get the bits from 18, 12, 6 or 0 on.
    let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2026_2C32_0006_0C12), chars);
    // The prefix of a UTF-8 byte is the inverse of `bits` shifted left by one.
    let bytes = _mm512_ternarylogic_epi32::<0xC5>(bits, six, _mm512_add_epi8(bits, bits));
    (bytes, _mm512_test_epi8_mask(bits, bits))
}

/// Writes the code points that `which` selects as UTF-8.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn put_any<const BRIEF: bool>(out: &mut Bounded<BRIEF>, chars: __m512i, which: u16) {
    let (bytes, needed) = any(chars, which);
    let n = needed.count_ones() as usize;
    out.put(_mm512_maskz_compress_epi8(needed, bytes), n);
}

/// Encodes 32-bit units as UTF-8. Returns the number of bytes, or `None` if a unit is not a valid
/// character or `out` is too short.
///
/// # Safety
/// The processor must support AVX-512.
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast::<u8>(), out.len());
    let (p, len) = (src.as_ptr(), src.len());
    let (mut most, mut least) = (_mm512_setzero_si512(), splat32(u32::MAX));
    let mut look = |chars| {
        most = _mm512_max_epu32(most, chars);
        least = _mm512_min_epu32(least, _mm512_sub_epi32(chars, splat32(0xD800)));
    };
    // SAFETY: every load ends inside src.
    unsafe {
        let mut out = Bounded::<false>::new(dst, capacity);
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
