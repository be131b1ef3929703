//! Units of any width to the body of a JSON string: escaped and UTF-8 in one go.
//!
//! As in `encode`, each character is put together in a lane as wide as the longest that occurs, and what it does not need is
//! squeezed out. An escape of two bytes is one more form of a lane. Escapes of six (controls that have no letter) are rare:
//! a vector with one is written character by character.
//!
//! Every store is a whole vector: the room is that of the longest result and a vector more. What is asked per text is inlined
//! into work that was compiled for these instructions.

use std::arch::x86_64::*;

use super::encode::{LOWER, THREE, UPPER, any, latin1_pairs, two};
use super::scan::narrow;
use super::{BYTES, first, load, load_first, splat8, splat16, splat32, store};
use crate::arch::scalar;

const UNITS: usize = BYTES / 2; // of 16 bits in a vector

/// By the low six bits of what is escaped, what stands behind the backslash; 0 where that is `u` and four digits.
static LETTERS: [u8; 64] = {
    let mut letters = [0; 64];
    letters[0x08] = b'b';
    letters[0x09] = b't';
    letters[0x0A] = b'n';
    letters[0x0C] = b'f';
    letters[0x0D] = b'r';
    letters[0x22] = b'"';
    letters[0x5C & 63] = b'\\';
    letters
};

/// The letters of bytes; 0 of U+001C, which has the low six bits of the backslash.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn letters(v: __m512i) -> __m512i {
    let known = _mm512_cmpneq_epi8_mask(v, splat8(0x1C));
    // SAFETY: the table has 64 bytes.
    unsafe { _mm512_maskz_permutexvar_epi8(known, v, load(LETTERS.as_ptr())) }
}

/// Which bytes JSON escapes.
#[inline]
#[target_feature(enable = "avx512bw")]
fn escapes8(v: __m512i) -> u64 {
    let low = _mm512_cmplt_epu8_mask(v, splat8(0x20));
    low | _mm512_cmpeq_epi8_mask(v, splat8(b'"')) | _mm512_cmpeq_epi8_mask(v, splat8(b'\\'))
}

/// Which 16-bit units JSON escapes.
#[inline]
#[target_feature(enable = "avx512bw")]
fn escapes16(v: __m512i) -> u32 {
    let low = _mm512_cmplt_epu16_mask(v, splat16(0x20));
    low | _mm512_cmpeq_epi16_mask(v, splat16(0x22)) | _mm512_cmpeq_epi16_mask(v, splat16(0x5C))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn escapes32(v: __m512i) -> u16 {
    let low = _mm512_cmplt_epu32_mask(v, splat32(0x20));
    low | _mm512_cmpeq_epi32_mask(v, splat32(0x22)) | _mm512_cmpeq_epi32_mask(v, splat32(0x5C))
}

/// Stores the needed bytes; returns where the next go.
///
/// # Safety
/// `out` is writable for a vector (so for all below that take one).
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi2,popcnt")]
unsafe fn squeeze(out: *mut u8, bytes: __m512i, needed: u64) -> *mut u8 {
    // SAFETY: the duty of the caller.
    unsafe {
        store(out, _mm512_maskz_compress_epi8(needed, bytes));
        out.add(needed.count_ones() as usize)
    }
}

/// Writes characters one by one: for vectors with a control that has no letter.
///
/// # Safety
/// `out` takes 6 bytes for each. None is a surrogate or past U+10FFFF.
#[cold]
#[inline(never)]
unsafe fn one_by_one(units: impl Iterator<Item = u32>, mut out: *mut u8) -> *mut u8 {
    // SAFETY: an escape has at most 6 bytes, UTF-8 at most 4; the rest is the caller's duty.
    unsafe {
        for c in units {
            if scalar::is_escape(c) {
                let escape = scalar::escape(c as u8);
                let escape = escape.as_slice();
                out.copy_from_nonoverlapping(escape.as_ptr(), escape.len());
                out = out.add(escape.len());
            } else {
                out = out.add(scalar::write_utf8(c, out));
            }
        }
    }
    out
}

/// As [`one_by_one`], of bytes, those past ASCII `as_is` or as Latin-1.
///
/// # Safety
/// As [`one_by_one`].
#[cold]
#[inline(never)]
unsafe fn bytes_one_by_one(u: &[u8], as_is: bool, mut out: *mut u8) -> *mut u8 {
    // SAFETY: the duty of the caller.
    unsafe {
        for &byte in u {
            if as_is && byte >= 0x80 {
                out.write(byte);
                out = out.add(1);
            } else {
                out = one_by_one(std::iter::once(u32::from(byte)), out);
            }
        }
    }
    out
}

/// Puts up to a vector of bytes of which none is to be widened, and of which none is escaped; null where one is.
///
/// # Safety
/// `out` is writable for a vector, apart from `u`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn plain(u: &[u8], out: *mut u8) -> *mut u8 {
    // SAFETY: the load ends inside u; room is the caller's duty.
    unsafe {
        let v = load_first(u.as_ptr(), u.len());
        store(out, v);
        if escapes8(v) & first(u.len()) != 0 {
            return std::ptr::null_mut();
        }
        out.add(u.len())
    }
}

/// Puts at most 32 bytes of Latin-1, of which none is escaped; null where one is.
///
/// # Safety
/// `out` is writable for a vector, apart from `u` (so for [`short_wide`]).
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_latin1(u: &[u8], out: *mut u8) -> *mut u8 {
    // SAFETY: the load ends inside u; room is the caller's duty.
    unsafe {
        let v = load_first(u.as_ptr(), u.len());
        if u.len() > UNITS || escapes8(v) & first(u.len()) != 0 {
            return std::ptr::null_mut();
        }
        let (bytes, needed) = latin1_pairs(v, &LOWER);
        squeeze(out, bytes, needed & first(2 * u.len()))
    }
}

/// Puts at most 32 units, all below U+0800 and none escaped, or at most 21 that are all from there on and no surrogates; null where
/// they are others.
///
/// # Safety
/// As [`short_latin1`].
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_wide(u: &[u16], out: *mut u8) -> *mut u8 {
    let n = u.len();
    if n > UNITS {
        return std::ptr::null_mut();
    }
    // SAFETY: the load ends inside u; room is the caller's duty.
    unsafe {
        let v = load_first(u.as_ptr().cast(), 2 * n);
        let which = first(n) as u32;
        let low = _mm512_testn_epi16_mask(v, splat16(0xF800)) & which;
        if low == which {
            if escapes16(v) & which != 0 {
                return std::ptr::null_mut();
            }
            let (bytes, needed) = two(v);
            return squeeze(out, bytes, needed & first(2 * n));
        }
        if low != 0 || n > 21 || super::scan::surrogates(v) != 0 {
            return std::ptr::null_mut();
        }
        store(out, THREE[0].encode(v));
        out.add(3 * n)
    }
}

/// Puts text of one byte a character, or (`as_is`, because it is ASCII or UTF-8) bytes of which none is to be widened. Returns
/// where the next byte goes.
///
/// # Safety
/// `out` takes 6 bytes for each unit and a vector more, apart from `u` (so for all below).
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1(u: &[u8], as_is: bool, out: *mut u8) -> *mut u8 {
    if u.len() <= BYTES {
        // SAFETY: the load ends inside u; room is the caller's duty.
        unsafe {
            let v = load_first(u.as_ptr(), u.len());
            let which = first(u.len());
            return latin1_part(v, u, as_is, escapes8(v) & which, which, out);
        }
    }
    // SAFETY: the duties are the caller's.
    unsafe { long_latin1(u, as_is, out) }
}

/// As [`latin1`], of more than a vector.
///
/// # Safety
/// As [`latin1`].
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn long_latin1(u: &[u8], as_is: bool, mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside u; room is the caller's duty.
    unsafe {
        if as_is {
            while at + 2 * BYTES <= len {
                let (a, b) = (load(p.add(at)), load(p.add(at + BYTES)));
                let (stop_a, stop_b) = (escapes8(a), escapes8(b));
                if stop_a | stop_b == 0 {
                    store(out, a);
                    store(out.add(BYTES), b);
                    out = out.add(2 * BYTES);
                } else {
                    let all = u64::MAX;
                    out = latin1_part(a, &u[at..at + BYTES], true, stop_a, all, out);
                    out = latin1_part(b, &u[at + BYTES..at + 2 * BYTES], true, stop_b, all, out);
                }
                at += 2 * BYTES;
            }
        }
        while at < len {
            let n = (len - at).min(BYTES);
            let v = load_first(p.add(at), n);
            let which = first(n);
            let stop = escapes8(v) & which;
            out = latin1_part(v, &u[at..at + n], as_is, stop, which, out);
            at += n;
        }
    }
    out
}

/// Puts the bytes `which` of a vector, which are `u`.
///
/// # Safety
/// As [`latin1`].
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn latin1_part(
    v: __m512i,
    u: &[u8],
    as_is: bool,
    stop: u64,
    which: u64,
    mut out: *mut u8,
) -> *mut u8 {
    let high = if as_is { 0 } else { _mm512_movepi8_mask(v) };
    // SAFETY: the duties are the caller's.
    unsafe {
        if stop | high == 0 {
            store(out, v);
            return out.add(u.len());
        }
        let letter = _mm512_maskz_mov_epi8(stop, letters(v));
        if _mm512_mask_testn_epi8_mask(stop, letter, letter) != 0 {
            return bytes_one_by_one(u, as_is, out);
        }
        let plain = _mm512_mask_mov_epi8(v, stop, letter);
        let low = |m: u64| m as u32;
        out = latin1_half(plain, low(stop), &LOWER, low(which), high as u32, out);
        if u.len() > UNITS {
            let upper = |m: u64| (m >> 32) as u32;
            out = latin1_half(plain, upper(stop), &UPPER, upper(which), upper(high), out);
        }
    }
    out
}

/// Puts the bytes `which` of one half, of which `stop` are letters that want a backslash.
///
/// # Safety
/// As [`latin1`].
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn latin1_half(
    plain: __m512i,
    stop: u32,
    twice: &'static [u8; 64],
    which: u32,
    high: u32,
    out: *mut u8,
) -> *mut u8 {
    // SAFETY: the table has 64 bytes; room is the caller's duty.
    unsafe {
        const LOW: u64 = 0x5555_5555_5555_5555;
        let which = _pdep_u64(u64::from(which), LOW) * 3;
        let (bytes, needed) = if high == 0 {
            let twice = _mm512_permutexvar_epi8(load(twice.as_ptr()), plain);
            (twice, !LOW)
        } else {
            latin1_pairs(plain, twice)
        };
        let before = _pdep_u64(u64::from(stop), LOW);
        let bytes = _mm512_mask_mov_epi8(bytes, before, splat8(b'\\'));
        squeeze(out, bytes, (needed | before) & which)
    }
}

/// Puts 16-bit units; null where one is a surrogate: what is at `out` is of no meaning then.
///
/// # Safety
/// As [`latin1`].
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs2(u: &[u16], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside u; room is the caller's duty.
    unsafe {
        while at + 2 * UNITS <= len {
            let (a, b) = (load(p.add(at).cast()), load(p.add(at + UNITS).cast()));
            match alike(p.add(at), a, b, out) {
                Some(next) => out = next,
                None => {
                    out = ucs2_part(a, &u[at..at + UNITS], out);
                    if out.is_null() {
                        return out;
                    }
                    out = ucs2_part(b, &u[at + UNITS..at + 2 * UNITS], out);
                    if out.is_null() {
                        return out;
                    }
                }
            }
            at += 2 * UNITS;
        }
        while at < len {
            let n = (len - at).min(UNITS);
            let v = load_first(p.add(at).cast(), 2 * n);
            out = ucs2_part(v, &u[at..at + n], out);
            if out.is_null() {
                return out;
            }
            at += n;
        }
    }
    out
}

/// Puts 64 units, at `p` and in two vectors, where nothing is escaped and all are ASCII, or all from U+0800 on and no
/// surrogates.
///
/// # Safety
/// `p` is readable for them; as [`latin1`].
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn alike(p: *const u16, a: __m512i, b: __m512i, out: *mut u8) -> Option<*mut u8> {
    let most = splat16(0xF800);
    // SAFETY: the middle of the 64 units is inside them; room is the caller's duty.
    unsafe {
        if _mm512_test_epi16_mask(_mm512_or_si512(a, b), splat16(0xFF80)) == 0 {
            let v = narrow(a, b);
            store(out, v);
            return (escapes8(v) == 0).then(|| out.add(BYTES));
        }
        let low = _mm512_testn_epi16_mask(_mm512_min_epu16(a, b), most);
        let surrogate = |v| _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, most), splat16(0xD800));
        if low | surrogate(a) | surrogate(b) != 0 {
            return None;
        }
        store(out, THREE[0].encode(a));
        let middle = load(p.add(UNITS / 2).cast());
        store(out.add(BYTES), THREE[1].encode(middle));
        store(out.add(2 * BYTES), THREE[2].encode(b));
        Some(out.add(3 * BYTES))
    }
}

/// Puts the first units of a vector, which are `u`; null where one is a surrogate.
///
/// # Safety
/// As [`latin1`].
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn ucs2_part(v: __m512i, u: &[u16], mut out: *mut u8) -> *mut u8 {
    let n = u.len();
    let stop = escapes16(v) & first(n) as u32;
    // SAFETY: the duties are the caller's.
    unsafe {
        if _mm512_test_epi16_mask(v, splat16(0xF800)) == 0 {
            let (mut bytes, mut needed) = two(v);
            if stop != 0 {
                let Some(letter) = letters16(v, stop) else {
                    return one_by_one(u.iter().map(|&c| u32::from(c)), out);
                };
                let escape = _mm512_or_si512(_mm512_slli_epi16::<8>(letter), splat16(0x5C));
                bytes = _mm512_mask_mov_epi16(bytes, stop, escape);
                needed |= _pdep_u64(u64::from(stop), 0xAAAA_AAAA_AAAA_AAAA);
            }
            return squeeze(out, bytes, needed & first(2 * n));
        }
        if super::scan::surrogates(v) != 0 {
            return std::ptr::null_mut();
        }
        let mut letter = _mm512_setzero_si512();
        if stop != 0 {
            match letters16(v, stop) {
                Some(found) => letter = found,
                None => return one_by_one(u.iter().map(|&c| u32::from(c)), out),
            }
        }
        let lower = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v));
        let letters = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(letter));
        out = any_part(lower, letters, stop as u16, first(n.min(16)) as u16, out);
        if n > 16 {
            let upper = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(v));
            let letters = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(letter));
            let which = first(n - 16) as u16;
            out = any_part(upper, letters, (stop >> 16) as u16, which, out);
        }
    }
    out
}

/// The letters of the units `stop`, and zeros; `None` where one has none.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn letters16(v: __m512i, stop: u32) -> Option<__m512i> {
    let letter = _mm512_and_si512(letters(v), splat16(0xFF));
    let letter = _mm512_maskz_mov_epi16(stop, letter);
    (_mm512_mask_testn_epi16_mask(stop, letter, letter) == 0).then_some(letter)
}

/// Puts the code points of the lanes `which`; those of `stop` as a backslash and their letter.
///
/// # Safety
/// As [`latin1`]. None is a surrogate.
#[inline]
#[target_feature(enable = "avx512bw,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn any_part(
    chars: __m512i,
    letter: __m512i,
    stop: u16,
    which: u16,
    out: *mut u8,
) -> *mut u8 {
    let (mut bytes, mut needed) = any(chars, which);
    if stop != 0 {
        // The backslash stands in the byte before that of the character, which is the highest.
        let escape = _mm512_or_si512(_mm512_slli_epi32::<24>(letter), splat32(0x5C_0000));
        bytes = _mm512_mask_mov_epi32(bytes, stop, escape);
        needed |= _pdep_u64(u64::from(stop), 0x4444_4444_4444_4444);
    }
    // SAFETY: the duties are the caller's.
    unsafe { squeeze(out, bytes, needed) }
}

/// Puts 32-bit units; null where one is a surrogate or past U+10FFFF.
///
/// # Safety
/// As [`latin1`].
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn ucs4(u: &[u32], mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside u; room is the caller's duty.
    unsafe {
        while at < len {
            let n = (len - at).min(16);
            let v = load_first(p.add(at).cast(), 4 * n);
            let which = first(n) as u16;
            let bad = _mm512_cmpgt_epu32_mask(v, splat32(0x10_FFFF))
                | _mm512_cmplt_epu32_mask(_mm512_sub_epi32(v, splat32(0xD800)), splat32(0x800));
            if bad != 0 {
                return std::ptr::null_mut();
            }
            let stop = escapes32(v) & which;
            let mut letter = _mm512_setzero_si512();
            if stop != 0 {
                let low = _mm512_and_si512(letters(v), splat32(0xFF));
                letter = _mm512_maskz_mov_epi32(stop, low);
                if _mm512_mask_testn_epi32_mask(stop, letter, letter) != 0 {
                    out = one_by_one(u[at..at + n].iter().copied(), out);
                    at += n;
                    continue;
                }
            }
            out = any_part(v, letter, stop, which, out);
            at += n;
        }
    }
    out
}
