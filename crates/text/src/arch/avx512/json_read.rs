//! Finds the end of a JSON string, a number or white space. The zeros loaded after the text end
//! each search.

use std::arch::x86_64::*;

use super::cell::is_equal;
use super::{BYTES, first, load, load_first, splat8, splat16, splat32, store, store_first};
use crate::arch::avx2::json_read::{lane_indices, number};
use crate::arch::family::{Look, UnescapedLength, escaped};

/// Returns up to 64 bytes of `src`, followed by zeros.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn load_start(src: &[u8]) -> __m512i {
    // SAFETY: no byte after `src` is loaded.
    unsafe { load_first(src.as_ptr(), src.len()) }
}

/// Returns a mask of `"`, `\` and bytes below U+0020.
#[inline]
#[target_feature(enable = "avx512bw")]
fn specials(v: __m512i) -> u64 {
    let control = _mm512_cmplt_epu8_mask(v, splat8(0x20));
    let quote = _mm512_cmpeq_epi8_mask(v, splat8(b'"'));
    control | quote | _mm512_cmpeq_epi8_mask(v, splat8(b'\\'))
}

/// Returns the number of bytes before the first `"`, `\` or control character. `true` if all are
/// ASCII.
#[inline]
#[target_feature(enable = "avx512bw,bmi1,bmi2")]
pub(in crate::arch) fn plain_u8(rest: &[u8]) -> (usize, bool) {
    let v = load_start(rest);
    let special = specials(v);
    if special == 0 {
        return plain_u8_long(rest);
    }
    let high = _mm512_movepi8_mask(v) & _blsmsk_u64(special);
    (special.trailing_zeros() as usize, high == 0)
}

#[inline(never)]
#[target_feature(enable = "avx512bw,bmi1,bmi2")]
fn plain_u8_long(rest: &[u8]) -> (usize, bool) {
    let (p, len) = (rest.as_ptr(), rest.len());
    let mut any = _mm512_setzero_si512();
    let mut at = 0;
    // SAFETY: every load ends inside rest.
    unsafe {
        // Two vectors per iteration.
        while at + 2 * BYTES <= len {
            let (a, b) = (load(p.add(at)), load(p.add(at + BYTES)));
            let found = specials(a);
            if found | specials(b) != 0 {
                break;
            }
            any = _mm512_or_si512(any, _mm512_or_si512(a, b));
            at += 2 * BYTES;
        }
        loop {
            let v = load_first(p.add(at), len - at);
            let special = specials(v);
            if special != 0 {
                let high = _mm512_movepi8_mask(v) & _blsmsk_u64(special);
                let high = high | _mm512_movepi8_mask(any);
                return (at + special.trailing_zeros() as usize, high == 0);
            }
            any = _mm512_or_si512(any, v);
            at += BYTES;
        }
    }
}

/// Returns the number of units before the first `"`, `\` or control character. `true` if all are
/// ASCII.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn plain_u16(rest: &[u16]) -> (usize, bool) {
    const UNITS: usize = BYTES / 2;
    let mut at = 0;
    let mut any = _mm512_setzero_si512();
    loop {
        // SAFETY: at most the remaining units are loaded. The zeros after the end stop the loop, so
        // `at` is not past the end.
        let v = unsafe { load_first(rest.as_ptr().add(at).cast(), 2 * (rest.len() - at)) };
        let control = _mm512_cmplt_epu16_mask(v, splat16(0x20));
        let quote = _mm512_cmpeq_epi16_mask(v, splat16(u16::from(b'"')));
        let special = control | quote | _mm512_cmpeq_epi16_mask(v, splat16(u16::from(b'\\')));
        if special != 0 {
            let n = special.trailing_zeros();
            let before = _mm512_maskz_mov_epi16(_bzhi_u32(u32::MAX, n), v);
            let any = _mm512_or_si512(any, before);
            let wide = _mm512_test_epi16_mask(any, splat16(0xFF80));
            return (at + n as usize, wide == 0);
        }
        any = _mm512_or_si512(any, v);
        at += UNITS;
    }
}

/// Returns the number of units before the first `"`, `\` or control character. `true` if all are
/// ASCII.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn plain_u32(rest: &[u32]) -> (usize, bool) {
    const UNITS: usize = BYTES / 4;
    let mut at = 0;
    let mut any = _mm512_setzero_si512();
    loop {
        // SAFETY: at most the remaining units are loaded. The zeros after the end stop the loop, so
        // `at` is not past the end.
        let v = unsafe { load_first(rest.as_ptr().add(at).cast(), 4 * (rest.len() - at)) };
        let control = _mm512_cmplt_epu32_mask(v, splat32(0x20));
        let quote = _mm512_cmpeq_epi32_mask(v, splat32(u32::from(b'"')));
        let special = control | quote | _mm512_cmpeq_epi32_mask(v, splat32(u32::from(b'\\')));
        if special != 0 {
            let n = special.trailing_zeros();
            let before = _mm512_maskz_mov_epi32(_bzhi_u32(u32::MAX, n) as u16, v);
            let any = _mm512_or_si512(any, before);
            let wide = _mm512_test_epi32_mask(any, splat32(0xFFFF_FF80));
            return (at + n as usize, wide == 0);
        }
        any = _mm512_or_si512(any, v);
        at += UNITS;
    }
}

#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn blank_u8(rest: &[u8]) -> usize {
    let mut at = 0;
    loop {
        // SAFETY: at most the remaining bytes are loaded. The zeros after the end stop the loop, so
        // `at` is not past the end.
        let v = unsafe { load_first(rest.as_ptr().add(at), rest.len() - at) };
        let is = |byte| _mm512_cmpeq_epi8_mask(v, splat8(byte));
        let other = !(is(b' ') | is(b'\n') | is(b'\r') | is(b'\t'));
        if other != 0 {
            return at + other.trailing_zeros() as usize;
        }
        at += BYTES;
    }
}

/// Classifies up to 64 bytes of `rest`. Missing bytes are classified as a closing quote.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn look(rest: &[u8]) -> Look {
    // A masked load would depend on `at`, and wait for the previous scan.
    let v = match rest.first_chunk::<BYTES>() {
        // SAFETY: the array has 64 bytes.
        Some(all) => unsafe { load(all.as_ptr()) },
        None => load_start(rest),
    };
    let is = |byte| _mm512_cmpeq_epi8_mask(v, splat8(byte));
    let digits = _mm512_sub_epi8(v, splat8(b'0'));
    Look {
        special: specials(v),
        high: _mm512_movepi8_mask(v),
        digit: _mm512_cmple_epu8_mask(digits, splat8(9)),
        blank: is(b' ') | is(b'\n') | is(b'\r') | is(b'\t'),
    }
}

/// Returns up to 32 bytes of `src`, followed by zeros.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
fn load_half(src: &[u8]) -> __m256i {
    if let Some(all) = src.first_chunk::<32>() {
        // SAFETY: the array has 32 bytes.
        return unsafe { _mm256_loadu_si256(all.as_ptr().cast()) };
    }
    let mask = _bzhi_u32(u32::MAX, src.len() as u32);
    // SAFETY: no byte after the text is loaded.
    unsafe { _mm256_maskz_loadu_epi8(mask, src.as_ptr().cast()) }
}

/// Reads the digits of the number at `at` as an integer of at most 19 digits. `n_after` is the
/// number of digits after the decimal point.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2")]
pub(in crate::arch) fn digits(text: &[u8], at: usize, n_before: u32, n_after: u32) -> u64 {
    let mut digits = _mm256_sub_epi8(load_half(&text[at..]), _mm256_set1_epi8(b'0' as i8));
    let n = n_before + n_after;
    if n_after > 0 {
        let point = 1 << (n_before & 31);
        digits = _mm256_maskz_compress_epi8(!point, digits);
    }
    // Moves the digits to the end of the vector, after zeros.
    let from = _mm256_add_epi8(lane_indices(), _mm256_set1_epi8(n as i8));
    let digits = _mm256_maskz_permutexvar_epi8(!(u32::MAX >> (n & 31)), from, digits);
    number(digits)
}

#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn closing_quote_u8(rest: &[u8]) -> Option<usize> {
    let (mut at, mut carry) = (0, 0);
    while at < rest.len() {
        // SAFETY: at most the remaining bytes are loaded.
        let v = unsafe { load_first(rest.as_ptr().add(at), rest.len() - at) };
        let escaped = escaped(_mm512_cmpeq_epi8_mask(v, splat8(b'\\')), &mut carry);
        let quote = _mm512_cmpeq_epi8_mask(v, splat8(b'"')) & !escaped;
        let end = quote | _mm512_cmplt_epu8_mask(v, splat8(0x20));
        if end != 0 {
            let n = end.trailing_zeros();
            return (quote >> n & 1 != 0).then_some(at + n as usize);
        }
        at += BYTES;
    }
    None
}

/// The character of each JSON escape letter, indexed by its low seven bits. 0 for other bytes.
static LETTERS: [u8; 128] = {
    let mut all = [0; 128];
    all[b'"' as usize] = b'"';
    all[b'\\' as usize] = b'\\';
    all[b'/' as usize] = b'/';
    all[b'b' as usize] = 8;
    all[b'f' as usize] = 12;
    all[b'n' as usize] = b'\n';
    all[b'r' as usize] = b'\r';
    all[b't' as usize] = b'\t';
    all
};

/// Copies the body of a JSON string and decodes escapes of one letter. Stops at the first other
/// escape. `out` must not be shorter than `body`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) fn unescape_u8(body: &[u8], out: &mut [u8]) -> UnescapedLength {
    let out = out.as_mut_ptr();
    let (p, len) = (body.as_ptr(), body.len());
    let (mut at, mut n_written) = (0, 0);
    while at < len {
        let n = (len - at).min(BYTES);
        // SAFETY: at most the remaining bytes are loaded. At most as many bytes are written as
        // read; a whole vector is written only if 64 bytes remain.
        unsafe {
            let v = load_first(p.add(at), n);
            let here = first(n);
            let backslashes = _mm512_cmpeq_epi8_mask(v, splat8(b'\\'));
            if backslashes == 0 {
                put(out.add(n_written), v, n);
                at += n;
                n_written += n;
                continue;
            }
            let mut carry = 0;
            let escaped = escaped(backslashes, &mut carry) & here;
            let (low, high) = (load(LETTERS.as_ptr()), load(LETTERS.as_ptr().add(BYTES)));
            let letters = _mm512_permutex2var_epi8(low, v, high);
            // A non-ASCII byte is no letter.
            let wrong = (_mm512_mask_testn_epi8_mask(escaped, letters, letters)
                | _mm512_movepi8_mask(v))
                & escaped;
            // The backslashes that start an escape. The escaped byte may be in the next vector.
            let starts = backslashes & !escaped;
            // The next iteration decodes an escape that is split here.
            let mut done = here & !(starts & 1 << (n - 1));
            if wrong != 0 {
                // Keeps the bytes before the first invalid escape.
                done &= first(wrong.trailing_zeros() as usize - 1);
            }
            let both = _mm512_mask_mov_epi8(v, escaped, letters);
            let keep = done & !starts;
            let n_kept = keep.count_ones() as usize;
            store_first(
                out.add(n_written),
                _mm512_maskz_compress_epi8(keep, both),
                n_kept,
            );
            let n_done = done.count_ones() as usize;
            at += n_done;
            n_written += n_kept;
            if wrong != 0 || n_done == 0 {
                break;
            }
        }
    }
    UnescapedLength {
        n_read: at,
        n_written,
    }
}

/// Stores the first `n` bytes (at most 64) of a vector.
///
/// # Safety
/// `p` must be writable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn put(p: *mut u8, v: __m512i, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n == BYTES {
            store(p, v);
        } else {
            store_first(p, v, n);
        }
    }
}

/// Copies at most 64 bytes to `out`.
///
/// # Safety
/// `out` must be writable for `text.len()` bytes, and must not overlap `text`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn copy_half(text: &[u8], out: *mut u8) {
    debug_assert!(text.len() <= BYTES);
    // SAFETY: guaranteed by the caller.
    unsafe { store_first(out, load_start(text), text.len()) }
}

#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn starts_with(rest: &[u8], text: &[u8]) -> bool {
    if rest.len() < text.len() {
        return false;
    }
    if text.len() > BYTES {
        return is_equal(&rest[..text.len()], text);
    }
    let mask = first(text.len());
    // SAFETY: both texts have the bytes in the mask.
    unsafe {
        let a = _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast());
        let b = _mm512_maskz_loadu_epi8(mask, text.as_ptr().cast());
        _mm512_cmpneq_epi8_mask(a, b) == 0
    }
}
