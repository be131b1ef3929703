//! Short texts of a `str` to `bytes`: as in `cell`, at most two vectors, and inlined into work that was compiled for these
//! instructions.

use std::arch::x86_64::*;

use super::cell::{load_two, store_two, tops};
use super::swap_u16;
use super::{BYTES, Out, encode, first, load, load_first, measure, splat16, splat32, store_first};
use crate::arch::new_cell::encoded;
use crate::new_object::NewBytes;

/// What was measured must be what was written.
#[inline(always)]
fn all(written: Option<usize>, len: usize) {
    assert_eq!(written, Some(len), "the text was measured wrong");
}

type Encoded<B> = Option<Result<<B as NewBytes>::Bytes, <B as NewBytes>::Error>>;

/// Latin-1, at most 64 bytes, as UTF-16.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
    u: &[u8],
    new: &mut B,
) -> Encoded<B> {
    Some(encoded(new, 2 * u.len(), |out| {
        // SAFETY: AVX-512 is there; out takes two bytes for each unit.
        unsafe { store_up_to_two(out, widened::<SWAPPED>(u), 2 * u.len()) }
    }))
}

/// As [`store_two`]: the second vector only where something of it counts. A call has one text, and no mix to mispredict.
///
/// # Safety
/// As [`store_two`].
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn store_up_to_two(out: *mut u8, (lo, hi): (__m512i, __m512i), n_bytes: usize) {
    // SAFETY: the duty of the caller.
    unsafe {
        if n_bytes <= BYTES {
            store_first(out, lo, n_bytes);
        } else {
            store_two(out, (lo, hi), n_bytes);
        }
    }
}

/// Bytes, at most 64, as 16-bit units.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn widened<const SWAPPED: bool>(u: &[u8]) -> (__m512i, __m512i) {
    let (v, _) = load_two(u);
    let wide = |half| {
        let wide = _mm512_cvtepu8_epi16(half);
        if SWAPPED {
            _mm512_slli_epi16::<8>(wide)
        } else {
            wide
        }
    };
    (
        wide(_mm512_castsi512_si256(v)),
        wide(_mm512_extracti64x4_epi64::<1>(v)),
    )
}

/// 16-bit units, at most 64, as UTF-16; `None` where there is a surrogate.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
    u: &[u16],
    new: &mut B,
) -> Encoded<B> {
    // SAFETY: AVX-512 is there; out takes two bytes for each unit.
    unsafe {
        if tops(load_two(u), 0xF800, 0xD800) != 0 {
            return None;
        }
        Some(encoded(new, 2 * u.len(), |out| {
            let (lo, hi) = load_two(u);
            let units = if SWAPPED {
                (swap_u16(lo), swap_u16(hi))
            } else {
                (lo, hi)
            };
            store_up_to_two(out, units, 2 * u.len());
        }))
    }
}

/// 32-bit units, at most 32, as UTF-16; `None` where they cannot be encoded.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
    u: &[u32],
    new: &mut B,
) -> Encoded<B> {
    // SAFETY: AVX-512 is there; out takes two bytes for each character, and two more for each that is a pair.
    unsafe {
        let n_pairs = count_pairs(u)?;
        let len = 2 * (u.len() + n_pairs);
        Some(encoded(new, len, |out| {
            store_pairs::<SWAPPED>(out, len, u);
        }))
    }
}

/// Characters, of at most 32, that are pairs in UTF-16; `None` where one cannot be encoded.
#[inline]
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
fn count_pairs(u: &[u32]) -> Option<usize> {
    let (lo, hi) = load_two(u);
    let is_malformed = |chars| {
        let top = _mm512_and_si512(chars, splat32(0xFFFF_F800));
        let surrogate = _mm512_cmpeq_epi32_mask(top, splat32(0xD800));
        surrogate | _mm512_cmpgt_epu32_mask(chars, splat32(0x10_FFFF)) != 0
    };
    if is_malformed(lo) || is_malformed(hi) {
        return None;
    }
    Some((pairs_of(lo).count_ones() + pairs_of(hi).count_ones()) as usize)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn pairs_of(chars: __m512i) -> u16 {
    _mm512_cmpge_epu32_mask(chars, splat32(0x1_0000))
}

/// Stores well-formed text, at most 32 characters, as UTF-16.
///
/// # Safety
/// `out` is writable for its `len` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
unsafe fn store_pairs<const SWAPPED: bool>(out: *mut u8, len: usize, u: &[u32]) {
    let (lo, hi) = load_two(u);
    // SAFETY: as many bytes as the first lanes need, and all together `len`.
    unsafe {
        let mut out = Out::new(out, len);
        put_pairs::<SWAPPED>(&mut out, lo, u.len().min(16));
        if u.len() > 16 {
            put_pairs::<SWAPPED>(&mut out, hi, u.len() - 16);
        }
    }
}

/// As [`store_pairs`], of text of any length.
///
/// # Safety
/// `out` is writable for its `len` bytes.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn store_all_pairs<const SWAPPED: bool>(
    out: *mut u8,
    len: usize,
    u: &[u32],
) {
    // SAFETY: as many bytes as the first lanes need, and all together `len`; every load ends inside u.
    unsafe {
        let mut out = Out::new(out, len);
        for part in u.chunks(16) {
            let v = if part.len() == 16 {
                load(part.as_ptr().cast())
            } else {
                load_first(part.as_ptr().cast(), 4 * part.len())
            };
            put_pairs::<SWAPPED>(&mut out, v, part.len());
        }
    }
}

/// Puts the first `n` characters.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
fn put_pairs<const SWAPPED: bool>(out: &mut Out, chars: __m512i, n: usize) {
    let pairs = pairs_of(chars);
    // The first half in the lower units, the second one in the upper ones.
    let rest = _mm512_sub_epi32(chars, splat32(0x1_0000));
    let second = _mm512_slli_epi32::<16>(_mm512_and_si512(rest, splat32(0x3FF)));
    let both = _mm512_or_si512(_mm512_srli_epi32::<10>(rest), second);
    let both = _mm512_or_si512(both, splat32(0xDC00_D800));
    let units = _mm512_mask_mov_epi32(chars, pairs, both);
    let kept = 0x5555_5555 | _pdep_u32(u32::from(pairs), 0xAAAA_AAAA);
    let kept = kept & first(2 * n) as u32;
    let mut units = _mm512_maskz_compress_epi16(kept, units);
    if SWAPPED {
        units = swap_u16(units);
    }
    out.put(units, 2 * kept.count_ones() as usize);
}

/// Latin-1, at most 64 bytes, as UTF-8.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn latin1_to_utf8<B: NewBytes>(u: &[u8], new: &mut B) -> Encoded<B> {
    // SAFETY: AVX-512 is there; out takes as many bytes as the text needs.
    unsafe {
        let len = measure::latin1(u);
        Some(encoded(new, len, |out| {
            all(encode::latin1(u, out, len), len);
        }))
    }
}

/// 16-bit units, at most 64, as UTF-8; `None` where there is a surrogate.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs2_to_utf8<B: NewBytes>(u: &[u16], new: &mut B) -> Encoded<B> {
    // SAFETY: AVX-512 is there; out takes as many bytes as the text needs, which has no surrogates.
    unsafe {
        let len = utf8_len_of_ucs2(u)?;
        Some(encoded(new, len, |out| {
            all(encode::wide(u, out, len), len);
        }))
    }
}

/// Bytes of at most 64 units as UTF-8; `None` where there is a surrogate.
#[inline]
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
fn utf8_len_of_ucs2(u: &[u16]) -> Option<usize> {
    let (lo, hi) = load_two(u);
    if tops((lo, hi), 0xF800, 0xD800) != 0 {
        return None;
    }
    let more = |v, bits| _mm512_test_epi16_mask(v, splat16(bits)).count_ones() as usize;
    let more = |v| more(v, 0xFF80) + more(v, 0xF800);
    Some(u.len() + more(lo) + more(hi))
}

/// 32-bit units, at most 32, as UTF-8; `None` where they cannot be encoded.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs4_to_utf8<B: NewBytes>(u: &[u32], new: &mut B) -> Encoded<B> {
    // SAFETY: AVX-512 is there; out takes as many bytes as the text needs, which is well-formed.
    unsafe {
        let len = measure::ucs4(u)?;
        Some(encoded(new, len, |out| {
            all(encode::ucs4(u, out, len), len);
        }))
    }
}
