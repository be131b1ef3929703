//! Units of any width to the body of a JSON string: escaped and UTF-8 in one go. Without `ESCAPES`, to UTF-8 alone.
//!
//! As in `encode`, each character is put together in a lane as wide as the longest that occurs, and what it does not need is
//! squeezed out. An escape of two bytes is one more form of a lane. Escapes of six (controls that have no letter) are rare: the
//! bytes between them are written as they are, or, where there are many, all character by character.
//!
//! Every store is a whole vector: the room is that of the longest result and a vector more. What is asked per text is inlined
//! into work that was compiled for these instructions.

use std::arch::x86_64::*;

use super::encode::{LOWER, UPPER, latin1_pairs};
use super::{BYTES, first, load, load_first, splat8, store};
use crate::arch::scalar::{
    JSON_FORMS, json_bytes_one_by_one as bytes_one_by_one, json_one_by_one as one_by_one,
};

mod wide;

pub(in crate::arch) use wide::{copy_ucs2, short_wide, ucs2, ucs4};

/// Units of 16 bits in a vector.
const UNITS: usize = BYTES / 2;

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

/// Which bytes JSON escapes; none where it is not JSON that is written (so for the wider ones).
#[inline]
#[target_feature(enable = "avx512bw")]
fn escapes8<const ESCAPES: bool>(v: __m512i) -> u64 {
    if !ESCAPES {
        return 0;
    }
    let low = _mm512_cmplt_epu8_mask(v, splat8(0x20));
    low | _mm512_cmpeq_epi8_mask(v, splat8(b'"')) | _mm512_cmpeq_epi8_mask(v, splat8(b'\\'))
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

/// Puts up to a vector of bytes of which none is to be widened, and of which none is escaped; null where one is.
///
/// # Safety
/// `out` is writable for a vector, apart from `u`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn plain<const ESCAPES: bool>(u: &[u8], out: *mut u8) -> *mut u8 {
    // SAFETY: the load ends inside u; room is the caller's duty.
    unsafe {
        let v = load_first(u.as_ptr(), u.len());
        store(out, v);
        if escapes8::<ESCAPES>(v) & first(u.len()) != 0 {
            return std::ptr::null_mut();
        }
        out.add(u.len())
    }
}

/// Puts at most 32 bytes of Latin-1, of which none is escaped; null where one is.
///
/// # Safety
/// `out` is writable for a vector, apart from `u` (so for [`short_wide`]).
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn short_latin1<const ESCAPES: bool>(u: &[u8], out: *mut u8) -> *mut u8 {
    // SAFETY: the load ends inside u; room is the caller's duty.
    unsafe {
        let v = load_first(u.as_ptr(), u.len());
        if u.len() > UNITS || escapes8::<ESCAPES>(v) & first(u.len()) != 0 {
            return std::ptr::null_mut();
        }
        let (bytes, needed) = latin1_pairs(v, &LOWER);
        squeeze(out, bytes, needed & first(2 * u.len()))
    }
}

/// Puts text of one byte a character, or (`as_is`, because it is ASCII or UTF-8) bytes of which none is to be widened. Returns
/// where the next byte goes.
///
/// # Safety
/// `out` takes 6 bytes for each unit and a vector more, apart from `u` (so for all below).
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn latin1<const ESCAPES: bool>(
    u: &[u8],
    as_is: bool,
    out: *mut u8,
) -> *mut u8 {
    if u.len() <= BYTES {
        // SAFETY: the load ends inside u; room is the caller's duty.
        unsafe {
            let v = load_first(u.as_ptr(), u.len());
            let which = first(u.len());
            let stop = escapes8::<ESCAPES>(v) & which;
            return latin1_part(v, u, as_is, stop, which, out);
        }
    }
    // SAFETY: the duties are the caller's.
    unsafe { long_latin1::<ESCAPES>(u, as_is, out) }
}

/// As [`latin1`], of more than a vector.
///
/// # Safety
/// As [`latin1`].
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn long_latin1<const ESCAPES: bool>(u: &[u8], as_is: bool, mut out: *mut u8) -> *mut u8 {
    let (p, len) = (u.as_ptr(), u.len());
    let mut at = 0;
    // SAFETY: every load ends inside u; room is the caller's duty.
    unsafe {
        // Two vectors at a time, the second one maybe short: one branch, which is right as long as text is alike.
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

/// Puts the bytes `which` of a vector, which are `u`, `stop` of them as a backslash and a letter; without a branch on whether there are
/// any, which would be guessed wrong every other time.
///
/// # Safety
/// As [`latin1`].
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn escaped_part(v: __m512i, u: &[u8], stop: u64, which: u64, out: *mut u8) -> *mut u8 {
    // SAFETY: the duties are the caller's.
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

/// Most escapes of a vector that are written one after the other; past that, all characters are.
const FEW_ESCAPES: u32 = 10;

/// Puts the bytes `which` of a vector, which are `u`, `stop` of them as escapes of any length.
///
/// # Safety
/// As [`latin1`].
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn each_escape(
    v: __m512i,
    u: &[u8],
    mut stop: u64,
    mut which: u64,
    mut out: *mut u8,
) -> *mut u8 {
    // SAFETY: no more bytes are passed than the forms of `u` have; the stores reach a vector past them, for which the caller
    // has room.
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
