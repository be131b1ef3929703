//! AVX2 kernels that create a `str` from UTF-8 of at most 128 bytes.
#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::copy::copy;
use super::json_read::first;
use super::out::SQUEEZE_U16;
use super::short_loads::{load_four, load_quarter, load_start, with_more};
use super::utf8::{chars_of_lanes, fetched, units};
use crate::Kind;
use crate::arch::new_cell::{MOST_CELL_BYTES, four, one, two};
use crate::new_object::{MadeStr, NewStr};

/// Returns a mask of the first bytes of characters, and the `str` kind. The mask is 0 for malformed
/// text.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn look(text: &[u8]) -> (u64, Kind) {
    let here = first(text.len());
    let (a, b) = load_start(text);
    let bits = |a, b| {
        let of = |v| u64::from(_mm256_movemask_epi8(v) as u32);
        (of(a) | of(b) << 32) & here
    };
    let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
    let is = |byte| {
        bits(
            _mm256_cmpeq_epi8(a, splat(byte)),
            _mm256_cmpeq_epi8(b, splat(byte)),
        )
    };
    let from = |byte| {
        let is_it = |v| _mm256_cmpeq_epi8(_mm256_max_epu8(v, splat(byte)), v);
        bits(is_it(a), is_it(b))
    };
    let high = bits(a, b);
    // As signed numbers, continuation bytes are the lowest.
    let is_tail = |v| _mm256_cmpgt_epi8(splat(0xC0), v);
    let tails = bits(is_tail(a), is_tail(b));
    let (leads, three) = (high & !tails, from(0xE0));
    let mut due = leads << 1 | three << 2;
    // The last character of 64 bytes must be complete. (`due ^ tails` shows this error in a shorter
    // text.)
    let mut bad = leads >> 63 | three >> 62 | leads & !from(0xC2);
    let mut kind = Kind::Latin1;
    if three != 0 {
        kind = Kind::Ucs2;
        // The third highest bit of the second byte shows overlong forms and surrogates.
        let upper = bits(_mm256_slli_epi16::<2>(a), _mm256_slli_epi16::<2>(b));
        bad |= is(0xE0) << 1 & !upper | is(0xED) << 1 & upper;
        let four = from(0xF0);
        if four != 0 {
            kind = Kind::Ucs4;
            due |= four << 3;
            // The two bits below the highest show overlong forms and values past U+10FFFF.
            let upper = upper | bits(_mm256_slli_epi16::<3>(a), _mm256_slli_epi16::<3>(b));
            bad |= is(0xF0) << 1 & !upper | is(0xF4) << 1 & upper | four >> 61 | from(0xF5);
        }
    } else if from(0xC4) != 0 {
        kind = Kind::Ucs2;
    }
    bad |= due ^ tails;
    if bad != 0 {
        return (0, kind);
    }
    (here & !tails, kind)
}

/// Makes a `str` from UTF-8 that is not all ASCII. Returns `None` for malformed text, a single
/// character, or more than 64 bytes.
///
/// # Safety
/// The processor must support AVX2.
#[inline(always)]
pub(in crate::arch) unsafe fn make_utf8<N: NewStr>(
    text: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    if text.len() > 64 {
        return None;
    }
    // SAFETY: AVX2 is available. The `str` has one unit for each character, and each character fits
    // into a unit.
    unsafe {
        let (starts, kind) = look(text);
        let n = starts.count_ones() as usize;
        if n < 2 {
            return None;
        }
        Some(match kind {
            Kind::Ascii | Kind::Latin1 => one(new, Kind::Latin1, n, false, |out| {
                with_more(text, |p| decode::<false>(p, text.len(), starts, out));
            }),
            Kind::Ucs2 => two(new, kind, n, false, |out| {
                with_more(text, |p| decode::<true>(p, text.len(), starts, out.cast()));
            }),
            Kind::Ucs4 => four(new, kind, n, false, |out| {
                with_more(text, |p| decode_four(p, starts, out));
            }),
        })
    }
}

/// Decodes at most 64 bytes of UTF-8 to 16-bit units, or to 8-bit units if `WIDE` is `false`.
///
/// # Safety
/// 80 bytes from `p` on must be loadable by [`load_quarter`]. `starts` must select well-formed
/// characters that fit into a unit. `out` must have space for them.
#[inline(never)]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn decode<const WIDE: bool>(p: *const u8, len: usize, starts: u64, out: *mut u8) {
    let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 2 * 64 + 16];
    let start: *mut u8 = buffer.as_mut_ptr().cast();
    let mut to = start;
    // SAFETY: no load ends more than 66 bytes after `p`. Each store writes at most 16 bytes inside
    // the buffer. `out` has space for the characters.
    unsafe {
        let mut at = 0;
        while at < len {
            let load = |offset: usize| load_quarter(p.wrapping_add(at + offset));
            let third = if WIDE { load(2) } else { _mm_setzero_si128() };
            let [lower, upper] = units::<WIDE, false>(load(0), load(1), third);
            to = squeeze::<WIDE>(lower, (starts >> at) as u8, to);
            to = squeeze::<WIDE>(upper, (starts >> at >> 8) as u8, to);
            at += 16;
        }
        let n = to as usize - start as usize;
        copy(std::slice::from_raw_parts(start, n), out);
    }
}

/// Decodes at most 64 bytes of UTF-8 into 32-bit units, eight at a time.
///
/// # Safety
/// 80 bytes from `p` on must be loadable by [`load_four`]. `starts` must select well-formed
/// characters. `out` must have space for them.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn decode_four(p: *const u8, starts: u64, out: *mut u32) {
    let mut buffer = [const { MaybeUninit::<u32>::uninit() }; 64];
    let start: *mut u32 = buffer.as_mut_ptr().cast();
    let n = starts.count_ones() as usize;
    // SAFETY: no load ends more than 68 bytes after `p`. 64 bytes have at most 64 characters, so
    // all stores end inside the buffer.
    unsafe {
        let (mut left, mut at) = (starts, 0);
        // `byte` is 64 after the last start.
        let mut next = || {
            let byte = left.trailing_zeros() as usize;
            left = _blsr_u64(left);
            load_four(p.wrapping_add(byte)) as i32
        };
        while at < n {
            let bytes = fetched(&mut next);
            _mm256_storeu_si256(start.add(at).cast(), chars_of_lanes(bytes));
            at += 8;
        }
        copy(std::slice::from_raw_parts(start.cast(), 4 * n), out.cast());
    }
}

/// Stores the lanes that `mask` selects, without gaps. Stores only low bytes if `WIDE` is `false`.
///
/// # Safety
/// `to` must be writable for 16 bytes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn squeeze<const WIDE: bool>(v: __m128i, mask: u8, to: *mut u8) -> *mut u8 {
    // SAFETY: the table has 16 bytes for each mask, and `to` is writable for 16 bytes.
    unsafe {
        let order = _mm_loadu_si128(SQUEEZE_U16[usize::from(mask)].as_ptr().cast());
        let v = _mm_shuffle_epi8(v, order);
        let n = mask.count_ones() as usize;
        if WIDE {
            _mm_storeu_si128(to.cast(), v);
            return to.add(2 * n);
        }
        _mm_storel_epi64(to.cast(), _mm_packus_epi16(v, v));
        to.add(n)
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) fn is_ascii(text: &[u8]) -> bool {
    debug_assert!(text.len() <= MOST_CELL_BYTES);
    let bits = |text: &[u8]| {
        let (a, b) = load_start(text);
        let of = |v| u64::from(_mm256_movemask_epi8(v) as u32);
        (of(a) | of(b) << 32) & first(text.len())
    };
    if text.len() <= 64 {
        return bits(text) == 0;
    }
    bits(&text[..64]) | bits(&text[64..]) == 0
}
