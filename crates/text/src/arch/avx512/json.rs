//! Converts units of any width to the body of a JSON string. If `ESCAPES` is `false`, nothing is
//! escaped.
//!
//! Each character is encoded in its own vector lane. The unused bytes are then removed. Escapes of
//! six bytes are written one by one.
//!
//! Every store writes a whole vector. The destination needs one vector more than the longest
//! result.

use std::arch::x86_64::*;

use super::encode::{LOWER, UPPER, latin1_pairs};
use super::{BYTES, first, load, load_first, splat8, store};
use crate::arch::scalar::{
    JSON_FORMS, json_bytes_one_by_one as bytes_one_by_one, json_one_by_one as one_by_one,
};

mod wide;

pub(in crate::arch) use wide::{copy_ucs2, short_wide, ucs2, ucs4};

const UNITS: usize = BYTES / 2;

/// The letter of each byte's two-byte JSON escape, indexed by the low six bits. 0 for `\u` escapes.
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

/// Returns the letter of each byte's JSON escape. 0 for U+001C, which shares its index with the
/// backslash.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn letters(v: __m512i) -> __m512i {
    let known = _mm512_cmpneq_epi8_mask(v, splat8(0x1C));
    // SAFETY: the table has 64 bytes.
    unsafe { _mm512_maskz_permutexvar_epi8(known, v, load(LETTERS.as_ptr())) }
}

/// Returns a mask of the bytes that must be escaped. 0 if `ESCAPES` is `false`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn escapes8<const ESCAPES: bool>(v: __m512i) -> u64 {
    if !ESCAPES {
        return 0;
    }
    let low = _mm512_cmplt_epu8_mask(v, splat8(0x20));
    low | _mm512_cmpeq_epi8_mask(v, splat8(b'"')) | _mm512_cmpeq_epi8_mask(v, splat8(b'\\'))
}

/// Stores the bytes that `needed` selects, without gaps. Returns the end of the output.
///
/// # Safety
/// `out` must be writable for a vector of 64 bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi2,popcnt")]
unsafe fn squeeze(out: *mut u8, bytes: __m512i, needed: u64) -> *mut u8 {
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        store(out, _mm512_maskz_compress_epi8(needed, bytes));
        out.add(needed.count_ones() as usize)
    }
}

/// Copies at most 64 bytes of UTF-8. Returns the end of the output, or null if a byte must be
/// escaped.
///
/// # Safety
/// `out` must be writable for a vector, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn plain<const ESCAPES: bool>(u: &[u8], out: *mut u8) -> *mut u8 {
    // SAFETY: the load ends inside `u`, and `out` has the space.
    unsafe {
        let v = load_first(u.as_ptr(), u.len());
        store(out, v);
        if escapes8::<ESCAPES>(v) & first(u.len()) != 0 {
            return std::ptr::null_mut();
        }
        out.add(u.len())
    }
}

/// Writes at most 32 bytes of Latin-1 as UTF-8. Returns the end of the output, or null for a longer
/// text or an escape.
///
/// # Safety
/// `out` must be writable for a vector of 64 bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_latin1<const ESCAPES: bool>(u: &[u8], out: *mut u8) -> *mut u8 {
    // SAFETY: the load ends inside `u`, and `out` has the space.
    unsafe {
        let v = load_first(u.as_ptr(), u.len());
        if u.len() > UNITS || escapes8::<ESCAPES>(v) & first(u.len()) != 0 {
            return std::ptr::null_mut();
        }
        let (bytes, needed) = latin1_pairs(v, &LOWER);
        squeeze(out, bytes, needed & first(2 * u.len()))
    }
}

/// Writes `u` as the body of a JSON string. `u` is Latin-1 unless `as_is` is `true`. Returns the
/// end of the output.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1<const ESCAPES: bool>(
    u: &[u8],
    as_is: bool,
    out: *mut u8,
) -> *mut u8 {
    if u.len() <= BYTES {
        // SAFETY: the load ends inside `u`, and `out` has the space.
        unsafe {
            let v = load_first(u.as_ptr(), u.len());
            let which = first(u.len());
            let stop = escapes8::<ESCAPES>(v) & which;
            return latin1_part(v, u, as_is, stop, which, out);
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { long_latin1::<ESCAPES>(u, as_is, out) }
}

/// Implements [`latin1`] for more than 64 bytes.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn long_latin1<const ESCAPES: bool>(u: &[u8], as_is: bool, mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside `u`, and `out` has the space.
    unsafe {
        // One branch for two vectors. The second one may be incomplete.
        while as_is && at + BYTES < len {
            let n = (len - at).min(2 * BYTES);
            let (a, b) = (load(p.add(at)), load_first(p.add(at + BYTES), n - BYTES));
            let of_b = first(n - BYTES);
            let (stop_a, stop_b) = (escapes8::<ESCAPES>(a), escapes8::<ESCAPES>(b) & of_b);
            if stop_a | stop_b == 0 {
                store(out, a);
                store(out.add(BYTES), b);
                out = out.add(n);
            } else {
                let (u_a, u_b) = u[at..at + n].split_at(BYTES);
                out = escaped_part(a, u_a, stop_a, u64::MAX, out);
                out = escaped_part(b, u_b, stop_b, of_b, out);
            }
            at += n;
        }
        while at < len {
            let n = (len - at).min(BYTES);
            let v = load_first(p.add(at), n);
            let which = first(n);
            let stop = escapes8::<ESCAPES>(v) & which;
            out = latin1_part(v, &u[at..at + n], as_is, stop, which, out);
            at += n;
        }
    }
    out
}

/// Writes the bytes of `u` that `which` selects as JSON text. Bytes in `stop` are escaped, without
/// a branch for escapes of two bytes.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn escaped_part(v: __m512i, u: &[u8], stop: u64, which: u64, out: *mut u8) -> *mut u8 {
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        let letter = letters(v);
        if _mm512_mask_testn_epi8_mask(stop, letter, letter) != 0 {
            return each_escape(v, u, stop, which, out);
        }
        let plain = _mm512_mask_mov_epi8(v, stop, letter);
        let (low, high) = (|m: u64| m as u32, |m: u64| (m >> 32) as u32);
        let out = latin1_half(plain, low(stop), &LOWER, low(which), 0, out);
        latin1_half(plain, high(stop), &UPPER, high(which), 0, out)
    }
}

/// A vector with more escapes is written character by character.
const FEW_ESCAPES: u32 = 10;

/// Writes the bytes of `u` that `which` selects as JSON text. Bytes in `stop` are escaped one by
/// one.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn each_escape(
    v: __m512i,
    u: &[u8],
    mut stop: u64,
    mut which: u64,
    mut out: *mut u8,
) -> *mut u8 {
    // SAFETY: the address advances by the length of the result. Each store ends at most one vector
    // after it, for which `out` has space.
    unsafe {
        if stop.count_ones() > FEW_ESCAPES {
            return bytes_one_by_one(u, true, out);
        }
        let mut from = 0;
        while stop != 0 {
            store(out, _mm512_maskz_compress_epi8(which, v));
            let at = stop.trailing_zeros() as usize;
            out = JSON_FORMS[usize::from(u[at])].write(out.add(at - from));
            from = at + 1;
            which &= !_blsmsk_u64(stop);
            stop = _blsr_u64(stop);
        }
        store(out, _mm512_maskz_compress_epi8(which, v));
        out.add(u.len() - from)
    }
}

/// Writes the bytes of `u` that `which` selects as JSON text. Bytes in `stop` are escaped. If
/// `as_is` is `true`, non-ASCII bytes are copied.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 64` bytes, and must not overlap `u`.
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
    // SAFETY: guaranteed by the caller.
    unsafe {
        if stop | high == 0 {
            store(out, v);
            return out.add(u.len());
        }
        let letter = _mm512_maskz_mov_epi8(stop, letters(v));
        if _mm512_mask_testn_epi8_mask(stop, letter, letter) != 0 {
            return match as_is {
                true => each_escape(v, u, stop, which, out),
                false => bytes_one_by_one(u, false, out),
            };
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

/// Writes half of the vector `plain` as JSON text. `which` selects the bytes to write, `stop` the
/// escape letters, and `high` the Latin-1 bytes.
///
/// # Safety
/// `out` must be writable for a vector of 64 bytes.
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
    // SAFETY: the table has 64 bytes, and `out` has the space.
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
